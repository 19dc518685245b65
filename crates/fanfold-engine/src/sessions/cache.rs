//! The sessions used last, as they were left, and bodies whose messages have been found. What is not here is replayed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_store::{NodeId, SessionId};
use fanfold_wire::{Format, Incoming};

use crate::sessions::state::State;

/// So many sessions are kept.
const MOST_KEPT: usize = 1_000;
/// And so many bytes of their bodies; what follows from them is a few times as much.
const MOST_BYTES: usize = 128 * 1024 * 1024;
/// So many bytes of bodies wait for their requests.
const MOST_WAITING: usize = 64 * 1024 * 1024;

/// Sessions as they were left, the one used last at the end.
#[derive(Default)]
pub(crate) struct Cache {
    /// Guards the list; a state is taken out while it is worked on, so that no two requests share one.
    kept: Mutex<VecDeque<(SessionId, State)>>,
    /// Bodies that were recognised and not yet sent.
    waiting: Mutex<VecDeque<Incoming>>,
}

impl Cache {
    fn kept(&self) -> MutexGuard<'_, VecDeque<(SessionId, State)>> {
        // Whole states go in and out, so a thread that died holding the list left it whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Incoming>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session out.
    pub(crate) fn take(&self, session: &SessionId) -> Option<State> {
        let mut kept = self.kept();
        let at = kept.iter().rposition(|(id, _)| id == session)?;
        kept.remove(at).map(|(_, state)| state)
    }

    /// Looks at a session where it is; none if it is not here, or is being worked on.
    pub(crate) fn peek<T>(&self, session: &SessionId, look: impl FnOnce(&State) -> T) -> Option<T> {
        self.kept().iter().rev().find(|(id, _)| id == session).map(|(_, state)| look(state))
    }

    /// Finds the messages of a body that goes on with a session that is here, by looking at what is new.
    pub(crate) fn resume(&self, body: &str, format: Format) -> Option<Incoming> {
        let kept = self.kept();
        let conversations = kept.iter().rev().map(|(_, state)| &state.followed.conversation);
        conversations.filter(|held| held.format() == format).find_map(|held| held.resume(body))
    }

    /// The ids of the messages that a body has in common with a session that is here: the most there are.
    pub(crate) fn common(&self, incoming: &Incoming, first: NodeId) -> Vec<NodeId> {
        let kept = self.kept();
        let alike = kept.iter().filter(|(_, state)| {
            state.ids.first() == Some(&first) && state.followed.conversation.format() == incoming.format()
        });
        let common = alike.map(|(_, state)| (state.followed.conversation.n_common(incoming), state));
        let most = common.max_by_key(|(n_common, _)| *n_common);
        most.map(|(n_common, state)| state.ids[..n_common].to_vec()).unwrap_or_default()
    }

    /// Puts a session in as the one used last.
    pub(crate) fn put(&self, session: SessionId, state: State) {
        let mut kept = self.kept();
        kept.retain(|(id, _)| *id != session);
        kept.push_back((session, state));
        let mut n_bytes: usize = kept.iter().map(|(_, state)| n_bytes(state)).sum();
        // The one used last stays, however long it is.
        while kept.len() > MOST_KEPT || n_bytes > MOST_BYTES && kept.len() > 1 {
            n_bytes -= kept.pop_front().map_or(0, |(_, state)| self::n_bytes(&state));
        }
    }

    /// Keeps a body whose messages have been found until its request comes.
    pub(crate) fn wait(&self, incoming: Incoming) {
        let mut waiting = self.waiting();
        waiting.push_back(incoming);
        let mut n_bytes: usize = waiting.iter().map(|incoming| incoming.text().len()).sum();
        while n_bytes > MOST_WAITING || waiting.len() > MOST_KEPT {
            n_bytes -= waiting.pop_front().map_or(n_bytes, |incoming| incoming.text().len());
        }
    }

    /// Takes a body out that waits.
    pub(crate) fn arrived(&self, body: &str, format: Option<Format>) -> Option<Incoming> {
        let mut waiting = self.waiting();
        let is_it = |other: &Incoming| Some(other.format()) == format && other.text() == body;
        let at = waiting.iter().rposition(is_it)?;
        waiting.remove(at)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.kept().clear();
        self.waiting().clear();
    }
}

fn n_bytes(state: &State) -> usize {
    state.followed.conversation.n_bytes()
}
