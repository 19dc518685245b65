//! A request in which no role speaks twice in a row, for a provider that wants that: neighbours of one role become one
//! message, with a blank line between what each says.
//!
//! ```text
//! {"role":"user","content":"Why?"}, {"role":"user","content":"<fanfold>\n…</fanfold>"}
//! {"role":"user","content":"Why?\n\n<fanfold>\n…</fanfold>"}
//! ```
//!
//! Most providers take neighbours as they are, and then a note of ours is a message of its own: what a person wrote stays
//! as it came. Where one does not, every word still stands, in its order. The same body gives the same bytes.

use std::borrow::Cow;

use crate::anthropic;
use crate::format::Format;
use crate::json::{self, Object};
use crate::outgoing::is_note;
use crate::splice::Splices;

/// The request with roles that alternate; none where they do, or where its format knows no such rule.
pub fn alternating(body: &str, format: Format) -> Option<String> {
    let object = Object::parse(body)?;
    let items = json::array(object.some(format.list_key())?)?;
    let (first, last) = (items.first()?, items.last()?);
    let messages = match format {
        Format::Chat => chat(&items),
        Format::Anthropic => anthropic::alternating(&items),
        Format::Responses | Format::ShareGpt | Format::Hermes => return None,
    };
    let is_same = messages.len() == items.len() && messages.iter().zip(&items).all(|(new, old)| new == old);
    if is_same {
        return None;
    }
    let between = items.get(1).map(|second| json::span(body, first).end..json::span(body, second).start);
    let separator = between.and_then(|place| body.get(place)).unwrap_or(",");
    let mut splices = Splices::default();
    splices.replace(json::span(body, first).start..json::span(body, last).end, messages.join(separator));
    Some(splices.apply(body))
}

/// A message on its way out.
struct Said<'a> {
    role: String,
    json: Cow<'a, str>,
}

fn chat<'a>(items: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut turns: Vec<Said<'a>> = Vec::with_capacity(items.len());
    for item in items {
        let role = Object::parse(item).and_then(|object| object.text("role").map(Cow::into_owned));
        let next = Said { role: role.unwrap_or_default(), json: without_our_name(item) };
        let merged = turns.last().and_then(|last| merged(last, &next));
        match (merged, turns.last_mut()) {
            (Some(merged), Some(last)) => last.json = Cow::Owned(merged),
            _ => turns.push(next),
        }
    }
    turns.into_iter().map(|turn| turn.json).collect()
}

/// A message without the name that fanfold gave it: who wants roles to alternate often wants no names.
fn without_our_name(item: &str) -> Cow<'_, str> {
    let Some(object) = Object::parse(item) else { return item.into() };
    let is_ours = matches!(object.text("name").as_deref(), Some("harness" | "fanfold"))
        && object.text("role").as_deref() == Some("user");
    if !is_ours {
        return item.into();
    }
    let mut splices = Splices::default();
    let members: Vec<_> = object.fields.iter().map(|field| field.span.clone()).collect();
    splices.cut(&members, |i| object.fields[i].key == "name");
    Cow::Owned(splices.apply(item))
}

/// Two neighbours as one message, where one may not follow the other.
fn merged(last: &Said<'_>, next: &Said<'_>) -> Option<String> {
    let (before, behind) = (Object::parse(&last.json)?, Object::parse(&next.json)?);
    let has_calls =
        |message: &Object<'_>| ["tool_calls", "function_call"].iter().any(|key| message.some(key).is_some());
    let has_more_fields = behind.fields.len() > before.fields.len();
    let frame = match (last.role.as_str(), next.role.as_str()) {
        ("user", "user") if has_more_fields => &behind,
        ("user", "user") => &before,
        // Behind a result a note goes into it: who wants roles to alternate wants the model's answer there.
        ("tool" | "function", "user") if is_note(&json::string(behind.get("content")?)?.text) => &before,
        ("assistant", "assistant") if !has_calls(&before) && has_calls(&behind) => &behind,
        ("assistant", "assistant") if !has_calls(&before) => &before,
        _ => return None,
    };
    let content = joined(before.get("content"), behind.get("content"))?;
    let mut splices = Splices::default();
    match frame.get("content") {
        Some(value) => splices.replace(frame.span(value), content),
        None => {
            let end = frame.raw.trim_end().len().checked_sub(1)?;
            splices.replace(end..end, format!(",\"content\":{content}"));
        }
    }
    Some(splices.apply(frame.raw))
}

