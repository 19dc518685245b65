//! The statements on the tables, one function each.

use std::ops::Range;

use crate::database::sql::{Sql, SqlRow, SqlValue, query_row};
use crate::model::{BlobId, EndReason, EventRow, Millis, NodeId, Relation, Role, SessionId, SessionRow};
use crate::store::{SessionFilter, StoreError, StoreSize};

type Result<T> = std::result::Result<T, StoreError>;

/// The position of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the message.
    pub(crate) number: i64,
    /// The lane.
    pub(crate) lane: i64,
    /// The number of preceding messages.
    pub(crate) depth: u32,
}

/// A linear run of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The lane that it branches off.
    pub(crate) parent: Option<i64>,
    /// The depth of its first message.
    pub(crate) start: u32,
}

/// A row of the table `sessions`.
#[derive(Debug, Clone)]
pub(crate) struct StoredSession {
    /// The key of the session in other tables.
    pub(crate) key: i64,
    /// The public attributes.
    pub(crate) row: SessionRow,
    /// The position of the tip.
    pub(crate) tip_position: Option<Position>,
}

/// A row of the table `nodes`. The preceding message follows from the position.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    /// The id.
    pub(crate) id: NodeId,
    /// The position.
    pub(crate) position: Position,
    /// The author.
    pub(crate) role: Role,
    /// When the message was first stored.
    pub(crate) at: Millis,
    /// The message, byte for byte unless it is damaged.
    pub(crate) json: String,
    /// True if the stored bytes are not UTF-8. `json` has U+FFFD in their place.
    pub(crate) is_damaged: bool,
}

/// The columns of a session `s` with its tip `n`, in the order that [`read_session`] reads them.
macro_rules! session_columns {
    () => {
        "s.key, s.id, s.source, s.format, s.model, s.title, s.goal, s.parent, s.relation, s.root, s.n_messages, \
         s.n_events, s.started_at, s.updated_at, s.ended_at, s.end_reason, s.lane, s.tip, n.id"
    };
}
pub(crate) use session_columns;

const SELECT_SESSIONS: &str =
    concat!("SELECT ", session_columns!(), " FROM sessions s LEFT JOIN nodes n ON n.number = s.tip");

/// Selects a session by its id.
pub(crate) const SELECT_SESSION: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s LEFT JOIN nodes n ON n.number = s.tip WHERE s.id = $1"
);

/// Returns a session.
pub(crate) fn session(sql: &mut dyn Sql, id: &SessionId) -> Result<Option<StoredSession>> {
    query_row(sql, SELECT_SESSION, &[SqlValue::Text(&id.0)])?.map(read_session).transpose()
}

/// Locks a session for an update and returns it.
pub(crate) fn session_for_update(sql: &mut dyn Sql, id: &SessionId) -> Result<Option<StoredSession>> {
    // Lock before reading: a query that waits for a row lock returns data from before the wait.
    sql.lock_session(&id.0)?;
    session(sql, id)
}

/// Lists sessions, the last written to first.
pub(crate) fn sessions(sql: &mut dyn Sql, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
    let mut text = SELECT_SESSIONS.to_owned();
    let mut values = Vec::new();
    let names = [("source =", &filter.source), ("title =", &filter.title)];
    let ids = [("root =", &filter.root), ("parent =", &filter.parent)];
    let times = [("updated_at >=", filter.since), ("updated_at <", filter.before)];
    let names = names.iter().filter_map(|(test, name)| Some((*test, SqlValue::Text(name.as_ref()?))));
    let ids = ids.iter().filter_map(|(test, id)| Some((*test, SqlValue::Text(&id.as_ref()?.0))));
    let times = times.iter().filter_map(|(test, at)| Some((*test, SqlValue::Int((*at)?.0))));
    for (test, value) in names.chain(ids).chain(times) {
        values.push(value);
        let word = if values.len() == 1 { "WHERE" } else { "AND" };
        text.push_str(&format!(" {word} s.{test} ${}", values.len()));
    }
    let n = values.len();
    text.push_str(&format!(" ORDER BY s.updated_at DESC, s.id DESC LIMIT ${} OFFSET ${}", n + 1, n + 2));
    values.push(SqlValue::limit(filter.limit.unwrap_or(usize::MAX)));
    values.push(SqlValue::limit(filter.offset));
    sql.query(&text, &values)?.into_iter().map(|row| Ok(read_session(row)?.row)).collect()
}

