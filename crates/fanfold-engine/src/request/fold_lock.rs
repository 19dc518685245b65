//! The lock of a session that a process needs to record folds.

use std::time::Instant;

use fanfold_store::{SessionId, Store};

use crate::clock::Clock;
use crate::lease::Lease;

/// Time after which an unreleased lock expires.
const LEASE_MS: i64 = 30_000;
/// Time to wait for a lock that another process holds.
const MAX_WAIT_MS: i64 = 3_000;
/// Time between two attempts.
const RETRY_MS: u64 = 25;

/// The outcome of an attempt to acquire the lock.
pub(crate) enum FoldLock<'a> {
    Acquired(Lease<'a>),
    /// Another process has recorded the folds in the meantime.
    NotNeeded,
    /// Locking failed. Folds are recorded all the same: at worst, one fold is recorded twice. The store may have set
    /// the lock in spite of the error, so it is released like any other.
    Failed(Lease<'a>),
    /// Another process, named here, holds the lock and does not release it in time.
    HeldByOther(String),
}

impl<'a> FoldLock<'a> {
    /// Acquires the lock of a session, and waits while another process holds it, at most until the deadline.
    /// `is_needed` is called after each wait and returns false once nothing is left to record.
    pub(crate) fn acquire<E>(
        store: &'a dyn Store,
        clock: &dyn Clock,
        session: &SessionId,
        deadline: Option<Instant>,
        mut is_needed: impl FnMut() -> Result<bool, E>,
    ) -> Result<FoldLock<'a>, E> {
        let lease = Lease::new(store, session.clone(), LEASE_MS);
        let wait_end = clock.now().0 + MAX_WAIT_MS;
        loop {
            let holder = match lease.acquire(clock) {
                Ok(None) if is_needed()? => return Ok(FoldLock::Acquired(lease)),
                Ok(None) => return Ok(FoldLock::NotNeeded),
                Ok(Some(holder)) => holder,
                Err(_) => return Ok(FoldLock::Failed(lease)),
            };
            let is_late = deadline.is_some_and(|deadline| Instant::now() > deadline);
            if is_late || clock.now().0 >= wait_end {
                return Ok(FoldLock::HeldByOther(holder));
            }
            clock.wait(RETRY_MS);
            if !is_needed()? {
                return Ok(FoldLock::NotNeeded);
            }
        }
    }
}
