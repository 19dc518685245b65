//! What time it is, and waiting.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanfold_store::Millis;

/// A clock, which a test may set.
pub trait Clock: Send + Sync {
    /// What time it is.
    fn now(&self) -> Millis;

    /// Waits for so many milliseconds.
    fn wait(&self, ms: u64);
}

/// The machine's clock.
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

/// A few random hexadecimal digits. The standard library seeds its hash maps from the system's randomness.
pub(crate) fn random_word() -> String {
    format!("{:08x}", RandomState::new().hash_one(0u8) as u32)
}
