//! A store that fails once, at its n-th operation, or until it is repaired.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fanfold_store::{
    Batch, BlobId, CommitSummary, EventRow, LockOutcome, Millis, Node, NodeId, SessionFilter, SessionId,
    SessionRow, Store, StoreError, StoreSize,
};

/// When an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTiming {
    /// Before the operation.
    Before,
    /// After the operation: only its result is lost.
    After,
}

/// The operations that fail until the store is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failing {
    Nothing,
    Writes,
    Everything,
}

/// A store that fails.
pub(crate) struct FaultyStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) n_calls: AtomicUsize,
    pub(crate) fails_at: usize,
    pub(crate) when: FaultTiming,
    /// True if every lock operation fails.
    pub(crate) has_broken_locks: bool,
    pub(crate) failing: Mutex<Failing>,
    /// Runs once, before a session is read.
    pub(crate) before_session: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>, fails_at: usize, when: FaultTiming) -> FaultyStore {
        let failing = Mutex::new(Failing::Nothing);
        FaultyStore {
            inner,
            n_calls: AtomicUsize::new(0),
            fails_at,
            when,
            has_broken_locks: false,
            failing,
            before_session: Mutex::new(None),
        }
    }

    pub(crate) fn fail(&self, failing: Failing) {
        *self.failing.lock().unwrap() = failing;
    }

    /// True if the failure has happened.
    pub(crate) fn has_failed(&self) -> bool {
        self.n_calls.load(Ordering::SeqCst) > self.fails_at
    }

    fn call<T>(&self, operation: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if *self.failing.lock().unwrap() == Failing::Everything {
            return Err(StoreError::Corrupt("all of it".into()));
        }
        let is_due = self.n_calls.fetch_add(1, Ordering::SeqCst) == self.fails_at;
        if is_due && self.when == FaultTiming::Before {
            return Err(StoreError::DiskFull);
        }
        let result = operation(&*self.inner);
        if is_due { Err(StoreError::DiskFull) } else { result }
    }

    fn write<T>(&self, operation: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if *self.failing.lock().unwrap() == Failing::Writes {
            return Err(StoreError::DiskFull);
        }
        self.call(operation)
    }
}

impl Store for FaultyStore {
    fn search(
        &self,
        spec: &fanfold_store::search::SearchSpec,
    ) -> Result<fanfold_store::search::SearchHits, StoreError> {
        self.call(|store| store.search(spec))
    }

    fn check(&self, mode: fanfold_store::CheckMode) -> Result<Vec<fanfold_store::Finding>, StoreError> {
        self.call(|store| store.check(mode))
    }

    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError> {
        self.write(|store| store.commit(batch))
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let hook = self.before_session.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.call(|store| store.session(id))
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        self.call(|store| store.sessions(filter))
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError> {
        self.call(|store| store.chain(tip, depths))
    }

    fn readable_chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>, StoreError> {
        self.call(|store| store.readable_chain(tip, depths))
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        self.call(|store| store.node(id))
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>, StoreError> {
        self.call(|store| store.node_by_number(number))
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError> {
        self.call(|store| store.owners(node))
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>, StoreError> {
        self.call(|store| store.events(session, from))
    }

    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        self.call(|store| store.blob(id))
    }

    fn named_value(&self, name: &str) -> Result<Option<i64>, StoreError> {
        self.call(|store| store.named_value(name))
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
        self.write(|store| store.lock(session, holder, lease_ms, now))
    }

    fn unlock(&self, session: &SessionId, holder: &str) -> Result<(), StoreError> {
        self.write(|store| store.unlock(session, holder))
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        self.write(|store| store.collect_garbage())
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.call(|store| store.size())
    }
}
