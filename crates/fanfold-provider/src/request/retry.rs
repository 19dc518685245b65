//! Decides whether and when to retry: exponential backoff with full jitter, or the requested delay, within a deadline.

use std::time::Duration;

use crate::error::ProviderError;

/// Maximum length of the first pause, which doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// A longer requested delay is not waited for.
const MAX_REQUESTED_DELAY: Duration = Duration::from_secs(60);

/// The pause before the next retry; `None` if a retry is useless or too late.
pub(crate) fn retry_pause(error: &ProviderError, n_retries: u32, remaining: Duration) -> Option<Duration> {
    if !error.is_transient {
        return None;
    }
    let max_jitter = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(n_retries)).min(MAX_PAUSE);
    // Full jitter, so that clients that failed together do not retry together.
    let jitter = max_jitter.mul_f64(fastrand::f64());
    let pause = match error.retry_after {
        Some(delay) if delay > MAX_REQUESTED_DELAY => return None,
        Some(delay) => delay + jitter.min(FIRST_PAUSE),
        None => jitter,
    };
    (pause < remaining).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn pauses_grow_jitter_and_end() {
        let minute = Duration::from_secs(60);
        let error = ProviderError::new(ErrorClass::Server, "").transient();
        for n_retries in 0..40 {
            let max_jitter = FIRST_PAUSE * 2u32.pow(n_retries.min(6));
            for _ in 0..50 {
                assert!(retry_pause(&error, n_retries, minute).unwrap() <= max_jitter.min(MAX_PAUSE));
            }
        }
        let pauses: Vec<Duration> = (0..50).filter_map(|_| retry_pause(&error, 3, minute)).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "pauses are random");
        assert_eq!(retry_pause(&ProviderError::new(ErrorClass::Auth, ""), 0, minute), None);
        let delayed =
            |delay| ProviderError { retry_after: Some(Duration::from_secs(delay)), ..error.clone() };
        assert!(retry_pause(&delayed(7), 0, minute) >= Some(Duration::from_secs(7)));
        assert_eq!(retry_pause(&delayed(7), 0, Duration::from_secs(7)), None, "no retry after the deadline");
        assert_eq!(retry_pause(&delayed(3600), 0, minute * 1000), None);
    }
}
