//! Recalled text of a turn that may still be awaited.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The recalled text of a turn. It is decided once, so that each request of the turn gets the same text.
#[derive(Debug, Clone)]
pub struct PendingRecall {
    inner: Arc<RecallCell>,
}

#[derive(Debug)]
struct RecallCell {
    deadline: Instant,
    /// Text found for the previous turn, used if no result arrives in time.
    fallback: Option<String>,
    /// Guards the result of the search. It is only replaced as a whole, so a poisoned lock is safe to use.
    state: Mutex<RecallStage>,
    completed: Condvar,
}

#[derive(Debug)]
enum RecallStage {
    Waiting,
    Ready(Option<String>),
    Decided(Option<String>),
}

/// How the text was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecallOutcome {
    /// The search finished in time.
    InTime,
    /// The deadline passed; the fallback was used.
    Late,
    /// An earlier call decided it.
    AlreadyDecided,
}

impl PendingRecall {
    pub(crate) fn new(deadline: Instant, fallback: Option<String>) -> PendingRecall {
        let (state, completed) = (Mutex::new(RecallStage::Waiting), Condvar::new());
        PendingRecall { inner: Arc::new(RecallCell { deadline, fallback, state, completed }) }
    }

    fn state(&self) -> MutexGuard<'_, RecallStage> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the result of the search. Returns false if it is too late.
    pub(crate) fn complete(&self, text: Option<String>) -> bool {
        let mut state = self.state();
        let is_wanted = matches!(*state, RecallStage::Waiting);
        if is_wanted {
            *state = RecallStage::Ready(text);
            self.inner.completed.notify_all();
        }
        is_wanted
    }

    /// The recalled text, awaited up to the deadline. `files_text` is called once; its text comes first.
    pub(crate) fn decide(
        &self,
        files_text: impl FnOnce() -> Option<String>,
    ) -> (Option<String>, RecallOutcome) {
        let mut state = self.state();
        loop {
            let remaining = self.inner.deadline.saturating_duration_since(Instant::now());
            let (text, outcome) = match &*state {
                RecallStage::Decided(text) => return (text.clone(), RecallOutcome::AlreadyDecided),
                RecallStage::Ready(text) => (text.clone(), RecallOutcome::InTime),
                RecallStage::Waiting if remaining.is_zero() => {
                    (self.inner.fallback.clone(), RecallOutcome::Late)
                }
                RecallStage::Waiting => {
                    let waited = self.inner.completed.wait_timeout(state, remaining);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            let all: Vec<String> =
                files_text().into_iter().chain(text).filter(|text| !text.is_empty()).collect();
            let text = (!all.is_empty()).then(|| all.join("\n\n"));
            *state = RecallStage::Decided(text.clone());
            return (text, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_decision_is_final() {
        let soon = Instant::now() + Duration::from_millis(30);
        let late = PendingRecall::new(soon, Some("spare".to_owned()));
        assert_eq!(late.decide(|| Some("files".to_owned())).0.as_deref(), Some("files\n\nspare"));
        assert!(Instant::now() >= soon, "it waited for the deadline");
        assert!(!late.complete(Some("too late".to_owned())));
        let again = late.decide(|| unreachable!());
        assert_eq!((again.0.as_deref(), again.1), (Some("files\n\nspare"), RecallOutcome::AlreadyDecided));
        let in_time = PendingRecall::new(Instant::now() + Duration::from_secs(9), None);
        assert!(in_time.complete(None));
        assert_eq!(in_time.decide(|| None), (None, RecallOutcome::InTime));
    }
}
