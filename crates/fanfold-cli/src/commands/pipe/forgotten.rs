//! What is still known of sessions that are no longer held.
//!
//! One that sends its whole history is replayed, by what it said of window and tools. One that sends only what is new
//! must be told that its beginning is gone: without it the answer would be a piece of the conversation.

use std::collections::VecDeque;

use super::arrival::{Habit, is_next, print_of};
use super::wanted::Wanted;

/// So many are remembered by name.
const MOST_FORGOTTEN: usize = 4096;

/// The sessions that are no longer held, the one that left last at the end.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    traces: VecDeque<(String, Trace)>,
}

/// What is left of a session.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) wanted: Wanted,
    pub(crate) habit: Habit,
    pub(crate) last_call: Option<u64>,
    /// The print of its first message.
    pub(crate) first: Option<u64>,
}

impl Forgotten {
    pub(crate) fn find(&self, name: &str) -> Option<&Trace> {
        self.traces.iter().find(|(forgotten, _)| forgotten == name).map(|(_, trace)| trace)
    }

    pub(crate) fn add(&mut self, name: String, trace: Trace) {
        self.traces.push_back((name, trace));
        if self.traces.len() > MOST_FORGOTTEN {
            self.traces.pop_front();
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.traces.retain(|(forgotten, _)| forgotten != name);
    }
}

impl Trace {
    /// Whether arriving messages can only be what came after those that were held: `arrival` would have added them.
    pub(crate) fn is_continued_by(&self, call: Option<u64>, first: Option<&str>) -> bool {
        match self.habit {
            Habit::New => call.is_some_and(|call| call > 1),
            Habit::Whole => false,
            Habit::Unknown => {
                is_next(call, self.last_call) && self.first.is_some() && self.first != first.map(print_of)
            }
        }
    }
}
