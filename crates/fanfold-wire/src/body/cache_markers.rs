//! Separates the style of a message from its content: cache markers, and a single text in a list of one part.
//!
//! Clients move their cache markers in every request, and some write a text as a part only while it has a marker.
//! Neither changes the content, so messages are compared and stored without style.
//!
//! ```text
//! {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}
//!    markers  ,"cache_control":{"type":"ephemeral"}
//!    around   [{"type":"text","text":   }]
//! {"role":"user","content":"hi"}
//! ```

use std::borrow::Cow;
use std::ops::Range;

use crate::dialects::Format;
use crate::json::{self, Object, Splices};

const MARKER: &str = "cache_control";

/// The style of a message. Restoring it gives the message byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageStyle {
    /// The JSON before and after the text, if it is written as a list of one part.
    pub around: Option<(String, String)>,
    /// Cache markers, each with its offset in the message without markers.
    pub markers: Vec<(usize, String)>,
    /// True if the content is a text, so that a list of one part is possible.
    pub is_text: bool,
}

impl MessageStyle {
    /// Returns whether the message is written without style.
    pub fn is_plain(&self) -> bool {
        self.around.is_none() && self.markers.is_empty()
    }
}

/// A message without style, and its style.
pub fn strip_style(format: Format, raw: &str) -> (Cow<'_, str>, MessageStyle) {
    if !format.facts().has_cache_markers {
        return (Cow::Borrowed(raw), MessageStyle::default());
    }
    strip(raw)
}

fn strip(raw: &str) -> (Cow<'_, str>, MessageStyle) {
    let (unmarked, markers) = without_markers(raw);
    let Some(content) = content_range(&unmarked) else {
        return (unmarked, MessageStyle { markers, ..MessageStyle::default() });
    };
    if unmarked[content.clone()].starts_with('"') {
        return (unmarked, MessageStyle { markers, around: None, is_text: true });
    }
    let Some(text) = lone_text(&unmarked[content.clone()]) else {
        return (unmarked, MessageStyle { markers, ..MessageStyle::default() });
    };
    let text = content.start + text.start..content.start + text.end;
    let around = (unmarked[content.start..text.start].to_owned(), unmarked[text.end..content.end].to_owned());
    let plain = [&unmarked[..content.start], &unmarked[text], &unmarked[content.end..]].concat();
    (Cow::Owned(plain), MessageStyle { markers, around: Some(around), is_text: true })
}

/// Restores the style of a message.
pub fn restore_style<'p>(plain: &'p str, style: &MessageStyle) -> Cow<'p, str> {
    let mut text = Cow::Borrowed(plain);
    if let Some((before, after)) = &style.around
        && let Some(range) = text_range(plain)
    {
        let parts = [&plain[..range.start], before, &plain[range.clone()], after, &plain[range.end..]];
        text = Cow::Owned(parts.concat());
    }
    if !style.markers.is_empty() {
        let mut splices = Splices::default();
        style.markers.iter().for_each(|(at, marker)| splices.replace(*at..*at, marker.as_str()));
        text = Cow::Owned(splices.apply(&text));
    }
    text
}

