//! Search and recall.

use fanfold_core::{Extent, Handle};
use fanfold_engine::Engine;
use fanfold_store::Millis;
use fanfold_store::search::{DateOrder, SearchRequest, Searcher};
use serde_json::{Value, json};

use super::refused::Refused;
use super::route::Asked;

pub(super) fn search(engine: &Engine, asked: &Asked) -> Result<Value, Refused> {
    let sort = match asked.text("sort").as_deref() {
        None => None,
        Some("newest") => Some(DateOrder::Newest),
        Some("oldest") => Some(DateOrder::Oldest),
        Some(other) => {
            return Err(Refused::wrong(format!("`{other}` is no way to sort"), "sort is newest or oldest"));
        }
    };
    let session_id = asked.text("session_id");
    let request = SearchRequest {
        query: asked.text("query"),
        limit: asked.number("limit")?,
        sort,
        session_id: session_id.map(|name| engine.find(&name).map_or(name, |row| row.id.0)),
        around_message_id: asked.number("around_message_id")?,
        window: asked.number("window")?,
        role_filter: asked.text("role_filter"),
        profile: None,
        source_filter: asked.text("source_filter"),
        since: day(asked, "since")?,
        before: day(asked, "before")?,
        offset: asked.number("offset")?,
        max_chars: asked.number("max_chars")?,
    };
    let reply = Searcher::new(engine.store()).answer(&request)?;
    // It has texts and numbers alone, which are always JSON.
    Ok(serde_json::to_value(&reply).unwrap_or_default())
}

fn day(asked: &Asked, name: &str) -> Result<Option<f64>, Refused> {
    let Some(text) = asked.text(name) else { return Ok(None) };
    let at = Millis::from_date(&text);
    let wrong = || Refused::wrong(format!("`{name}` is no day: {text}"), "write it as 2026-11-15");
    at.map(|at| Some(at.0 as f64 / 1000.0)).ok_or_else(wrong)
}

pub(super) fn recall(engine: &Engine, asked: &Asked) -> Result<Value, Refused> {
    let written = asked.path("handle");
    let handle: Handle = written
        .parse()
        .map_err(|_| Refused::wrong(format!("`{written}` is no handle"), "a handle is 6 to 18 digits"))?;
    let extent = match (asked.text("search"), asked.text("lines")) {
        (Some(_), Some(_)) => {
            return Err(Refused::wrong("lines and search are both given", "give one of them"));
        }
        (Some(text), None) => Extent::Search { text, around: asked.count("around")?.unwrap_or(0) as usize },
        (None, Some(lines)) => Extent::of_lines(&lines)
            .ok_or_else(|| Refused::wrong(format!("`{lines}` are no lines"), "write 40, 1-40 or 40-"))?,
        (None, None) => Extent::Whole,
    };
    if let Some(name) = asked.text("session") {
        let row = engine.find(&name)?;
        return Ok(json!(engine.recall(&row.id, handle, &extent)?));
    }
    let sought = engine.recall_anywhere(handle, &extent, None, &|| false)?;
    let found = sought.found.ok_or_else(|| {
        Refused::missing(
            format!("none of the {} sessions has the handle {handle}", sought.n_sessions),
            "check its digits",
        )
    })?;
    Ok(json!(found.content))
}
