//! The window that a session was told, and by which terms.

use fanfold_core::{Budget, Tokens};
use fanfold_store::{BlobId, SessionId, StoreError};

use crate::engine::Engine;
use crate::follow::terms::Terms;
use crate::log::events::SessionEvent;
use crate::log::session_log::SessionLog;

/// What a session was told last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The window, and what of it is kept for the answer.
    pub budget: Budget,
    /// The description of its terms.
    pub described: String,
}

impl Engine {
    /// What a session was told last, whatever its terms; none where it is new.
    pub fn told(&self, session: &SessionId) -> Result<Option<Told>, StoreError> {
        if self.store.session(session)?.is_none() {
            return Ok(None);
        }
        let past = SessionLog::read(&*self.store, session)?;
        let (mut sizes, mut terms) = (None, None);
        for (_, noted) in past.events_in_force() {
            match &noted.event {
                SessionEvent::NewTerms(began) => {
                    (sizes, terms) =
                        (Some((began.window, began.reserve)), began.terms.parse::<BlobId>().ok());
                }
                SessionEvent::Budget { window, reserve } => sizes = Some((*window, *reserve)),
                _ => {}
            }
        }
        let (Some((window, reserve)), Some(terms)) = (sizes, terms) else { return Ok(None) };
        let described = self.store.blob(terms)?.unwrap_or_default();
        Ok(Some(Told {
            budget: Budget::with_reserve(Tokens(window), Tokens(reserve)),
            described: String::from_utf8_lossy(&described).into_owned(),
        }))
    }

    /// The window that a session was last told under terms like these; none where it is new or was begun by others.
    ///
    /// A host that has learnt a better window meanwhile keeps to this one: it would change the session in its middle.
    pub fn told_window(&self, session: &SessionId, terms: &Terms) -> Result<Option<Tokens>, StoreError> {
        let past = SessionLog::read(&*self.store, session)?;
        let own = BlobId::new(terms.described.as_bytes()).to_string();
        let mut told = None;
        for (_, noted) in past.events_in_force() {
            match &noted.event {
                SessionEvent::NewTerms(began) => told = (began.terms == own).then_some(began.window),
                SessionEvent::Budget { window, .. } => told = told.map(|_| *window),
                _ => {}
            }
        }
        Ok(told.map(Tokens))
    }
}
