//! A store that fails once, at the n-th thing it is asked.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_store::{
    Batch, BlobId, CommitSummary, EventRow, LockOutcome, Millis, Node, NodeId, SessionFilter, SessionId,
    SessionRow, Store, StoreError, StoreSize,
};

/// When the failure comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before anything is done.
    Before,
    /// When it is done: the answer is lost.
    After,
}

/// A store that fails once.
pub(crate) struct Faulty {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) n_asked: AtomicUsize,
    pub(crate) fails_at: usize,
    pub(crate) when: When,
    /// Whether locks fail, always.
    pub(crate) has_broken_locks: bool,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Store>, fails_at: usize, when: When) -> Faulty {
        Faulty { inner, n_asked: AtomicUsize::new(0), fails_at, when, has_broken_locks: false }
    }

    /// Whether the failure has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.n_asked.load(Ordering::SeqCst) > self.fails_at
    }

    fn ask<T>(&self, ask: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let is_due = self.n_asked.fetch_add(1, Ordering::SeqCst) == self.fails_at;
        if is_due && self.when == When::Before {
            return Err(StoreError::DiskFull);
        }
        let answer = ask(&*self.inner);
        if is_due { Err(StoreError::DiskFull) } else { answer }
    }
}

impl Store for Faulty {
    fn search(
        &self,
        find: &fanfold_store::search::SearchSpec,
    ) -> Result<fanfold_store::search::SearchHits, StoreError> {
        self.ask(|store| store.search(find))
    }

    fn check(&self, care: fanfold_store::CheckMode) -> Result<Vec<fanfold_store::Finding>, StoreError> {
        self.ask(|store| store.check(care))
    }

    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError> {
        self.ask(|store| store.commit(batch))
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.ask(|store| store.session(id))
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(|store| store.sessions(filter))
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError> {
        self.ask(|store| store.chain(tip, depths))
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        self.ask(|store| store.node(id))
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>, StoreError> {
        self.ask(|store| store.node_by_number(number))
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError> {
        self.ask(|store| store.owners(node))
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>, StoreError> {
        self.ask(|store| store.events(session, from))
    }

    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask(|store| store.blob(id))
    }

    fn named_value(&self, name: &str) -> Result<Option<i64>, StoreError> {
        self.ask(|store| store.named_value(name))
    }

    fn lock(
        &self,
        session: &SessionId,
        holder: &str,
        lease_ms: i64,
        now: Millis,
    ) -> Result<LockOutcome, StoreError> {
        if self.has_broken_locks {
            return Err(StoreError::Corrupt("locks".into()));
        }
        self.ask(|store| store.lock(session, holder, lease_ms, now))
    }

    fn unlock(&self, session: &SessionId, holder: &str) -> Result<(), StoreError> {
        self.ask(|store| store.unlock(session, holder))
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        self.ask(|store| store.collect_garbage())
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.ask(|store| store.size())
    }
}