/// Returns whether two system texts outside the list are equal but for cache markers.
pub fn same_system(one: Option<&str>, other: Option<&str>) -> bool {
    let plain = |system: &str| {
        let message = format!(r#"{{"content":{system}}}"#);
        strip(&message).0.into_owned()
    };
    match (one, other) {
        (Some(one), Some(other)) => one == other || plain(one) == plain(other),
        (one, other) => one == other,
    }
}

/// The range of a content that is a text.
fn text_range(message: &str) -> Option<Range<usize>> {
    content_range(message).filter(|range| message[range.clone()].starts_with('"'))
}

/// The range of the content of a message, unless the key is duplicate.
fn content_range(message: &str) -> Option<Range<usize>> {
    let object = Object::parse(message)?;
    let mut contents = object.fields.iter().filter(|field| field.key == "content");
    let (one, other) = (contents.next()?, contents.next());
    other.is_none().then(|| object.span(one.value))
}

/// The range of the text in a list that has one plain text part.
fn lone_text(content: &str) -> Option<Range<usize>> {
    let items = json::array(content)?;
    let [part] = items.as_slice() else { return None };
    let object = Object::parse(part)?;
    let [one, other] = object.fields.as_slice() else { return None };
    let (kind, text) = if one.key == "type" { (one, other) } else { (other, one) };
    let is_text =
        kind.key == "type" && kind.value == "\"text\"" && text.key == "text" && text.value.starts_with('"');
    is_text.then(|| json::span(content, text.value))
}

/// A message without cache markers, and the markers with their offsets.
fn without_markers(raw: &str) -> (Cow<'_, str>, Vec<(usize, String)>) {
    if !raw.contains(MARKER) {
        return (Cow::Borrowed(raw), Vec::new());
    }
    let Some(message) = Object::parse(raw) else { return (Cow::Borrowed(raw), Vec::new()) };
    let mut splices = Splices::default();
    cut_marker(&mut splices, raw, &message);
    for part in parts(&message) {
        cut_marker(&mut splices, raw, &part);
        for inner in parts(&part) {
            cut_marker(&mut splices, raw, &inner);
        }
    }
    let cuts = splices.ranges();
    if cuts.is_empty() {
        return (Cow::Borrowed(raw), Vec::new());
    }
    let mut unmarked = String::with_capacity(raw.len());
    let mut markers = Vec::with_capacity(cuts.len());
    let mut at = 0;
    for cut in cuts {
        unmarked.push_str(&raw[at..cut.start]);
        markers.push((unmarked.len(), raw[cut.clone()].to_owned()));
        at = cut.end;
    }
    unmarked.push_str(&raw[at..]);
    (Cow::Owned(unmarked), markers)
}

fn parts<'a>(object: &Object<'a>) -> Vec<Object<'a>> {
    let items = object.get("content").and_then(json::array).unwrap_or_default();
    items.into_iter().filter_map(Object::parse).collect()
}

fn cut_marker(splices: &mut Splices, raw: &str, object: &Object<'_>) {
    splices.cut_fields(object, json::span(raw, object.raw).start, |key| key == MARKER);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        let (plain, style) = strip_style(Format::Anthropic, raw);
        assert_eq!(plain, expected, "{raw}");
        assert_eq!(restore_style(&plain, &style), raw);
        let (again, none) = strip_style(Format::Anthropic, &plain);
        assert_eq!((&*again, none.is_plain()), (&*plain, true), "{raw}");
        assert_eq!(style.is_text, text_range(&plain).is_some(), "{raw}");
        let elsewhere = strip_style(Format::Responses, raw);
        assert_eq!((&*elsewhere.0, elsewhere.1.is_plain()), (raw, true));
    }

    #[test]
    fn messages_with_and_without_markers_are_equal() {
        let plain = r#"{"role":"user","content":"hi"}"#;
        check(plain, plain);
        check(r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#, plain);
        check(
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}"#,
            plain,
        );
        check(r#"{"role":"user","content":[{"cache_control":null, "text":"hi" ,"type":"text"} ]}"#, plain);
        check(r#"{"role":"user","content":"hi","cache_control":{"ttl":"1h"}}"#, plain);
        check(
            r#"{"content":[ {"type": "text", "text": "a\"]b"} ], "role": "user"}"#,
            r#"{"content":"a\"]b", "role": "user"}"#,
        );
    }

    #[test]
    fn markers_inside_parts_and_results_are_stripped() {
        check(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","cache_control":{},"content":[{"type":"text","text":"b","cache_control":{}}]}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"b"}]}]}"#,
        );
    }

    #[test]
    fn system_texts_with_and_without_markers_are_equal() {
        let marked =
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]"#;
        let moved =
            r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]"#;
        let other = r#"[{"type":"text","text":"a"},{"type":"text","text":"c"}]"#;
        assert!(same_system(Some(marked), Some(moved)) && same_system(None, None));
        assert!(!same_system(Some(marked), Some(other)) && !same_system(Some(marked), None));
        let lone = r#"[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]"#;
        assert!(same_system(Some(lone), Some(r#""a""#)));
    }

    #[test]
    fn other_fields_named_like_markers_stay() {
        for raw in [
            r#"{"role":"assistant","content":[{"type":"tool_use","input":{"cache_control":{"a":1}}}]}"#,
            r#"{"role":"user","content":"the field \"cache_control\" is missing"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi","citations":[]}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"}],"content":[{"type":"text","text":"b"}]}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user","content":null}"#,
            "5",
        ] {
            check(raw, raw);
        }
    }
}
