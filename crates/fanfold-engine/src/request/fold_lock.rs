//! The right to fold a session. It is given for a while only, so that a process that died holds nobody up.

use fanfold_store::{LockOutcome, SessionId, Store};

use crate::clock::{Clock, random_word};

/// How long the right lasts when nobody gives it back.
const LEASE_MS: i64 = 30_000;
/// How long another one is waited for.
const PATIENCE_MS: i64 = 3_000;
/// How long between two looks.
const PAUSE_MS: u64 = 25;

/// The right to fold, given back when it goes.
pub(crate) struct FoldLock<'a> {
    store: &'a dyn Store,
    session: SessionId,
    holder: String,
}

/// Whether it was got.
pub(crate) enum Got<'a> {
    /// It is ours.
    Ours(FoldLock<'a>),
    /// Somebody else has done meanwhile what it was wanted for.
    NotNeeded,
    /// Somebody else has it, and does not give it back.
    Theirs(String),
}

impl<'a> FoldLock<'a> {
    /// Takes the right to fold a session. While another one has it, waits shortly; `is_needed` looks again whether
    /// there is still something to do.
    pub(crate) fn take<E>(
        store: &'a dyn Store,
        clock: &dyn Clock,
        session: &SessionId,
        mut is_needed: impl FnMut() -> Result<bool, E>,
    ) -> Result<Got<'a>, E> {
        let holder = new_holder();
        let patient_until = clock.now().0 + PATIENCE_MS;
        loop {
            let now = clock.now();
            match store.lock(session, &holder, LEASE_MS, now) {
                Ok(LockOutcome::Acquired(_)) => {
                    let lock = FoldLock { store, session: session.clone(), holder };
                    return Ok(if is_needed()? { Got::Ours(lock) } else { Got::NotNeeded });
                }
                Ok(LockOutcome::HeldByOther(lock)) => {
                    if is_dead(&lock.holder) {
                        let _ = store.unlock(session, &lock.holder);
                    }
                    if now.0 >= patient_until {
                        return Ok(Got::Theirs(lock.holder));
                    }
                    clock.wait(PAUSE_MS);
                    if !is_needed()? {
                        return Ok(Got::NotNeeded);
                    }
                }
                // A broken lock must not stop anybody: at worst one fold is noted twice. It may have been given all the
                // same, so it is given back.
                Err(_) => return Ok(Got::Ours(FoldLock { store, session: session.clone(), holder })),
            }
        }
    }
}

impl Drop for FoldLock<'_> {
    fn drop(&mut self) {
        // If it can't be given back it ends by itself, but others would wait for that.
        let _ = self
            .store
            .unlock(&self.session, &self.holder)
            .or_else(|_| self.store.unlock(&self.session, &self.holder));
    }
}

/// A name for whoever takes a lock: host, process, and a random word.
pub(crate) fn new_holder() -> String {
    format!("{}-{}-{}", host(), std::process::id(), random_word())
}

/// Whether a holder was a process of this machine that is no more. Where that can't be told, it lives.
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
    fn a_process_that_is_no_more_is_dead() {
        let holder = |pid: u32| format!("{}-{pid}-0a1b2c3d", host());
        assert!(!is_dead(&holder(std::process::id())));
        assert!(!is_dead("another-machine-1-0a1b2c3d") && !is_dead("somebody") && !is_dead(""));
        // No process has this number: it is above the largest that Linux gives.
        assert_eq!(is_dead(&holder(u32::MAX)), std::path::Path::new("/proc/self").exists());
    }
}
