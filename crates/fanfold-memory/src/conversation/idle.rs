//! The conversations that a provider was told of, until it is told that they have ended.
//!
//! No client says that a conversation is over. One that was silent for long has ended, as far as anybody can know; should it go on
//! after all, it is one again, and ends once more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// When each was heard of last.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    heard: BTreeMap<String, Instant>,
}

impl Conversations {
    /// Something was written of a conversation. Gives the one that was silent longest, where there are more than `most`: it has ended.
    pub(crate) fn written(&mut self, talk: &str, most: usize, now: Instant) -> Option<String> {
        let is_new = self.heard.insert(talk.to_owned(), now).is_none();
        if !is_new || self.heard.len() <= most {
            return None;
        }
        let others = self.heard.iter().filter(|(other, _)| *other != talk);
        let oldest = others.min_by_key(|(_, heard)| **heard).map(|(other, _)| other.clone())?;
        self.heard.remove(&oldest);
        Some(oldest)
    }

    /// A conversation goes on, if something was written of it: a turn may take long.
    pub(crate) fn asked(&mut self, talk: &str, now: Instant) {
        if let Some(heard) = self.heard.get_mut(talk) {
            *heard = now;
        }
    }

    /// A conversation has ended. Says whether anything was written of it.
    pub(crate) fn ended(&mut self, talk: &str) -> bool {
        self.heard.remove(talk).is_some()
    }

    /// Takes one out that was silent for so long.
    pub(crate) fn silent(&mut self, idle: Duration, now: Instant) -> Option<String> {
        let is_silent = |heard: &Instant| now.saturating_duration_since(*heard) >= idle;
        let talk = self.heard.iter().find(|(_, heard)| is_silent(heard))?.0.clone();
        self.heard.remove(&talk);
        Some(talk)
    }

    /// Takes all of them out.
    pub(crate) fn all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard).into_keys().collect()
    }

    /// How long it is until the next one was silent for so long.
    pub(crate) fn until_silent(&self, idle: Duration, now: Instant) -> Duration {
        let oldest = self.heard.values().min();
        oldest.map_or(idle, |heard| idle.saturating_sub(now.saturating_duration_since(*heard)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    #[test]
    fn one_that_was_silent_for_long_has_ended_and_may_go_on() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut talks = Conversations::default();
        assert_eq!(talks.until_silent(IDLE, at(0)), IDLE);
        talks.written("a", 9, at(0));
        talks.written("b", 9, at(10));
        talks.asked("a", at(30));
        talks.asked("nobody wrote of it", at(30));
        assert_eq!(talks.until_silent(IDLE, at(40)), Duration::from_secs(30));
        assert_eq!(talks.silent(IDLE, at(69)), None);
        assert_eq!(talks.silent(IDLE, at(70)).as_deref(), Some("b"));
        assert_eq!(talks.silent(IDLE, at(70)), None, "it is told once");
        talks.written("b", 9, at(80));
        assert_eq!(talks.silent(IDLE, at(90)).as_deref(), Some("a"));
        assert!(talks.ended("b") && !talks.ended("b"));
    }

    #[test]
    fn where_there_are_too_many_the_one_that_was_silent_longest_has_ended() {
        let start = Instant::now();
        let at = |i: u64| start + Duration::from_millis(i);
        let mut talks = Conversations::default();
        for i in 0..4 {
            assert_eq!(talks.written(&format!("talk {i}"), 4, at(i)), None);
        }
        talks.asked("talk 0", at(4));
        assert_eq!(talks.written("one more", 4, at(5)).as_deref(), Some("talk 1"));
        assert_eq!(talks.written("talk 2", 4, at(6)), None, "it is known");
        assert_eq!(talks.written("another", 4, at(7)).as_deref(), Some("talk 3"));
        assert_eq!(talks.all(), ["another", "one more", "talk 0", "talk 2"]);
    }
}
