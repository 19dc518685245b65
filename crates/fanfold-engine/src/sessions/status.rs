//! The status of a session from its log: fill level of the window, folds, pins.

use std::collections::BTreeSet;

use fanfold_store::{Millis, NodeId, SessionId, SessionRow, StoreError};

use crate::engine::{OpError, SessionEngine};
use crate::follow::session_budget::SessionBudget;
use crate::follow::session_state::{MessageList, SessionState};
use crate::log::events::SessionEvent;
use crate::log::session_log::{SessionLog, is_ancestor};

/// The status of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOverview {
    /// The session.
    pub row: SessionRow,
    /// The size of the last request in tokens, if there was one and it was counted.
    pub tokens: Option<u64>,
    /// The window and its reserve, in tokens of fanfold's counter, after corrections by the provider's counts.
    /// Folds are decided by this window.
    pub window: Option<(u64, u64)>,
    /// The number of requests.
    pub n_requests: usize,
    /// The time of the last request.
    pub last_request: Option<Millis>,
    /// Why the last request was forwarded unchanged, if fanfold failed.
    pub passthrough_reason: Option<String>,
    /// The number of folds in its view.
    pub n_folds: usize,
    /// The sizes of the view before and after the last fold, in tokens.
    pub last_fold: Option<(u64, u64)>,
    /// The number of handles that it has ever had.
    pub n_handles: usize,
    /// The numbers of pinned messages, from 0.
    pub pins: Vec<u32>,
}

impl SessionEngine {
    /// The status of a session.
    pub fn session_overview(&self, session: &SessionId) -> Result<SessionOverview, OpError> {
        let row = self.row(session)?;
        let past = SessionLog::read(&*self.store, session)?;
        let mut overview = SessionOverview {
            row,
            tokens: None,
            window: None,
            n_requests: 0,
            last_request: None,
            passthrough_reason: None,
            n_folds: 0,
            last_fold: None,
            n_handles: past.handles.len(),
            pins: Vec::new(),
        };
        let mut pins = BTreeSet::new();
        let undone = past.undone_events(past.events.len());
        for (i, noted) in past.events.iter().enumerate() {
            let is_own = i >= past.n_inherited;
            let is_request = matches!(noted.event, SessionEvent::Request(_));
            if undone.contains(&i) && !is_request {
                continue;
            }
            match &noted.event {
                SessionEvent::Request(sent) if is_own => {
                    overview.n_requests += 1;
                    overview.last_request = Some(noted.at);
                    overview.tokens = sent.tokens;
                    overview.passthrough_reason.clone_from(&sent.bypass_reason);
                }
                SessionEvent::Fold(fold) if self.is_in_branch(&overview.row, noted.tip)? => {
                    overview.n_folds = fold.n_folds;
                    overview.last_fold = Some(fold.tokens);
                }
                SessionEvent::Pinned { message } if self.is_in_branch(&overview.row, noted.tip)? => {
                    pins.insert(*message);
                }
                SessionEvent::Unpinned { message } if self.is_in_branch(&overview.row, noted.tip)? => {
                    pins.remove(message);
                }
                _ => {}
            }
        }
        overview.pins = pins.into_iter().collect();
        let budget = self.room(&overview.row, &past)?.map(|room| room.budget());
        overview.window = budget.map(|budget| (budget.window().0, budget.reserve().0));
        Ok(overview)
    }

    /// The room that a replay of the session would have, computed from its events alone.
    fn room(&self, row: &SessionRow, past: &SessionLog) -> Result<Option<SessionBudget>, StoreError> {
        let until = past.events.len();
        let Some(terms_event) = past.terms_event(until) else { return Ok(None) };
        let Some(budget) = SessionState::recorded_budget(past, &[], terms_event) else { return Ok(None) };
        let nodes = match row.tip {
            Some(tip) => self.store.chain(tip, 0..u32::MAX)?,
            None => Vec::new(),
        };
        let ids = nodes.into_iter().map(|node| node.id).collect();
        let mut room = SessionBudget::new(budget);
        let effective = past.effective_events(&MessageList::new(ids).positions, terms_event, until);
        effective.into_iter().for_each(|(_, i)| room.apply(&past.events[i].event));
        Ok(Some(room))
    }

    /// True if an event after the message `tip` belongs to the current branch of a session. A rewind excludes it.
    fn is_in_branch(&self, row: &SessionRow, tip: Option<NodeId>) -> Result<bool, StoreError> {
        // Events before the first message belong to every branch.
        if tip.is_none() { Ok(true) } else { is_ancestor(&*self.store, tip, row.tip) }
    }
}
