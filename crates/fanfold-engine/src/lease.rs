//! Named locks in the store, shared by all processes. A lease expires, so that a crashed process does not block others
//! for long.

use fanfold_store::{LockOutcome, SessionId, Store, StoreError};

use crate::clock::{Clock, random_word};

/// A lease of a named lock, released on drop.
pub(crate) struct Lease<'a> {
    store: &'a dyn Store,
    key: SessionId,
    holder: String,
    duration_ms: i64,
}

impl<'a> Lease<'a> {
    /// A lease that is not acquired yet.
    pub(crate) fn new(store: &'a dyn Store, key: SessionId, duration_ms: i64) -> Lease<'a> {
        Lease { store, key, holder: new_holder(), duration_ms }
    }

    /// Acquires or renews the lease. Returns the holder if another process holds it. The lease of a dead process is
    /// taken over.
    pub(crate) fn acquire(&self, clock: &dyn Clock) -> Result<Option<String>, StoreError> {
        let Some(holder) = self.try_lock(clock)? else { return Ok(None) };
        if !is_dead(&holder) {
            return Ok(Some(holder));
        }
        self.store.unlock(&self.key, &holder)?;
        self.try_lock(clock)
    }

    /// Locks once. Returns the name of another holder, if the lock has one.
    fn try_lock(&self, clock: &dyn Clock) -> Result<Option<String>, StoreError> {
        match self.store.lock(&self.key, &self.holder, self.duration_ms, clock.now())? {
            LockOutcome::Acquired(_) => Ok(None),
            LockOutcome::HeldByOther(other) => Ok(Some(other.holder)),
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // A lease that can't be released expires, but other processes have to wait until then, so try twice.
        let unlock = || self.store.unlock(&self.key, &self.holder);
        let _ = unlock().or_else(|_| unlock());
    }
}

/// The name of a new lock holder: host, process id, and a random word.
fn new_holder() -> String {
    format!("{}-{}-{}", host(), std::process::id(), random_word())
}

/// Returns true if a lock holder is a process of this machine that no longer exists. False where that is unknown.
fn is_dead(holder: &str) -> bool {
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
