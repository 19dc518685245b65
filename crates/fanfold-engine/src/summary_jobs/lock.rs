//! One errand for a session at a time, whoever runs it.

use fanfold_store::{LockOutcome, SessionId, Store, StoreError};

use crate::clock::Clock;
use crate::request::fold_lock::{is_dead, new_holder};

/// How long the right lasts when nobody gives it back: longer than one answer is waited for.
const LEASE_MS: i64 = 1_200_000;

/// The right to run an errand, given back when it goes.
pub(crate) struct ErrandLock<'a> {
    store: &'a dyn Store,
    key: SessionId,
    holder: String,
}

impl<'a> ErrandLock<'a> {
    /// Takes it, or says who has it. Nobody waits: the other one's summary is as good.
    pub(crate) fn take(
        store: &'a dyn Store,
        clock: &dyn Clock,
        session: &SessionId,
    ) -> Result<Result<ErrandLock<'a>, String>, StoreError> {
        // Folds have the session's own lock, and must not wait for a model.
        let key = SessionId(format!("errand of {session}"));
        let lock = ErrandLock { store, key, holder: new_holder() };
        for _ in 0..2 {
            match store.lock(&lock.key, &lock.holder, LEASE_MS, clock.now())? {
                LockOutcome::Acquired(_) => return Ok(Ok(lock)),
                LockOutcome::HeldByOther(theirs) if is_dead(&theirs.holder) => {
                    store.unlock(&lock.key, &theirs.holder)?
                }
                LockOutcome::HeldByOther(theirs) => return Ok(Err(theirs.holder)),
            }
        }
        Ok(Err("somebody else".to_owned()))
    }

    /// Keeps it for another while. What fails here ends by itself.
    pub(crate) fn prolong(&self, clock: &dyn Clock) {
        let _ = self.store.lock(&self.key, &self.holder, LEASE_MS, clock.now());
    }
}

impl Drop for ErrandLock<'_> {
    fn drop(&mut self) {
        let _ = self
            .store
            .unlock(&self.key, &self.holder)
            .or_else(|_| self.store.unlock(&self.key, &self.holder));
    }
}
