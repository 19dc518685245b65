//! The lock of a session that a process needs to record folds. It is a lease, so that a crashed process does not
//! block others for long.

use std::time::Instant;

use fanfold_store::{LockOutcome, SessionId, Store};

use crate::clock::{Clock, random_word};

/// Time after which an unreleased lock expires.
const LEASE_MS: i64 = 30_000;
/// Time to wait for a lock that another process holds.
const MAX_WAIT_MS: i64 = 3_000;
/// Time between two attempts.
const RETRY_MS: u64 = 25;

/// The lock, released on drop.
pub(crate) struct FoldLock<'a> {
    store: &'a dyn Store,
    session: SessionId,
    holder: String,
}

/// The outcome of an attempt to acquire the lock.
pub(crate) enum FoldLockOutcome<'a> {
    Acquired(FoldLock<'a>),
    /// Another process has recorded the folds in the meantime.
    NotNeeded,
    /// Locking failed. Folds are recorded all the same: at worst, one fold is recorded twice. The store may have set
    /// the lock in spite of the error, so it is released like any other.
    Failed(FoldLock<'a>),
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
    ) -> Result<FoldLockOutcome<'a>, E> {
        let holder = new_holder();
        let wait_end = clock.now().0 + MAX_WAIT_MS;
        loop {
            let now = clock.now();
            match store.lock(session, &holder, LEASE_MS, now) {
                Ok(LockOutcome::Acquired(_)) => {
                    let lock = FoldLock { store, session: session.clone(), holder };
                    return Ok(if is_needed()? {
                        FoldLockOutcome::Acquired(lock)
                    } else {
                        FoldLockOutcome::NotNeeded
                    });
                }
                Ok(LockOutcome::HeldByOther(lock)) => {
                    if is_dead(&lock.holder) {
                        let _ = store.unlock(session, &lock.holder);
                    }
                    let is_late = deadline.is_some_and(|deadline| Instant::now() > deadline);
                    if is_late || now.0 >= wait_end {
                        return Ok(FoldLockOutcome::HeldByOther(lock.holder));
                    }
                    clock.wait(RETRY_MS);
                    if !is_needed()? {
                        return Ok(FoldLockOutcome::NotNeeded);
                    }
                }
                Err(_) => {
                    let lock = FoldLock { store, session: session.clone(), holder };
                    return Ok(FoldLockOutcome::Failed(lock));
                }
            }
        }
    }
}

impl Drop for FoldLock<'_> {
    fn drop(&mut self) {
        // A lock that can't be released expires, but other processes have to wait until then, so try twice.
        let _ = self
            .store
            .unlock(&self.session, &self.holder)
            .or_else(|_| self.store.unlock(&self.session, &self.holder));
    }
}

/// The name of a new lock holder: host, process id, and a random word.
pub(crate) fn new_holder() -> String {
    format!("{}-{}-{}", host(), std::process::id(), random_word())
}

/// Returns true if a lock holder is a process of this machine that no longer exists. False where that is unknown.
pub(crate) fn is_dead(holder: &str) -> bool {
    let pid = holder.strip_prefix(&host()).and_then(|rest| rest.strip_prefix('-')?.split('-').next());
    let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
    let processes = std::path::Path::new("/proc");
    processes.join("self").exists() && pid.is_some_and(|pid| !processes.join(pid.to_string()).exists())
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(40).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_without_a_process_is_dead() {
        let holder = |pid: u32| format!("{}-{pid}-0a1b2c3d", host());
        assert!(!is_dead(&holder(std::process::id())));
        assert!(!is_dead("another-machine-1-0a1b2c3d") && !is_dead("somebody") && !is_dead(""));
        // This is above the largest process id of Linux.
        assert_eq!(is_dead(&holder(u32::MAX)), std::path::Path::new("/proc/self").exists());
    }
}
