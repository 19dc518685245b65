//! The clock: the current time, and sleeping.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanfold_store::Millis;

/// A clock; tests have one that they set.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;

    /// Sleeps for `ms` milliseconds.
    fn wait(&self, ms: u64);
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn wait(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }
}

/// Eight random hexadecimal digits, from the random seed of the standard library's hash maps.
pub(crate) fn random_word() -> String {
    format!("{:08x}", RandomState::new().hash_one(0u8) as u32)
}
