//! Chooses the model that is called next, and what a failure means. It has no effects: time and failures are passed
//! in.
//!
//! ```text
//! summary model --fails--> main model --fails--> the record alone
//!      |                        |
//!      +--- credential ---------+--------------> abort: nothing changes
//! ```

use std::time::Duration;

use fanfold_provider::ErrorClass;
use fanfold_store::Millis;

use crate::log::backoff::Backoff;

/// Backoff after a truncated or empty answer.
const BROKEN_MS: i64 = 30_000;
/// Backoff after any other failure.
const OTHER_MS: i64 = 60_000;
/// Backoff after the first, second and every later consecutive timeout.
const TIMEOUTS_MS: [i64; 3] = [60_000, 300_000, 900_000];
/// Maximum backoff that a provider can request with `Retry-After`.
const MAX_RETRY_AFTER_MS: i64 = 3_600_000;

/// Why an attempt produced no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The provider failed; the delay is its `Retry-After`.
    Provider(ErrorClass, Option<Duration>),
    /// The answers were rejected.
    Rejected,
}

impl FailureKind {
    /// True if the user must fix a credential or an account.
    fn is_access_error(self) -> bool {
        matches!(self, FailureKind::Provider(ErrorClass::Auth | ErrorClass::Quota, _))
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            FailureKind::Provider(_, retry_after) => retry_after,
            FailureKind::Rejected => None,
        }
    }
}

impl Backoff {
    /// The backoff after a failure. `before` is the model's previous one.
    pub(crate) fn after(failure: FailureKind, before: Option<&Backoff>, now: Millis, why: String) -> Backoff {
        let is_timeout = matches!(failure, FailureKind::Provider(ErrorClass::Timeout, _));
        let n_timeouts =
            if is_timeout { before.map_or(0, |before| before.n_timeouts).saturating_add(1) } else { 0 };
        let default_ms = match failure {
            FailureKind::Provider(ErrorClass::Timeout, _) => {
                TIMEOUTS_MS[(n_timeouts as usize).clamp(1, TIMEOUTS_MS.len()) - 1]
            }
            FailureKind::Provider(ErrorClass::Broken | ErrorClass::Empty, _) => BROKEN_MS,
            FailureKind::Provider(..) | FailureKind::Rejected => OTHER_MS,
        };
        let retry_after = failure.retry_after();
        let retry_after_ms =
            retry_after.map_or(0, |delay| i64::try_from(delay.as_millis()).unwrap_or(i64::MAX));
        let until = now.0.saturating_add(default_ms.max(retry_after_ms.min(MAX_RETRY_AFTER_MS)));
        Backoff { until, n_timeouts, is_access_error: failure.is_access_error(), why }
    }
}

/// The rules of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FallbackRules {
    /// True if a person requested the job. Then backoffs are ignored.
    pub(crate) is_by_hand: bool,
    /// True if any failure leaves the session unchanged.
    pub(crate) abort_on_failure: bool,
}

/// The next action after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FallbackAction {
    /// Call the model with this index.
    Ask(usize),
    /// End the job.
    Stop(FailureEffect),
}

/// The effect of a job without a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureEffect {
    /// Nothing changes.
    Abort,
    /// A fold goes ahead with the record alone.
    Digest,
}

/// The position of a job in its list of models.
#[derive(Debug, Clone)]
pub(crate) struct FallbackChain {
    /// For each model, whether it is skipped because of a backoff.
    is_skipped: Vec<bool>,
    current: usize,
    rules: FallbackRules,
}

impl FallbackChain {
    /// Starts with the first model that has no backoff, or returns the backoff that prevents the job. There is at
    /// least one model.
    pub(crate) fn start(
        backoffs: &[Option<Backoff>],
        rules: FallbackRules,
        now: Millis,
    ) -> Result<FallbackChain, Backoff> {
        let is_active = |backoff: &&Backoff| !rules.is_by_hand && !backoff.is_over(now);
        let active: Vec<Option<&Backoff>> =
            backoffs.iter().map(|backoff| backoff.as_ref().filter(is_active)).collect();
        let first = active.iter().position(Option::is_none);
        // Only a person can fix a credential, and calling another model would hide the problem.
        let access_error = active.iter().flatten().find(|backoff| backoff.is_access_error);
        let shortest = || active.iter().flatten().min_by_key(|backoff| backoff.until);
        match (first, access_error) {
            (Some(current), None) => {
                let is_skipped = active.iter().map(Option::is_some).collect();
                Ok(FallbackChain { is_skipped, current, rules })
            }
            (_, Some(backoff)) => Err((*backoff).clone()),
            (None, None) => {
                Err(shortest().map(|backoff| (*backoff).clone()).expect("there is a model with a backoff"))
            }
        }
    }

