//! A turn: what a person asked, in which conversation, and what was recalled for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::plain::user_text;

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryTurn {
    /// The conversation, as the provider knows it.
    pub conversation: String,
    /// How many things were asked in it so far.
    pub number: usize,
    /// What a person asked.
    pub prompt: String,
}

impl MemoryTurn {
    /// The turn that a conversation is at, by what its user's messages say, oldest first. None where nobody asked
    /// anything.
    pub fn from_prompts(prompts: &[String], named: Option<&str>) -> Option<MemoryTurn> {
        let said: Vec<String> =
            prompts.iter().map(|text| user_text(text)).filter(|text| !text.is_empty()).collect();
        let (first, last) = (said.first()?, said.last()?);
        // What a conversation began with is the same in each of its requests.
        let talk = named.map_or_else(|| format!("fanfold-{:016x}", hash(first)), str::to_owned);
        Some(MemoryTurn { conversation: talk, number: said.len(), prompt: last.clone() })
    }
}

/// A number for a text, the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

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
    fn a_turn_is_what_people_asked() {
        let of = |prompts: &[&str]| {
            MemoryTurn::from_prompts(&prompts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), None)
        };
        let first = of(&["<system-reminder>x</system-reminder>hello"]).unwrap();
        let same = of(&["hello", "<system-reminder>the list is empty</system-reminder>"]).unwrap();
        assert_eq!(first, same, "what programs add is no new turn");
        let second = of(&["hello", "hello"]).unwrap();
        assert_eq!((second.conversation == first.conversation, second.number, &*second.prompt), (true, 2, "hello"));
        assert_ne!(of(&["bye"]).unwrap().conversation, first.conversation);
        assert_eq!(of(&["<system-reminder>x</system-reminder>"]), None);
        assert_eq!(MemoryTurn::from_prompts(&["a".to_owned()], Some("mine")).unwrap().conversation, "mine");
    }

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
