//! Repeats attempts with pauses.

use std::ops::Range;
use std::time::Duration;

use crate::store::StoreError;

/// The number of attempts and the pauses between them.
pub(crate) struct RetryPolicy {
    /// The maximum number of attempts.
    pub(crate) tries: u32,
    /// The range of the random pause after the first attempt, in milliseconds.
    pub(crate) pause_ms: Range<u64>,
    /// The number of times that the pause doubles after later attempts.
    pub(crate) n_doublings: u32,
}

/// The result of one attempt.
pub(crate) enum AttemptResult<T> {
    /// The result is final, unless it is [`StoreError::Busy`].
    Final(Result<T, StoreError>),
    /// The attempt failed for a reason that may pass.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only a connection to a server can break")
    )]
    Retry(StoreError),
}

impl RetryPolicy {
    /// Repeats an attempt until its result is final. Returns the last error after too many attempts.
    pub(crate) fn retry<T>(&self, mut attempt: impl FnMut() -> AttemptResult<T>) -> Result<T, StoreError> {
        let mut n_tried = 0;
        loop {
            let result = attempt();
            n_tried += 1;
            let error = match result {
                AttemptResult::Final(Err(StoreError::Busy { .. })) => StoreError::Busy { tries: n_tried },
                AttemptResult::Final(result) => return result,
                AttemptResult::Retry(error) => error,
            };
            if n_tried >= self.tries {
                return Err(error);
            }
            let ms = fastrand::u64(self.pause_ms.clone()) << (n_tried - 1).min(self.n_doublings);
            std::thread::sleep(Duration::from_millis(ms));
        }
    }

    /// Repeats `work` while the database is busy.
    pub(crate) fn retry_while_busy<T>(
        &self,
        mut work: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.retry(|| AttemptResult::Final(work()))
    }
}
