//! The messages that a body and a session have in common.

use std::collections::HashSet;

use fanfold_store::{Node, NodeId, Role, SessionId, StoreError};
use fanfold_wire::Conversation;

use crate::engine::Engine;

/// Number of messages that are read before the whole session is.
const N_FIRST: u32 = 16;

impl Engine {
    /// Returns true if a body and a session have a message in common, other than instructions. If not, the body
    /// belongs to another conversation. A session with nothing but instructions is related to any body.
    pub fn is_related(&self, session: &SessionId, conversation: &Conversation) -> Result<bool, StoreError> {
        let tip = self.store.session(session)?.and_then(|row| row.tip);
        // A body whose first messages only the provider has can't be compared.
        let Some(tip) = tip.filter(|_| !conversation.is_continued()) else { return Ok(true) };
        let body: HashSet<NodeId> =
            conversation.plain_messages(0).map(|json| NodeId::new(None, json.as_ref())).collect();
        let mut has_messages = false;
        let mut is_in_common = |node: &Node| {
            let is_message = node.role != Role::System;
            has_messages |= is_message;
            is_message && body.contains(&NodeId::new(None, &node.json))
        };
        // A related body mostly begins with the first messages of the session.
        for depths in [0..N_FIRST, N_FIRST..u32::MAX] {
            if self.store.chain(tip, depths)?.iter().any(&mut is_in_common) {
                return Ok(true);
            }
        }
        Ok(!has_messages)
    }

    /// The number of messages at the beginning that a session with `n_stored` messages has in common with a body.
    pub(crate) fn n_common(
        &self,
        tip: Option<NodeId>,
        n_stored: usize,
        ids: &[NodeId],
    ) -> Result<usize, StoreError> {
        let Some(tip) = tip else { return Ok(0) };
        // By bisection: an id is a hash of all messages up to its own, so if two are equal, all before them are.
        let (mut same, mut other) = (0, n_stored.min(ids.len()) + 1);
        while other - same > 1 {
            let middle = usize::midpoint(same, other);
            let depth = middle as u32 - 1;
            let nodes = self.store.chain(tip, depth..depth + 1)?;
            let is_same = nodes.first().is_some_and(|node| node.id == ids[middle - 1]);
            if is_same { same = middle } else { other = middle }
        }
        Ok(same)
    }
}
