//! Which original is meant, in every way of writing it that a model has been seen to use.
//!
//! ```text
//! 291227   "[291227]"   "[291227] export.py"   "[… 291227]"   "recall 291227"   "handle: 291227"   "#291227"
//! "20261115-140924-a1b2c3/291227"     the session, too
//! "message 1204"                      a message, by the id that search gives
//! ```

use fanfold_core::Handle;
use serde_json::Value;

use crate::wrong::Wrong;

/// What is to be recalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// What a handle opens, and the session if it stood before it.
    Handle(Handle, Option<String>),
    /// The text of a message.
    Message(u64),
}

/// The digits of a short handle, which a number loses at its beginning.
const N_DIGITS: usize = 6;

impl Named {
    pub(crate) fn read(value: &Value) -> Result<Named, Wrong> {
        let text = match value {
            Value::Number(number) => format!("{number:0>N_DIGITS$}", number = number.to_string()),
            Value::String(text) => text.trim().trim_matches(['`', '"', '\'']).to_owned(),
            other => other.to_string(),
        };
        if let Some(number) = message(&text) {
            return Ok(Named::Message(number));
        }
        // A session's id has digits of its own.
        if let Some((session, handle)) = text.rsplit_once('/')
            && let Ok(handle) = handle.parse()
        {
            return Ok(Named::Handle(handle, Some(session.trim_start_matches('[').to_owned())));
        }
        let mut handles = in_brackets(&text);
        if handles.is_empty() {
            handles = runs(&text);
        }
        handles.dedup();
        match handles.as_slice() {
            [one] => Ok(Named::Handle(*one, None)),
            [] => {
                let text: String = text.chars().take(60).collect();
                Err(Wrong::new(
                    format!("`{text}` is no handle"),
                    "a handle is the 6 to 18 digits in brackets where something was folded: 291227",
                ))
            }
            many => {
                let names: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(Wrong::new(
                    format!("these are {} handles: {}", many.len(), names.join(", ")),
                    "recall one at a time",
                ))
            }
        }
    }
}

fn message(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("message").or(text.strip_prefix("Message"))?;
    rest.trim_start_matches([' ', '_', ':', '#', '=']).parse().ok()
}

/// Handles that end a bracket, as stubs write them.
fn in_brackets(text: &str) -> Vec<Handle> {
    text.split('[').skip(1).filter_map(|after| runs(after.split_once(']')?.0).pop()).collect()
}

/// Digits that stand for themselves.
fn runs(text: &str) -> Vec<Handle> {
    text.split(|c: char| !c.is_alphanumeric()).filter_map(|run| run.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, handle: &str, session: Option<&str>) {
        let named = Named::read(value).unwrap_or_else(|wrong| panic!("{value}: {wrong}"));
        assert_eq!(
            named,
            Named::Handle(handle.parse().unwrap(), session.map(str::to_owned)),
            "written as {value}"
        );
    }

    #[test]
    fn every_writing_of_a_handle_is_read() {
        for text in [
            "291227",
            " 291227\n",
            "[291227]",
            "`291227`",
            "`[291227]`",
            "[291227] export.py",
            "[… 291227]",
            "[read again later, 291227]",
            "[045715 lines 1–97, 291227]",
            "recall 291227",
            "handle: 291227",
            "handle=291227",
            "#291227",
            "fanfold:291227",
            "<291227>",
            "[291227] [read] a.rs lines 100000–200000",
            "[read] a.rs (6 lines); succeeded; folded from view, recall 291227",
        ] {
            check(&json!(text), "291227", None);
        }
        check(&json!(291_227), "291227", None);
        check(&json!(45_715), "045715", None);
        check(&json!("291227045"), "291227045", None);
        check(&json!("20261115-140924-a1b2c3/291227"), "291227", Some("20261115-140924-a1b2c3"));
        check(&json!("[kiln/291227]"), "291227", Some("kiln"));
    }

    #[test]
    fn a_message_is_named_by_its_id() {
        for text in ["message 1204", "message:1204", "message_1204", "Message #1204"] {
            assert_eq!(Named::read(&json!(text)), Ok(Named::Message(1204)), "{text}");
        }
    }

    #[test]
    fn what_is_no_handle_or_several_is_told() {
        for value in [json!(""), json!("xyz"), json!("12345"), json!({}), json!(true), json!("[a]")] {
            assert!(Named::read(&value).is_err(), "{value}");
        }
        let wrong = Named::read(&json!("[291227] and [726019]")).unwrap_err();
        assert_eq!(wrong.what, "these are 2 handles: 291227, 726019");
    }
}
