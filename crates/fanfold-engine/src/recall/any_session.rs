//! A handle whose session nobody named: the sessions that were given it, the last written to first.

use fanfold_core::{Extent, Handle};
use fanfold_store::{EventRow, SessionFilter, SessionId, SessionRow, StoreError};

use crate::engine::Engine;
use crate::log::events::{InheritedEvent, LoggedEvent, SessionEvent};
use crate::recall::handles::OpenError;

/// So many more sessions are asked whether the handle means something else there.
const N_ASKED_TOO: usize = 64;

/// What came of looking for a handle in every session.
#[derive(Debug)]
pub struct Sought {
    /// What it opens, and where; none if no session that was looked at has it.
    pub found: Option<Recalled>,
    /// So many sessions were looked at.
    pub n_sessions: usize,
    /// Whether these were all of them.
    pub is_all: bool,
}

/// An original, and whose it is.
#[derive(Debug)]
pub struct Recalled {
    /// The session.
    pub session: SessionId,
    /// The original, or the wanted part of it.
    pub content: String,
    /// Another session in which the handle opens something else.
    pub otherwise_in: Option<SessionId>,
}

impl Engine {
    /// The original behind a handle, in whichever session has it: the one named first, then the last written to. Looking
    /// ends when `is_over` says so.
    pub fn recall_anywhere(
        &self,
        handle: Handle,
        extent: &Extent,
        first: Option<&SessionId>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Sought, OpenError> {
        let mut rows = self.store.sessions(&SessionFilter::default())?;
        // Stable: the others stay in their order.
        rows.sort_by_key(|row| Some(&row.id) != first);
        let mut sought = Sought { found: None, n_sessions: 0, is_all: true };
        let mut broken = None;
        for (i, row) in rows.iter().enumerate() {
            if is_over() {
                sought.is_all = false;
                break;
            }
            sought.n_sessions += 1;
            let Some(print) = self.given(row, handle)? else { continue };
            let content = match self.recall(&row.id, handle, extent) {
                Ok(content) => content,
                Err(error @ OpenError::Broken(_)) => {
                    broken = broken.or(Some(error));
                    continue;
                }
                // It went between two looks, or what named the handle is no fold of this session.
                Err(OpenError::Unknown { .. } | OpenError::Store(StoreError::NoSession(_))) => continue,
                Err(error) => return Err(error),
            };
            let otherwise_in = self.otherwise(&rows[i + 1..], handle, &print, is_over)?;
            sought.found = Some(Recalled { session: row.id.clone(), content, otherwise_in });
            return Ok(sought);
        }
        match broken {
            Some(error) => Err(error),
            None => Ok(sought),
        }
    }

    /// The session in which a handle opens something else. Forks have the same originals, and are not meant.
    fn otherwise(
        &self,
        rows: &[SessionRow],
        handle: Handle,
        print: &str,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<SessionId>, StoreError> {
        for row in rows.iter().take(N_ASKED_TOO) {
            if is_over() {
                break;
            }
            if self.given(row, handle)?.is_some_and(|other| other != print) {
                return Ok(Some(row.id.clone()));
            }
        }
        Ok(None)
    }

    /// The print of what a session was given a handle for, if it ever was.
    fn given(&self, row: &SessionRow, handle: Handle) -> Result<Option<String>, StoreError> {
        let events = match self.store.events(&row.id, 0) {
            Err(StoreError::NoSession(_)) => return Ok(None),
            events => events?,
        };
        let digits = handle.to_string();
        let quoted = format!("\"{digits}\"");
        // Most events are requests, and a look at their text is cheaper than reading them.
        let may_have_it = |event: &&EventRow| event.body.contains(&quoted);
        Ok(events
            .iter()
            .filter(may_have_it)
            .find_map(|event| print_in(&LoggedEvent::decode(event)?.event, &digits)))
    }
}

fn print_in(note: &SessionEvent, digits: &str) -> Option<String> {
    match note {
        SessionEvent::Fold(fold) => {
            fold.handles.iter().find(|(known, ..)| known == digits).map(|(.., print)| print.clone())
        }
        SessionEvent::Inherited { events } => events.iter().find_map(|kept| print_in(&kept.note()?, digits)),
        _ => None,
    }
}

impl InheritedEvent {
    /// What happened; none if its kind is not known.
    fn note(&self) -> Option<SessionEvent> {
        let mut body = self.body.clone();
        body.as_object_mut()?.insert("kind".to_owned(), self.kind.clone().into());
        serde_json::from_value(body).ok()
    }
}
