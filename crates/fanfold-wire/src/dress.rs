//! A message without its dress: cache marks, and a single text written as a list of one part.
//!
//! Clients move their cache marks from request to request, and some write a text as a part only while it has a mark.
//! Neither says anything, so a message is the same with or without them; what was written is kept beside it.
//!
//! ```text
//! {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}
//!    marks   ,"cache_control":{"type":"ephemeral"}
//!    around  [{"type":"text","text":   }]
//! {"role":"user","content":"hi"}
//! ```

use std::borrow::Cow;
use std::ops::Range;

use crate::format::Format;
use crate::json::{self, Object};
use crate::splice::Splices;

const MARK: &str = "cache_control";

/// How a message was written beside what it says. Putting it back gives the message byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dress {
    /// What stands before and after the text where it is written as a list of one part.
    pub around: Option<(String, String)>,
    /// Cache marks: each with its offset in the message without them.
    pub marks: Vec<(usize, String)>,
    /// Whether the content is a text, so that it could stand in a list.
    pub is_text: bool,
}

impl Dress {
    /// Whether the message is written as it is kept.
    pub fn is_plain(&self) -> bool {
        self.around.is_none() && self.marks.is_empty()
    }
}

/// A message as it is kept, and its dress.
pub fn undress(format: Format, raw: &str) -> (Cow<'_, str>, Dress) {
    // Nobody marks the items of the other formats.
    if !matches!(format, Format::Chat | Format::Anthropic) {
        return (Cow::Borrowed(raw), Dress::default());
    }
    let (unmarked, marks) = without_marks(raw);
    let Some(content) = content_place(&unmarked) else {
        return (unmarked, Dress { marks, ..Dress::default() });
    };
    if unmarked[content.clone()].starts_with('"') {
        return (unmarked, Dress { marks, around: None, is_text: true });
    }
    let Some(text) = lone_text(&unmarked[content.clone()]) else {
        return (unmarked, Dress { marks, ..Dress::default() });
    };
    let text = content.start + text.start..content.start + text.end;
    let around = (unmarked[content.start..text.start].to_owned(), unmarked[text.end..content.end].to_owned());
    let plain = [&unmarked[..content.start], &unmarked[text], &unmarked[content.end..]].concat();
    (Cow::Owned(plain), Dress { marks, around: Some(around), is_text: true })
}

/// Puts the dress of a message back.
pub fn dress<'p>(plain: &'p str, dress: &Dress) -> Cow<'p, str> {
    let mut text = Cow::Borrowed(plain);
    if let Some((before, after)) = &dress.around
        && let Some(place) = text_place(plain)
    {
        let parts = [&plain[..place.start], before, &plain[place.clone()], after, &plain[place.end..]];
        text = Cow::Owned(parts.concat());
    }
    if !dress.marks.is_empty() {
        let mut splices = Splices::default();
        dress.marks.iter().for_each(|(at, mark)| splices.replace(*at..*at, mark.as_str()));
        text = Cow::Owned(splices.apply(&text));
    }
    text
}

/// Whether two system texts that stand beside the list say the same, whatever their cache marks.
pub fn same_system(one: Option<&str>, other: Option<&str>) -> bool {
    let plain = |system: &str| {
        let message = format!(r#"{{"content":{system}}}"#);
        undress(Format::Anthropic, &message).0.into_owned()
    };
    match (one, other) {
        (Some(one), Some(other)) => one == other || plain(one) == plain(other),
        (one, other) => one == other,
    }
}

/// Where the content of a message stands that is a text; none where it is anything else.
fn text_place(message: &str) -> Option<Range<usize>> {
    content_place(message).filter(|place| message[place.clone()].starts_with('"'))
}

/// Where the content of a message stands. One that is there twice is not touched.
fn content_place(message: &str) -> Option<Range<usize>> {
    let object = Object::parse(message)?;
    let mut contents = object.fields.iter().filter(|field| field.key == "content");
    let (one, other) = (contents.next()?, contents.next());
    other.is_none().then(|| object.span(one.value))
}

/// Where the text of a content stands that is a list of one part that says nothing else.
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

/// A message without its cache marks, and where they stood.
fn without_marks(raw: &str) -> (Cow<'_, str>, Vec<(usize, String)>) {
    if !raw.contains(MARK) {
        return (Cow::Borrowed(raw), Vec::new());
    }
    let Some(message) = Object::parse(raw) else { return (Cow::Borrowed(raw), Vec::new()) };
    let mut splices = Splices::default();
    cut_mark(&mut splices, raw, &message);
    for part in parts(&message) {
        cut_mark(&mut splices, raw, &part);
        for inner in parts(&part) {
            cut_mark(&mut splices, raw, &inner);
        }
    }
    let cuts = splices.places();
    if cuts.is_empty() {
        return (Cow::Borrowed(raw), Vec::new());
    }
    let mut unmarked = String::with_capacity(raw.len());
    let mut marks = Vec::with_capacity(cuts.len());
    let mut at = 0;
    for cut in cuts {
        unmarked.push_str(&raw[at..cut.start]);
        marks.push((unmarked.len(), raw[cut.clone()].to_owned()));
        at = cut.end;
    }
    unmarked.push_str(&raw[at..]);
    (Cow::Owned(unmarked), marks)
}

fn parts<'a>(object: &Object<'a>) -> Vec<Object<'a>> {
    let items = object.get("content").and_then(json::array).unwrap_or_default();
    items.into_iter().filter_map(Object::parse).collect()
}

fn cut_mark(splices: &mut Splices, raw: &str, object: &Object<'_>) {
    let offset = json::span(raw, object.raw).start;
    let members: Vec<_> =
        object.fields.iter().map(|field| offset + field.span.start..offset + field.span.end).collect();
    splices.cut(&members, |i| object.fields[i].key == MARK);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        let (plain, worn) = undress(Format::Anthropic, raw);
        assert_eq!(plain, expected, "{raw}");
        assert_eq!(dress(&plain, &worn), raw);
        let (again, none) = undress(Format::Anthropic, &plain);
        assert_eq!((&*again, none.is_plain()), (&*plain, true), "{raw}");
        assert_eq!(worn.is_text, text_place(&plain).is_some(), "{raw}");
        let worn_elsewhere = undress(Format::Responses, raw);
        assert_eq!((&*worn_elsewhere.0, worn_elsewhere.1.is_plain()), (raw, true));
    }

    #[test]
    fn a_message_is_the_same_with_its_marks_or_without() {
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
    fn marks_of_parts_and_of_what_results_hold_go() {
        check(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","cache_control":{},"content":[{"type":"text","text":"b","cache_control":{}}]}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"b"}]}]}"#,
        );
    }

    #[test]
    fn a_system_text_is_the_same_with_its_marks_or_without() {
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
    fn what_only_looks_like_a_mark_stays() {
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
