//! Traces of sessions that are no longer in memory.
//!
//! A session that sends its whole history is rebuilt with the terms that it had set. A session that sends
//! increments must get an error, because the answer would cover only a part of the conversation.

use std::collections::VecDeque;

use super::arrival::{SendMode, hash, is_next};
use super::session_terms::SessionTerms;

/// Maximum number of remembered sessions.
const MAX_EVICTED: usize = 4096;

/// The evicted sessions, the newest last.
#[derive(Debug, Default)]
pub(super) struct EvictedSessions {
    sessions: VecDeque<(String, EvictedSession)>,
}

/// The trace of a session.
#[derive(Debug, Clone)]
pub(super) struct EvictedSession {
    pub(super) terms: SessionTerms,
    pub(super) mode: SendMode,
    pub(super) last_call: Option<u64>,
    /// The hash of its first message.
    pub(super) first: Option<u64>,
}

impl EvictedSessions {
    pub(super) fn find(&self, name: &str) -> Option<&EvictedSession> {
        self.sessions.iter().find(|(known, _)| known == name).map(|(_, session)| session)
    }

    pub(super) fn add(&mut self, name: String, session: EvictedSession) {
        self.sessions.push_back((name, session));
        if self.sessions.len() > MAX_EVICTED {
            self.sessions.pop_front();
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.sessions.retain(|(known, _)| known != name);
    }
}

impl EvictedSession {
    /// True if arriving messages can only be an increment: `classify` would have added them to the session.
    pub(super) fn is_continued_by(&self, call: Option<u64>, first: Option<&str>) -> bool {
        match self.mode {
            SendMode::Increments => call.is_some_and(|call| call > 1),
            SendMode::WholeHistory => false,
            SendMode::Unknown => {
                is_next(call, self.last_call) && self.first.is_some() && self.first != first.map(hash)
            }
        }
    }
}
