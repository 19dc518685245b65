//! An LRU cache of session states after their last requests. Other sessions are replayed from the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_store::{NodeId, SessionId};
use fanfold_wire::{Format, Incoming};

use crate::follow::session_state::{CachedSession, SessionState};

/// Maximum number of cached sessions.
const MAX_SESSIONS: usize = 1_000;
/// Maximum total size of their states, in bytes.
const MAX_BYTES: usize = 80 << 20;
/// Maximum size of one state.
const MAX_SESSION_BYTES: usize = 64 << 20;
/// The size of a state: a multiple of its body, and an amount per message.
const STATE_PER_BODY: usize = 3;
const BYTES_PER_MESSAGE: usize = 1 << 10;

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

    /// Adds a session as the most recently used one. Beyond the limits, evicts sessions that are large or were not used
    /// for long. A session above its own limit is not cached.
    pub(crate) fn put(&self, session: SessionId, cached: CachedSession) {
        let mut sessions = self.sessions();
        sessions.retain(|(id, _)| *id != session);
        if n_bytes(&cached) > MAX_SESSION_BYTES {
            return;
        }
        sessions.push_back((session, cached));
        while sessions.len() > MAX_SESSIONS {
            sessions.pop_front();
        }
        let mut sizes: Vec<usize> = sessions.iter().map(|(_, cached)| n_bytes(cached)).collect();
        while sizes.iter().sum::<usize>() > MAX_BYTES {
            let evicted = to_evict(&sizes);
            sizes.remove(evicted);
            sessions.remove(evicted);
        }
    }

    /// Removes all sessions.
    pub(crate) fn clear(&self) {
        self.sessions().clear();
    }
}

/// The estimated size of a session.
fn n_bytes(cached: &CachedSession) -> usize {
    let conversation = &cached.state.followed.conversation;
    conversation.n_bytes() * STATE_PER_BODY + cached.state.messages.ids.len() * BYTES_PER_MESSAGE
}

/// The session to evict among sessions of these sizes, the least recently used first: the one with the largest product of
/// its size and the number of sessions that were used since. Many small sessions stay instead of a large one.
fn to_evict(sizes: &[usize]) -> usize {
    let n_newer = |i: usize| sizes.len() - 1 - i;
    (0..sizes.len()).max_by_key(|i| sizes[*i] * n_newer(*i)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_session_is_evicted_before_many_small_ones() {
        assert_eq!(to_evict(&[1, 1, 50, 1, 1]), 2);
        assert_eq!(to_evict(&[3, 3, 3]), 0, "of the same size, the least recently used one");
        assert_eq!(to_evict(&[1, 9, 50]), 1, "not the one that was just used");
    }
}
