//! What was said, in four shapes: the same answers as `fanfold search --json`, no longer than a model should read at once.

use fanfold_store::Millis;
use fanfold_store::search::{Live, Reply, Request, Search, Sort};
use serde_json::{Value, json};

use super::Desk;
use crate::arguments::Arguments;
use crate::bounds::MOST_BYTES;
use crate::wrong::Wrong;

/// Texts are cut to these lengths in turn, until the answer is short enough.
const LENGTHS: [i64; 4] = [4_000, 1_000, 300, 100];

pub(super) fn run(desk: &Desk<'_>, arguments: &Arguments) -> Result<Vec<String>, Wrong> {
    let mut request = request(desk, arguments)?;
    let caller = match desk.session(None)? {
        Some(row) => {
            let depths = desk.engine.live(&row.id)?;
            Some(Live { session: row.id, depths })
        }
        None => None,
    };
    let search = Search { store: desk.engine.store(), profiles: desk.profiles, caller };
    let most = request.max_chars.unwrap_or(LENGTHS[0]);
    let lengths = std::iter::once(most).chain(LENGTHS.into_iter().filter(|length| *length < most));
    let mut last = Value::Null;
    for length in lengths {
        if (desk.is_over)() {
            break;
        }
        request.max_chars = Some(length);
        last = printed(&search.answer(&request)?);
        if has_cut(&last) {
            last["note"] = json!(format!(
                "texts are cut to {length} characters; recall with handle \"message ID\" gives one whole"
            ));
        }
        let text = last.to_string();
        if text.len() <= MOST_BYTES {
            return Ok(vec![text]);
        }
    }
    shorten(&mut last);
    Ok(vec![last.to_string()])
}

fn request(desk: &Desk<'_>, arguments: &Arguments) -> Result<Request, Wrong> {
    let sort = match arguments.text("sort")?.as_deref() {
        None => None,
        Some("newest") => Some(Sort::Newest),
        Some("oldest") => Some(Sort::Oldest),
        Some(other) => {
            return Err(Wrong::new(format!("`{other}` is no way to sort"), "sort is newest or oldest"));
        }
    };
    let profile = arguments.text("profile")?;
    let session_id = match arguments.text("session_id")? {
        // A name in another profile is that profile's to know.
        Some(name) if profile.is_none() && !name.contains('/') => {
            Some(desk.engine.find(&name).map_or(name, |row| row.id.0))
        }
        other => other,
    };
    let around_message_id = arguments.number("around_message_id")?;
    if around_message_id.is_some() && session_id.is_none() {
        return Err(Wrong::new(
            "around_message_id is given without its session",
            "give the session_id that stood beside the message",
        ));
    }
    Ok(Request {
        query: arguments.text("query")?,
        limit: arguments.number("limit")?,
        sort,
        session_id,
        around_message_id,
        window: arguments.number("window")?,
        role_filter: arguments.text("role_filter")?,
        profile,
        source_filter: arguments.text("source_filter")?,
        since: moment(arguments, "since")?,
        before: moment(arguments, "before")?,
        offset: arguments.number("offset")?,
        max_chars: arguments.number("max_chars")?,
    })
}

/// A day, or seconds since 1970, in seconds.
fn moment(arguments: &Arguments, name: &str) -> Result<Option<f64>, Wrong> {
    let Some(text) = arguments.text(name)? else { return Ok(None) };
    // A moment is written with its hour, too: the day of it is what counts.
    let day = text.get(..10).filter(|_| text.len() > 10).unwrap_or(&text);
    let seconds = Millis::of_day(day).map(|at| at.0 as f64 / 1000.0).or(text.parse().ok());
    seconds
        .map(Some)
        .ok_or_else(|| Wrong::new(format!("`{name}` is no day: {text}"), "write it as 2026-11-15"))
}

fn printed(reply: &Reply) -> Value {
    // It has texts and numbers alone, which are always JSON.
    serde_json::to_value(reply).unwrap_or_default()
}

/// Whether a text is not shown whole.
fn has_cut(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("content_chars") || fields.values().any(has_cut),
        Value::Array(items) => items.iter().any(has_cut),
        _ => false,
    }
}

/// Leaves out results, or messages, from the end on, until it is short enough.
fn shorten(answer: &mut Value) {
    let list = if answer["results"].is_array() { "results" } else { "messages" };
    let mut n_left_out = 0;
    while answer.to_string().len() > MOST_BYTES {
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
    fn what_is_too_long_loses_its_end() {
        let result = json!({ "snippet": "x".repeat(5_000) });
        let mut answer = json!({ "results": vec![result; 10], "count": 10 });
        shorten(&mut answer);
        assert!(answer.to_string().len() <= MOST_BYTES);
        assert_eq!((answer["count"].as_u64(), answer["results"].as_array().unwrap().len()), (Some(4), 4));
        assert!(answer["note"].as_str().unwrap().starts_with("6 results are left out"));
    }

    #[test]
    fn cut_texts_are_seen_wherever_they_are() {
        assert!(has_cut(&json!({ "results": [{ "messages": [{ "content_chars": 9 }] }] })));
        assert!(!has_cut(&json!({ "results": [{ "messages": [{ "content": "content_chars" }] }] })));
    }
}
