//! Recalls a handle without a session id: looks in all sessions, the last updated first.

use fanfold_core::{Extent, Handle, RecallError};
use fanfold_store::{EventRow, SessionFilter, SessionId, SessionRow, StoreError};

use crate::engine::SessionEngine;
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::recall::handles::OpenError;

/// After a match, the number of further sessions that are checked for a conflicting handle.
const MAX_CONFLICT_CHECKS: usize = 64;

/// The outcome of looking for a handle in all sessions.
#[derive(Debug)]
pub struct HandleSearch {
    /// The original, if a session has the handle.
    pub found: Option<FoundOriginal>,
    /// The number of sessions that were searched.
    pub n_sessions: usize,
    /// False if the search was stopped before the last session.
    pub is_complete: bool,
    /// Why the first session does not have the address, such as the number of its steps.
    pub first_error: Option<RecallError>,
}

/// An original and its session.
#[derive(Debug)]
pub struct FoundOriginal {
    /// The session.
    pub session: SessionId,
    /// The original, or the requested part of it.
    pub content: String,
    /// Another session that uses the handle for a different original.
    pub conflicting_session: Option<SessionId>,
}

impl SessionEngine {
    /// Recalls a handle from the session `first` or, if it lacks the handle, from the last updated session that has
    /// recorded it. The search stops when `should_stop` returns true.
    ///
    /// Every session has a step 1, so an address that no fold has recorded is only looked up in the first of them.
    pub fn recall_anywhere(
        &self,
        handle: Handle,
        extent: &Extent,
        first: Option<&SessionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<HandleSearch, OpenError> {
        let mut rows = self.store.sessions(&SessionFilter::default())?;
        // The sort is stable, so the other sessions stay in their order.
        rows.sort_by_key(|row| Some(&row.id) != first);
        let mut search = HandleSearch { found: None, n_sessions: 0, is_complete: true, first_error: None };
        let mut broken = None;
        // A session that has recorded the handle comes before one that only has such a step.
        let n_rows = rows.len();
        for (i, row) in rows.iter().enumerate().chain(rows.iter().take(1).map(|row| (n_rows, row))) {
            if should_stop() {
                search.is_complete = false;
                break;
            }
            search.n_sessions += usize::from(i < n_rows);
            let fingerprint = self.recorded_fingerprint(row, handle)?;
            let is_first = i == n_rows || Some(&row.id) == first;
            let may_have_it = fingerprint.is_some() || (is_first && handle.is_address());
            if !may_have_it {
                continue;
            }
            let content = match self.recall(&row.id, handle, extent) {
                Ok(content) => content,
                Err(error @ OpenError::Broken(_)) => {
                    broken = broken.or(Some(error));
                    continue;
                }
                Err(OpenError::Extent(error @ RecallError::NoSuchPlace { .. })) => {
                    search.first_error = search.first_error.or(Some(error));
                    continue;
                }
                // The session was deleted in the meantime, or the matching event is not a fold of this session.
                Err(OpenError::Unknown { .. } | OpenError::Store(StoreError::NoSession(_))) => continue,
                Err(error) => return Err(error),
            };
            // An address belongs to the requested session.
            let is_requested = handle.is_address() && Some(&row.id) == first;
            let others = if is_requested { &[] } else { rows.get(i + 1..).unwrap_or_default() };
            let conflicting_session =
                self.find_conflict(others, handle, fingerprint.as_deref(), should_stop)?;
            search.found = Some(FoundOriginal { session: row.id.clone(), content, conflicting_session });
            return Ok(search);
        }
        match broken {
            Some(error) => Err(error),
            None => Ok(search),
        }
    }

    /// Finds a session that uses the handle for a different original. Forks share originals, so they do not
    /// conflict.
    fn find_conflict(
        &self,
        rows: &[SessionRow],
        handle: Handle,
        fingerprint: Option<&str>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<SessionId>, StoreError> {
        for row in rows.iter().take(MAX_CONFLICT_CHECKS) {
            if should_stop() {
                break;
            }
            if self.recorded_fingerprint(row, handle)?.is_some_and(|other| Some(&*other) != fingerprint) {
                return Ok(Some(row.id.clone()));
            }
        }
        Ok(None)
    }

    /// The fingerprint that a session has recorded for the original behind a handle.
    fn recorded_fingerprint(&self, row: &SessionRow, handle: Handle) -> Result<Option<String>, StoreError> {
        let events = match self.store.events(&row.id, 0) {
            Err(StoreError::NoSession(_)) => return Ok(None),
            events => events?,
        };
        let digits = handle.to_string();
        let quoted = format!("\"{digits}\"");
        // Most events are requests, and a substring search is cheaper than parsing them.
        let may_contain_it = |event: &&EventRow| event.body.contains(&quoted);
        Ok(events
            .iter()
            .filter(may_contain_it)
            .find_map(|event| fingerprint_in(&LoggedEvent::decode(event)?.event, &digits)))
    }
}

/// The fingerprint that a fold, or one of a list of inherited folds, recorded for a handle.
fn fingerprint_in(note: &SessionEvent, digits: &str) -> Option<String> {
    match note {
        SessionEvent::Fold(fold) => fold
            .handles
            .iter()
            .find(|(known, ..)| known == digits)
            .map(|(.., fingerprint)| fingerprint.clone()),
        SessionEvent::Inherited { events } => events.iter().find_map(|event| {
            fingerprint_in(&SessionEvent::decode(&event.kind, event.body.clone())?, digits)
        }),
        _ => None,
    }
}
