//! What was folded, as it stood: whole, by lines, or by a text in it.

use fanfold_core::{Extent, Handle, RecallError, thousands};
use fanfold_engine::OpenError;
use fanfold_store::search::text_of;
use serde_json::Value;

use super::Desk;
use crate::arguments::Arguments;
use crate::bounds::{Part, Wanted, found, part};
use crate::named::Named;
use crate::wrong::Wrong;

/// So many lines are shown on either side of a line with the text.
const AROUND: usize = 2;

/// An original, and what there is to say of it.
struct Original {
    /// What it is called.
    name: String,
    content: String,
    remark: Option<String>,
}

pub(super) fn run(desk: &Desk<'_>, arguments: &Arguments) -> Result<Vec<String>, Wrong> {
    let Some(handle) = arguments.value("handle") else {
        return Err(Wrong::new(
            "no handle is given",
            "give the digits in brackets: {\"handle\": \"291227\"}",
        ));
    };
    let session = arguments.text("session_id")?;
    let original = match Named::read(handle)? {
        Named::Message(number) => message(desk, number)?,
        Named::Handle(handle, before) => open(desk, handle, session.or(before).as_deref())?,
    };
    let Part { text, rest } = wanted(&original, arguments)?;
    let words: Vec<String> = [rest, original.remark].into_iter().flatten().collect();
    if words.is_empty() {
        return Ok(vec![text]);
    }
    // Beside the original, so that this stands byte for byte.
    Ok(vec![text, format!("[{}: {}]", original.name, words.join("; "))])
}

fn wanted(original: &Original, arguments: &Arguments) -> Result<Part, Wrong> {
    let Original { name, content, .. } = original;
    let n_lines = content.split('\n').count();
    let lines = arguments.value("lines").map(lines).transpose()?.flatten();
    if let Some(text) = arguments.text("search")? {
        if lines.is_some() {
            return Err(Wrong::new("lines and search are both given", "give one of them"));
        }
        let handle = Handle::of(content.as_bytes());
        let hits = Extent::Search { text: text.clone(), around: AROUND }.of(content.clone(), handle);
        let hits = hits.unwrap_or_default();
        if hits.is_empty() {
            let n_lines = thousands(n_lines as u64);
            let text = format!(
                "none of the {n_lines} lines of {name} has {text:?}; recall without search gives all"
            );
            return Ok(Part { text, rest: None });
        }
        return Ok(found(hits));
    }
    let (from, to) = lines.unwrap_or((1, usize::MAX));
    let offset = usize::try_from(arguments.number("offset")?.unwrap_or(0)).unwrap_or(0);
    part(content, Wanted { from, to, offset }).ok_or_else(|| {
        Wrong::new(
            format!("{name} has {n_lines} lines; those from {from} on are not among them"),
            "leave lines out for all of it",
        )
    })
}

/// Lines as models write them: "40", "1-40", "40-", "1:40", [1, 40].
fn lines(value: &Value) -> Result<Option<(usize, usize)>, Wrong> {
    let wrong = || {
        let written: String = value.to_string().chars().take(60).collect();
        Wrong::new(format!("{written} are no lines"), "write \"40\", \"1-40\" or \"40-\"")
    };
    let text = match value {
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.replace("..", "-").replace([':', ',', '–', '—'], "-"),
        Value::Number(number) => number.to_string(),
        Value::Array(ends) => {
            let ends: Vec<String> = ends.iter().map(Value::to_string).collect();
            if ends.len() > 2 {
                return Err(wrong());
            }
            ends.join("-")
        }
        _ => return Err(wrong()),
    };
    match Extent::of_lines(&text) {
        Some(Extent::Lines(from, to)) => Ok(Some((from, to))),
        _ => Err(wrong()),
    }
}

/// What a handle opens: in the session that is named, or in any.
fn open(desk: &Desk<'_>, handle: Handle, session: Option<&str>) -> Result<Original, Wrong> {
    if let Some(name) = session {
        let row = desk.engine.find(name)?;
        let content =
            desk.engine.recall(&row.id, handle, &Extent::Whole).map_err(|error| not_opened(error, true))?;
        return Ok(Original { name: handle.to_string(), content, remark: None });
    }
    let usual = desk.session(None)?.map(|row| row.id);
    let sought = desk
        .engine
        .recall_anywhere(handle, &Extent::Whole, usual.as_ref(), desk.is_over)
        .map_err(|error| not_opened(error, false))?;
    let Some(found) = sought.found else {
        let n = thousands(sought.n_sessions as u64);
        let what = match sought.is_all {
            true => format!("none of the {n} sessions has the handle {handle}"),
            false => format!("the time was over after {n} sessions, none of which has the handle {handle}"),
        };
        return Err(Wrong::new(what, "check its digits, or look for words of it with search"));
    };
    let remark = found.otherwise_in.map(|other| {
        format!(
            "from session {}; in {other} the same handle is something else, name the session_id",
            found.session
        )
    });
    Ok(Original { name: handle.to_string(), content: found.content, remark })
}

fn not_opened(error: OpenError, is_named: bool) -> Wrong {
    let words = error.to_string();
    match error {
        OpenError::Store(error) => error.into(),
        OpenError::Unknown { near, .. } => {
            let others = if near.is_empty() { "nothing of it was ever folded" } else { &near.join(", ") };
            let hint =
                if is_named { "leave session_id out to look in every session" } else { "check its digits" };
            Wrong::new(format!("{words}; there are: {others}"), hint)
        }
        OpenError::Broken(_) => {
            Wrong::new(words, "`fanfold doctor` tells what is left; search may find words of it")
        }
        OpenError::Extent(RecallError::NoSuchLines { .. } | RecallError::Unknown(_)) => {
            Wrong::new(words, "leave lines out for all of it")
        }
    }
}

/// The text of a message. One that was rewound is nobody's and is not shown.
fn message(desk: &Desk<'_>, number: u64) -> Result<Original, Wrong> {
    let store = desk.engine.store();
    let node = match store.numbered(number)? {
        Some(node) if !store.owners(node.id)?.is_empty() => node,
        _ => {
            return Err(Wrong::new(
                format!("there is no message {number}"),
                "take an id from the messages of a search",
            ));
        }
    };
    Ok(Original { name: format!("message {number}"), content: text_of(&node.json), remark: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_as_models_write_them() {
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
