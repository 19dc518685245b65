//! What a store with tables answers in the same way wherever they are.

/// The methods of a [`crate::Store`] that only read tables or take locks, by its `reading` and `writing`.
macro_rules! by_tables {
    () => {
        fn session(&self, id: &crate::SessionId) -> Result<Option<crate::SessionRow>, crate::StoreError> {
            self.reading(|sql| Ok(crate::tables::session(sql, id)?.map(|session| session.row)))
        }

        fn sessions(&self, filter: &crate::Filter) -> Result<Vec<crate::SessionRow>, crate::StoreError> {
            self.reading(|sql| crate::tables::sessions(sql, filter))
        }

        fn chain(
            &self,
            tip: crate::NodeId,
            depths: std::ops::Range<u32>,
        ) -> Result<Vec<crate::Node>, crate::StoreError> {
            self.reading(|sql| crate::lanes::chain(sql, tip, depths.clone()))
        }

        fn node(&self, id: crate::NodeId) -> Result<Option<crate::Node>, crate::StoreError> {
            self.reading(|sql| crate::lanes::node(sql, id))
        }

        fn numbered(&self, number: u64) -> Result<Option<crate::Node>, crate::StoreError> {
            self.reading(|sql| crate::lanes::numbered(sql, number))
        }

        fn owners(&self, node: crate::NodeId) -> Result<Vec<crate::SessionId>, crate::StoreError> {
            self.reading(|sql| crate::lanes::owners(sql, node))
        }

        fn events(
            &self,
            session: &crate::SessionId,
            from: u32,
        ) -> Result<Vec<crate::EventRow>, crate::StoreError> {
            self.reading(|sql| crate::tables::events_of(sql, session, from))
        }

        fn blob(&self, id: crate::BlobId) -> Result<Option<Vec<u8>>, crate::StoreError> {
            self.reading(|sql| crate::tables::blob(sql, id))
        }

        fn mark(&self, name: &str) -> Result<Option<i64>, crate::StoreError> {
            self.reading(|sql| crate::marks::get(sql, name))
        }

        fn lock(
            &self,
            session: &crate::SessionId,
            holder: &str,
            lease_ms: i64,
            now: crate::Millis,
        ) -> Result<crate::Held, crate::StoreError> {
            self.writing(|sql| crate::locks::lock(sql, session, holder, lease_ms, now))
        }

        fn unlock(&self, session: &crate::SessionId, holder: &str) -> Result<(), crate::StoreError> {
            self.writing(|sql| crate::locks::unlock(sql, session, holder))
        }
    };
}
pub(crate) use by_tables;