/// Reads a session from its columns.
pub(crate) fn read_session(mut row: SqlRow) -> Result<StoredSession> {
    let key = row.int()?;
    let id = SessionId(row.text()?);
    let (source, format) = (row.text()?, row.text()?);
    let (model, title, goal) = (row.opt_text()?, row.opt_text()?, row.opt_text()?);
    let (parent, relation) = (row.opt_text()?, row.opt_text()?);
    let parent = match (parent, relation.as_deref()) {
        (None, _) => None,
        (Some(parent), Some(name)) => {
            let relation = Relation::from_name(name);
            let relation =
                relation.ok_or_else(|| StoreError::Corrupt(format!("unknown relation {name:?}")))?;
            Some((SessionId(parent), relation))
        }
        (Some(_), None) => {
            return Err(StoreError::Corrupt(format!("session {id} has a parent but no relation")));
        }
    };
    let root = SessionId(row.text()?);
    let (n_messages, n_events) = (row.integer()?, row.integer()?);
    let (started_at, updated_at) = (Millis(row.int()?), Millis(row.int()?));
    let ended = match (row.opt_int()?, row.opt_text()?) {
        (Some(at), Some(reason)) => Some((Millis(at), EndReason::from_name(&reason))),
        _ => None,
    };
    let (lane, number, tip) = (row.opt_int()?, row.opt_int()?, row.opt_hash()?.map(NodeId));
    let position = match (lane, number, tip) {
        (None, None, None) => None,
        (Some(lane), Some(number), Some(_)) => Some(Position { number, lane, depth: tip_depth(n_messages) }),
        _ => return Err(StoreError::Corrupt(format!("session {id} points at a missing message"))),
    };
    let row = SessionRow {
        id,
        source,
        format,
        model,
        title,
        goal,
        parent,
        root,
        tip,
        n_messages,
        n_events,
        started_at,
        updated_at,
        ended,
    };
    Ok(StoredSession { key, row, tip_position: position })
}

fn tip_depth(n_messages: u32) -> u32 {
    n_messages.saturating_sub(1)
}

/// Inserts a session and returns its key.
pub(crate) fn insert_session(sql: &mut dyn Sql, session: &StoredSession) -> Result<i64> {
    let text = "INSERT INTO sessions (id, source, format, model, title, goal, parent, relation, root, tip, lane, \
         n_messages, n_events, started_at, updated_at, ended_at, end_reason) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) RETURNING key";
    let row = &session.row;
    let values = [
        SqlValue::Text(&row.id.0),
        SqlValue::Text(&row.source),
        SqlValue::Text(&row.format),
        SqlValue::text(row.model.as_deref()),
        SqlValue::text(row.title.as_deref()),
        SqlValue::text(row.goal.as_deref()),
        SqlValue::text(row.parent.as_ref().map(|(id, _)| id.0.as_str())),
        SqlValue::text(row.parent.as_ref().map(|(_, relation)| relation.name())),
        SqlValue::Text(&row.root.0),
        SqlValue::int(session.tip_position.map(|position| position.number)),
        SqlValue::int(session.tip_position.map(|position| position.lane)),
        SqlValue::Int(row.n_messages.into()),
        SqlValue::Int(row.n_events.into()),
        SqlValue::Int(row.started_at.0),
        SqlValue::Int(row.updated_at.0),
        SqlValue::int(row.ended.as_ref().map(|(at, _)| at.0)),
        SqlValue::text(row.ended.as_ref().map(|(_, reason)| reason.name())),
    ];
    match query_row(sql, text, &values)? {
        Some(mut row) => row.int(),
        None => Err(StoreError::Corrupt("an inserted session has no key".into())),
    }
}

