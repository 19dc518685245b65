//! Search and recall.

use fanfold_core::Extent;
use fanfold_engine::{SessionEngine, find_handle};
use fanfold_store::Millis;
use fanfold_store::search::{DateOrder, SearchRequest, Searcher};
use serde_json::{Value, json};

use super::api_error::ApiError;
use super::route::QueryArguments;

pub(super) fn search(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let sort = match arguments.text("sort").as_deref() {
        None => None,
        Some("newest") => Some(DateOrder::Newest),
        Some("oldest") => Some(DateOrder::Oldest),
        Some(other) => {
            return Err(ApiError::bad_request(
                format!("`{other}` is not a sort order"),
                "sort is newest or oldest",
            ));
        }
    };
    let session_id = arguments.text("session_id");
    let request = SearchRequest {
        query: arguments.text("query"),
        limit: arguments.number("limit")?,
        sort,
        session_id: session_id.map(|name| engine.find(&name).map_or(name, |row| row.id.0)),
        around_message_id: arguments.number("around_message_id")?,
        window: arguments.number("window")?,
        role_filter: arguments.text("role_filter"),
        profile: None,
        source_filter: arguments.text("source_filter"),
        since: day(arguments, "since")?,
        before: day(arguments, "before")?,
        offset: arguments.number("offset")?,
        max_chars: arguments.number("max_chars")?,
    };
    let reply = Searcher::new(engine.store()).answer(&request)?;
    // The reply contains only texts and numbers, so this cannot fail.
    Ok(serde_json::to_value(&reply).unwrap_or_default())
}

fn day(arguments: &QueryArguments, name: &str) -> Result<Option<f64>, ApiError> {
    let Some(text) = arguments.text(name) else { return Ok(None) };
    let at = Millis::from_date(&text);
    let wrong = || ApiError::bad_request(format!("`{name}` is not a date: {text}"), "write it as 2026-11-15");
    at.map(|at| Some(at.0 as f64 / 1000.0)).ok_or_else(wrong)
}

pub(super) fn recall(engine: &SessionEngine, arguments: &QueryArguments) -> Result<Value, ApiError> {
    let written = arguments.path("handle");
    let handle =
        find_handle(&written).map_err(|error| ApiError::bad_request(error.to_string(), error.hint()))?;
    let extent = match (arguments.text("search"), arguments.text("lines")) {
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("lines and search are both given", "give one of them"));
        }
        (Some(text), None) => {
            Extent::Search { text, around: arguments.count("around")?.unwrap_or(0) as usize }
        }
        (None, Some(lines)) => Extent::parse_lines(&lines).ok_or_else(|| {
            ApiError::bad_request(format!("`{lines}` is not a range of lines"), "write 40, 1-40 or 40-")
        })?,
        (None, None) => Extent::Whole,
    };
    if let Some(name) = arguments.text("session") {
        let row = engine.find(&name)?;
        return Ok(json!(engine.recall(&row.id, handle, &extent)?));
    }
    let sought = engine.recall_anywhere(handle, &extent, None, &|| false)?;
    let found = sought.found.ok_or_else(|| {
        ApiError::not_found(
            format!("none of the {} sessions has the handle {handle}", sought.n_sessions),
            match handle.is_address() {
                true => "name the session, or find its text with /fanfold/api/search",
                false => "check its digits, or find its text with /fanfold/api/search",
            },
        )
    })?;
    Ok(json!(found.content))
}
