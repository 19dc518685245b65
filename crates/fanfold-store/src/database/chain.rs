//! Reads messages along their lanes.
//!
//! ```text
//! lane 1   0 - 1 - 2 - 3 - 4
//! lane 2           `-- 3 - 4 - 5          parent 1, start 3
//! lane 3                   `-- 5          parent 2, start 5
//! ```
//!
//! A chain consists of one range of depths per lane: the chain to the end of lane 3 is 0–2 of lane 1, 3–4 of lane 2
//! and 5 of lane 3. Every lane that branches off after a message shares that message.

use std::ops::Range;

use crate::database::sql::Sql;
use crate::database::tables::{self, Position, StoredMessage};
use crate::model::{Node, NodeId, SessionId};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The treatment of messages with bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamagedText {
    /// An error: every message is returned byte for byte.
    Refused,
    /// They are returned with U+FFFD in place of these bytes.
    Replaced,
}

/// Returns the messages on the chain that ends at `tip`, limited to these depths, oldest first.
pub(crate) fn chain(
    sql: &mut dyn Sql,
    tip: NodeId,
    depths: Range<u32>,
    damaged_text: DamagedText,
) -> Result<Vec<Node>> {
    let position = tables::position(sql, tip)?.ok_or(StoreError::NoNode(tip))?;
    let end = depths.end.min(position.depth + 1);
    if depths.start >= end {
        return Ok(Vec::new());
    }
    let mut parent = parent_id(sql, Position { depth: depths.start, ..position })?;
    let mut nodes = Vec::with_capacity((end - depths.start) as usize);
    for (lane, range) in lane_ranges(sql, position.lane, depths.start..end)? {
        let n_expected = range.len();
        let stored = tables::nodes(sql, lane, range.clone())?;
        if stored.len() != n_expected {
            let text = format!(
                "lane {lane} has {} of {n_expected} messages from depth {}",
                stored.len(),
                range.start
            );
            return Err(StoreError::Corrupt(text));
        }
        for stored in stored {
            if stored.is_damaged && damaged_text == DamagedText::Refused {
                let text = format!("message {} is not UTF-8", stored.position.number);
                return Err(StoreError::Corrupt(text));
            }
            let id = stored.id;
            nodes.push(to_node(stored, parent));
            parent = Some(id);
        }
    }
    Ok(nodes)
}

/// Returns a message by its id.
pub(crate) fn node(sql: &mut dyn Sql, id: NodeId) -> Result<Option<Node>> {
    let Some(stored) = tables::node(sql, id)? else { return Ok(None) };
    let parent = parent_id(sql, stored.position)?;
    Ok(Some(to_node(stored, parent)))
}

/// Returns a message by its number.
pub(crate) fn node_by_number(sql: &mut dyn Sql, number: u64) -> Result<Option<Node>> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let Some(stored) = tables::node_by_number(sql, number)? else { return Ok(None) };
    let parent = parent_id(sql, stored.position)?;
    Ok(Some(to_node(stored, parent)))
}

/// Returns the sessions whose chain contains a message, the oldest first.
pub(crate) fn owners(sql: &mut dyn Sql, node: NodeId) -> Result<Vec<SessionId>> {
    let position = tables::position(sql, node)?.ok_or(StoreError::NoNode(node))?;
    tables::owners(sql, position)
}

/// Returns the id of the message before a position; `None` at the start of a chain.
fn parent_id(sql: &mut dyn Sql, position: Position) -> Result<Option<NodeId>> {
    let Some(depth) = position.depth.checked_sub(1) else { return Ok(None) };
    let lane =
        lane_ranges(sql, position.lane, depth..depth + 1)?.first().map_or(position.lane, |(lane, _)| *lane);
    let id = tables::node_id_at(sql, lane, depth)?;
    let text = || format!("lane {lane} lacks the message at depth {depth}, but has later ones");
    id.map(Some).ok_or_else(|| StoreError::Corrupt(text()))
}

/// Returns the lanes of the chain that ends in `lane`, each with its range of the given depths, root lane first.
pub(crate) fn lane_ranges(
    sql: &mut dyn Sql,
    lane: i64,
    depths: Range<u32>,
) -> Result<Vec<(i64, Range<u32>)>> {
    let mut ranges = Vec::new();
    let (mut next, mut end) = (Some(lane), depths.end);
    while let Some(lane) = next.filter(|_| end > depths.start) {
        let row = tables::lane(sql, lane)?;
        let start = row.start.max(depths.start);
        if start < end {
            ranges.push((lane, start..end));
            end = start;
        }
        next = row.parent;
    }
    ranges.reverse();
    Ok(ranges)
}

fn to_node(stored: StoredMessage, parent: Option<NodeId>) -> Node {
    Node {
        id: stored.id,
        parent,
        number: stored.position.number.unsigned_abs(),
        depth: stored.position.depth,
        role: stored.role,
        at: stored.at,
        json: stored.json.into(),
    }
}
