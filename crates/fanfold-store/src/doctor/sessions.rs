//! Who points where, and what happened to them.

use super::Examination;
use crate::database::sql::{Row, SqlValue, query_row};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<()> {
    tips(examination)?;
    events(examination)?;
    roots(examination)
}

/// Every session points at a message, and says where that stands.
fn tips(examination: &mut Examination<'_>) -> Result<()> {
    let text = "SELECT s.key, s.id, s.tip, s.lane, s.n_messages, n.lane, n.depth FROM sessions s \
         LEFT JOIN nodes n ON n.number = s.tip \
         WHERE (s.tip IS NULL AND (s.lane IS NOT NULL OR s.n_messages <> 0)) \
         OR (s.tip IS NOT NULL AND (n.number IS NULL OR s.lane IS NULL OR s.lane <> n.lane OR s.n_messages <> n.depth + 1))";
    for mut found in examination.sql.query(text, &[])? {
        let (key, name) = (found.int()?, format!("session {}", found.text()?));
        let (_tip, lane, n_messages) = (found.opt_int()?, found.opt_int()?, found.int()?);
        let stands = (found.opt_int()?, found.opt_int()?);
        if let (Some(lane), Some(depth)) = stands {
            let text = format!("its tip is message {depth} of lane {lane}, and it says otherwise");
            let cure = "UPDATE sessions SET lane = $1, n_messages = $2 WHERE key = $3";
            let values = [SqlValue::Int(lane), SqlValue::Int(depth + 1), SqlValue::Int(key)];
            examination.repair_with(name, text, cure, &values)?;
            continue;
        }
        // The tip is gone, but its place is known twice.
        let left = match lane {
            Some(lane) => last_left(examination, lane, n_messages)?,
            None => None,
        };
        let cure = "UPDATE sessions SET tip = $1, lane = $2, n_messages = $3 WHERE key = $4";
        let (tip, lane, n_left) = left.map_or((None, None, 0), |(tip, lane, n)| (Some(tip), Some(lane), n));
        let text = format!(
            "its tip is not there; {n_left} of its {n_messages} messages lead to the last one that is"
        );
        let values = [SqlValue::int(tip), SqlValue::int(lane), SqlValue::Int(n_left), SqlValue::Int(key)];
        examination.repair_with(name, text, cure, &values)?;
    }
    Ok(())
}

/// The last message that is there of so many that lead along a lane: its number, its lane, and how many lead to it.
fn last_left(
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
        let above = "SELECT parent, start FROM lanes WHERE lane = $1";
        let Some(mut found) = query_row(examination.sql, above, &[SqlValue::Int(lane)])? else {
            return Ok(None);
        };
        let (parent, start) = (found.opt_int()?, found.int()?);
        // A lane begins behind an older one; anything else is broken, and might go round.
        let Some(parent) = parent.filter(|parent| *parent < lane) else { return Ok(None) };
        (lane, n) = (parent, n.min(start));
    }
}

/// Every event has a session, a position and a tip that is there.
fn events(examination: &mut Examination<'_>) -> Result<()> {
    let orphans = "SELECT session, count(*) FROM events WHERE session NOT IN (SELECT key FROM sessions) GROUP BY session";
    for mut found in examination.sql.query(orphans, &[])? {
        let (session, n) = (found.int()?, found.int()?);
        let text = format!("{n} events belong to no session");
        let cure = "DELETE FROM events WHERE session = $1";
        examination.repair_with("events".into(), text, cure, &[SqlValue::Int(session)])?;
    }
    let dangling = "SELECT e.number, s.id, e.seq FROM events e JOIN sessions s ON s.key = e.session \
         WHERE e.tip IS NOT NULL AND e.tip NOT IN (SELECT number FROM nodes)";
    for mut found in examination.sql.query(dangling, &[])? {
        let (number, name, seq) = (found.int()?, format!("session {}", found.text()?), found.int()?);
        let text = format!("the tip of its event {seq} is not there, and is forgotten");
        examination.repair_with(
            name,
            text,
            "UPDATE events SET tip = NULL WHERE number = $1",
            &[SqlValue::Int(number)],
        )?;
    }
    let counts = "SELECT s.key, s.id, s.n_events, count(e.seq), coalesce(max(e.seq) + 1, 0) FROM sessions s \
         LEFT JOIN events e ON e.session = s.key GROUP BY s.key, s.id, s.n_events \
         HAVING s.n_events <> count(e.seq) OR s.n_events <> coalesce(max(e.seq) + 1, 0)";
    for mut found in examination.sql.query(counts, &[])? {
        let (key, name) = (found.int()?, format!("session {}", found.text()?));
        let (n_said, n_there, next) = (found.int()?, found.int()?, found.int()?);
        if n_there < next || n_there < n_said {
            examination
                .report_lost(name.clone(), format!("{} of its events are gone", next.max(n_said) - n_there));
        }
        // The next event must find its position free; one that is gone keeps its own.
        if n_said < next {
            let cure = "UPDATE sessions SET n_events = $1 WHERE key = $2";
            let values = [SqlValue::Int(next), SqlValue::Int(key)];
            examination.repair_with(
                name,
                format!("it has {next} events and says {n_said}"),
                cure,
                &values,
            )?;
        }
    }
    Ok(())
}

/// A session that came by rotation has the root of its parent; any other is its own.
fn roots(examination: &mut Examination<'_>) -> Result<()> {
    let text = "SELECT s.key, s.id, s.root, p.root FROM sessions s JOIN sessions p ON p.id = s.parent \
         WHERE s.relation = 'rotation' AND s.root <> p.root \
         UNION ALL SELECT s.key, s.id, s.root, s.id FROM sessions s \
         WHERE (s.relation IS NULL OR s.relation <> 'rotation') AND s.root <> s.id";
    let read = |mut row: Row| Ok((row.int()?, row.text()?, row.text()?, row.text()?));
    let rows: Result<Vec<_>> = examination.sql.query(text, &[])?.into_iter().map(read).collect();
    for (key, name, found, due) in rows? {
        let text = format!("it says that its lineage begins with {found}, and it begins with {due}");
        let cure = "UPDATE sessions SET root = $1 WHERE key = $2";
        examination.repair_with(
            format!("session {name}"),
            text,
            cure,
            &[SqlValue::Text(&due), SqlValue::Int(key)],
        )?;
    }
    Ok(())
}