/// Writes the changeable columns of a session.
pub(crate) fn update_session(sql: &mut dyn Sql, session: &StoredSession) -> Result<()> {
    let text = "UPDATE sessions SET model = $1, title = $2, goal = $3, tip = $4, lane = $5, n_messages = $6, \
         n_events = $7, updated_at = $8, ended_at = $9, end_reason = $10 WHERE key = $11";
    let row = &session.row;
    let values = [
        SqlValue::text(row.model.as_deref()),
        SqlValue::text(row.title.as_deref()),
        SqlValue::text(row.goal.as_deref()),
        SqlValue::int(session.tip_position.map(|position| position.number)),
        SqlValue::int(session.tip_position.map(|position| position.lane)),
        SqlValue::Int(row.n_messages.into()),
        SqlValue::Int(row.n_events.into()),
        SqlValue::Int(row.updated_at.0),
        SqlValue::int(row.ended.as_ref().map(|(at, _)| at.0)),
        SqlValue::text(row.ended.as_ref().map(|(_, reason)| reason.name())),
        SqlValue::Int(session.key),
    ];
    sql.execute(text, &values)?;
    Ok(())
}

/// Deletes a session with its events and its lock.
pub(crate) fn delete_session(sql: &mut dyn Sql, session: &StoredSession) -> Result<()> {
    sql.execute("DELETE FROM events WHERE session = $1", &[SqlValue::Int(session.key)])?;
    sql.execute("DELETE FROM locks WHERE session = $1", &[SqlValue::Text(&session.row.id.0)])?;
    sql.execute("DELETE FROM sessions WHERE key = $1", &[SqlValue::Int(session.key)])?;
    Ok(())
}

/// Returns the session that has a title.
pub(crate) fn title_holder(sql: &mut dyn Sql, title: &str) -> Result<Option<SessionId>> {
    let found = query_row(sql, "SELECT id FROM sessions WHERE title = $1", &[SqlValue::Text(title)])?;
    found.map(|mut row| Ok(SessionId(row.text()?))).transpose()
}

/// Returns the position of a message.
pub(crate) fn position(sql: &mut dyn Sql, id: NodeId) -> Result<Option<Position>> {
    let text = "SELECT number, lane, depth FROM nodes WHERE id = $1";
    let found = query_row(sql, text, &[SqlValue::Bytes(&id.0)])?;
    found
        .map(|mut row| Ok(Position { number: row.int()?, lane: row.int()?, depth: row.integer()? }))
        .transpose()
}

/// Returns the id of the message at a depth of a lane.
pub(crate) fn node_id_at(sql: &mut dyn Sql, lane: i64, depth: u32) -> Result<Option<NodeId>> {
    let text = "SELECT id FROM nodes WHERE lane = $1 AND depth = $2";
    query_row(sql, text, &[SqlValue::Int(lane), SqlValue::Int(depth.into())])?
        .map(|mut row| row.node_id())
        .transpose()
}

/// Inserts a lane and returns its number.
pub(crate) fn insert_lane(sql: &mut dyn Sql, lane: Lane) -> Result<i64> {
    let text = "INSERT INTO lanes (parent, start) VALUES ($1, $2) RETURNING lane";
    match query_row(sql, text, &[SqlValue::int(lane.parent), SqlValue::Int(lane.start.into())])? {
        Some(mut row) => row.int(),
        None => Err(StoreError::Corrupt("an inserted lane has no number".into())),
    }
}

/// Returns a lane.
pub(crate) fn lane(sql: &mut dyn Sql, lane: i64) -> Result<Lane> {
    let found = query_row(sql, "SELECT parent, start FROM lanes WHERE lane = $1", &[SqlValue::Int(lane)])?;
    let mut row = found.ok_or_else(|| StoreError::Corrupt(format!("there is no lane {lane}")))?;
    Ok(Lane { parent: row.opt_int()?, start: row.integer()? })
}

/// Selects messages `n`, with the columns in the order that [`read_node`] reads them.
pub(crate) const SELECT_MESSAGES: &str =
    "SELECT n.number, n.id, n.lane, n.depth, n.role, n.at, n.json FROM nodes n";

