//! Recalls originals: whole, by line numbers, or the lines that match a search.
//!
//! An address opens straight from the transcript, whether or not a fold has recorded it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::fold::ledger::Ledger;
use crate::fold::originals::{Original, content_of, original_at_address, read_original};
use crate::model::handle::{Address, Handle, Hash};
use crate::model::location::{original_at, places_of};
use crate::model::tokens::thousands;
use crate::model::transcript::{Call, EntryId, Transcript};
use crate::output::search::excerpt;

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
    /// The transcript has nothing at the address.
    #[error("there is no {handle}: {existing}")]
    NoSuchPlace {
        /// The handle.
        handle: Handle,
        /// The number of steps of the transcript, and the number of calls if only the call is missing.
        existing: String,
    },
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

impl RecallError {
    /// The error for a handle that names nothing in a transcript. It contains the number of steps.
    pub fn not_found(transcript: &Transcript, handle: Handle) -> RecallError {
        let Some(address) = handle.address() else { return RecallError::Unknown(handle) };
        let n_steps = transcript.n_steps();
        let mut existing = format!("the conversation has {}", counted(n_steps, "step"));
        let of_call = match address {
            Address::Result(step, call) | Address::Arguments(step, call) => Some((step, call, None)),
            Address::ResultMedia(step, call, media) => Some((step, call, Some(media))),
            Address::EntryText(_) | Address::EntryMedia(..) => {
                existing = format!("{existing} and {}", counted(transcript.len(), "entry"));
                None
            }
            _ => None,
        };
        let step =
            of_call.and_then(|(number, ..)| transcript.entry(transcript.step_by_number(number)?).step());
        if let (Some(step), Some((number, call, _))) = (step, of_call) {
            let calls = match step.calls.get(call as usize - 1) {
                None => format!("step {number} has {}", counted(step.calls.len(), "call")),
                Some(Call { result: None, .. }) => format!("call {call} of step {number} has no result yet"),
                Some(Call { result: Some(outcome), .. }) => {
                    let n_media = outcome.media.len();
                    format!("the result of call {call} of step {number} has {n_media} images and files")
                }
            };
            existing = format!("{calls}, and {existing}");
        }
        RecallError::NoSuchPlace { handle, existing }
    }
}

/// Prints a number with its noun: `1 step`, `2 steps`.
fn counted(n: usize, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ies", thousands(n as u64)),
        (_, None) => format!("{} {noun}s", thousands(n as u64)),
    }
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
    let original =
        ledger.original(transcript, handle).ok_or_else(|| RecallError::not_found(transcript, handle))?;
    extent.extract(content_of(transcript, &ledger.originals, &original), handle)
}

/// Returns the full texts that contain the original behind a handle, each with the byte range of the original in it.
///
/// Redaction needs the context: a secret may begin before the original or end after it.
pub(crate) fn recall_in_context(
    transcript: &Transcript,
    ledger: &Ledger,
    handle: Handle,
) -> Result<Vec<(String, Range<usize>)>, RecallError> {
    let original =
        ledger.original(transcript, handle).ok_or_else(|| RecallError::not_found(transcript, handle))?;
    let mut out = Vec::new();
    add_containing_texts(transcript, ledger, &original, &mut out);
    Ok(out)
}

fn add_containing_texts(
    transcript: &Transcript,
    ledger: &Ledger,
    original: &Original,
    out: &mut Vec<(String, Range<usize>)>,
) {
    let content = |original: &Original| content_of(transcript, &ledger.originals, original);
    match original {
        Original::PlaceSlice(place, bytes) => out.push((content(&Original::Place(*place)), bytes.clone())),
        Original::EntrySlice(entry, bytes) => {
            out.push((content(&Original::Entries(vec![*entry])), bytes.clone()));
        }
        Original::Several(_, handles) => {
            for part in handles.iter().filter_map(|handle| ledger.original(transcript, *handle)) {
                add_containing_texts(transcript, ledger, &part, out);
            }
        }
        Original::Place(_) | Original::Text(..) | Original::Entries(_) => {
            let text = content(original);
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

/// Finds an original without a ledger: anything by its address, or a text, the arguments or a result by the hash of its
/// content.
pub fn find_by_content(transcript: &Transcript, handle: Handle) -> Option<Arc<str>> {
    if let Some(original) = original_at_address(transcript, handle) {
        return read_original(transcript, &original, &|_| None, 0).map(Arc::from);
    }
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
    let part =
        |handle: &Handle| parts.get(handle).cloned().or_else(|| original_at_address(transcript, *handle));
    read_original(transcript, original, &part, DEEPEST)
}

/// The maximum length of a line that a search prints whole, in bytes.
const MAX_LINE_BYTES: usize = 1_200;

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
            let at = line.to_lowercase().find(&pattern).unwrap_or_default();
            writeln!(out, "{}: {}", n + 1, excerpt(line, at, MAX_LINE_BYTES))
                .expect("writing to a string does not fail");
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
