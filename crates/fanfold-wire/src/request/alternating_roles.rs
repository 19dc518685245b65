//! Merges adjacent messages of one role, for providers that require alternating roles.
//!
//! ```text
//! {"role":"user","content":"Why?"}, {"role":"user","content":"<fanfold>\n…</fanfold>"}
//! {"role":"user","content":"Why?\n\n<fanfold>\n…</fanfold>"}
//! ```
//!
//! Most providers accept neighbours of one role, and then a note stays a message of its own. The result depends on the
//! body alone.

use crate::dialects::Format;
use crate::json::{self, Object, Splices};

/// The request with alternating roles; `None` if that changes nothing, or the format has no such rule.
pub fn alternate_roles(body: &str, format: Format) -> Option<String> {
    let object = Object::parse(body)?;
    let items = json::array(object.some(format.facts().list_key)?)?;
    let (first, last) = (items.first()?, items.last()?);
    let messages = format.api()?.alternate_roles(&items)?;
    let is_same = messages.len() == items.len() && messages.iter().zip(&items).all(|(new, old)| new == old);
    if is_same {
        return None;
    }
    let between = items.get(1).map(|second| json::span(body, first).end..json::span(body, second).start);
    let separator = between.and_then(|range| body.get(range)).unwrap_or(",");
    let mut splices = Splices::default();
    splices.replace(json::span(body, first).start..json::span(body, last).end, messages.join(separator));
    Some(splices.apply(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = r#"{"role":"user","content":"<fanfold>\nwhat was done\n</fanfold>"}"#;

    fn chat(messages: &[&str]) -> Option<String> {
        let merged =
            alternate_roles(&format!(r#"{{"messages":[{}],"x":1}}"#, messages.join(", ")), Format::Chat);
        assert!(merged.as_deref().is_none_or(json::is_valid), "{merged:?}");
        merged
    }

    #[test]
    fn notes_are_merged_into_their_neighbours() {
        let merged = chat(&[
            r#"{"role":"system","content":"s"}"#,
            r#"{"role":"user","content":"\u0061 \"b\"","name":"ann"}"#,
            NOTE,
            r#"{"role":"user","name":"harness","content":[{"type":"image_url"}]}"#,
            r#"{"role":"assistant","content":"c"}"#,
        ]);
        assert_eq!(
            merged.as_deref(),
            Some(
                r#"{"messages":[{"role":"system","content":"s"}, {"role":"user","content":[{"type":"text","text":"\u0061 \"b\"\n\n<fanfold>\nwhat was done\n</fanfold>"},{"type":"image_url"}],"name":"ann"}, {"role":"assistant","content":"c"}],"x":1}"#
            )
        );
    }

    #[test]
    fn a_result_takes_a_note_but_no_prompt() {
        let result = r#"{"role":"tool","tool_call_id":"1","content":"r"}"#;
        let merged = chat(&[result, NOTE]).unwrap();
        assert!(
            merged.contains(r#""tool_call_id":"1","content":"r\n\n<fanfold>\nwhat was done"#),
            "{merged}"
        );
        assert_eq!(chat(&[result, r#"{"role":"user","content":"and?"}"#]), None);
    }

    #[test]
    fn adjacent_replies_are_merged_unless_a_call_loses_its_result() {
        let calling = r#"{"role":"assistant","tool_calls":[{"id":"1"}]}"#;
        let merged = chat(&[r#"{"role":"assistant","content":"a"}"#, calling]).unwrap();
        assert!(
            merged.contains(r#"[{"role":"assistant","tool_calls":[{"id":"1"}],"content":"a"}]"#),
            "{merged}"
        );
        assert_eq!(chat(&[calling, r#"{"role":"assistant","content":"a"}"#]), None);
    }

    #[test]
    fn alternating_roles_stay_unchanged() {
        assert_eq!(
            chat(&[r#"{"role":"user","content":"a"}"#, r#"{"role":"assistant","content":null}"#]),
            None
        );
        assert_eq!(chat(&["3", "null"]), None);
        assert_eq!(
            alternate_roles(r#"{"input":[{"role":"user"},{"role":"user"}]}"#, Format::Responses),
            None
        );
        assert_eq!(alternate_roles("[]", Format::Chat), None);
    }

    #[test]
    fn anthropic_messages_are_merged_as_blocks() {
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]}"#;
        assert_eq!(
            alternate_roles(body, Format::Anthropic).as_deref(),
            Some(
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}]}]}"#
            )
        );
    }
}
