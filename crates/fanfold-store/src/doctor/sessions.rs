//! Checks tips, events and roots of sessions.

use std::collections::BTreeMap;

use super::Examination;
use crate::database::sql::{SqlValue, query_row};
use crate::model::Relation;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<()> {
    check_tips(examination)?;
    events(examination)?;
    roots(examination)
}

/// Checks the tips of sessions and of their events.
pub(super) fn check_tips(examination: &mut Examination<'_>) -> Result<()> {
    tips(examination)?;
    event_tips(examination)
}

/// Checks that the tip of every session exists, and that the session's lane and length match it.
fn tips(examination: &mut Examination<'_>) -> Result<()> {
    let text = "SELECT s.key, s.id, s.tip, s.lane, s.n_messages, n.lane, n.depth FROM sessions s \
         LEFT JOIN nodes n ON n.number = s.tip \
         WHERE (s.tip IS NULL AND (s.lane IS NOT NULL OR s.n_messages <> 0)) \
         OR (s.tip IS NOT NULL AND (n.number IS NULL OR s.lane IS NULL OR s.lane <> n.lane OR s.n_messages <> n.depth + 1))";
    for mut found in examination.sql.query(text, &[])? {
        let (key, name) = (found.int()?, format!("session {}", found.text()?));
        let (_tip, lane, n_messages) = (found.opt_int()?, found.opt_int()?, found.int()?);
        let tip_position = (found.opt_int()?, found.opt_int()?);
        if let (Some(lane), Some(depth)) = tip_position {
            let text = format!("its lane or length does not match its tip, at depth {depth} of lane {lane}");
            let statement = "UPDATE sessions SET lane = $1, n_messages = $2 WHERE key = $3";
            let values = [SqlValue::Int(lane), SqlValue::Int(depth + 1), SqlValue::Int(key)];
            examination.repair_with(name, text, statement, &values)?;
            continue;
        }
        // The tip is missing, but the session's own lane and length still locate it.
        let last = match lane {
            Some(lane) => last_present(examination, lane, n_messages)?,
            None => None,
        };
        let statement = "UPDATE sessions SET tip = $1, lane = $2, n_messages = $3 WHERE key = $4";
        let (tip, lane, n_present) =
            last.map_or((None, None, 0), |(tip, lane, n)| (Some(tip), Some(lane), n));
        let text = format!("its tip is missing; a repair resets it to message {n_present} of {n_messages}");
        let values = [SqlValue::int(tip), SqlValue::int(lane), SqlValue::Int(n_present), SqlValue::Int(key)];
        examination.repair_with(name, text, statement, &values)?;
    }
    Ok(())
}

/// Returns the last existing message among the first `n_messages` of the chain along a lane: its number, its lane,
/// and the length of the chain up to it.
fn last_present(
    examination: &mut Examination<'_>,
    lane: i64,
    n_messages: i64,
) -> Result<Option<(i64, i64, i64)>> {
    let (mut lane, mut n) = (lane, n_messages);
    loop {
        let last =
            "SELECT number, depth FROM nodes WHERE lane = $1 AND depth < $2 ORDER BY depth DESC LIMIT 1";
        if let Some(mut found) = query_row(examination.sql, last, &[SqlValue::Int(lane), SqlValue::Int(n)])? {
            return Ok(Some((found.int()?, lane, found.int()? + 1)));
        }
        let parent_lane = "SELECT parent, start FROM lanes WHERE lane = $1";
        let Some(mut found) = query_row(examination.sql, parent_lane, &[SqlValue::Int(lane)])? else {
            return Ok(None);
        };
        let (parent, start) = (found.opt_int()?, found.int()?);
        // A lane's parent is older. Any other parent is corrupt and could form a cycle.
        let Some(parent) = parent.filter(|parent| *parent < lane) else { return Ok(None) };
        (lane, n) = (parent, n.min(start));
    }
}

/// Checks that the tip of every event exists.
fn event_tips(examination: &mut Examination<'_>) -> Result<()> {
    let dangling = "SELECT e.number, s.id, e.seq FROM events e JOIN sessions s ON s.key = e.session \
         WHERE e.tip IS NOT NULL AND e.tip NOT IN (SELECT number FROM nodes)";
    for mut found in examination.sql.query(dangling, &[])? {
        let (number, name, seq) = (found.int()?, format!("session {}", found.text()?), found.int()?);
        let text = format!("the tip of its event {seq} is missing; a repair removes the reference");
        examination.repair_with(
            name,
            text,
            "UPDATE events SET tip = NULL WHERE number = $1",
            &[SqlValue::Int(number)],
        )?;
    }
    Ok(())
}

