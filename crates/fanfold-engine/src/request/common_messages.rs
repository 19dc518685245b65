//! What a body has in common with the session that it is meant for.

use std::collections::HashSet;

use fanfold_store::{Node, NodeId, Role, SessionId, StoreError};
use fanfold_wire::Conversation;

use crate::engine::Engine;

/// So many messages are looked at before all of them are.
const N_FIRST: u32 = 16;

impl Engine {
    /// Whether a body has something of what a session has, instructions aside. One that has nothing of it is another
    /// conversation. A session in which nothing was said takes any.
    pub fn is_related(&self, session: &SessionId, conversation: &Conversation) -> Result<bool, StoreError> {
        let tip = self.store.session(session)?.and_then(|row| row.tip);
        // What only goes on with what the provider holds does not say what it goes on with.
        let Some(tip) = tip.filter(|_| !conversation.is_continued()) else { return Ok(true) };
        let came: HashSet<NodeId> =
            conversation.plain_messages(0).map(|json| NodeId::new(None, json.as_ref())).collect();
        let mut has_said = false;
        let mut is_in_common = |node: &Node| {
            let is_said = node.role != Role::System;
            has_said |= is_said;
            is_said && came.contains(&NodeId::new(None, &node.json))
        };
        // A body mostly begins as its session does.
        for part in [0..N_FIRST, N_FIRST..u32::MAX] {
            if self.store.chain(tip, part)?.iter().any(&mut is_in_common) {
                return Ok(true);
            }
        }
        Ok(!has_said)
    }

    /// How many messages, from the first on, a session of so many has in common with a body.
    pub(crate) fn n_common(
        &self,
        tip: Option<NodeId>,
        n_held: usize,
        ids: &[NodeId],
    ) -> Result<usize, StoreError> {
        let Some(tip) = tip else { return Ok(0) };
        // Every message is named by all that was said up to it, so where two are the same, all before them are.
        let (mut same, mut other) = (0, n_held.min(ids.len()) + 1);
        while other - same > 1 {
            let middle = usize::midpoint(same, other);
            let depth = middle as u32 - 1;
            let there = self.store.chain(tip, depth..depth + 1)?;
            let is_same = there.first().is_some_and(|node| node.id == ids[middle - 1]);
            if is_same { same = middle } else { other = middle }
        }
        Ok(same)
    }
}
