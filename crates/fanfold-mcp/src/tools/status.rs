//! How sessions stand: tokens against the window, folds, pins, goals.

use fanfold_engine::Standing;
use fanfold_store::Filter;
use serde_json::{Map, Value, json};

use super::Desk;
use crate::arguments::Arguments;
use crate::wrong::Wrong;

/// So many of the newest sessions are told of.
const N_NEWEST: usize = 5;

/// A goal or a title is shown so far.
const LONGEST: usize = 200;

pub(super) fn run(desk: &Desk<'_>, arguments: &Arguments) -> Result<Vec<String>, Wrong> {
    let named = arguments.text("session_id")?;
    if let Some(row) = desk.session(named.as_deref())? {
        return Ok(vec![told(&desk.engine.standing(&row.id)?).to_string()]);
    }
    let filter = Filter { limit: Some(N_NEWEST), ..Filter::default() };
    let rows = desk.engine.store().sessions(&filter)?;
    let mut sessions = Vec::new();
    for row in &rows {
        if (desk.is_over)() {
            break;
        }
        sessions.push(told(&desk.engine.standing(&row.id)?));
    }
    let message = match sessions.len() {
        0 => "no session is kept yet",
        _ => "the last written to first; search lists more",
    };
    Ok(vec![json!({ "sessions": sessions, "message": message }).to_string()])
}

fn told(standing: &Standing) -> Value {
    let row = &standing.row;
    let mut all = Map::new();
    let mut tell = |name: &str, value: Value| {
        let says_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !says_nothing {
            all.insert(name.to_owned(), value);
        }
    };
    tell("session_id", json!(row.id.0));
    tell("title", json!(row.title.as_deref().map(short)));
    tell("goal", json!(row.goal.as_deref().map(short)));
    tell("source", json!(row.source));
    tell("model", json!(row.model));
    tell("messages", json!(row.n_messages));
    tell("tokens", json!(standing.tokens));
    tell("window", json!(standing.window.map(|(window, _)| window)));
    if let Some((tokens, (window, reserve))) = standing.tokens.zip(standing.window) {
        let room = window.saturating_sub(reserve).max(1);
        tell("full", json!(format!("{} %", (tokens * 100).div_ceil(room))));
        tell("tokens_left", json!(room.saturating_sub(tokens)));
    }
    tell("requests", json!(standing.n_requests));
    tell("folds", json!(standing.n_folds));
    tell(
        "last_fold",
        json!(standing.last_fold.map(|(before, after)| json!({ "before": before, "after": after }))),
    );
    tell("handles", json!(standing.n_handles));
    tell("pins", json!(standing.pins));
    tell("sent_as_it_came", json!(standing.as_it_came.as_deref().map(short)));
    tell("updated", json!(row.updated_at.to_string()));
    tell("ended", json!(row.ended.as_ref().map(|(_, why)| why.name().to_owned())));
    Value::Object(all)
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
