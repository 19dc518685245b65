//! Sessions of a Hermes state database.
//!
//! A row is live, or was summarised away, or was rewound by the user. The first two were said, and both come; the tail
//! that Hermes stores again with each summary comes once.

use std::io::Read as _;
use std::path::Path;

use fanfold_engine::Import;
use fanfold_store::{EndReason, Millis, Relation, SessionId};
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Whether a file is a SQLite database.
pub(crate) fn is_database(path: &Path) -> std::io::Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    let mut start = [0; 16];
    let n = std::fs::File::open(path)?.read(&mut start)?;
    Ok(n == start.len() && &start == b"SQLite format 3\0")
}

/// A row of its messages.
struct Said {
    role: String,
    content: Option<String>,
    tool_call_id: Option<String>,
    tool_calls: Option<String>,
    tool_name: Option<String>,
    reasoning: Option<String>,
    at: Option<f64>,
    is_live: bool,
}

/// The sessions of a database, those that came from others after them.
pub(crate) fn read(path: &Path) -> Result<Vec<Import>, Failure> {
    let name = path.display().to_string();
    let failed = |error: rusqlite::Error| {
        Failure::new(
            format!("{name} is no state database of Hermes: {error}"),
            "give its state.db; for a store of ours, export the sessions there first",
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
        let said = messages(&database, &id.0).map_err(failed)?;
        if said.is_empty() {
            continue;
        }
        let has_system = said.first().is_some_and(|first| first.role == "system");
        if let Some(system) = system.filter(|system| !system.is_empty() && !has_system) {
            import.messages.push((json!({ "role": "system", "content": system }).to_string(), None));
        }
        import.messages.extend(each_once(said).iter().map(message));
        imports.push(import);
    }
    // A child of a session that ended for it goes on with it; another one goes its own way.
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

/// A session and its instructions. One that neither works for its parent nor was branched from it may go on with it.
fn session(row: &Row<'_>, name: &str) -> rusqlite::Result<(Import, Option<String>)> {
    let id: String = row.get("id")?;
    let source: Option<String> = row.get("source")?;
    let parent: Option<String> = row.get("parent_session_id")?;
    let reason: Option<String> = row.get("end_reason")?;
    let config: Option<String> = row.get("config")?;
    let is_marked = |mark: &str| config.as_ref().is_some_and(|config| config.contains(mark));
    let works_for_it = matches!(source.as_deref(), Some("subagent" | "tool")) || is_marked("_delegate_from");
    let relation = match works_for_it {
        true => Relation::Subagent,
        false if is_marked("_branched_from") => Relation::Fork,
        false => Relation::Rotation,
    };
    let import = Import {
        from: format!("{name} {id}"),
        id: Some(SessionId(id)),
        source: source.unwrap_or_else(|| "hermes".to_owned()),
        format: "chat".to_owned(),
        model: row.get("model")?,
        title: row.get("title")?,
        parent: parent.map(|parent| (SessionId(parent), relation)),
        ended: reason.as_deref().map(EndReason::from_name),
        ..Import::default()
    };
    Ok((import, row.get("system_prompt")?))
}

/// What was said in a session, in the order in which it was stored: clocks step back.
fn messages(database: &Connection, session: &str) -> rusqlite::Result<Vec<Said>> {
    // Older databases know no rows that were summarised away.
    let columns = database.prepare("SELECT * FROM messages LIMIT 0")?;
    let has = |name: &str| columns.column_names().any(|column| column == name);
    let active = if has("active") { "coalesce(active, 1)" } else { "1" };
    let compacted = if has("compacted") { "coalesce(compacted, 0)" } else { "0" };
    // Which column has it depends on the model and on the version of the program.
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
        Ok(Said {
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

/// The rows without those that were stored again behind a summary: of what is live, the beginning up to the first row
/// that was never there before.
fn each_once(said: Vec<Said>) -> Vec<Said> {
    let (mut all, live): (Vec<Said>, Vec<Said>) = said.into_iter().partition(|said| !said.is_live);
    let is_same = |a: &Said, b: &Said| {
        a.role == b.role
            && a.content == b.content
            && a.tool_calls == b.tool_calls
            && a.tool_call_id == b.tool_call_id
    };
    let mut archived = once_each(&mut all, is_same);
    let n_archived = archived.len();
    let mut n_strange = 0;
    for said in live {
        let is_again = n_strange < 2 && archived[..n_archived].iter().any(|known| is_same(known, &said));
        if !is_again {
            // The summary itself is the one strange row among those that are stored again.
            n_strange += usize::from(n_archived > 0);
            archived.push(said);
        }
    }
    archived
}

/// Rows that were summarised away in several rounds, each round's tail being the next one's again.
fn once_each(all: &mut Vec<Said>, is_same: impl Fn(&Said, &Said) -> bool) -> Vec<Said> {
    const REACH: usize = 400;
    let mut once: Vec<Said> = Vec::new();
    for said in all.drain(..) {
        let near = &once[once.len().saturating_sub(REACH)..];
        let is_call = said.tool_call_id.is_some() || said.tool_calls.is_some();
        // Calls have ids, so the same one twice is one; words may be said twice, but not at the same moment.
        let is_again = near.iter().any(|known| is_same(known, &said) && (is_call || known.at == said.at));
        if !is_again {
            once.push(said);
        }
    }
    once
}

fn message(said: &Said) -> (String, Option<Millis>) {
    let mut fields = Map::new();
    fields.insert("role".into(), json!(said.role));
    fields.insert("content".into(), content(said.content.as_deref()));
    let parsed = |text: &String| serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_null());
    if let Some(calls) = said.tool_calls.as_ref().and_then(parsed) {
        fields.insert("tool_calls".into(), calls);
    }
    let texts = [
        ("tool_call_id", &said.tool_call_id),
        ("name", &said.tool_name),
        ("reasoning_content", &said.reasoning),
    ];
    for (key, text) in texts {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            fields.insert(key.into(), json!(text));
        }
    }
    (Value::Object(fields).to_string(), said.at.map(|seconds| Millis((seconds * 1000.0) as i64)))
}

/// Lists and objects are stored behind a mark.
fn content(stored: Option<&str>) -> Value {
    match stored {
        None => Value::Null,
        Some(text) => match text.strip_prefix("\0json:").map(serde_json::from_str) {
            Some(Ok(value)) => value,
            _ => json!(text),
        },
    }
}
