//! Parses the name of an original: a handle, with or without its session, or a message.
//!
//! ```text
//! #12   12   "recall #12"   "[291227] export.py"     a handle, in any form that `find_handle` accepts
//! "20261115-140924-a1b2c3/#12"                       with the session
//! "message 1204"                                     a message, by its id in search results
//! ```

use fanfold_core::Handle;
use fanfold_engine::find_handle;
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

impl RecallTarget {
    pub(crate) fn parse(value: &Value) -> Result<RecallTarget, ToolError> {
        let text = match value {
            Value::String(text) => text.trim().trim_matches(['`', '"', '\'']).to_owned(),
            other => other.to_string(),
        };
        if let Some(number) = message_id(&text) {
            return Ok(RecallTarget::Message(number));
        }
        // Split the session off first, because its id contains digits too.
        if let Some((session, handle)) = handle_with_session(&text) {
            return Ok(RecallTarget::Handle(handle, Some(session.to_owned())));
        }
        Ok(RecallTarget::Handle(find_handle(&text)?, None))
    }
}

/// The session and the handle in a text such as `night/#12`. A line copied from a record may contain paths.
fn handle_with_session(text: &str) -> Option<(&str, Handle)> {
    let (session, handle) = text.rsplit_once('/')?;
    let session = session.trim_start_matches('[');
    let session = session.strip_prefix("recall ").unwrap_or(session).trim();
    if session.is_empty() || session.contains('#') {
        return None;
    }
    Some((session, handle.parse().ok()?))
}

fn message_id(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("message").or(text.strip_prefix("Message"))?;
    rest.trim_start_matches([' ', '_', ':', '#', '=']).parse().ok()
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
        for text in ["#12", "12", "[#12]", "`[#12]`", "recall #12", "#12 bash cat docs/7", "#12 read /tmp/12"]
        {
            check(&json!(text), "#12", None);
        }
        for handle in ["#6.2", "#6.2a", "#3.1", "#2-4", "#e3", "291227", "291227045"] {
            check(&json!(handle), handle, None);
            check(&json!(format!("recall {handle}")), handle, None);
        }
        check(&json!("20261115-140924-a1b2c3/291227"), "291227", Some("20261115-140924-a1b2c3"));
        check(&json!("[kiln/291227]"), "291227", Some("kiln"));
        check(&json!("night/#12"), "#12", Some("night"));
        check(&json!("recall Night run/#12.2"), "#12.2", Some("Night run"));
    }

    #[test]
    fn short_numbers_are_steps() {
        check(&json!(12), "#12", None);
        check(&json!(99_999), "#99999", None);
        check(&json!(12.2), "#12.2", None);
        check(&json!(291_227), "291227", None);
    }

    #[test]
    fn a_message_is_parsed_from_its_id() {
        for text in ["message 1204", "message:1204", "message_1204", "Message #1204"] {
            assert_eq!(RecallTarget::parse(&json!(text)), Ok(RecallTarget::Message(1204)), "{text}");
        }
    }

    #[test]
    fn no_handle_or_several_handles_are_errors() {
        for value in [json!(""), json!("xyz"), json!(0), json!(-7), json!({}), json!(true), json!("[a]")] {
            assert!(RecallTarget::parse(&value).is_err(), "{value}");
        }
        let error = RecallTarget::parse(&json!("[291227] and [726019]")).unwrap_err();
        assert_eq!(error.message, "these are 2 handles: 291227, 726019");
    }
}