    /// The index of the model to call.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Moves on after a failure of the current model.
    pub(crate) fn after_failure(&mut self, failure: FailureKind) -> FallbackAction {
        if failure.is_access_error() {
            return FallbackAction::Stop(FailureEffect::Abort);
        }
        let next = (self.current + 1..self.is_skipped.len()).find(|model| !self.is_skipped[*model]);
        if let Some(next) = next {
            self.current = next;
            return FallbackAction::Ask(next);
        }
        let is_abort = self.rules.abort_on_failure;
        FallbackAction::Stop(if is_abort { FailureEffect::Abort } else { FailureEffect::Digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKGROUND: FallbackRules = FallbackRules { is_by_hand: false, abort_on_failure: false };
    const BY_HAND: FallbackRules = FallbackRules { is_by_hand: true, abort_on_failure: false };
    const NOW: Millis = Millis(1_000_000);

    fn failure(class: ErrorClass) -> FailureKind {
        FailureKind::Provider(class, None)
    }

    fn backoff(failure: FailureKind, before: Option<&Backoff>) -> Backoff {
        Backoff::after(failure, before, NOW, String::new())
    }

    fn seconds(backoff: &Backoff) -> i64 {
        (backoff.until - NOW.0) / 1000
    }

    #[test]
    fn backoff_grows_with_consecutive_timeouts() {
        let mut before = None;
        let mut all = Vec::new();
        for _ in 0..5 {
            let next = backoff(failure(ErrorClass::Timeout), before.as_ref());
            all.push(seconds(&next));
            before = Some(next);
        }
        assert_eq!(all, [60, 300, 900, 900, 900]);
        // Another kind of failure resets the count.
        let other = backoff(failure(ErrorClass::Server), before.as_ref());
        let after_other = backoff(failure(ErrorClass::Timeout), Some(&other));
        assert_eq!((seconds(&other), seconds(&after_other)), (60, 60));
    }

    #[test]
    fn backoff_depends_on_the_error_class() {
        let all = [
            (ErrorClass::Broken, 30),
            (ErrorClass::Empty, 30),
            (ErrorClass::Auth, 60),
            (ErrorClass::Quota, 60),
            (ErrorClass::Rate, 60),
            (ErrorClass::Overflow, 60),
            (ErrorClass::Connection, 60),
            (ErrorClass::NoModel, 60),
            (ErrorClass::Refused, 60),
            (ErrorClass::Server, 60),
            (ErrorClass::Timeout, 60),
        ];
        for (class, expected) in all {
            assert_eq!(seconds(&backoff(failure(class), None)), expected, "{class:?}");
        }
        assert_eq!(seconds(&backoff(FailureKind::Rejected, None)), 60);
    }

    #[test]
    fn retry_after_extends_the_backoff_up_to_an_hour() {
        let after = |s| backoff(FailureKind::Provider(ErrorClass::Rate, Some(Duration::from_secs(s))), None);
        assert_eq!([7, 61, 600, 10_000_000].map(|s| seconds(&after(s))), [60, 61, 600, 3600]);
    }

    #[test]
    fn the_main_model_follows_the_summary_model_and_then_the_digest() {
        let mut chain = FallbackChain::start(&[None, None], BACKGROUND, NOW).unwrap();
        assert_eq!(chain.current(), 0);
        assert_eq!(chain.after_failure(failure(ErrorClass::NoModel)), FallbackAction::Ask(1));
        let last = chain.after_failure(failure(ErrorClass::Server));
        assert_eq!(last, FallbackAction::Stop(FailureEffect::Digest));
    }

    #[test]
    fn abort_on_failure_aborts_after_the_last_model() {
        let rules = FallbackRules { abort_on_failure: true, ..BACKGROUND };
        let mut chain = FallbackChain::start(&[None], rules, NOW).unwrap();
        let action = chain.after_failure(FailureKind::Rejected);
        assert_eq!(action, FallbackAction::Stop(FailureEffect::Abort));
    }

    #[test]
    fn a_credential_error_of_any_model_aborts() {
        let abort = FallbackAction::Stop(FailureEffect::Abort);
        for class in [ErrorClass::Auth, ErrorClass::Quota] {
            let mut chain = FallbackChain::start(&[None, None], BACKGROUND, NOW).unwrap();
            assert_eq!(chain.after_failure(failure(class)), abort);
            let mut chain = FallbackChain::start(&[None, None], BY_HAND, NOW).unwrap();
            assert_eq!(chain.after_failure(failure(ErrorClass::Broken)), FallbackAction::Ask(1));
            assert_eq!(chain.after_failure(failure(class)), abort);
        }
    }

    #[test]
    fn a_model_in_backoff_is_skipped_except_by_hand() {
        let active = Some(backoff(failure(ErrorClass::Timeout), None));
        let backoffs = [active.clone(), None];
        assert_eq!(FallbackChain::start(&backoffs, BACKGROUND, NOW).unwrap().current(), 1);
        assert_eq!(FallbackChain::start(&backoffs, BY_HAND, NOW).unwrap().current(), 0);
        let later = Millis(NOW.0 + 60_000);
        assert_eq!(FallbackChain::start(&backoffs, BACKGROUND, later).unwrap().current(), 0);
        // With the main model in backoff, no model follows the summary model.
        let mut chain = FallbackChain::start(&[None, active], BACKGROUND, NOW).unwrap();
        let action = chain.after_failure(failure(ErrorClass::Server));
        assert_eq!(action, FallbackAction::Stop(FailureEffect::Digest));
    }

    #[test]
    fn with_all_models_in_backoff_the_shortest_backoff_is_returned() {
        let long = backoff(failure(ErrorClass::Server), None);
        let short = backoff(failure(ErrorClass::Broken), None);
        let returned = FallbackChain::start(&[Some(long), Some(short.clone())], BACKGROUND, NOW).unwrap_err();
        assert_eq!(returned, short);
    }

    #[test]
    fn a_backoff_for_a_credential_is_not_bypassed_by_another_model() {
        let refused = backoff(failure(ErrorClass::Auth), None);
        let returned = FallbackChain::start(&[Some(refused.clone()), None], BACKGROUND, NOW).unwrap_err();
        assert_eq!(returned, refused);
    }
}
