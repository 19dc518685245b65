//! Returns originals verbatim: whole, by lines, or the lines with a text.

use fanfold_core::{Extent, Handle, RecallError, thousands};
use fanfold_engine::OpenError;
use fanfold_store::search::message_text;
use serde_json::Value;

use super::ToolContext;
use crate::arguments::JsonArguments;
use crate::excerpt::{Excerpt, ExcerptRange, excerpt, matching_lines};
use crate::recall_target::RecallTarget;
use crate::tool_error::ToolError;

/// Lines shown before and after each matching line.
const CONTEXT_LINES: usize = 2;

/// An original with its name and a note on its origin.
struct RecallResult {
    name: String,
    content: String,
    remark: Option<String>,
}

pub(super) fn run(context: &ToolContext<'_>, arguments: &JsonArguments) -> Result<Vec<String>, ToolError> {
    let session = arguments.text("session_id")?;
    let Some(handle) = arguments.value("handle").filter(|handle| handle.as_str() != Some("")) else {
        return search_folded(context, arguments, session.as_deref());
    };
    let original = match RecallTarget::parse(handle)? {
        RecallTarget::Message(number) => message(context, number)?,
        RecallTarget::Handle(handle, before) => open(context, handle, session.or(before).as_deref())?,
    };
    let Excerpt { text, rest } = select_part(&original, arguments)?;
    let notes: Vec<String> = [rest, original.remark].into_iter().flatten().collect();
    if notes.is_empty() {
        return Ok(vec![text]);
    }
    // The notes are a text of their own, so that the original stays verbatim.
    Ok(vec![text, format!("[{}: {}]", original.name, notes.join("; "))])
}

/// Searches everything folded in a session.
fn search_folded(
    context: &ToolContext<'_>,
    arguments: &JsonArguments,
    session: Option<&str>,
) -> Result<Vec<String>, ToolError> {
    let Some(text) = arguments.text("search")? else {
        return Err(ToolError::new(
            "neither a handle nor search is given",
            "give the number of a step: {\"handle\": \"#12\"}",
        ));
    };
    let Some(row) = context.session(session)? else {
        return Err(ToolError::new(
            "a search without a handle looks in one session, and none is given",
            "give a session_id, or use the tool search, which looks in every session",
        ));
    };
    let found = context.engine.search_folded(&row.id, &text).map_err(|error| recall_error(error, true))?;
    Ok(vec![if found.is_empty() { format!("no folded line contains `{text}`") } else { found }])
}

fn select_part(original: &RecallResult, arguments: &JsonArguments) -> Result<Excerpt, ToolError> {
    let RecallResult { name, content, .. } = original;
    let n_lines = content.split('\n').count();
    let lines = arguments.value("lines").map(lines).transpose()?.flatten();
    if let Some(text) = arguments.text("search")? {
        if lines.is_some() {
            return Err(ToolError::new("lines and search are both given", "give one of them"));
        }
        // The handle is only printed in errors, and a search has none.
        let handle = Handle::from_content(content.as_bytes());
        let hits =
            Extent::Search { text: text.clone(), around: CONTEXT_LINES }.extract(content.clone(), handle);
        let hits = hits.unwrap_or_default();
        if hits.is_empty() {
            let n_lines = thousands(n_lines as u64);
            let text = format!(
                "none of the {n_lines} lines of {name} has {text:?}; recall without search gives all"
            );
            return Ok(Excerpt { text, rest: None });
        }
        return Ok(matching_lines(hits));
    }
    let (from, to) = lines.unwrap_or((1, usize::MAX));
    let offset = usize::try_from(arguments.number("offset")?.unwrap_or(0)).unwrap_or(0);
    excerpt(content, ExcerptRange { from, to, offset }).ok_or_else(|| {
        ToolError::new(
            format!("{name} has {n_lines} lines, so there is no line {from}"),
            "leave lines out to get the whole text",
        )
    })
}

/// Parses lines in the forms that models write: "40", "1-40", "40-", "1:40", [1, 40].
fn lines(value: &Value) -> Result<Option<(usize, usize)>, ToolError> {
    let error = || {
        let written: String = value.to_string().chars().take(60).collect();
        ToolError::new(format!("{written} is not a line range"), "write \"40\", \"1-40\" or \"40-\"")
    };
    let text = match value {
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.replace("..", "-").replace([':', ',', '–', '—'], "-"),
        Value::Number(number) => number.to_string(),
        Value::Array(ends) => {
            let ends: Vec<String> = ends.iter().map(Value::to_string).collect();
            if ends.len() > 2 {
                return Err(error());
            }
            ends.join("-")
        }
        _ => return Err(error()),
    };
    match Extent::parse_lines(&text) {
        Some(Extent::Lines(from, to)) => Ok(Some((from, to))),
        _ => Err(error()),
    }
}

