//! Finds messages. The answers are those of `fanfold search --json`, shortened for a model.

use fanfold_store::Millis;
use fanfold_store::search::{DateOrder, LiveMessages, SearchReply, SearchRequest, Searcher};
use serde_json::{Value, json};

use super::ToolContext;
use crate::arguments::JsonArguments;
use crate::excerpt::MAX_BYTES;
use crate::tool_error::ToolError;

/// Texts are cut to these lengths in turn, until the answer is short enough.
const TEXT_LENGTHS: [i64; 4] = [4_000, 1_000, 300, 100];

pub(super) fn run(context: &ToolContext<'_>, arguments: &JsonArguments) -> Result<Vec<String>, ToolError> {
    let mut request = request(context, arguments)?;
    let caller = match context.session(None)? {
        Some(row) => {
            let depths = context.engine.live_messages(&row.id)?;
            Some(LiveMessages { session: row.id, depths })
        }
        None => None,
    };
    let search = Searcher { store: context.engine.store(), profiles: context.profiles, caller };
    let longest = request.max_chars.unwrap_or(TEXT_LENGTHS[0]);
    let lengths = std::iter::once(longest).chain(TEXT_LENGTHS.into_iter().filter(|length| *length < longest));
    let mut answer = Value::Null;
    for length in lengths {
        if (context.is_over)() {
            break;
        }
        request.max_chars = Some(length);
        answer = to_json(&search.answer(&request)?);
        if has_cut_text(&answer) {
            answer["note"] = json!(format!(
                "texts are cut to {length} characters; recall with handle \"message ID\" gives one whole"
            ));
        }
        let text = answer.to_string();
        if text.len() <= MAX_BYTES {
            return Ok(vec![text]);
        }
    }
    shorten(&mut answer);
    Ok(vec![answer.to_string()])
}

fn request(context: &ToolContext<'_>, arguments: &JsonArguments) -> Result<SearchRequest, ToolError> {
    let sort = match arguments.text("sort")?.as_deref() {
        None => None,
        Some("newest") => Some(DateOrder::Newest),
        Some("oldest") => Some(DateOrder::Oldest),
        Some(other) => {
            return Err(ToolError::new(format!("unknown sort order `{other}`"), "sort is newest or oldest"));
        }
    };
    let profile = arguments.text("profile")?;
    let session_id = match arguments.text("session_id")? {
        // Another profile resolves its own names.
        Some(name) if profile.is_none() && !name.contains('/') => {
            Some(context.engine.find(&name).map_or(name, |row| row.id.0))
        }
        other => other,
    };
    let around_message_id = arguments.number("around_message_id")?;
    if around_message_id.is_some() && session_id.is_none() {
        return Err(ToolError::new(
            "around_message_id is given without a session_id",
            "give the session_id of the search result with that message",
        ));
    }
    Ok(SearchRequest {
        query: arguments.text("query")?,
        limit: arguments.number("limit")?,
        sort,
        session_id,
        around_message_id,
        window: arguments.number("window")?,
        role_filter: arguments.text("role_filter")?,
        profile,
        source_filter: arguments.text("source_filter")?,
        since: time_argument(arguments, "since")?,
        before: time_argument(arguments, "before")?,
        offset: arguments.number("offset")?,
        max_chars: arguments.number("max_chars")?,
    })
}

/// A date, or seconds since 1970, as seconds.
fn time_argument(arguments: &JsonArguments, name: &str) -> Result<Option<f64>, ToolError> {
    let Some(text) = arguments.text(name)? else { return Ok(None) };
    // Of a date with a time, only the date is used.
    let day = text.get(..10).filter(|_| text.len() > 10).unwrap_or(&text);
    let seconds = Millis::from_date(day).map(|at| at.0 as f64 / 1000.0).or(text.parse().ok());
    seconds
        .map(Some)
        .ok_or_else(|| ToolError::new(format!("`{name}` is not a date: {text}"), "write it as 2026-11-15"))
}

fn to_json(reply: &SearchReply) -> Value {
    // Texts and numbers can always be serialised.
    serde_json::to_value(reply).unwrap_or_default()
}

/// True if any text in an answer was cut.
fn has_cut_text(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("content_chars") || fields.values().any(has_cut_text),
        Value::Array(items) => items.iter().any(has_cut_text),
        _ => false,
    }
}

/// Removes results or messages from the end until the answer is short enough.
fn shorten(answer: &mut Value) {
    let list = if answer["results"].is_array() { "results" } else { "messages" };
    let mut n_left_out = 0;
    while answer.to_string().len() > MAX_BYTES {
        let Some(items) = answer[list].as_array_mut().filter(|items| items.len() > 1) else { break };
        items.pop();
        n_left_out += 1;
    }
    if n_left_out > 0 {
        let how = if list == "results" { "ask with an offset" } else { "ask with a smaller window" };
        answer["note"] = json!(format!("{n_left_out} {list} are left out, since they are long; {how}"));
        if answer["count"].is_number() {
            answer["count"] = json!(answer[list].as_array().map_or(0, Vec::len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_lose_their_last_results() {
        let result = json!({ "snippet": "x".repeat(5_000) });
        let mut answer = json!({ "results": vec![result; 10], "count": 10 });
        shorten(&mut answer);
        assert!(answer.to_string().len() <= MAX_BYTES);
        assert_eq!((answer["count"].as_u64(), answer["results"].as_array().unwrap().len()), (Some(4), 4));
        assert!(answer["note"].as_str().unwrap().starts_with("6 results are left out"));
    }

    #[test]
    fn cut_texts_are_found_at_any_depth() {
        assert!(has_cut_text(&json!({ "results": [{ "messages": [{ "content_chars": 9 }] }] })));
        assert!(!has_cut_text(&json!({ "results": [{ "messages": [{ "content": "content_chars" }] }] })));
    }
}
