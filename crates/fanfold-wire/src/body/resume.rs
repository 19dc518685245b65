//! Parses a body that extends a held one: the common part is compared instead of parsed.
//!
//! ```text
//! held    {"model":"m","messages":[a,b,c]}
//! body    {"model":"m","messages":[a,b,c,d],"stream":true}
//! parsed  {"model":"m","messages":[a      ,d],"stream":true}
//! ```
//! A parser is in the same state after any message of the list. So the shortened text is valid if and only if the body
//! is, and they differ only in the messages left out.

use std::ops::Range;

use super::frame::{self, Frame, ListShape, OpenedBody};

/// A body whose messages are held.
pub(crate) struct HeldBody<'a> {
    pub(crate) body: &'a str,
    pub(crate) frame: &'a Frame,
    pub(crate) messages: &'a [Range<usize>],
}

/// Parsing fewer bytes is as fast as comparing them.
const MIN_COMMON: usize = 16 * 1024;

/// Locates the messages of a body that extends a held one of this format; `None` if the whole body must be parsed.
pub(crate) fn open(body: &str, format: crate::Format, held: &HeldBody<'_>) -> Option<OpenedBody> {
    let first = held.messages.first()?;
    if held.frame.shape != ListShape::List || body.get(first.clone())? != &held.body[first.clone()] {
        return None;
    }
    let n_bytes = n_common(body.as_bytes(), held.body.as_bytes());
    let n_same = held.messages.partition_point(|message| message.end <= n_bytes);
    let last = held.messages.get(n_same.checked_sub(1)?)?;
    let is_object = |message: &Range<usize>| body.as_bytes()[..message.end].ends_with(b"}");
    let n_between = last.end - first.end;
    if n_between < MIN_COMMON || !is_object(first) || !is_object(last) {
        return None;
    }
    let short = [&body[..first.end], &body[last.end..]].concat();
    // Errors are reported by the parser of the whole body.
    let opened = frame::open(&short, Some(format)).ok()?;
    let is_the_list = opened.frame.shape == ListShape::List
        && opened.frame.list.start == held.frame.list.start
        && opened.messages.first() == Some(first);
    if !is_the_list {
        return None;
    }
    let shifted = |range: &Range<usize>| {
        let offset = if range.start >= first.end { n_between } else { 0 };
        range.start + offset..range.end + offset
    };
    let frame = opened.frame;
    let messages: Vec<_> =
        held.messages[..n_same].iter().cloned().chain(opened.messages[1..].iter().map(shifted)).collect();
    let separator = match messages.get(1) {
        Some(second) => body[first.end..second.start].to_owned(),
        None => frame.separator,
    };
    let frame = Frame {
        list: frame.list.start..frame.list.end + n_between,
        separator,
        tools: frame.tools.as_ref().map(shifted),
        tools_value: frame.tools_value.as_ref().map(shifted),
        system: frame.system.as_ref().map(shifted),
        count: frame.count.as_ref().map(shifted),
        ..frame
    };
    Some(OpenedBody { format: opened.format, frame, messages })
}

/// The length of the common prefix.
fn n_common(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    let n = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum::<usize>();
    n + a[n..].iter().zip(&b[n..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    /// Compares resumed parsing with full parsing. Returns whether the body could be resumed.
    fn check(held: &str, body: &str) -> bool {
        let held_opened = frame::open(held, Some(Format::Chat)).unwrap();
        let held_body = HeldBody { body: held, frame: &held_opened.frame, messages: &held_opened.messages };
        let Some(resumed) = open(body, Format::Chat, &held_body) else { return false };
        let whole = frame::open(body, Some(Format::Chat)).expect("a resumed body is valid");
        assert_eq!(format!("{resumed:?}"), format!("{whole:?}"), "{body}");
        true
    }

    fn message(text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":\"{}\"}}", text.repeat(MIN_COMMON / 8))
    }

    #[test]
    fn resumed_parsing_equals_full_parsing() {
        let [a, b, c, d] = ["aa aaa aaa", "bb bbb bbb", "c\\\"]},{ c", "dddd"].map(message);
        let held = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {b},{c}],\"n\":1}}");
        let begun = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {b},{c}");
        for rest in [
            "],\"n\":1}".to_owned(),
            "]}".to_owned(),
            format!(" , {d} ] , \"max_tokens\":5, \"stream\":true}} "),
            format!(",{d},{a}],\"system\":\"x\",\"message_count\":4,\"tools\":[{{\"b\":1}}]}}"),
        ] {
            assert!(check(&held, &format!("{begun}{rest}")), "{rest}");
        }
        // The second message differs, so there is no common part.
        let other = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {d},{c}],\"n\":1}}");
        assert!(!check(&held, &other));
        // The last message is longer than the held one.
        let two = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {b},{c}x");
        assert!(!check(&held, &two), "not JSON");
    }

    #[test]
    fn invalid_or_ambiguous_bodies_are_parsed_whole() {
        let [a, b, c] = ["aaaaaaaaaaaa", "bbbbbbbbbbbbb", "cccccccccccc"].map(message);
        let held = format!("{{\"messages\":[{a},{b},{c}]}}");
        for rest in ["", "]", "]}}", ",]}", "5]}", "]}[", ",{\"role\"}]}"] {
            assert!(!check(&held, &format!("{{\"messages\":[{a},{b},{c}{rest}")), "{rest}");
        }
        assert!(!check(&held, &format!("{{\"messages\":[{a},{b},{c}],\"messages\":[{c}]}}")));
        let numbers = format!("{{\"messages\":[1,{a},{b},2]}}");
        assert!(!check(&numbers, &format!("{{\"messages\":[1,{a},{b},22]}}")));
    }
}
