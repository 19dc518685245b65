//! An LRU cache of session states after their last requests. Other sessions are replayed from the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_store::{NodeId, SessionId};
use fanfold_wire::{Format, Incoming};

use crate::follow::session_state::{CachedSession, SessionState};

/// Maximum number of cached sessions.
const MAX_SESSIONS: usize = 1_000;
/// Maximum total size of their bodies, in bytes. Their states are a few times as large.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// Cached sessions, the least recently used first.
#[derive(Default)]
pub(crate) struct Cache {
    /// Guards the list. A request takes its session out while it uses it, so that no two requests share one.
    sessions: Mutex<VecDeque<(SessionId, CachedSession)>>,
}

impl Cache {
    fn sessions(&self) -> MutexGuard<'_, VecDeque<(SessionId, CachedSession)>> {
        // Only whole sessions are moved in and out, so the list is valid even if a thread panicked.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session out.
    pub(crate) fn take(&self, session: &SessionId) -> Option<CachedSession> {
        let mut sessions = self.sessions();
        let at = sessions.iter().rposition(|(id, _)| id == session)?;
        sessions.remove(at).map(|(_, cached)| cached)
    }

    /// Reads from a session in place; none if it is in use or not cached.
    pub(crate) fn peek<T>(&self, session: &SessionId, read: impl FnOnce(&CachedSession) -> T) -> Option<T> {
        self.sessions().iter().rev().find(|(id, _)| id == session).map(|(_, cached)| read(cached))
    }

    /// Parses only the new messages of a body that continues a cached session; none if it continues none of them.
    pub(crate) fn resume(&self, body: &str, format: Format) -> Option<Incoming> {
        let sessions = self.sessions();
        let conversations = sessions.iter().rev().map(|(_, cached)| &cached.state.followed.conversation);
        conversations.filter(|cached| cached.format() == format).find_map(|cached| cached.resume(body))
    }

    /// The ids of the messages that a body shares with the most similar cached session.
    pub(crate) fn common(&self, incoming: &Incoming, first: NodeId) -> Vec<NodeId> {
        let common =
            |n_common: usize, _: &SessionId, state: &SessionState| state.messages.ids[..n_common].to_vec();
        self.with_most_similar(incoming, first, common).unwrap_or_default()
    }

    /// The cached session that shares most messages with a body.
    pub(crate) fn most_similar(&self, incoming: &Incoming, first: NodeId) -> Option<SessionId> {
        self.with_most_similar(incoming, first, |_, id, _| id.clone())
    }

    /// Calls a function with the number of messages that a body shares with the most similar session, and with that
    /// session.
    fn with_most_similar<T>(
        &self,
        incoming: &Incoming,
        first: NodeId,
        read: impl FnOnce(usize, &SessionId, &SessionState) -> T,
    ) -> Option<T> {
        let sessions = self.sessions();
        let similar = sessions.iter().filter(|(_, cached)| {
            cached.state.messages.ids.first() == Some(&first)
                && cached.state.followed.conversation.format() == incoming.format()
        });
        let common = similar
            .map(|(id, cached)| (cached.state.followed.conversation.n_common(incoming), id, &cached.state));
        let (n_common, id, state) = common.max_by_key(|(n_common, ..)| *n_common)?;
        Some(read(n_common, id, state))
    }

    /// Adds a session as the most recently used one, and evicts the least recently used ones beyond the limits.
    pub(crate) fn put(&self, session: SessionId, cached: CachedSession) {
        let mut sessions = self.sessions();
        sessions.retain(|(id, _)| *id != session);
        sessions.push_back((session, cached));
        let mut total: usize = sessions.iter().map(|(_, cached)| n_bytes(cached)).sum();
        // The most recently used session stays, however large it is.
        while sessions.len() > MAX_SESSIONS || total > MAX_BYTES && sessions.len() > 1 {
            total -= sessions.pop_front().map_or(0, |(_, cached)| n_bytes(&cached));
        }
    }

    /// Removes all sessions.
    pub(crate) fn clear(&self) {
        self.sessions().clear();
    }
}

fn n_bytes(cached: &CachedSession) -> usize {
    cached.state.followed.conversation.n_bytes()
}
