//! Whether to ask again, and when: full jitter, a provider's own wish, and never beyond the deadline.

use std::time::Duration;

use crate::error::ProviderError;

/// The first pause is at most this long, each further one at most twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// Who asks to be left alone for longer is not waited for.
const MAX_REQUESTED_DELAY: Duration = Duration::from_secs(60);

/// How long to wait before asking again; none if that is no use.
pub(crate) fn retry_pause(fault: &ProviderError, n_retries: u32, left: Duration) -> Option<Duration> {
    if !fault.is_transient {
        return None;
    }
    let most = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(n_retries)).min(MAX_PAUSE);
    // Full jitter: those who failed together do not come back together.
    let jitter = most.mul_f64(fastrand::f64());
    let pause = match fault.retry_after {
        Some(wish) if wish > MAX_REQUESTED_DELAY => return None,
        Some(wish) => wish + jitter.min(FIRST_PAUSE),
        None => jitter,
    };
    (pause < left).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn pauses_grow_jitter_and_end() {
        let minute = Duration::from_secs(60);
        let fault = ProviderError::new(ErrorClass::Server, "").transient();
        for n_retries in 0..40 {
            let most = FIRST_PAUSE * 2u32.pow(n_retries.min(6));
            for _ in 0..50 {
                assert!(retry_pause(&fault, n_retries, minute).unwrap() <= most.min(MAX_PAUSE));
            }
        }
        let pauses: Vec<Duration> = (0..50).filter_map(|_| retry_pause(&fault, 3, minute)).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "they are not all alike");
        assert_eq!(retry_pause(&ProviderError::new(ErrorClass::Auth, ""), 0, minute), None);
        let wishing = |wish| ProviderError { retry_after: Some(Duration::from_secs(wish)), ..fault.clone() };
        assert!(retry_pause(&wishing(7), 0, minute) >= Some(Duration::from_secs(7)));
        assert_eq!(retry_pause(&wishing(7), 0, Duration::from_secs(7)), None, "the deadline comes first");
        assert_eq!(retry_pause(&wishing(3600), 0, minute * 1000), None);
    }
}
