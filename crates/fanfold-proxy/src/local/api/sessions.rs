//! Sessions, their messages, folds and forks.

use fanfold_engine::{LoggedEvent, SessionEngine, SessionEvent};
use fanfold_store::{SessionFilter, SessionRow};
use serde_json::{Map, Value, json};

use super::api_error::ApiError;
use super::route::QueryArguments;

/// Maximum length of a list.
const MAX_ROWS: u32 = 1_000;

pub(super) fn list(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let limit = arguments.count("limit")?.unwrap_or(50).clamp(1, MAX_ROWS);
    let offset = arguments.count("offset")?.unwrap_or(0) as usize;
    let filter = SessionFilter {
        source: arguments.text("source"),
        limit: Some(limit as usize),
        offset,
        ..SessionFilter::default()
    };
    let rows = engine.store().sessions(&filter)?;
    Ok(json!({ "sessions": rows.iter().map(session).collect::<Vec<_>>() }))
}

pub(super) fn one(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let row = engine.find(&arguments.path("session"))?;
    let standing = engine.session_overview(&row.id)?;
    let mut all = session(&standing.row);
    let (before, after) = standing.last_fold.unzip();
    let more = json!({
        "tokens": standing.tokens,
        "window": standing.window.map(|(window, _)| window),
        "reserve": standing.window.map(|(_, reserve)| reserve),
        "requests": standing.n_requests,
        "last_request": standing.last_request.map(|at| at.0),
        "as_it_came": standing.passthrough_reason,
        "folds": standing.n_folds,
        "tokens_before_fold": before,
        "tokens_after_fold": after,
        "handles": standing.n_handles,
        "pins": standing.pins,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    Ok(all)
}

pub(super) fn messages(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let row = engine.find(&arguments.path("session"))?;
    let from = arguments.count("from")?.unwrap_or(0).min(row.n_messages);
    let limit = arguments.count("limit")?.unwrap_or(100).clamp(1, MAX_ROWS);
    let to = from.saturating_add(limit).min(row.n_messages);
    let nodes = match row.tip {
        Some(tip) if from < to => engine.store().readable_chain(tip, from..to)?,
        _ => Vec::new(),
    };
    let messages: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let message: Value =
                serde_json::from_str(&node.json).unwrap_or_else(|_| Value::String(node.json.to_string()));
            json!({ "id": node.number, "position": node.depth, "role": node.role.name(), "at": node.at.0,
                "message": message })
        })
        .collect();
    Ok(json!({ "messages": messages, "total": row.n_messages }))
}

pub(super) fn folds(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let row = engine.find(&arguments.path("session"))?;
    let events = engine.store().events(&row.id, 0)?;
    let noted = events.iter().filter(|event| event.kind == "fold").filter_map(LoggedEvent::decode);
    let folds: Vec<Value> = noted
        .filter_map(|noted| match noted.event {
            SessionEvent::Fold(fold) => Some(json!({
                "at": noted.at.0,
                "number": fold.n_folds,
                "tokens_before": fold.tokens.0,
                "tokens_after": fold.tokens.1,
                "messages": fold.folded,
                "handles": fold.handles.into_iter().map(|(handle, ..)| handle).collect::<Vec<_>>(),
            })),
            _ => None,
        })
        .collect();
    Ok(json!({ "folds": folds }))
}

pub(super) fn fork(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let row = engine.find(&arguments.path("session"))?;
    let fork = engine.fork(&row.id, arguments.count("at")?, arguments.text("title").as_deref())?;
    Ok(session(&engine.row(&fork)?))
}

/// The JSON of a session.
fn session(row: &SessionRow) -> Value {
    let mut all = Map::new();
    let mut insert = |name: &str, value: Value| drop(all.insert(name.to_owned(), value));
    insert("id", json!(row.id.0));
    insert("title", json!(row.title));
    insert("goal", json!(row.goal));
    insert("source", json!(row.source));
    insert("format", json!(row.format));
    insert("model", json!(row.model));
    insert("parent", json!(row.parent.as_ref().map(|(id, _)| id.0.clone())));
    insert("relation", json!(row.parent.as_ref().map(|(_, relation)| relation.name())));
    insert("root", json!(row.root.0));
    insert("messages", json!(row.n_messages));
    insert("started_at", json!(row.started_at.0));
    insert("updated_at", json!(row.updated_at.0));
    insert("ended_at", json!(row.ended.as_ref().map(|(at, _)| at.0)));
    insert("end_reason", json!(row.ended.as_ref().map(|(_, why)| why.name().to_owned())));
    Value::Object(all)
}
