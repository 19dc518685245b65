//! Finds tool results written as text, for calls written as text.
//!
//! ```text
//! <tool_response>what was read</tool_response>
//! ```

use std::ops::Range;

use crate::json;

/// A segment of a message that has results as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResultSegment {
    /// A result: its range with and without tags.
    Result(Range<usize>, Range<usize>),
    /// Other text.
    Text(Range<usize>),
}

impl ResultSegment {
    /// The whole range.
    pub(crate) fn span(&self) -> Range<usize> {
        match self {
            ResultSegment::Result(span, _) | ResultSegment::Text(span) => span.clone(),
        }
    }
}

/// The segments of a message with results as text; empty if it has none.
pub(crate) fn segments(text: &str) -> Vec<ResultSegment> {
    const OPEN: &str = "<tool_response>";
    const CLOSE: &str = "</tool_response>";
    let mut segments = Vec::new();
    let mut at = 0;
    while let Some(step) = text[at..].find(OPEN) {
        let open = at + step;
        let start = open + OPEN.len();
        let Some(length) = text[start..].find(CLOSE) else { break };
        let end = start + length + CLOSE.len();
        push_text(&mut segments, text, at..open);
        let inner = text[start..start + length].trim();
        let inner = if inner.is_empty() { start..start } else { json::span(text, inner) };
        segments.push(ResultSegment::Result(open..end, inner));
        at = end;
    }
    if !segments.is_empty() {
        push_text(&mut segments, text, at..text.len());
    }
    segments
}

fn push_text(segments: &mut Vec<ResultSegment>, text: &str, range: Range<usize>) {
    if !text[range.clone()].trim().is_empty() {
        segments.push(ResultSegment::Text(range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_results_among_text() {
        let text = "Note\n<tool_response>\nfirst\n</tool_response>\n<tool_response></tool_response> end";
        let shown: Vec<_> = segments(text)
            .into_iter()
            .map(|segment| match segment {
                ResultSegment::Result(_, inner) => format!("result {:?}", &text[inner]),
                ResultSegment::Text(range) => format!("text {:?}", &text[range]),
            })
            .collect();
        assert_eq!(shown, ["text \"Note\\n\"", "result \"first\"", "result \"\"", "text \" end\""]);
        assert!(segments("no results <tool_response> here").is_empty());
    }

    #[test]
    fn unclosed_tags_take_linear_time() {
        assert!(segments(&"<tool_response>".repeat(100_000)).is_empty());
    }
}
