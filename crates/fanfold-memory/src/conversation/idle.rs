//! Tracks which conversations are active at the provider, and detects that they ended.
//!
//! No client reports the end of a conversation, so one that was idle for long is ended. If it continues after all,
//! it becomes active again and is ended once more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time of the last activity of each conversation.
#[derive(Debug, Default)]
pub(crate) struct ActiveConversations {
    last_activity: BTreeMap<String, Instant>,
}

impl ActiveConversations {
    /// Records a write. Above `max_active` conversations it removes and returns the longest idle one, to be ended.
    pub(crate) fn record_write(
        &mut self,
        conversation: &str,
        max_active: usize,
        now: Instant,
    ) -> Option<String> {
        let is_new = self.last_activity.insert(conversation.to_owned(), now).is_none();
        if !is_new || self.last_activity.len() <= max_active {
            return None;
        }
        let others = self.last_activity.iter().filter(|(other, _)| *other != conversation);
        let oldest = others.min_by_key(|(_, last)| **last).map(|(other, _)| other.clone())?;
        self.last_activity.remove(&oldest);
        Some(oldest)
    }

    /// Records a request. A conversation is only known after its first write; a long turn keeps it active.
    pub(crate) fn record_request(&mut self, conversation: &str, now: Instant) {
        if let Some(last_activity) = self.last_activity.get_mut(conversation) {
            *last_activity = now;
        }
    }

    /// Removes and returns a conversation that was idle for at least `idle`.
    pub(crate) fn take_idle(&mut self, idle: Duration, now: Instant) -> Option<String> {
        let is_idle = |last: &Instant| now.saturating_duration_since(*last) >= idle;
        let conversation = self.last_activity.iter().find(|(_, last)| is_idle(last))?.0.clone();
        self.last_activity.remove(&conversation);
        Some(conversation)
    }

    /// Removes and returns all conversations.
    pub(crate) fn take_all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.last_activity).into_keys().collect()
    }

    /// Time until the next conversation has been idle for `idle`.
    pub(crate) fn time_to_idle(&self, idle: Duration, now: Instant) -> Duration {
        let oldest = self.last_activity.values().min();
        oldest
            .map_or(idle, |last_activity| idle.saturating_sub(now.saturating_duration_since(*last_activity)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    #[test]
    fn idle_conversations_end_and_may_continue() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut conversations = ActiveConversations::default();
        assert_eq!(conversations.time_to_idle(IDLE, at(0)), IDLE);
        conversations.record_write("a", 9, at(0));
        conversations.record_write("b", 9, at(10));
        conversations.record_request("a", at(30));
        conversations.record_request("never written", at(30));
        assert_eq!(conversations.time_to_idle(IDLE, at(40)), Duration::from_secs(30));
        assert_eq!(conversations.take_idle(IDLE, at(69)), None);
        assert_eq!(conversations.take_idle(IDLE, at(70)).as_deref(), Some("b"));
        assert_eq!(conversations.take_idle(IDLE, at(70)), None, "it is returned once");
        conversations.record_write("b", 9, at(80));
        assert_eq!(conversations.take_idle(IDLE, at(90)).as_deref(), Some("a"));
    }

    #[test]
    fn above_the_limit_the_longest_idle_conversation_ends() {
        let start = Instant::now();
        let at = |i: u64| start + Duration::from_millis(i);
        let mut conversations = ActiveConversations::default();
        for i in 0..4 {
            assert_eq!(conversations.record_write(&format!("talk {i}"), 4, at(i)), None);
        }
        conversations.record_request("talk 0", at(4));
        assert_eq!(conversations.record_write("one more", 4, at(5)).as_deref(), Some("talk 1"));
        assert_eq!(conversations.record_write("talk 2", 4, at(6)), None, "it is known");
        assert_eq!(conversations.record_write("another", 4, at(7)).as_deref(), Some("talk 3"));
        assert_eq!(conversations.take_all(), ["another", "one more", "talk 0", "talk 2"]);
    }
}
