//! The tables: one function for each thing that is read or written.

use std::ops::Range;

use crate::database::sql::{Row, Sql, SqlValue, query_row};
use crate::model::{BlobId, EndReason, EventRow, Millis, NodeId, Relation, Role, SessionId, SessionRow};
use crate::store::{SessionFilter, StoreError, StoreSize};

type Result<T> = std::result::Result<T, StoreError>;

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Its number.
    pub(crate) number: i64,
    /// Its lane.
    pub(crate) lane: i64,
    /// How many come before it.
    pub(crate) depth: u32,
}

/// A run of messages behind one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The lane it leaves.
    pub(crate) parent: Option<i64>,
    /// The depth of its first message.
    pub(crate) start: u32,
}

/// A session as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Its key in other tables.
    pub(crate) key: i64,
    /// What is known of it.
    pub(crate) row: SessionRow,
    /// Where its tip stands.
    pub(crate) tip_position: Option<Position>,
}

/// A message as it is stored: the one before it follows from its place.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    /// Its id.
    pub(crate) id: NodeId,
    /// Where it stands.
    pub(crate) position: Position,
    /// In whose name it is.
    pub(crate) role: Role,
    /// When it was first kept.
    pub(crate) at: Millis,
    /// The message, byte for byte.
    pub(crate) json: String,
}

/// The columns of a session `s` whose tip is `n`, in the order that [`read_session`] takes them.
macro_rules! session_columns {
    () => {
        "s.key, s.id, s.source, s.format, s.model, s.title, s.goal, s.parent, s.relation, s.root, s.n_messages, \
         s.n_events, s.started_at, s.updated_at, s.ended_at, s.end_reason, s.lane, s.tip, n.id"
    };
}
pub(crate) use session_columns;

const SESSIONS: &str =
    concat!("SELECT ", session_columns!(), " FROM sessions s LEFT JOIN nodes n ON n.number = s.tip");

/// The session of an id.
pub(crate) const SESSION: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s LEFT JOIN nodes n ON n.number = s.tip WHERE s.id = $1"
);

/// A session.
pub(crate) fn session(sql: &mut dyn Sql, id: &SessionId) -> Result<Option<Session>> {
    query_row(sql, SESSION, &[SqlValue::Text(&id.0)])?.map(read_session).transpose()
}

/// A session that is going to be written to.
pub(crate) fn session_to_change(sql: &mut dyn Sql, id: &SessionId) -> Result<Option<Session>> {
    // It is held first and read then: a query that waited for a row sees the rest as it was before.
    sql.lock_session(&id.0)?;
    session(sql, id)
}

/// Sessions, the last written to first.
pub(crate) fn sessions(sql: &mut dyn Sql, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
    let mut text = SESSIONS.to_owned();
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
    let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
    values.push(SqlValue::Int(limit));
    values.push(SqlValue::Int(i64::try_from(filter.offset).unwrap_or(i64::MAX)));
    sql.query(&text, &values)?.into_iter().map(|row| Ok(read_session(row)?.row)).collect()
}

