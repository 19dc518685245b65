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

/// A moment as people write it: `2026-11-15 14:09:24`, in UTC.
pub fn written(at: Millis) -> String {
    let seconds = at.0.div_euclid(1000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date so many days after 1970-01-01, by the calendar of 400 years with 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is a year's last.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_by_the_calendar() {
        assert_eq!(written(Millis(0)), "1970-01-01 00:00:00");
        assert_eq!(written(Millis(951_782_400_000)), "2000-02-29 00:00:00");
        assert_eq!(written(Millis(1_794_751_764_999)), "2026-11-15 14:09:24");
        assert_eq!(written(Millis(-1)), "1969-12-31 23:59:59");
    }
}
