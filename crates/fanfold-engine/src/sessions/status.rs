//! How a session stands, by what was noted of it: how full its window is, its folds, its pins.

use std::collections::BTreeSet;

use fanfold_store::{Millis, NodeId, SessionId, SessionRow, StoreError};

use crate::engine::{Engine, OpError};
use crate::follow::session_budget::SessionBudget;
use crate::log::events::SessionEvent;
use crate::log::session_log::{SessionLog, is_ancestor};
use crate::sessions::state::{State, positions_of};

/// How a session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The session.
    pub row: SessionRow,
    /// What the last request cost, in tokens; none where nothing was sent or counted.
    pub tokens: Option<u64>,
    /// The window that its view is made for, and what of it is kept for the answer: in our tokens, as far as the
    /// provider has corrected them for this view. It is what decides, and what is shown elsewhere.
    pub window: Option<(u64, u64)>,
    /// How many requests left.
    pub n_requests: usize,
    /// When the last one did.
    pub last_request: Option<Millis>,
    /// Why the last one left as it came, if something of ours did not work.
    pub as_it_came: Option<String>,
    /// How many folds its view has had.
    pub n_folds: usize,
    /// What the view cost before the last fold and after it.
    pub last_fold: Option<(u64, u64)>,
    /// How many handles it was ever given.
    pub n_handles: usize,
    /// Messages that must not be folded, by their numbers from 0.
    pub pins: Vec<u32>,
}

impl Engine {
    /// How a session stands.
    pub fn standing(&self, session: &SessionId) -> Result<Standing, OpError> {
        let row = self.row(session)?;
        let past = SessionLog::read(&*self.store, session)?;
        let mut standing = Standing {
            row,
            tokens: None,
            window: None,
            n_requests: 0,
            last_request: None,
            as_it_came: None,
            n_folds: 0,
            last_fold: None,
            n_handles: past.handles.len(),
            pins: Vec::new(),
        };
        let mut pins = BTreeSet::new();
        let undone = past.undone_events(past.events.len());
        for (i, noted) in past.events.iter().enumerate() {
            let is_own = i >= past.n_inherited;
            let has_left = matches!(noted.event, SessionEvent::Request(_));
            if undone.contains(&i) && !has_left {
                continue;
            }
            match &noted.event {
                SessionEvent::Request(sent) if is_own => {
                    standing.n_requests += 1;
                    standing.last_request = Some(noted.at);
                    standing.tokens = sent.tokens;
                    standing.as_it_came.clone_from(&sent.bypass_reason);
                }
                SessionEvent::Fold(fold) if self.is_on_the_way(&standing.row, noted.tip)? => {
                    standing.n_folds = fold.n_folds;
                    standing.last_fold = Some(fold.tokens);
                }
                SessionEvent::Pinned { message } if self.is_on_the_way(&standing.row, noted.tip)? => {
                    pins.insert(*message);
                }
                SessionEvent::Unpinned { message } if self.is_on_the_way(&standing.row, noted.tip)? => {
                    pins.remove(message);
                }
                _ => {}
            }
        }
        standing.pins = pins.into_iter().collect();
        let budget = self.room(&standing.row, &past)?.map(|room| room.budget());
        standing.window = budget.map(|budget| (budget.window().0, budget.reserve().0));
        Ok(standing)
    }

    /// How much room the view of a session is made for: what a replay of it comes to.
    fn room(&self, row: &SessionRow, past: &SessionLog) -> Result<Option<SessionBudget>, StoreError> {
        let until = past.events.len();
        let Some(era) = past.terms_event(until) else { return Ok(None) };
        let Some(began) = State::recorded_budget(past, &[], era) else { return Ok(None) };
        let nodes = match row.tip {
            Some(tip) => self.store.chain(tip, 0..u32::MAX)?,
            None => Vec::new(),
        };
        let ids: Vec<NodeId> = nodes.into_iter().map(|node| node.id).collect();
        let mut room = SessionBudget::new(began);
        let holding = past.effective_events(&positions_of(&ids), era, until);
        holding.into_iter().for_each(|(_, i)| room.apply(&past.events[i].event));
        Ok(Some(room))
    }

    /// Whether what happened behind a message holds for a session as it is: a rewind takes it back.
    fn is_on_the_way(&self, row: &SessionRow, tip: Option<NodeId>) -> Result<bool, StoreError> {
        // What happened before the first message holds always.
        if tip.is_none() { Ok(true) } else { is_ancestor(&*self.store, tip, row.tip) }
    }
}
