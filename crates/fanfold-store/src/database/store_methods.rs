//! The [`crate::Store`] methods that SQLite and PostgreSQL share.

/// Implements the methods that only read tables or take locks, through the store's `read_sql` and `write_sql`.
macro_rules! sql_store_methods {
    () => {
        fn session(&self, id: &crate::SessionId) -> Result<Option<crate::SessionRow>, crate::StoreError> {
            self.read_sql(|sql| Ok(crate::database::tables::session(sql, id)?.map(|session| session.row)))
        }

        fn sessions(
            &self,
            filter: &crate::SessionFilter,
        ) -> Result<Vec<crate::SessionRow>, crate::StoreError> {
            self.read_sql(|sql| crate::database::tables::sessions(sql, filter))
        }

        fn chain(
            &self,
            tip: crate::NodeId,
            depths: std::ops::Range<u32>,
        ) -> Result<Vec<crate::Node>, crate::StoreError> {
            self.read_sql(|sql| crate::database::chain::chain(sql, tip, depths.clone()))
        }

        fn node(&self, id: crate::NodeId) -> Result<Option<crate::Node>, crate::StoreError> {
            self.read_sql(|sql| crate::database::chain::node(sql, id))
        }

        fn node_by_number(&self, number: u64) -> Result<Option<crate::Node>, crate::StoreError> {
            self.read_sql(|sql| crate::database::chain::node_by_number(sql, number))
        }

        fn owners(&self, node: crate::NodeId) -> Result<Vec<crate::SessionId>, crate::StoreError> {
            self.read_sql(|sql| crate::database::chain::owners(sql, node))
        }

        fn events(
            &self,
            session: &crate::SessionId,
            from: u32,
        ) -> Result<Vec<crate::EventRow>, crate::StoreError> {
            self.read_sql(|sql| crate::database::tables::events(sql, session, from))
        }

        fn blob(&self, id: crate::BlobId) -> Result<Option<Vec<u8>>, crate::StoreError> {
            self.read_sql(|sql| crate::database::tables::blob(sql, id))
        }

        fn named_value(&self, name: &str) -> Result<Option<i64>, crate::StoreError> {
            self.read_sql(|sql| crate::database::named_values::get(sql, name))
        }

        fn lock(
            &self,
            session: &crate::SessionId,
            holder: &str,
            lease_ms: i64,
            now: crate::Millis,
        ) -> Result<crate::LockOutcome, crate::StoreError> {
            self.write_sql(|sql| crate::database::locks::lock(sql, session, holder, lease_ms, now))
        }

        fn unlock(&self, session: &crate::SessionId, holder: &str) -> Result<(), crate::StoreError> {
            self.write_sql(|sql| crate::database::locks::unlock(sql, session, holder))
        }
    };
}
pub(crate) use sql_store_methods;