/// Two contents as one; none if one of them is neither a text nor a list of parts.
fn joined(before: Option<&str>, behind: Option<&str>) -> Option<String> {
    let is_nothing = |value: &Option<&str>| matches!(value, None | Some("null" | "\"\"" | "[]"));
    let (before, behind) = match (before, behind) {
        (before, behind) if is_nothing(&behind) => return before.map(str::to_owned),
        (before, behind) if is_nothing(&before) => return behind.map(str::to_owned),
        (before, behind) => (before?, behind?),
    };
    if before.starts_with('"') && behind.starts_with('"') {
        return Some(format!("{}\\n\\n{}", &before[..before.len() - 1], &behind[1..]));
    }
    let parts = |value: &str| match json::array(value) {
        Some(parts) => Some(parts.join(",")),
        None => value.starts_with('"').then(|| format!(r#"{{"type":"text","text":{value}}}"#)),
    };
    Some(format!("[{},{}]", parts(before)?, parts(behind)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = r#"{"role":"user","content":"<fanfold>\nwhat was done\n</fanfold>"}"#;

    fn chat(messages: &[&str]) -> Option<String> {
        let made = alternating(&format!(r#"{{"messages":[{}],"x":1}}"#, messages.join(", ")), Format::Chat);
        assert!(made.as_deref().is_none_or(json::is_valid), "{made:?}");
        made
    }

    #[test]
    fn notes_go_into_the_message_beside_them() {
        let made = chat(&[
            r#"{"role":"system","content":"s"}"#,
            r#"{"role":"user","content":"\u0061 \"b\"","name":"ann"}"#,
            NOTE,
            r#"{"role":"user","name":"harness","content":[{"type":"image_url"}]}"#,
            r#"{"role":"assistant","content":"c"}"#,
        ]);
        assert_eq!(
            made.as_deref(),
            Some(
                r#"{"messages":[{"role":"system","content":"s"}, {"role":"user","content":[{"type":"text","text":"\u0061 \"b\"\n\n<fanfold>\nwhat was done\n</fanfold>"},{"type":"image_url"}],"name":"ann"}, {"role":"assistant","content":"c"}],"x":1}"#
            )
        );
    }

    #[test]
    fn a_note_behind_a_result_goes_into_it_and_a_persons_words_do_not() {
        let result = r#"{"role":"tool","tool_call_id":"1","content":"r"}"#;
        let made = chat(&[result, NOTE]).unwrap();
        assert!(made.contains(r#""tool_call_id":"1","content":"r\n\n<fanfold>\nwhat was done"#), "{made}");
        assert_eq!(chat(&[result, r#"{"role":"user","content":"and?"}"#]), None);
    }

    #[test]
    fn replies_side_by_side_become_one_unless_a_call_would_lose_its_result() {
        let calling = r#"{"role":"assistant","tool_calls":[{"id":"1"}]}"#;
        let made = chat(&[r#"{"role":"assistant","content":"a"}"#, calling]).unwrap();
        assert!(made.contains(r#"[{"role":"assistant","tool_calls":[{"id":"1"}],"content":"a"}]"#), "{made}");
        assert_eq!(chat(&[calling, r#"{"role":"assistant","content":"a"}"#]), None);
    }

    #[test]
    fn what_alternates_stays_as_it_is() {
        assert_eq!(
            chat(&[r#"{"role":"user","content":"a"}"#, r#"{"role":"assistant","content":null}"#]),
            None
        );
        assert_eq!(chat(&["3", "null"]), None);
        assert_eq!(alternating(r#"{"input":[{"role":"user"},{"role":"user"}]}"#, Format::Responses), None);
        assert_eq!(alternating("[]", Format::Chat), None);
    }

    #[test]
    fn anthropic_gets_blocks() {
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]}"#;
        assert_eq!(
            alternating(body, Format::Anthropic).as_deref(),
            Some(
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b"}]}]}"#
            )
        );
    }
}
