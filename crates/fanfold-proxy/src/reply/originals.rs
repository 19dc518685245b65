//! Originals for a model that recalls them, cut to the free part of its window.

use fanfold_core::{Extent, thousands};
use fanfold_engine::{SessionEngine, find_handle};
use fanfold_store::SessionId;
use fanfold_wire::reply::RecallRequest;

/// An original is not cut shorter than this, in bytes.
const MIN_BYTES: usize = 1_000;
/// Maximum size of all originals of one answer, in bytes: some 6,000 tokens.
const MAX_BYTES: usize = 24_000;

/// The originals requested by a model, in its order. An invalid request gets a message for the model instead.
pub(crate) fn originals(
    engine: &SessionEngine,
    session: &SessionId,
    wanted: &[RecallRequest],
    n_room: usize,
) -> Vec<String> {
    let each = (n_room.min(MAX_BYTES) / wanted.len().max(1)).max(MIN_BYTES);
    wanted.iter().map(|wanted| original(engine, session, wanted, each)).collect()
}

fn original(engine: &SessionEngine, session: &SessionId, wanted: &RecallRequest, max_bytes: usize) -> String {
    if let (true, Extent::Search { text, .. }) = (wanted.handle.is_empty(), &wanted.extent) {
        return match engine.search_folded(session, text) {
            Ok(found) if found.is_empty() => format!("no folded line contains `{text}`"),
            Ok(found) => cut(found, &wanted.extent, max_bytes),
            Err(error) => format!("{error}. Give a handle that stands in this conversation."),
        };
    }
    let handle = match find_handle(&wanted.handle) {
        Ok(handle) => handle,
        Err(error) => return format!("{error}: {}.", error.hint()),
    };
    match engine.recall(session, handle, &wanted.extent) {
        Ok(original) => cut(original, &wanted.extent, max_bytes),
        Err(error) => {
            format!("{error}. Give a handle that stands in this conversation, and lines that it has.")
        }
    }
}

/// The beginning of a text, in whole lines if it has several, and how to get the rest.
fn cut(original: String, extent: &Extent, max_bytes: usize) -> String {
    if original.len() <= max_bytes {
        return original;
    }
    let end = original.floor_char_boundary(max_bytes);
    let end = original[..end].rfind('\n').filter(|at| *at > 0).unwrap_or(end);
    let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let (n_shown, n_lines) = (newlines(&original[..end]) + 1, newlines(&original) + 1);
    let rest = match extent {
        Extent::Lines(from, _) => format!("go on with lines \"{}-{}\"", from + n_shown, from + n_lines - 1),
        Extent::Whole => format!("go on with lines \"{}-{n_lines}\", or search for a text", n_shown + 1),
        _ => "search for something rarer".to_owned(),
    };
    let (n_shown, n_lines) = (thousands(n_shown as u64), thousands(n_lines as u64));
    format!("{}\n[{n_shown} of {n_lines} lines; {rest}]", &original[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_original_says_how_to_get_the_rest() {
        let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let shown = cut(text.clone(), &Extent::Whole, 30);
        assert_eq!(
            shown,
            "line 1\nline 2\nline 3\nline 4\n[4 of 101 lines; go on with lines \"5-101\", or search for a text]"
        );
        assert_eq!(cut(text.clone(), &Extent::Whole, 10_000), text);
        let lines = cut("é".repeat(40), &Extent::Lines(7, 7), 31);
        assert!(lines.starts_with(&"é".repeat(15)) && lines.contains("\"8-7\""), "{lines}");
    }
}