/// The original behind a handle, in the named session or in any.
fn open(context: &ToolContext<'_>, handle: Handle, session: Option<&str>) -> Result<RecallResult, ToolError> {
    if let Some(name) = session {
        let row = context.engine.find(name)?;
        let content = context
            .engine
            .recall(&row.id, handle, &Extent::Whole)
            .map_err(|error| recall_error(error, true))?;
        return Ok(RecallResult { name: handle.to_string(), content, remark: None });
    }
    let default_session = context.session(None)?.map(|row| row.id);
    let sought = context
        .engine
        .recall_anywhere(handle, &Extent::Whole, default_session.as_ref(), context.is_over)
        .map_err(|error| recall_error(error, false))?;
    let Some(found) = sought.found else {
        // Without a default session, the first session is only the newest one.
        if let (Some(_), Some(error)) = (&default_session, sought.first_error) {
            return Err(recall_error(error.into(), false));
        }
        let n = thousands(sought.n_sessions as u64);
        let what = match sought.is_complete {
            true => format!("none of the {n} sessions has the handle {handle}"),
            false => format!("the call timed out after {n} sessions, none of which has the handle {handle}"),
        };
        let hint = match handle.is_address() {
            true => "give the session_id of the conversation, or find its text with search",
            false => "check its digits, or find its text with search",
        };
        return Err(ToolError::new(what, hint));
    };
    let remark = found.conflicting_session.map(|other| {
        format!(
            "from session {}; in {other} the same handle is something else, name the session_id",
            found.session
        )
    });
    Ok(RecallResult { name: handle.to_string(), content: found.content, remark })
}

fn recall_error(error: OpenError, is_named: bool) -> ToolError {
    let words = error.to_string();
    match error {
        OpenError::Store(error) => error.into(),
        OpenError::Unknown { near, .. } => {
            let similar = match near.as_slice() {
                [] => String::new(),
                near => format!("; similar handles: {}", near.join(", ")),
            };
            let hint =
                if is_named { "leave session_id out to look in every session" } else { "check its digits" };
            ToolError::new(format!("{words}{similar}"), hint)
        }
        OpenError::Broken(_) => {
            ToolError::new(words, "`fanfold doctor` reports what is left; search may find parts of it")
        }
        OpenError::Extent(RecallError::NoSuchPlace { .. }) => {
            ToolError::new(words, "give the number of a step as it stands in the conversation")
        }
        OpenError::Extent(RecallError::NoSuchLines { .. } | RecallError::Unknown(_)) => {
            ToolError::new(words, "leave lines out to get the whole text")
        }
    }
}

/// The text of a message, unless it was rewound.
fn message(context: &ToolContext<'_>, number: u64) -> Result<RecallResult, ToolError> {
    let store = context.engine.store();
    let node = match store.node_by_number(number)? {
        Some(node) if !store.owners(node.id)?.is_empty() => node,
        _ => {
            return Err(ToolError::new(
                format!("there is no message {number}"),
                "take an id from the messages of a search",
            ));
        }
    };
    Ok(RecallResult { name: format!("message {number}"), content: message_text(&node.json), remark: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_ranges_are_parsed_in_many_forms() {
        for (value, wanted) in [
            (json!("40"), (40, 40)),
            (json!(40), (40, 40)),
            (json!("1-40"), (1, 40)),
            (json!("1:40"), (1, 40)),
            (json!("1..40"), (1, 40)),
            (json!("1–40"), (1, 40)),
            (json!([1, 40]), (1, 40)),
            (json!("40-"), (40, usize::MAX)),
        ] {
            assert_eq!(lines(&value).unwrap(), Some(wanted), "{value}");
        }
        assert_eq!(lines(&json!("")).unwrap(), None);
        for value in [json!("all"), json!("9-3"), json!({}), json!([1, 2, 3]), json!(0), json!(-4)] {
            assert!(lines(&value).is_err(), "{value}");
        }
    }
}