/// A session from its columns.
pub(crate) fn read_session(mut row: Row) -> Result<Session> {
    let key = row.int()?;
    let id = SessionId(row.text()?);
    let (source, format) = (row.text()?, row.text()?);
    let (model, title, goal) = (row.opt_text()?, row.opt_text()?, row.opt_text()?);
    let (parent, relation) = (row.opt_text()?, row.opt_text()?);
    let parent = match (parent, relation.as_deref()) {
        (None, _) => None,
        (Some(parent), Some(name)) => {
            let relation = Relation::from_name(name);
            let relation = relation.ok_or_else(|| StoreError::Broken(format!("{name:?} is no relation")))?;
            Some((SessionId(parent), relation))
        }
        (Some(_), None) => {
            return Err(StoreError::Broken(format!("session {id} has a parent of no relation")));
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
    let place = match (lane, number, tip) {
        (None, None, None) => None,
        (Some(lane), Some(number), Some(_)) => Some(Position { number, lane, depth: tip_depth(n_messages) }),
        _ => return Err(StoreError::Broken(format!("session {id} points at a message that is not there"))),
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
    Ok(Session { key, row, tip_position: place })
}

fn tip_depth(n_messages: u32) -> u32 {
    n_messages.saturating_sub(1)
}

/// Writes a new session and gives its key.
pub(crate) fn insert_session(sql: &mut dyn Sql, session: &Session) -> Result<i64> {
    let text = "INSERT INTO sessions (id, source, format, model, title, goal, parent, relation, root, tip, lane, \
         n_messages, n_events, started_at, updated_at, ended_at, end_reason) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) RETURNING key";
    let row_ = &session.row;
    let values = [
        SqlValue::Text(&row_.id.0),
        SqlValue::Text(&row_.source),
        SqlValue::Text(&row_.format),
        SqlValue::text(row_.model.as_deref()),
        SqlValue::text(row_.title.as_deref()),
        SqlValue::text(row_.goal.as_deref()),
        SqlValue::text(row_.parent.as_ref().map(|(id, _)| id.0.as_str())),
        SqlValue::text(row_.parent.as_ref().map(|(_, relation)| relation.name())),
        SqlValue::Text(&row_.root.0),
        SqlValue::int(session.tip_position.map(|place| place.number)),
        SqlValue::int(session.tip_position.map(|place| place.lane)),
        SqlValue::Int(row_.n_messages.into()),
        SqlValue::Int(row_.n_events.into()),
        SqlValue::Int(row_.started_at.0),
        SqlValue::Int(row_.updated_at.0),
        SqlValue::int(row_.ended.as_ref().map(|(at, _)| at.0)),
        SqlValue::text(row_.ended.as_ref().map(|(_, reason)| reason.name())),
    ];
    match query_row(sql, text, &values)? {
        Some(mut row) => row.int(),
        None => Err(StoreError::Broken("a session was written and has no key".into())),
    }
}

/// Writes what may change of a session.
pub(crate) fn update_session(sql: &mut dyn Sql, session: &Session) -> Result<()> {
    let text = "UPDATE sessions SET model = $1, title = $2, goal = $3, tip = $4, lane = $5, n_messages = $6, \
         n_events = $7, updated_at = $8, ended_at = $9, end_reason = $10 WHERE key = $11";
    let row = &session.row;
    let values = [
        SqlValue::text(row.model.as_deref()),
        SqlValue::text(row.title.as_deref()),
        SqlValue::text(row.goal.as_deref()),
        SqlValue::int(session.tip_position.map(|place| place.number)),
        SqlValue::int(session.tip_position.map(|place| place.lane)),
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

/// Removes a session with its events and its lock.
pub(crate) fn delete_session(sql: &mut dyn Sql, session: &Session) -> Result<()> {
    sql.execute("DELETE FROM events WHERE session = $1", &[SqlValue::Int(session.key)])?;
    sql.execute("DELETE FROM locks WHERE session = $1", &[SqlValue::Text(&session.row.id.0)])?;
    sql.execute("DELETE FROM sessions WHERE key = $1", &[SqlValue::Int(session.key)])?;
    Ok(())
}

/// Who has a title.
pub(crate) fn title_holder(sql: &mut dyn Sql, title: &str) -> Result<Option<SessionId>> {
    let found = query_row(sql, "SELECT id FROM sessions WHERE title = $1", &[SqlValue::Text(title)])?;
    found.map(|mut row| Ok(SessionId(row.text()?))).transpose()
}

/// Where a message stands, if it is there.
pub(crate) fn position(sql: &mut dyn Sql, id: NodeId) -> Result<Option<Position>> {
    let text = "SELECT number, lane, depth FROM nodes WHERE id = $1";
    let found = query_row(sql, text, &[SqlValue::Bytes(&id.0)])?;
    found
        .map(|mut row| Ok(Position { number: row.int()?, lane: row.int()?, depth: row.integer()? }))
        .transpose()
}

/// The id of the message at a place of a lane.
pub(crate) fn node_id_at(sql: &mut dyn Sql, lane: i64, depth: u32) -> Result<Option<NodeId>> {
    let text = "SELECT id FROM nodes WHERE lane = $1 AND depth = $2";
    query_row(sql, text, &[SqlValue::Int(lane), SqlValue::Int(depth.into())])?
        .map(|mut row| row.node_id())
        .transpose()
}

/// Opens a lane.
pub(crate) fn insert_lane(sql: &mut dyn Sql, lane: Lane) -> Result<i64> {
    let text = "INSERT INTO lanes (parent, start) VALUES ($1, $2) RETURNING lane";
    match query_row(sql, text, &[SqlValue::int(lane.parent), SqlValue::Int(lane.start.into())])? {
        Some(mut row) => row.int(),
        None => Err(StoreError::Broken("a lane was opened and has no number".into())),
    }
}

/// A lane.
pub(crate) fn lane(sql: &mut dyn Sql, lane: i64) -> Result<Lane> {
    let found = query_row(sql, "SELECT parent, start FROM lanes WHERE lane = $1", &[SqlValue::Int(lane)])?;
    let mut row = found.ok_or_else(|| StoreError::Broken(format!("there is no lane {lane}")))?;
    Ok(Lane { parent: row.opt_int()?, start: row.integer()? })
}

/// The columns of a message, in the order that [`read_node`] takes them.
pub(crate) const NODES: &str = "SELECT number, id, lane, depth, role, at, json FROM nodes";

/// The message of an id.
pub(crate) fn node(sql: &mut dyn Sql, id: NodeId) -> Result<Option<StoredMessage>> {
    query_row(sql, &format!("{NODES} WHERE id = $1"), &[SqlValue::Bytes(&id.0)])?.map(read_node).transpose()
}

/// The message of a number.
pub(crate) fn node_by_number(sql: &mut dyn Sql, number: i64) -> Result<Option<StoredMessage>> {
    query_row(sql, &format!("{NODES} WHERE number = $1"), &[SqlValue::Int(number)])?
        .map(read_node)
        .transpose()
}

/// The messages of a lane that have these depths, in order.
pub(crate) fn nodes(sql: &mut dyn Sql, lane: i64, depths: Range<u32>) -> Result<Vec<StoredMessage>> {
    let text = format!("{NODES} WHERE lane = $1 AND depth >= $2 AND depth < $3 ORDER BY depth");
    let values = [SqlValue::Int(lane), SqlValue::Int(depths.start.into()), SqlValue::Int(depths.end.into())];
    sql.query(&text, &values)?.into_iter().map(read_node).collect()
}

/// Some messages behind a place, lane by lane.
pub(crate) fn nodes_after(sql: &mut dyn Sql, (lane, depth): (i64, u32)) -> Result<Vec<StoredMessage>> {
    let text = format!("{NODES} WHERE (lane, depth) > ($1, $2) ORDER BY lane, depth LIMIT 512");
    sql.query(&text, &[SqlValue::Int(lane), SqlValue::Int(depth.into())])?
        .into_iter()
        .map(read_node)
        .collect()
}

/// A message from its columns.
pub(crate) fn read_node(mut row: Row) -> Result<StoredMessage> {
    let (number, id) = (row.int()?, row.node_id()?);
    let place = Position { number, lane: row.int()?, depth: row.integer()? };
    let role = row.text()?;
    let role = Role::from_name(&role).ok_or_else(|| StoreError::Broken(format!("{role:?} is no role")))?;
    Ok(StoredMessage { id, position: place, role, at: Millis(row.int()?), json: row.text()? })
}

/// A message to be written.
pub(crate) struct NewRow<'a> {
    /// Its id.
    pub(crate) id: NodeId,
    /// Where it is to stand.
    pub(crate) position: Position,
    /// In whose name it is.
    pub(crate) role: Role,
    /// When it was said.
    pub(crate) at: Millis,
    /// The message, byte for byte.
    pub(crate) json: &'a str,
}

/// How many messages one statement writes: as many of the largest as there are, then of the next.
const CHUNK_SIZES: [usize; 3] = [32, 8, 1];

/// Writes messages.
pub(crate) fn insert_nodes(sql: &mut dyn Sql, nodes: &[NewRow<'_>]) -> Result<()> {
    let mut rest = nodes;
    for rows in CHUNK_SIZES {
        let (many, few) = rest.split_at(rest.len() / rows * rows);
        many.chunks(rows).try_for_each(|nodes| insert_node_rows(sql, nodes))?;
        rest = few;
    }
    Ok(())
}

fn insert_node_rows(sql: &mut dyn Sql, nodes: &[NewRow<'_>]) -> Result<()> {
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

/// The sessions whose chain has the message of a place, the oldest first.
pub(crate) fn owners(sql: &mut dyn Sql, place: Position) -> Result<Vec<SessionId>> {
    let text = "WITH RECURSIVE sharing (lane) AS ( \
         SELECT lane FROM lanes WHERE lane = $1 \
         UNION ALL SELECT l.lane FROM lanes l JOIN sharing ON l.parent = sharing.lane WHERE l.start > $2) \
         SELECT s.id FROM sharing CROSS JOIN sessions s \
         WHERE s.lane = sharing.lane AND s.n_messages > $2 ORDER BY s.started_at, s.id";
    let rows = sql.query(text, &[SqlValue::Int(place.lane), SqlValue::Int(place.depth.into())])?;
    rows.into_iter().map(|mut row| Ok(SessionId(row.text()?))).collect()
}

/// Writes an event.
pub(crate) fn insert_event(sql: &mut dyn Sql, session: &Session, event: &EventRow) -> Result<()> {
    let text = "INSERT INTO events (session, seq, at, tip, kind, body) VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        SqlValue::Int(session.key),
        SqlValue::Int(event.seq.into()),
        SqlValue::Int(event.at.0),
        SqlValue::int(session.tip_position.map(|place| place.number)),
        SqlValue::Text(&event.kind),
        SqlValue::Json(&event.body),
    ];
    sql.execute(text, &values)?;
    Ok(())
}

/// The events of a session from a sequence number on, oldest first.
pub(crate) fn events(sql: &mut dyn Sql, id: &SessionId, from: u32) -> Result<Vec<EventRow>> {
    let session = session(sql, id)?.ok_or_else(|| StoreError::NoSession(id.clone()))?;
    let text = "SELECT e.seq, e.at, e.kind, e.body, e.tip, n.id FROM events e LEFT JOIN nodes n ON n.number = e.tip \
         WHERE e.session = $1 AND e.seq >= $2 ORDER BY e.seq";
    let read = |mut row: Row| {
        let (seq, at, kind, body) = (row.integer()?, Millis(row.int()?), row.text()?, row.text()?);
        let (number, tip) = (row.opt_int()?, row.opt_hash()?.map(NodeId));
        if number.is_some() != tip.is_some() {
            return Err(StoreError::Broken(format!("event {seq} of session {id} has a tip that is missing")));
        }
        Ok(EventRow { seq, at, tip, kind, body })
    };
    let rows = sql.query(text, &[SqlValue::Int(session.key), SqlValue::Int(from.into())])?;
    rows.into_iter().map(read).collect()
}

/// Keeps bytes.
pub(crate) fn insert_blob(sql: &mut dyn Sql, bytes: &[u8]) -> Result<()> {
    let id = BlobId::new(bytes);
    let text = "INSERT INTO blobs (id, bytes) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    sql.execute(text, &[SqlValue::Bytes(&id.0), SqlValue::Bytes(bytes)])?;
    Ok(())
}

/// Bytes that were kept.
pub(crate) fn blob(sql: &mut dyn Sql, id: BlobId) -> Result<Option<Vec<u8>>> {
    let found = query_row(sql, "SELECT bytes FROM blobs WHERE id = $1", &[SqlValue::Bytes(&id.0)])?;
    found.map_or(Ok(None), |mut row| row.opt_bytes())
}

/// How much there is; how much room it takes is known to the database alone.
pub(crate) fn size(sql: &mut dyn Sql) -> Result<StoreSize> {
    let text = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM nodes), \
         (SELECT coalesce(sum(octet_length(json)), 0) FROM nodes), (SELECT count(*) FROM events)";
    let mut row =
        query_row(sql, text, &[])?.ok_or_else(|| StoreError::Broken("nothing could be counted".into()))?;
    let (n_sessions, n_nodes) = (row.integer()?, row.integer()?);
    let (n_json_bytes, n_events) = (row.integer()?, row.integer()?);
    Ok(StoreSize { n_sessions, n_nodes, n_json_bytes, n_events, n_disk_bytes: 0 })
}
