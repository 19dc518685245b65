//! Restores sessions whose rows are lost, from the indexes of their table, their events and their messages.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde_json::Value;

use super::copy::{DamagedFile, insert};
use super::tables::SESSION_IDS;
use crate::database::garbage;
use crate::database::sql::{Cell, Sql, SqlValue, query_row};
use crate::model::Relation;
use crate::sqlite::executor::SqliteExecutor;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The source of restored sessions.
const SOURCE: &str = "recovered";

/// The number of messages that are read to detect the format of a session.
const N_FORMAT_MESSAGES: i64 = 50;

/// The known attributes of a session without a row.
#[derive(Debug, Default)]
struct LostSession {
    id: Option<String>,
    title: Option<String>,
    parent: Option<String>,
    root: Option<String>,
    updated_at: Option<i64>,
    lane: Option<i64>,
    /// The depth of the tip at its last event with one.
    last_depth: Option<i64>,
}

/// Sets an attribute from the first column of an index entry.
type SetAttribute = fn(&mut LostSession, Cell);

/// The indexes of sessions; the last column of an entry is the key of the session.
const INDEXES: [(&str, SetAttribute); 6] = [
    (SESSION_IDS, |session, cell| session.id = text(cell)),
    ("sessions_by_title", |session, cell| session.title = text(cell)),
    ("sessions_by_parent", |session, cell| session.parent = text(cell)),
    ("sessions_by_root", |session, cell| session.root = text(cell)),
    ("sessions_by_time", |session, cell| session.updated_at = int(&cell)),
    ("sessions_by_lane", |session, cell| session.lane = int(&cell)),
];

fn text(cell: Cell) -> Option<String> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

fn int(cell: &Cell) -> Option<i64> {
    if let Cell::Int(number) = cell { Some(*number) } else { None }
}

/// Inserts the sessions that the damaged file has traces of.
pub(super) fn restore(file: &DamagedFile, fresh: &Connection) -> Result<()> {
    let sql = &mut SqliteExecutor(fresh);
    let (mut lost, has_all_ids) = traces(file, sql)?;
    // For each lane, the greatest depth that a session on it is known to have.
    let mut ends: BTreeMap<Option<i64>, Option<i64>> = BTreeMap::new();
    for (key, session) in &mut lost {
        let text = "SELECT n.lane, n.depth FROM events e JOIN nodes n ON n.number = e.tip WHERE e.session = $1 \
             ORDER BY e.seq DESC LIMIT 1";
        if let Some(mut last) = query_row(sql, text, &[SqlValue::Int(*key)])? {
            let lane = last.int()?;
            if *session.lane.get_or_insert(lane) == lane {
                session.last_depth = Some(last.int()?);
            }
        }
        let end = ends.entry(session.lane).or_default();
        *end = session.last_depth.max(*end);
    }
    for (key, session) in &lost {
        let is_behind = session.last_depth < ends[&session.lane];
        insert_session(fresh, Some(*key), session, is_behind)?;
    }
    if has_all_ids { Ok(()) } else { restore_from_lanes(fresh) }
}

/// Returns what indexes and events tell about sessions without a row, by key, and whether all ids are known.
fn traces(file: &DamagedFile, sql: &mut dyn Sql) -> Result<(BTreeMap<i64, LostSession>, bool)> {
    let mut known = BTreeSet::new();
    for mut row in sql.query("SELECT key FROM sessions", &[])? {
        known.insert(row.int()?);
    }
    let mut lost: BTreeMap<i64, LostSession> = BTreeMap::new();
    let mut has_all_ids = false;
    for (index, set) in INDEXES {
        let is_complete = file.read_index(index, &mut |entry| {
            if let [first, .., Cell::Int(key)] = entry
                && !known.contains(key)
            {
                set(lost.entry(*key).or_default(), first.clone());
            }
        });
        has_all_ids |= index == SESSION_IDS && is_complete;
    }
    for mut row in sql.query("SELECT DISTINCT session FROM events", &[])? {
        let key = row.int()?;
        if !known.contains(&key) {
            lost.entry(key).or_default();
        }
    }
    Ok((lost, has_all_ids))
}

