//! The messages that a session's view contains unfolded. A search on behalf of the session leaves them out.

use std::ops::Range;

use fanfold_store::{NodeId, SessionId, StoreError};

use crate::engine::SessionEngine;
use crate::follow::session_state::MessageList;
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::log::session_log::SessionLog;

impl SessionEngine {
    /// The numbers of the messages that the current view of a session contains unfolded.
    pub fn live_messages(&self, session: &SessionId) -> Result<Vec<Range<u32>>, StoreError> {
        let row = self.store.session(session)?.ok_or_else(|| StoreError::NoSession(session.clone()))?;
        let Some(tip) = row.tip else { return Ok(Vec::new()) };
        let past = SessionLog::read(&*self.store, session)?;
        let fold_of = |(_, noted): (usize, &'_ LoggedEvent)| match &noted.event {
            SessionEvent::Fold(fold) => Some((noted.tip, fold.folded.clone())),
            _ => None,
        };
        let folds: Vec<_> = past.events_in_force().filter_map(fold_of).collect();
        let ids = self.store.chain(tip, 0..u32::MAX)?.into_iter().map(|node| node.id).collect();
        let positions = MessageList::new(ids).positions;
        // The newest fold of the current branch.
        let is_in_branch =
            |(tip, _): &&(Option<NodeId>, _)| tip.is_some_and(|tip| positions.contains_key(&tip));
        let folded = folds.iter().rev().find(is_in_branch);
        let mut live = Vec::new();
        let mut next = 0;
        for (first, last) in folded.map(|(_, folded)| folded.as_slice()).unwrap_or_default() {
            if *first > next {
                live.push(next..*first);
            }
            next = last + 1;
        }
        if next < row.n_messages {
            live.push(next..row.n_messages);
        }
        Ok(live)
    }
}
