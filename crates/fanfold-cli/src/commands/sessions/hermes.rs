//! Reads the sessions of a Hermes state database.
//!
//! A message is live, compacted (replaced by a summary), or rewound by the user. Live and compacted messages are
//! imported. Hermes stores the tail of a conversation again with each summary; it is imported once.

use std::io::Read as _;
use std::path::Path;

use fanfold_engine::Import;
use fanfold_store::{EndReason, Millis, Relation, SessionId};
use fanfold_wire::Format;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};

/// True if a file is a SQLite database.
pub(super) fn is_database(path: &Path) -> std::io::Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    let mut start = [0; 16];
    let n = std::fs::File::open(path)?.read(&mut start)?;
    Ok(n == start.len() && &start == b"SQLite format 3\0")
}

/// A row of the table of messages.
struct MessageRow {
    role: String,
    content: Option<String>,
    tool_call_id: Option<String>,
    tool_calls: Option<String>,
    tool_name: Option<String>,
    reasoning: Option<String>,
    at: Option<f64>,
    is_live: bool,
}

/// The sessions of a database, parents before children.
pub(super) fn read(path: &Path) -> Result<Vec<Import>> {
    let name = path.display().to_string();
    let failed = |error: rusqlite::Error| {
        Failure::new(
            format!("{name} is not a state database of Hermes: {error}"),
            "give its state.db; to import from a store of fanfold, export its sessions first",
        )
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(failed)?;
    let columns = database.prepare("SELECT * FROM sessions LIMIT 0").map_err(failed)?;
    let has_config = columns.column_names().any(|column| column == "model_config");
    let config = if has_config { "model_config" } else { "NULL" };
    let mut sessions = database
        .prepare(&format!(
            "SELECT id, source, model, system_prompt, parent_session_id, end_reason, title, {config} AS config \
             FROM sessions ORDER BY started_at, id"
        ))
        .map_err(failed)?;
    let rows = sessions.query_map([], |row| session(row, &name)).map_err(failed)?;
    let mut imports = Vec::new();
    for row in rows {
        let (mut import, system) = row.map_err(failed)?;
        let id = import.id.clone().unwrap_or(SessionId(String::new()));
        let rows = messages(&database, &id.0).map_err(failed)?;
        if rows.is_empty() {
            continue;
        }
        let has_system = rows.first().is_some_and(|first| first.role == "system");
        if let Some(system) = system.filter(|system| !system.is_empty() && !has_system) {
            import.messages.push((json!({ "role": "system", "content": system }).to_string(), None));
        }
        import.messages.extend(without_repetitions(rows).iter().map(message));
        imports.push(import);
    }
    // The child of a compacted session continues it; other children are forks.
    let ended: std::collections::BTreeSet<SessionId> = imports
        .iter()
        .filter(|import| import.ended == Some(EndReason::Compression))
        .filter_map(|import| import.id.clone())
        .collect();
    for import in &mut imports {
        if let Some((parent, relation)) = &mut import.parent
            && *relation == Relation::Rotation
            && !ended.contains(parent)
        {
            *relation = Relation::Fork;
        }
    }
    Ok(imports)
}

/// A session and its system prompt. A session with a parent that is neither a subagent nor a branch may continue it.
fn session(row: &Row<'_>, name: &str) -> rusqlite::Result<(Import, Option<String>)> {
    let id: String = row.get("id")?;
    let source: Option<String> = row.get("source")?;
    let parent: Option<String> = row.get("parent_session_id")?;
    let reason: Option<String> = row.get("end_reason")?;
    let config: Option<String> = row.get("config")?;
    let has_marker = |marker: &str| config.as_ref().is_some_and(|config| config.contains(marker));
    let is_subagent = matches!(source.as_deref(), Some("subagent" | "tool")) || has_marker("_delegate_from");
    let relation = match is_subagent {
        true => Relation::Subagent,
        false if has_marker("_branched_from") => Relation::Fork,
        false => Relation::Rotation,
    };
    let import = Import {
        from: format!("{name} {id}"),
        id: Some(SessionId(id)),
        source: source.unwrap_or_else(|| "hermes".to_owned()),
        format: Format::of_plain_messages().to_string(),
        model: row.get("model")?,
        title: row.get("title")?,
        parent: parent.map(|parent| (SessionId(parent), relation)),
        ended: reason.as_deref().map(EndReason::from_name),
        ..Import::default()
    };
    Ok((import, row.get("system_prompt")?))
}

/// The messages of a session in insertion order, because clocks may step back.
fn messages(database: &Connection, session: &str) -> rusqlite::Result<Vec<MessageRow>> {
    // Older databases lack some columns.
    let columns = database.prepare("SELECT * FROM messages LIMIT 0")?;
    let has = |name: &str| columns.column_names().any(|column| column == name);
    let active = if has("active") { "coalesce(active, 1)" } else { "1" };
    let compacted = if has("compacted") { "coalesce(compacted, 0)" } else { "0" };
    // The column depends on the model and on the version of Hermes.
    let reasoning = match (has("reasoning_content"), has("reasoning")) {
        (true, true) => "coalesce(nullif(reasoning_content, ''), reasoning)",
        (true, false) => "reasoning_content",
        (false, true) => "reasoning",
        (false, false) => "NULL",
    };
    let mut query = database.prepare(&format!(
        "SELECT role, content, tool_call_id, tool_calls, tool_name, timestamp, {reasoning} AS reasoning, \
         {active} AS active FROM messages WHERE session_id = ?1 AND ({active} = 1 OR {compacted} = 1) ORDER BY id"
    ))?;
    let rows = query.query_map([session], |row| {
        Ok(MessageRow {
            role: row.get("role")?,
            content: row.get("content")?,
            tool_call_id: row.get("tool_call_id")?,
            tool_calls: row.get("tool_calls")?,
            tool_name: row.get("tool_name")?,
            reasoning: row.get("reasoning")?,
            at: row.get("timestamp")?,
            is_live: row.get::<_, i64>("active")? == 1,
        })
    })?;
    rows.collect()
}

/// Removes live rows that repeat compacted ones: those up to the second new row, because the first new row is the
/// summary.
fn without_repetitions(rows: Vec<MessageRow>) -> Vec<MessageRow> {
    let (mut compacted, live): (Vec<MessageRow>, Vec<MessageRow>) =
        rows.into_iter().partition(|row| !row.is_live);
    let is_same = |a: &MessageRow, b: &MessageRow| {
        a.role == b.role
            && a.content == b.content
            && a.tool_calls == b.tool_calls
            && a.tool_call_id == b.tool_call_id
    };
    let mut unique = merge_rounds(&mut compacted, is_same);
    let n_compacted = unique.len();
    let mut n_new = 0;
    for row in live {
        let is_repeated = n_new < 2 && unique[..n_compacted].iter().any(|known| is_same(known, &row));
        if !is_repeated {
            n_new += usize::from(n_compacted > 0);
            unique.push(row);
        }
    }
    unique
}

/// Merges rows that were compacted in several rounds. Each round repeats the tail of its predecessor.
fn merge_rounds(
    rows: &mut Vec<MessageRow>,
    is_same: impl Fn(&MessageRow, &MessageRow) -> bool,
) -> Vec<MessageRow> {
    const MAX_DISTANCE: usize = 400;
    let mut unique: Vec<MessageRow> = Vec::new();
    for row in rows.drain(..) {
        let near = &unique[unique.len().saturating_sub(MAX_DISTANCE)..];
        let is_call = row.tool_call_id.is_some() || row.tool_calls.is_some();
        // Calls have unique ids. Equal texts are repetitions only if their times are equal, too.
        let is_repeated = near.iter().any(|known| is_same(known, &row) && (is_call || known.at == row.at));
        if !is_repeated {
            unique.push(row);
        }
    }
    unique
}

fn message(row: &MessageRow) -> (String, Option<Millis>) {
    let mut fields = Map::new();
    fields.insert("role".into(), json!(row.role));
    fields.insert("content".into(), content(row.content.as_deref()));
    let parsed = |text: &String| serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_null());
    if let Some(calls) = row.tool_calls.as_ref().and_then(parsed) {
        fields.insert("tool_calls".into(), calls);
    }
    let texts = [
        ("tool_call_id", &row.tool_call_id),
        ("name", &row.tool_name),
        ("reasoning_content", &row.reasoning),
    ];
    for (key, text) in texts {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            fields.insert(key.into(), json!(text));
        }
    }
    (Value::Object(fields).to_string(), row.at.map(|seconds| Millis((seconds * 1000.0) as i64)))
}

/// The content of a message. JSON values are stored after a marker.
fn content(stored: Option<&str>) -> Value {
    match stored {
        None => Value::Null,
        Some(text) => match text.strip_prefix("\0json:").map(serde_json::from_str) {
            Some(Ok(value)) => value,
            _ => json!(text),
        },
    }
}
