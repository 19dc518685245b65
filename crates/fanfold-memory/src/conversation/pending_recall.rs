//! The text recalled for a turn, while it is awaited and afterwards.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What is recalled for a turn. It is decided once: each request of the turn gets the same text.
#[derive(Debug, Clone)]
pub struct PendingRecall {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    by: Instant,
    /// What was found for the turn before, for when nothing comes in time.
    spare: Option<String>,
    /// Guards what came; whole values go in and out.
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Debug)]
enum State {
    Waiting,
    Came(Option<String>),
    Decided(Option<String>),
}

/// How it was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// By what came in time.
    InTime,
    /// Without: nothing came in time, or in time to be waited for.
    Without,
    /// Before.
    Before,
}

impl PendingRecall {
    pub(crate) fn new(by: Instant, spare: Option<String>) -> PendingRecall {
        let (state, came) = (Mutex::new(State::Waiting), Condvar::new());
        PendingRecall { inner: Arc::new(Inner { by, spare, state, came }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something came. Says whether anybody still wanted it.
    pub(crate) fn came(&self, text: Option<String>) -> bool {
        let mut state = self.state();
        let is_wanted = matches!(*state, State::Waiting);
        if is_wanted {
            *state = State::Came(text);
            self.inner.came.notify_all();
        }
        is_wanted
    }

    /// What is recalled, waited for up to the turn's deadline; `beside` is asked once for what is known without.
    pub(crate) fn decide(&self, beside: impl FnOnce() -> Option<String>) -> (Option<String>, Decision) {
        let mut state = self.state();
        loop {
            let left = self.inner.by.saturating_duration_since(Instant::now());
            let (text, how) = match &*state {
                State::Decided(text) => return (text.clone(), Decision::Before),
                State::Came(text) => (text.clone(), Decision::InTime),
                State::Waiting if left.is_zero() => (self.inner.spare.clone(), Decision::Without),
                State::Waiting => {
                    let waited = self.inner.came.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            let all: Vec<String> = beside().into_iter().chain(text).filter(|text| !text.is_empty()).collect();
            let text = (!all.is_empty()).then(|| all.join("\n\n"));
            *state = State::Decided(text.clone());
            return (text, how);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_decided_stays() {
        let soon = Instant::now() + Duration::from_millis(30);
        let late = PendingRecall::new(soon, Some("spare".to_owned()));
        assert_eq!(late.decide(|| Some("files".to_owned())).0.as_deref(), Some("files\n\nspare"));
        assert!(Instant::now() >= soon, "it was waited for");
        assert!(!late.came(Some("too late".to_owned())));
        let again = late.decide(|| unreachable!());
        assert_eq!((again.0.as_deref(), again.1), (Some("files\n\nspare"), Decision::Before));
        let in_time = PendingRecall::new(Instant::now() + Duration::from_secs(9), None);
        assert!(in_time.came(None));
        assert_eq!(in_time.decide(|| None), (None, Decision::InTime));
    }
}
