//! The messages that a body and a session have in common.

use std::collections::HashSet;

use fanfold_store::{Node, NodeId, Role, SessionId, StoreError};
use fanfold_wire::Conversation;

use crate::engine::SessionEngine;

/// Number of messages that are read before the whole session is.
const N_FIRST: u32 = 16;

impl SessionEngine {
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
        // An id is a hash of all messages up to its own, so if two are equal, all before them are.
        bisect(n_stored.min(ids.len()), &[], |n| {
            let depth = n as u32 - 1;
            let nodes = self.store.chain(tip, depth..depth + 1)?;
            Ok(nodes.first().is_some_and(|node| node.id == ids[n - 1]))
        })
    }

    /// The number of messages that are stored. If one is stored, all before it are. A likely number is tried first.
    pub(crate) fn n_stored(&self, ids: &[NodeId], n_likely: usize) -> Result<usize, StoreError> {
        bisect(ids.len(), &[n_likely, n_likely + 1], |n| Ok(self.store.node(ids[n - 1])?.is_some()))
    }
}

/// The largest number from 1 to `n_max` that has a property, or 0 if none has it. If a number has the property, all
/// smaller ones have it. Likely numbers are tried first, then the middle of the rest.
pub(crate) fn bisect(
    n_max: usize,
    likely: &[usize],
    mut has_property: impl FnMut(usize) -> Result<bool, StoreError>,
) -> Result<usize, StoreError> {
    let (mut with, mut without) = (0, n_max + 1);
    let mut likely = likely.iter().copied();
    while without - with > 1 {
        let next = likely.next().filter(|next| with < *next && *next < without);
        let next = next.unwrap_or(usize::midpoint(with, without));
        if has_property(next)? { with = next } else { without = next }
    }
    Ok(with)
}
