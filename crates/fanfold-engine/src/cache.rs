//! The sessions used last, as they were left. What is not here is replayed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_store::SessionId;

use crate::state::State;

/// So many sessions are kept.
const MOST_KEPT: usize = 64;

/// Sessions as they were left, the one used last at the end.
#[derive(Default)]
pub(crate) struct Cache {
    /// Guards the list; a state is taken out while it is worked on, so that no two requests share one.
    kept: Mutex<VecDeque<(SessionId, State)>>,
}

impl Cache {
    fn kept(&self) -> MutexGuard<'_, VecDeque<(SessionId, State)>> {
        // Whole states go in and out, so a thread that died holding the list left it whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a session out.
    pub(crate) fn take(&self, session: &SessionId) -> Option<State> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(id, _)| id == session)?;
        kept.remove(at).map(|(_, state)| state)
    }

    /// Looks at a session where it is; none if it is not here, or is being worked on.
    pub(crate) fn peek<T>(&self, session: &SessionId, look: impl FnOnce(&State) -> T) -> Option<T> {
        self.kept().iter().find(|(id, _)| id == session).map(|(_, state)| look(state))
    }

    /// Puts a session in as the one used last.
    pub(crate) fn put(&self, session: SessionId, state: State) {
        let mut kept = self.kept();
        kept.retain(|(id, _)| *id != session);
        kept.push_back((session, state));
        if kept.len() > MOST_KEPT {
            kept.pop_front();
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.kept().clear();
    }
}