/// Returns a message by its id.
pub(crate) fn node(sql: &mut dyn Sql, id: NodeId) -> Result<Option<StoredMessage>> {
    query_row(sql, &format!("{SELECT_MESSAGES} WHERE id = $1"), &[SqlValue::Bytes(&id.0)])?
        .map(read_node)
        .transpose()
}

/// Returns a message by its number.
pub(crate) fn node_by_number(sql: &mut dyn Sql, number: i64) -> Result<Option<StoredMessage>> {
    query_row(sql, &format!("{SELECT_MESSAGES} WHERE number = $1"), &[SqlValue::Int(number)])?
        .map(read_node)
        .transpose()
}

/// Returns the messages of a lane at these depths, in order.
pub(crate) fn nodes(sql: &mut dyn Sql, lane: i64, depths: Range<u32>) -> Result<Vec<StoredMessage>> {
    let text = format!("{SELECT_MESSAGES} WHERE lane = $1 AND depth >= $2 AND depth < $3 ORDER BY depth");
    let values = [SqlValue::Int(lane), SqlValue::Int(depths.start.into()), SqlValue::Int(depths.end.into())];
    sql.query(&text, &values)?.into_iter().map(read_node).collect()
}

/// Returns up to 512 messages after a lane and depth, ordered by lane and depth.
pub(crate) fn nodes_after(sql: &mut dyn Sql, (lane, depth): (i64, u32)) -> Result<Vec<StoredMessage>> {
    let text = format!("{SELECT_MESSAGES} WHERE (lane, depth) > ($1, $2) ORDER BY lane, depth LIMIT 512");
    sql.query(&text, &[SqlValue::Int(lane), SqlValue::Int(depth.into())])?
        .into_iter()
        .map(read_node)
        .collect()
}

/// Reads a message from its columns.
pub(crate) fn read_node(mut row: SqlRow) -> Result<StoredMessage> {
    let (number, id) = (row.int()?, row.node_id()?);
    let position = Position { number, lane: row.int()?, depth: row.integer()? };
    let role = Role::from_name(&row.text()?).unwrap_or(Role::Other);
    let (at, json) = (Millis(row.int()?), row.readable_text()?);
    Ok(StoredMessage { id, position, role, at, json: json.text, is_damaged: json.is_damaged })
}

/// A message to insert.
pub(crate) struct NewMessageRow<'a> {
    /// The id.
    pub(crate) id: NodeId,
    /// The position.
    pub(crate) position: Position,
    /// The author.
    pub(crate) role: Role,
    /// The time of the message.
    pub(crate) at: Millis,
    /// The message, byte for byte.
    pub(crate) json: &'a str,
}

/// Rows per INSERT statement, the largest size first. Few sizes keep the number of prepared statements small.
const CHUNK_SIZES: [usize; 3] = [32, 8, 1];