/// Inserts a session for each lane that no session leads to. Called only if the ids of sessions are lost, because such
/// lanes may also have been abandoned by their session.
fn restore_from_lanes(fresh: &Connection) -> Result<()> {
    let sql = &mut SqliteExecutor(fresh);
    let mut reachable: BTreeSet<i64> = garbage::reachable_depths(sql)?.into_keys().collect();
    // The youngest lanes come first, so a session on a lane also leads to the lanes before it.
    for (lane, parent, _) in garbage::all_lanes(sql)? {
        if reachable.insert(lane) {
            let id = Some(format!("{SOURCE}-lane-{lane}"));
            insert_session(
                fresh,
                None,
                &LostSession { id, lane: Some(lane), ..LostSession::default() },
                false,
            )?;
        }
        reachable.extend(parent);
    }
    Ok(())
}

/// Inserts a session. Its tip is the end of its lane; if another session has gone on from there, the tip of its last
/// event.
fn insert_session(fresh: &Connection, key: Option<i64>, lost: &LostSession, is_behind: bool) -> Result<()> {
    let sql = &mut SqliteExecutor(fresh);
    let lane = SqlValue::int(lost.lane);
    let max_depth = lost.last_depth.filter(|_| is_behind).unwrap_or(i64::MAX);
    let text =
        "SELECT number, depth, at FROM nodes WHERE lane = $1 AND depth <= $2 ORDER BY depth DESC LIMIT 1";
    let (tip, n_messages, at) = match query_row(sql, text, &[lane, SqlValue::Int(max_depth)])? {
        Some(mut row) => (Some(row.int()?), row.int()? + 1, row.int()?),
        None => (None, lost.last_depth.map_or(0, |depth| depth + 1), 0),
    };
    let text = "SELECT coalesce(max(seq) + 1, 0), min(at), max(at) FROM events WHERE session = $1";
    let (n_events, first_at, last_at) = match query_row(sql, text, &[SqlValue::int(key)])? {
        Some(mut row) => (row.int()?, row.opt_int()?.unwrap_or(at), row.opt_int()?.unwrap_or(at)),
        None => (0, at, at),
    };
    let id = lost.id.clone().unwrap_or_else(|| format!("{SOURCE}-{}", key.unwrap_or_default()));
    let root = lost.root.clone().unwrap_or_else(|| id.clone());
    let relation = if root == id { Relation::Fork } else { Relation::Rotation };
    let relation = lost.parent.as_ref().map(|_| relation.name().to_owned());
    let opt_text = |text: &Option<String>| text.clone().map_or(Cell::Null, Cell::Text);
    let opt_int = |number: Option<i64>| number.map_or(Cell::Null, Cell::Int);
    let values = [
        opt_int(key),
        Cell::Text(id),
        Cell::Text(SOURCE.to_owned()),
        Cell::Text(format_of_lane(sql, lane)?.to_owned()),
        Cell::Null,
        opt_text(&lost.title),
        Cell::Null,
        opt_text(&lost.parent),
        opt_text(&relation),
        Cell::Text(root),
        opt_int(tip),
        opt_int(lost.lane),
        Cell::Int(n_messages),
        Cell::Int(n_events),
        Cell::Int(first_at),
        Cell::Int(lost.updated_at.unwrap_or(last_at)),
        Cell::Null,
        Cell::Null,
    ];
    insert(fresh, "sessions", &values).map(drop)
}

/// Detects the format of the messages of a lane.
fn format_of_lane(sql: &mut dyn Sql, lane: SqlValue<'_>) -> Result<&'static str> {
    let text = "SELECT json FROM nodes WHERE lane = $1 ORDER BY depth LIMIT $2";
    for mut row in sql.query(text, &[lane, SqlValue::Int(N_FORMAT_MESSAGES)])? {
        if let Some(format) = characteristic_format(&row.text()?) {
            return Ok(format);
        }
    }
    Ok("chat")
}

/// Returns the format that a message belongs to, unless it could be in several.
fn characteristic_format(json: &str) -> Option<&'static str> {
    let message: Value = serde_json::from_str(json).ok()?;
    let parts = message["content"].as_array().into_iter().flatten();
    let mut kinds = parts.filter_map(|part| part["type"].as_str());
    if message["from"].is_string() {
        Some("sharegpt")
    } else if message["type"].is_string() {
        Some("responses")
    } else if message["tool_calls"].is_array() || message["role"] == "tool" {
        Some("chat")
    } else if kinds.any(|kind| matches!(kind, "tool_use" | "tool_result" | "thinking")) {
        Some("anthropic")
    } else {
        None
    }
}
