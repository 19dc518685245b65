//! A body that begins as one that is held: what they have in common is compared, and not read again.
//!
//! ```text
//! held      {"model":"m","messages":[a,b,c]}
//! the body  {"model":"m","messages":[a,b,c,d],"stream":true}
//! is read   {"model":"m","messages":[a      ,d],"stream":true}
//! ```
//! Behind a message of the list a reader is where it is behind any other, so the short text is valid where the body
//! is, and says the same of all but the messages between.

use std::ops::Range;

use crate::frame::{self, Frame, Opened, Shape};

/// What is known of a body that is held.
pub(crate) struct Known<'a> {
    pub(crate) body: &'a str,
    pub(crate) frame: &'a Frame,
    pub(crate) messages: &'a [Range<usize>],
}

/// Fewer bytes than this are read as fast as they are compared.
const FEW: usize = 16 * 1024;

/// Finds the messages of a body that begins as a known one, in the format of that; none if it must be read whole.
pub(crate) fn open(body: &str, format: crate::Format, known: &Known<'_>) -> Option<Opened> {
    let first = known.messages.first()?;
    if known.frame.shape != Shape::List || body.get(first.clone())? != &known.body[first.clone()] {
        return None;
    }
    let n_bytes = n_common(body.as_bytes(), known.body.as_bytes());
    let n_same = known.messages.partition_point(|message| message.end <= n_bytes);
    let last = known.messages.get(n_same.checked_sub(1)?)?;
    let is_object = |message: &Range<usize>| body.as_bytes()[..message.end].ends_with(b"}");
    let n_between = last.end - first.end;
    if n_between < FEW || !is_object(first) || !is_object(last) {
        return None;
    }
    let short = [&body[..first.end], &body[last.end..]].concat();
    // What is wrong with a body is told by who reads all of it.
    let opened = frame::open(&short, Some(format)).ok()?;
    let is_the_list = opened.frame.shape == Shape::List
        && opened.frame.list.start == known.frame.list.start
        && opened.messages.first() == Some(first);
    if !is_the_list {
        return None;
    }
    let shifted = |place: &Range<usize>| {
        let by = if place.start >= first.end { n_between } else { 0 };
        place.start + by..place.end + by
    };
    let frame = opened.frame;
    let messages: Vec<_> =
        known.messages[..n_same].iter().cloned().chain(opened.messages[1..].iter().map(shifted)).collect();
    let separator = match messages.get(1) {
        Some(second) => body[first.end..second.start].to_owned(),
        None => frame.separator,
    };
    let frame = Frame {
        list: frame.list.start..frame.list.end + n_between,
        separator,
        tools: frame.tools.as_ref().map(shifted),
        tools_at: frame.tools_at.as_ref().map(shifted),
        system: frame.system.as_ref().map(shifted),
        count: frame.count.as_ref().map(shifted),
        ..frame
    };
    Some(Opened { format: opened.format, frame, messages })
}

/// How many bytes two texts have in common, from the first on.
fn n_common(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK));
    let n = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum::<usize>();
    n + a[n..].iter().zip(&b[n..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    /// Opens a body as one that goes on with another and as it stands; says whether it could be done the short way.
    fn check(held: &str, body: &str) -> bool {
        let held_opened = frame::open(held, Some(Format::Chat)).unwrap();
        let known = Known { body: held, frame: &held_opened.frame, messages: &held_opened.messages };
        let Some(resumed) = open(body, Format::Chat, &known) else { return false };
        let whole = frame::open(body, Some(Format::Chat)).expect("what was opened the short way is valid");
        assert_eq!(format!("{resumed:?}"), format!("{whole:?}"), "{body}");
        true
    }

    fn message(text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":\"{}\"}}", text.repeat(FEW / 8))
    }

    #[test]
    fn what_is_found_is_what_reading_all_of_it_finds() {
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
        // The second message is another, so there is nothing in between.
        let other = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {d},{c}],\"n\":1}}");
        assert!(!check(&held, &other));
        // The last one goes on where it ended before.
        let two = format!("{{\"model\":\"m\",\"tools\":[{{}}],\"messages\":[{a}, {b},{c}x");
        assert!(!check(&held, &two), "not JSON");
    }

    #[test]
    fn a_body_that_is_not_valid_or_names_its_list_twice_is_read_whole() {
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
