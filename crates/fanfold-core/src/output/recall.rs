//! Recalls originals: whole, by line numbers, or the lines that match a search.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::fold::ledger::Ledger;
use crate::fold::originals::{Original, Originals, content_of, read_original};
use crate::model::handle::{Handle, Hash};
use crate::model::location::{original_at, places_of};
use crate::model::transcript::{EntryId, Transcript};

/// The requested part of an original.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Extent {
    /// The whole original.
    #[default]
    Whole,
    /// The lines from the first to the last number, inclusive, counted from one.
    Lines(usize, usize),
    /// The lines that contain a text, with line numbers and context.
    Search {
        /// The text, compared without regard to case.
        text: String,
        /// The number of context lines before and after a match.
        around: usize,
    },
}

/// An original could not be recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// No fold of this session has the handle.
    #[error("no original has the handle {0}")]
    Unknown(Handle),
    /// The requested lines do not exist.
    #[error("{handle} has {lines} lines; {} not among them", describe_lines(.from, .to))]
    NoSuchLines {
        /// The handle.
        handle: Handle,
        /// The number of lines of the original.
        lines: usize,
        /// The first requested line.
        from: usize,
        /// The last requested line.
        to: usize,
    },
}

/// Describes a range of lines as the user wrote it; the last line of an open range is `usize::MAX`.
fn describe_lines(from: &usize, to: &usize) -> String {
    match (from, to) {
        (from, &usize::MAX) => format!("those from {from} on are"),
        (from, to) if from == to => format!("line {from} is"),
        (from, to) => format!("lines {from} to {to} are"),
    }
}

/// Returns the original behind a handle, or a part of it.
pub fn recall(
    transcript: &Transcript,
    ledger: &Ledger,
    handle: Handle,
    extent: &Extent,
) -> Result<String, RecallError> {
    let original = ledger.original(handle).ok_or(RecallError::Unknown(handle))?;
    extent.extract(content_of(transcript, &ledger.originals, original), handle)
}

/// Returns the full texts that contain the original behind a handle, each with the byte range of the original in it.
///
/// Redaction needs the context: a secret may begin before the original or end after it.
pub(crate) fn recall_in_context(
    transcript: &Transcript,
    ledger: &Ledger,
    handle: Handle,
) -> Result<Vec<(String, Range<usize>)>, RecallError> {
    let original = ledger.original(handle).ok_or(RecallError::Unknown(handle))?;
    let mut out = Vec::new();
    add_containing_texts(transcript, &ledger.originals, original, &mut out);
    Ok(out)
}

fn add_containing_texts(
    transcript: &Transcript,
    originals: &Originals,
    original: &Original,
    out: &mut Vec<(String, Range<usize>)>,
) {
    match original {
        Original::PlaceSlice(place, bytes) => {
            out.push((content_of(transcript, originals, &Original::Place(*place)), bytes.clone()));
        }
        Original::EntrySlice(entry, bytes) => {
            out.push((content_of(transcript, originals, &Original::Entries(vec![*entry])), bytes.clone()));
        }
        Original::Several(_, handles) => {
            for (part, _) in handles.iter().filter_map(|handle| originals.get(handle)) {
                add_containing_texts(transcript, originals, part, out);
            }
        }
        Original::Place(_) | Original::Text(..) | Original::Entries(_) => {
            let text = content_of(transcript, originals, original);
            let range = 0..text.len();
            out.push((text, range));
        }
    }
}

impl Extent {
    /// Parses line numbers: `40`, `1-40` or `40-`. Returns `None` for other texts.
    pub fn parse_lines(text: &str) -> Option<Extent> {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0);
        let (from, to) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((from, to)) if to.trim().is_empty() => (number(from)?, usize::MAX),
            Some((from, to)) => (number(from)?, number(to)?),
        };
        (from <= to).then_some(Extent::Lines(from, to))
    }

    /// Extracts this part of an original. The handle is used in the error.
    pub fn extract(&self, content: String, handle: Handle) -> Result<String, RecallError> {
        match self {
            Extent::Whole => Ok(content),
            Extent::Lines(from, to) => {
                let lines: Vec<_> = content.split('\n').collect();
                let exists = *from >= 1 && from <= to && *from <= lines.len();
                if !exists {
                    return Err(RecallError::NoSuchLines {
                        handle,
                        lines: lines.len(),
                        from: *from,
                        to: *to,
                    });
                }
                Ok(lines[from - 1..(*to).min(lines.len())].join("\n"))
            }
            Extent::Search { text, around } => Ok(search(&content, text, *around)),
        }
    }
}

/// Finds a text, the arguments or a result by its handle, without a ledger.
///
/// A handle is derived from the content, so an original can be found without knowing how it was folded.
pub fn find_by_content(transcript: &Transcript, handle: Handle) -> Option<Arc<str>> {
    let has_handle = |content: &Arc<str>| handle.matches(Hash::new(content.as_bytes()));
    for (i, entry) in transcript.entries().iter().enumerate() {
        let found = places_of(entry, EntryId::from(i))
            .into_iter()
            .filter_map(|place| original_at(transcript, place))
            .find(|content| has_handle(content));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Reads a stored original from the transcript that it was recorded for. `parts` are the originals that it refers to.
///
/// Returns `None` if the transcript has no such place, which means that the two do not belong together.
pub fn open_original(
    transcript: &Transcript,
    original: &Original,
    parts: &BTreeMap<Handle, Original>,
) -> Option<String> {
    // Stored references may be corrupt and form a cycle.
    const DEEPEST: usize = 64;
    read_original(transcript, original, &|handle| parts.get(handle), DEEPEST)
}

fn search(content: &str, text: &str, around: usize) -> String {
    let pattern = text.to_lowercase();
    let lines: Vec<_> = content.split('\n').collect();
    let mut out = String::new();
    let mut shown_to = 0;
    for (i, line) in lines.iter().enumerate() {
        if !line.to_lowercase().contains(&pattern) {
            continue;
        }
        let from = i.saturating_sub(around).max(shown_to);
        let to = (i + around + 1).min(lines.len());
        if from > shown_to && shown_to > 0 {
            out.push_str("…\n");
        }
        for (n, line) in lines.iter().enumerate().take(to).skip(from) {
            writeln!(out, "{}: {line}", n + 1).expect("writing to a string does not fail");
        }
        shown_to = to.max(shown_to);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_line_ranges() {
        assert_eq!(Extent::parse_lines("40"), Some(Extent::Lines(40, 40)));
        assert_eq!(Extent::parse_lines("1-40"), Some(Extent::Lines(1, 40)));
        assert_eq!(Extent::parse_lines(" 7 - "), Some(Extent::Lines(7, usize::MAX)));
        for wrong in ["", "-", "-3", "0", "0-3", "9-3", "1-2-3", "all"] {
            assert_eq!(Extent::parse_lines(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn errors_quote_the_requested_lines() {
        let handle: Handle = "291227".parse().expect("a handle");
        let extracted = |lines: &str| {
            let extent = Extent::parse_lines(lines).expect("lines");
            extent.extract("one\ntwo".to_owned(), handle).map_err(|error| error.to_string())
        };
        let wrong = |what: &str| Err(format!("291227 has 2 lines; {what} not among them"));
        assert_eq!(extracted("900-"), wrong("those from 900 on are"));
        assert_eq!(extracted("3-4"), wrong("lines 3 to 4 are"));
        assert_eq!(extracted("3"), wrong("line 3 is"));
        assert_eq!(extracted("2-"), Ok("two".to_owned()));
    }
}
