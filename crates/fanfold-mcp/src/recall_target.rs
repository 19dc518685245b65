//! Parses the name of an original, in every form that models have been seen to write.
//!
//! ```text
//! 291227   "[291227]"   "[291227] export.py"   "[… 291227]"   "recall 291227"   "handle: 291227"   "#291227"
//! "20261115-140924-a1b2c3/291227"     with the session
//! "message 1204"                      a message, by its id in search results
//! ```

use fanfold_core::Handle;
use serde_json::Value;

use crate::tool_error::ToolError;

/// The original to recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecallTarget {
    /// A folded original, and its session if that was written before the handle.
    Handle(Handle, Option<String>),
    /// The text of a message.
    Message(u64),
}

/// The digits of a short handle. A handle written as a JSON number has lost its leading zeros.
const N_DIGITS: usize = 6;

impl RecallTarget {
    pub(crate) fn parse(value: &Value) -> Result<RecallTarget, ToolError> {
        let text = match value {
            Value::Number(number) => format!("{number:0>N_DIGITS$}", number = number.to_string()),
            Value::String(text) => text.trim().trim_matches(['`', '"', '\'']).to_owned(),
            other => other.to_string(),
        };
        if let Some(number) = message_id(&text) {
            return Ok(RecallTarget::Message(number));
        }
        // Split the session off first, because its id contains digits too.
        if let Some((session, handle)) = text.rsplit_once('/')
            && let Ok(handle) = handle.parse()
        {
            return Ok(RecallTarget::Handle(handle, Some(session.trim_start_matches('[').to_owned())));
        }
        let mut handles = bracketed_handles(&text);
        if handles.is_empty() {
            handles = digit_runs(&text);
        }
        handles.dedup();
        match handles.as_slice() {
            [one] => Ok(RecallTarget::Handle(*one, None)),
            [] => {
                let text: String = text.chars().take(60).collect();
                Err(ToolError::new(
                    format!("`{text}` is not a handle"),
                    "a handle is the 6 to 18 digits in brackets in place of folded text: 291227",
                ))
            }
            many => {
                let names: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(ToolError::new(
                    format!("these are {} handles: {}", many.len(), names.join(", ")),
                    "recall one at a time",
                ))
            }
        }
    }
}

fn message_id(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("message").or(text.strip_prefix("Message"))?;
    rest.trim_start_matches([' ', '_', ':', '#', '=']).parse().ok()
}

/// Handles at the end of a bracket, as in stubs.
fn bracketed_handles(text: &str) -> Vec<Handle> {
    text.split('[').skip(1).filter_map(|after| digit_runs(after.split_once(']')?.0).pop()).collect()
}

/// Words that are handles.
fn digit_runs(text: &str) -> Vec<Handle> {
    text.split(|c: char| !c.is_alphanumeric()).filter_map(|run| run.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, handle: &str, session: Option<&str>) {
        let target = RecallTarget::parse(value).unwrap_or_else(|error| panic!("{value}: {error}"));
        assert_eq!(
            target,
            RecallTarget::Handle(handle.parse().unwrap(), session.map(str::to_owned)),
            "written as {value}"
        );
    }

    #[test]
    fn every_form_of_a_handle_is_parsed() {
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
    fn a_message_is_parsed_from_its_id() {
        for text in ["message 1204", "message:1204", "message_1204", "Message #1204"] {
            assert_eq!(RecallTarget::parse(&json!(text)), Ok(RecallTarget::Message(1204)), "{text}");
        }
    }

    #[test]
    fn no_handle_or_several_handles_are_errors() {
        for value in [json!(""), json!("xyz"), json!("12345"), json!({}), json!(true), json!("[a]")] {
            assert!(RecallTarget::parse(&value).is_err(), "{value}");
        }
        let error = RecallTarget::parse(&json!("[291227] and [726019]")).unwrap_err();
        assert_eq!(error.message, "these are 2 handles: 291227, 726019");
    }
}
