//! A lock per session, so that one summary job at a time runs for it in all processes.

use fanfold_store::{LockOutcome, SessionId, Store, StoreError};

use crate::clock::Clock;
use crate::request::fold_lock::{is_dead, new_holder};

/// The lease of the lock. It is longer than the timeout of one answer.
const LEASE_MS: i64 = 1_200_000;

/// The lock of a session's summary job, released on drop.
pub(crate) struct SummaryLock<'a> {
    store: &'a dyn Store,
    key: SessionId,
    holder: String,
}

impl<'a> SummaryLock<'a> {
    /// Acquires the lock, or returns its holder. It does not wait, because the holder's summary is as good.
    pub(crate) fn acquire(
        store: &'a dyn Store,
        clock: &dyn Clock,
        session: &SessionId,
    ) -> Result<Result<SummaryLock<'a>, String>, StoreError> {
        // Folds hold the session's own lock. They must not wait for a model, so a summary has a lock of its own.
        let key = SessionId(format!("errand of {session}"));
        let lock = SummaryLock { store, key, holder: new_holder() };
        for _ in 0..2 {
            match store.lock(&lock.key, &lock.holder, LEASE_MS, clock.now())? {
                LockOutcome::Acquired(_) => return Ok(Ok(lock)),
                LockOutcome::HeldByOther(other) if is_dead(&other.holder) => {
                    store.unlock(&lock.key, &other.holder)?
                }
                LockOutcome::HeldByOther(other) => return Ok(Err(other.holder)),
            }
        }
        Ok(Err("another process".to_owned()))
    }

    /// Renews the lease. On an error the lease runs out by itself.
    pub(crate) fn renew(&self, clock: &dyn Clock) {
        let _ = self.store.lock(&self.key, &self.holder, LEASE_MS, clock.now());
    }
}

impl Drop for SummaryLock<'_> {
    fn drop(&mut self) {
        let _ = self
            .store
            .unlock(&self.key, &self.holder)
            .or_else(|_| self.store.unlock(&self.key, &self.holder));
    }
}