/// Checks that every event has a session and a sequence number.
fn events(examination: &mut Examination<'_>) -> Result<()> {
    let orphans = "SELECT session, count(*) FROM events WHERE session NOT IN (SELECT key FROM sessions) GROUP BY session";
    for mut found in examination.sql.query(orphans, &[])? {
        let (session, n) = (found.int()?, found.int()?);
        let text = format!("{n} events belong to no session; a repair deletes them");
        let statement = "DELETE FROM events WHERE session = $1";
        examination.repair_with("events".into(), text, statement, &[SqlValue::Int(session)])?;
    }
    let counts = "SELECT s.key, s.id, s.n_events, count(e.seq), coalesce(max(e.seq) + 1, 0) FROM sessions s \
         LEFT JOIN events e ON e.session = s.key GROUP BY s.key, s.id, s.n_events \
         HAVING s.n_events <> count(e.seq) OR s.n_events <> coalesce(max(e.seq) + 1, 0)";
    for mut found in examination.sql.query(counts, &[])? {
        let (key, name) = (found.int()?, format!("session {}", found.text()?));
        let (n_recorded, n_present, next) = (found.int()?, found.int()?, found.int()?);
        if n_present < next || n_present < n_recorded {
            let n_missing = next.max(n_recorded) - n_present;
            examination.report_lost(name.clone(), format!("{n_missing} of its events are missing"));
        }
        // The next event needs a free sequence number, so the count includes missing events.
        if n_recorded < next {
            let statement = "UPDATE sessions SET n_events = $1 WHERE key = $2";
            let values = [SqlValue::Int(next), SqlValue::Int(key)];
            examination.repair_with(
                name,
                format!("its event count is {n_recorded}, but its next sequence number is {next}"),
                statement,
                &values,
            )?;
        }
    }
    Ok(())
}

/// Checks that a rotation has the root of its parent and that any other session is its own root.
fn roots(examination: &mut Examination<'_>) -> Result<()> {
    let text = "SELECT key, id, root, parent, relation FROM sessions ORDER BY key";
    let mut sessions = Vec::new();
    for mut found in examination.sql.query(text, &[])? {
        let (key, name, root) = (found.int()?, found.text()?, found.text()?);
        let (parent, relation) = (found.opt_text()?, found.opt_text()?);
        let is_rotation = relation.as_deref() == Some(Relation::Rotation.name());
        sessions.push(RecordedRoot { key, name, root, parent: parent.filter(|_| is_rotation), is_rotation });
    }
    let by_name: BTreeMap<&str, &RecordedRoot> =
        sessions.iter().map(|session| (session.name.as_str(), session)).collect();
    for session in &sessions {
        let (found, expected) = (&session.root, session.expected_root(&by_name));
        if found == expected {
            continue;
        }
        let text = format!("the root of its lineage is recorded as {found} instead of {expected}");
        let statement = "UPDATE sessions SET root = $1 WHERE key = $2";
        examination.repair_with(
            format!("session {}", session.name),
            text,
            statement,
            &[SqlValue::Text(expected), SqlValue::Int(session.key)],
        )?;
    }
    Ok(())
}

/// A session with the root that is recorded for it.
struct RecordedRoot {
    key: i64,
    name: String,
    root: String,
    /// The session that this one continues, if it is a rotation.
    parent: Option<String>,
    is_rotation: bool,
}

impl RecordedRoot {
    /// The root of the oldest session in the chain of rotations. All roots of a chain are derived from it, so one repair
    /// corrects them all. If the parent of the oldest one was deleted, its recorded root is used.
    fn expected_root<'a>(&'a self, sessions: &BTreeMap<&str, &'a RecordedRoot>) -> &'a str {
        let mut session = self;
        // Corrupt parents could form a cycle.
        for _ in 0..sessions.len() {
            match session.parent.as_deref().and_then(|parent| sessions.get(parent)) {
                Some(parent) => session = *parent,
                None if session.is_rotation => return &session.root,
                None => return &session.name,
            }
        }
        &self.root
    }
}
