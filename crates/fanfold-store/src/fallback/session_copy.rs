//! A session with its messages and events, to continue it in another store.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::sql::Sql;
use crate::database::sql_store::SqlStore as _;
use crate::database::tables::{self, Lane, NewMessageRow, Position, StoredSession};
use crate::model::{EventRow, Millis, Node, NodeId, Role, SessionId, SessionRow};
use crate::sqlite::SqliteStore;
use crate::store::{Store, StoreError};

/// A session with its messages and events.
#[derive(Debug, Clone)]
pub struct SessionCopy {
    /// The session.
    pub row: SessionRow,
    /// Its messages and those that its events refer to, parents first.
    pub nodes: Vec<Node>,
    /// Its events.
    pub events: Vec<EventRow>,
    /// Blobs that its events refer to, as far as they are known.
    pub blobs: Vec<Vec<u8>>,
}

impl SessionCopy {
    /// Reads a session; `None` if there is no session with this id.
    pub(super) fn read(store: &dyn Store, id: &SessionId) -> Result<Option<SessionCopy>, StoreError> {
        let Some(row) = store.session(id)? else { return Ok(None) };
        let events = store.events(id, 0)?;
        let (mut nodes, mut known) = (Vec::new(), BTreeSet::new());
        for tip in row.tip.into_iter().chain(events.iter().filter_map(|event| event.tip)) {
            if !known.contains(&tip) {
                let chain = store.chain(tip, 0..u32::MAX)?;
                nodes.extend(chain.into_iter().filter(|node| known.insert(node.id)));
            }
        }
        Ok(Some(SessionCopy { row, nodes, events, blobs: Vec::new() }))
    }

    /// The size of what it contains.
    pub(super) fn n_bytes(&self) -> usize {
        let messages: usize = self.nodes.iter().map(|node| node.json.len()).sum();
        messages + self.events.iter().map(|event| event.body.len()).sum::<usize>()
    }
}

impl SqliteStore {
    /// Inserts a copy of a session. Its events keep their times and tips, so what is derived from them is the same.
    pub(super) fn insert_copy(&self, copy: &SessionCopy) -> Result<(), StoreError> {
        self.write_sql(|sql| insert(sql, copy))
    }
}

fn insert(sql: &mut dyn Sql, copy: &SessionCopy) -> Result<(), StoreError> {
    for bytes in &copy.blobs {
        tables::insert_blob(sql, bytes)?;
    }
    let mut positions = insert_messages(sql, &copy.nodes)?;
    // The content of messages on branches that were left may be unknown. Their events need only their ids.
    let unknown = copy.events.iter().filter_map(|event| event.tip).filter(|tip| !positions.contains_key(tip));
    let unknown: BTreeSet<NodeId> = unknown.collect();
    for id in unknown {
        let position = match tables::position(sql, id)? {
            Some(position) => position,
            None => insert_unknown(sql, id)?,
        };
        positions.insert(id, position);
    }
    let position_of = |tip: Option<NodeId>| tip.and_then(|tip| positions.get(&tip).copied());
    // Titles and parents are not needed in memory, and their owners may not be there.
    let row = SessionRow { title: None, parent: None, ..copy.row.clone() };
    let mut session = StoredSession { key: 0, tip_position: position_of(row.tip), row };
    session.key = tables::insert_session(sql, &session)?;
    for event in &copy.events {
        session.tip_position = position_of(event.tip);
        tables::insert_event(sql, &session, event)?;
    }
    Ok(())
}

/// Inserts the messages that the store does not have. Returns the positions of all.
fn insert_messages(sql: &mut dyn Sql, nodes: &[Node]) -> Result<BTreeMap<NodeId, Position>, StoreError> {
    let mut positions = BTreeMap::new();
    let mut occupied: BTreeSet<(i64, u32)> = BTreeSet::new();
    let mut new = Vec::new();
    let mut numbers = sql.new_numbers(nodes.len())?.into_iter();
    for node in nodes {
        if let Some(position) = tables::position(sql, node.id)? {
            positions.insert(node.id, position);
            continue;
        }
        let parent = node.parent.and_then(|parent| positions.get(&parent).copied());
        let depth = parent.map_or(0, |parent: Position| parent.depth + 1);
        let free_lane = match parent.map(|parent| parent.lane) {
            Some(lane) if occupied.contains(&(lane, depth)) => None,
            Some(lane) => tables::node_id_at(sql, lane, depth)?.is_none().then_some(lane),
            None => None,
        };
        let lane = match free_lane {
            Some(lane) => lane,
            None => {
                tables::insert_lane(sql, Lane { parent: parent.map(|parent| parent.lane), start: depth })?
            }
        };
        occupied.insert((lane, depth));
        let number = numbers.next().ok_or_else(|| StoreError::Corrupt("too few message numbers".into()))?;
        let position = Position { number, lane, depth };
        positions.insert(node.id, position);
        new.push(NewMessageRow { id: node.id, position, role: node.role, at: node.at, json: &node.json });
    }
    tables::insert_nodes(sql, &new)?;
    Ok(positions)
}

/// Inserts a message with a known id and unknown content, outside of all chains.
fn insert_unknown(sql: &mut dyn Sql, id: NodeId) -> Result<Position, StoreError> {
    let lane = tables::insert_lane(sql, Lane { parent: None, start: 0 })?;
    let number = sql.new_numbers(1)?.pop();
    let number = number.ok_or_else(|| StoreError::Corrupt("too few message numbers".into()))?;
    let position = Position { number, lane, depth: 0 };
    tables::insert_nodes(sql, &[NewMessageRow { id, position, role: Role::Other, at: Millis(0), json: "" }])?;
    Ok(position)
}
