//! Reports the state of sessions: tokens and window, folds, pins, goals.

use fanfold_engine::SessionOverview;
use fanfold_store::SessionFilter;
use serde_json::{Map, Value, json};

use super::ToolContext;
use crate::arguments::JsonArguments;
use crate::tool_error::ToolError;

/// Number of sessions in a report without a session_id.
const N_NEWEST: usize = 5;

/// Longest goal or title, in characters.
const MAX_CHARS: usize = 200;

pub(super) fn run(context: &ToolContext<'_>, arguments: &JsonArguments) -> Result<Vec<String>, ToolError> {
    let named = arguments.text("session_id")?;
    if let Some(row) = context.session(named.as_deref())? {
        return Ok(vec![describe(&context.engine.session_overview(&row.id)?).to_string()]);
    }
    let filter = SessionFilter { limit: Some(N_NEWEST), ..SessionFilter::default() };
    let rows = context.engine.store().sessions(&filter)?;
    let mut sessions = Vec::new();
    for row in &rows {
        if (context.is_over)() {
            break;
        }
        sessions.push(describe(&context.engine.session_overview(&row.id)?));
    }
    let message = match sessions.len() {
        0 => "no session is kept yet",
        _ => "the last written to first; search lists more",
    };
    Ok(vec![json!({ "sessions": sessions, "message": message }).to_string()])
}

fn describe(standing: &SessionOverview) -> Value {
    let row = &standing.row;
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            fields.insert(name.to_owned(), value);
        }
    };
    add("session_id", json!(row.id.0));
    add("title", json!(row.title.as_deref().map(shorten)));
    add("goal", json!(row.goal.as_deref().map(shorten)));
    add("source", json!(row.source));
    add("model", json!(row.model));
    add("messages", json!(row.n_messages));
    add("tokens", json!(standing.tokens));
    add("window", json!(standing.window.map(|(window, _)| window)));
    if let Some((tokens, (window, reserve))) = standing.tokens.zip(standing.window) {
        let room = window.saturating_sub(reserve).max(1);
        add("full", json!(format!("{} %", (tokens * 100).div_ceil(room))));
        add("tokens_left", json!(room.saturating_sub(tokens)));
    }
    add("requests", json!(standing.n_requests));
    add("folds", json!(standing.n_folds));
    add(
        "last_fold",
        json!(standing.last_fold.map(|(before, after)| json!({ "before": before, "after": after }))),
    );
    add("handles", json!(standing.n_handles));
    add("pins", json!(standing.pins));
    add("sent_as_it_came", json!(standing.passthrough_reason.as_deref().map(shorten)));
    add("updated", json!(row.updated_at.to_string()));
    add("ended", json!(row.ended.as_ref().map(|(_, why)| why.name().to_owned())));
    Value::Object(fields)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
