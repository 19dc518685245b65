//! Results that came back as text, for calls that were written as text.
//!
//! ```text
//! <tool_response>what was read</tool_response>
//! ```

use std::ops::Range;

use crate::json;

/// A piece of a message that holds results as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A result: with its tags, and what stands between them.
    Result(Range<usize>, Range<usize>),
    /// Other words.
    Words(Range<usize>),
}

impl Segment {
    /// The whole place of the piece.
    pub(crate) fn span(&self) -> Range<usize> {
        match self {
            Segment::Result(span, _) | Segment::Words(span) => span.clone(),
        }
    }
}

/// The pieces of a message with results as text; empty where it has none.
pub(crate) fn segments(text: &str) -> Vec<Segment> {
    const OPEN: &str = "<tool_response>";
    const CLOSE: &str = "</tool_response>";
    let mut segments = Vec::new();
    let mut at = 0;
    while let Some(step) = text[at..].find(OPEN) {
        let open = at + step;
        let start = open + OPEN.len();
        let Some(length) = text[start..].find(CLOSE) else { break };
        let end = start + length + CLOSE.len();
        push_words(&mut segments, text, at..open);
        let inner = text[start..start + length].trim();
        let inner = if inner.is_empty() { start..start } else { json::span(text, inner) };
        segments.push(Segment::Result(open..end, inner));
        at = end;
    }
    if !segments.is_empty() {
        push_words(&mut segments, text, at..text.len());
    }
    segments
}

fn push_words(segments: &mut Vec<Segment>, text: &str, place: Range<usize>) {
    if !text[place.clone()].trim().is_empty() {
        segments.push(Segment::Words(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_among_words() {
        let text = "Note\n<tool_response>\nfirst\n</tool_response>\n<tool_response></tool_response> end";
        let shown: Vec<_> = segments(text)
            .into_iter()
            .map(|segment| match segment {
                Segment::Result(_, inner) => format!("result {:?}", &text[inner]),
                Segment::Words(place) => format!("words {:?}", &text[place]),
            })
            .collect();
        assert_eq!(shown, ["words \"Note\\n\"", "result \"first\"", "result \"\"", "words \" end\""]);
        assert!(segments("no results <tool_response> here").is_empty());
    }

    #[test]
    fn many_open_tags_cost_one_reading() {
        assert!(segments(&"<tool_response>".repeat(100_000)).is_empty());
    }
}
