//! The window and terms recorded last for a session.

use fanfold_core::{Budget, Tokens};
use fanfold_store::{BlobId, SessionId, StoreError};

use crate::engine::SessionEngine;
use crate::follow::terms::Terms;
use crate::log::events::SessionEvent;
use crate::log::session_log::SessionLog;

/// The terms recorded last for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedTerms {
    /// The window and its reserve.
    pub budget: Budget,
    /// The description of the terms, as the host wrote it.
    pub description: String,
}

impl SessionEngine {
    /// The terms recorded last for a session; none if it is new.
    pub fn recorded_terms(&self, session: &SessionId) -> Result<Option<RecordedTerms>, StoreError> {
        if self.store.session(session)?.is_none() {
            return Ok(None);
        }
        let past = SessionLog::read(&*self.store, session)?;
        let Some((terms, budget)) = past.last_terms() else { return Ok(None) };
        let Ok(terms) = terms.parse::<BlobId>() else { return Ok(None) };
        let description = self.store.blob(terms)?.unwrap_or_default();
        Ok(Some(RecordedTerms { budget, description: String::from_utf8_lossy(&description).into_owned() }))
    }

    /// The window recorded last for a session; none if it is new or its last terms differ from these.
    ///
    /// A host that has learnt a better window in the meantime keeps the recorded one, because another window in the
    /// middle of a session would change its view.
    pub fn recorded_window(&self, session: &SessionId, terms: &Terms) -> Result<Option<Tokens>, StoreError> {
        let past = SessionLog::read(&*self.store, session)?;
        let expected = BlobId::new(terms.described.as_bytes()).to_string();
        let recorded = past.last_terms().filter(|(terms, _)| *terms == expected);
        Ok(recorded.map(|(_, budget)| budget.window()))
    }
}

impl SessionLog {
    /// The blob with the terms recorded last, and the window and reserve recorded since.
    fn last_terms(&self) -> Option<(&str, Budget)> {
        let mut last = None;
        for (_, logged) in self.events_in_force() {
            let (terms, window, reserve) = match &logged.event {
                SessionEvent::NewTerms(new) => (Some(new.terms.as_str()), new.window, new.reserve),
                SessionEvent::Budget { window, reserve } => (last.map(|(terms, _)| terms), *window, *reserve),
                _ => continue,
            };
            last = terms.map(|terms| (terms, Budget::with_reserve(Tokens(window), Tokens(reserve))));
        }
        last
    }
}