/// Inserts messages.
pub(crate) fn insert_nodes(sql: &mut dyn Sql, nodes: &[NewMessageRow<'_>]) -> Result<()> {
    let mut rest = nodes;
    for rows in CHUNK_SIZES {
        let (many, few) = rest.split_at(rest.len() / rows * rows);
        many.chunks(rows).try_for_each(|nodes| insert_node_rows(sql, nodes))?;
        rest = few;
    }
    Ok(())
}

fn insert_node_rows(sql: &mut dyn Sql, nodes: &[NewMessageRow<'_>]) -> Result<()> {
    let mut text = "INSERT INTO nodes (number, id, lane, depth, role, at, json) VALUES ".to_owned();
    let mut values = Vec::with_capacity(7 * nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let n = 7 * i;
        let names: [usize; 7] = std::array::from_fn(|i| n + i + 1);
        let [a, b, c, d, e, f, g] = names;
        text.push_str(&format!("{comma}(${a}, ${b}, ${c}, ${d}, ${e}, ${f}, ${g})"));
        values.extend([
            SqlValue::Int(node.position.number),
            SqlValue::Bytes(&node.id.0),
            SqlValue::Int(node.position.lane),
            SqlValue::Int(node.position.depth.into()),
            SqlValue::Text(node.role.name()),
            SqlValue::Int(node.at.0),
            SqlValue::Json(node.json),
        ]);
    }
    sql.execute(&text, &values)?;
    Ok(())
}

/// Returns the sessions whose chain contains the message at a position, the oldest first.
pub(crate) fn owners(sql: &mut dyn Sql, position: Position) -> Result<Vec<SessionId>> {
    let text = "WITH RECURSIVE sharing (lane) AS ( \
         SELECT lane FROM lanes WHERE lane = $1 \
         UNION ALL SELECT l.lane FROM lanes l JOIN sharing ON l.parent = sharing.lane WHERE l.start > $2) \
         SELECT s.id FROM sharing CROSS JOIN sessions s \
         WHERE s.lane = sharing.lane AND s.n_messages > $2 ORDER BY s.started_at, s.id";
    let rows = sql.query(text, &[SqlValue::Int(position.lane), SqlValue::Int(position.depth.into())])?;
    rows.into_iter().map(|mut row| Ok(SessionId(row.text()?))).collect()
}

/// Inserts an event.
pub(crate) fn insert_event(sql: &mut dyn Sql, session: &StoredSession, event: &EventRow) -> Result<()> {
    let text = "INSERT INTO events (session, seq, at, tip, kind, body) VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        SqlValue::Int(session.key),
        SqlValue::Int(event.seq.into()),
        SqlValue::Int(event.at.0),
        SqlValue::int(session.tip_position.map(|position| position.number)),
        SqlValue::Text(&event.kind),
        SqlValue::Json(&event.body),
    ];
    sql.execute(text, &values)?;
    Ok(())
}

/// Returns the events of a session from a sequence number on, oldest first.
pub(crate) fn events(sql: &mut dyn Sql, id: &SessionId, from: u32) -> Result<Vec<EventRow>> {
    let session = session(sql, id)?.ok_or_else(|| StoreError::NoSession(id.clone()))?;
    let text = "SELECT e.seq, e.at, e.kind, e.body, e.tip, n.id FROM events e LEFT JOIN nodes n ON n.number = e.tip \
         WHERE e.session = $1 AND e.seq >= $2 ORDER BY e.seq";
    let read = |mut row: SqlRow| {
        let (seq, at, kind, body) = (row.integer()?, Millis(row.int()?), row.text()?, row.text()?);
        let (number, tip) = (row.opt_int()?, row.opt_hash()?.map(NodeId));
        if number.is_some() != tip.is_some() {
            return Err(StoreError::Corrupt(format!(
                "event {seq} of session {id} points at a missing message"
            )));
        }
        Ok(EventRow { seq, at, tip, kind, body })
    };
    let rows = sql.query(text, &[SqlValue::Int(session.key), SqlValue::Int(from.into())])?;
    rows.into_iter().map(read).collect()
}

/// Inserts a blob, unless it is already stored.
pub(crate) fn insert_blob(sql: &mut dyn Sql, bytes: &[u8]) -> Result<()> {
    let id = BlobId::new(bytes);
    let text = "INSERT INTO blobs (id, bytes) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    sql.execute(text, &[SqlValue::Bytes(&id.0), SqlValue::Bytes(bytes)])?;
    Ok(())
}

/// Returns a blob.
pub(crate) fn blob(sql: &mut dyn Sql, id: BlobId) -> Result<Option<Vec<u8>>> {
    let found = query_row(sql, "SELECT bytes FROM blobs WHERE id = $1", &[SqlValue::Bytes(&id.0)])?;
    found.map_or(Ok(None), |mut row| row.opt_bytes())
}

/// Returns the size of the store, without its disk usage, which each database determines itself.
pub(crate) fn size(sql: &mut dyn Sql) -> Result<StoreSize> {
    let text = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM nodes), \
         (SELECT coalesce(sum(octet_length(json)), 0) FROM nodes), (SELECT count(*) FROM events)";
    let mut row = query_row(sql, text, &[])?
        .ok_or_else(|| StoreError::Corrupt("counting rows returned no row".into()))?;
    let (n_sessions, n_nodes) = (row.integer()?, row.integer()?);
    let (n_json_bytes, n_events) = (row.integer()?, row.integer()?);
    Ok(StoreSize { n_sessions, n_nodes, n_json_bytes, n_events, n_disk_bytes: 0 })
}
