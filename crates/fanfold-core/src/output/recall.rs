//! Gives originals back: whole, by lines, or by a search in them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::fold::ledger::Ledger;
use crate::fold::originals::{Original, Originals, content_of};
use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, original_at, places_of};
use crate::model::script::write_script;
use crate::model::transcript::{EntryId, Transcript};

/// How much of an original is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// Lines from..=to, counted from one.
    Lines(usize, usize),
    /// The lines that hold a text, with their numbers and some lines around them.
    Search {
        /// What to look for, in any case.
        text: String,
        /// How many lines to show on either side.
        around: usize,
    },
}

/// Why an original could not be recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// No fold of this session has the handle.
    #[error("no original has the handle {0}")]
    Unknown(Handle),
    /// The lines asked for are not there.
    #[error("{handle} has {lines} lines; {} not among them", wanted(.from, .to))]
    NoSuchLines {
        /// The handle.
        handle: Handle,
        /// How many lines there are.
        lines: usize,
        /// The first line asked for.
        from: usize,
        /// The last line asked for.
        to: usize,
    },
}

/// Lines in words. One that is asked for to the end has no last line that a person wrote.
fn wanted(from: &usize, to: &usize) -> String {
    match (from, to) {
        (from, &usize::MAX) => format!("those from {from} on are"),
        (from, to) if from == to => format!("line {from} is"),
        (from, to) => format!("lines {from} to {to} are"),
    }
}

/// The original behind a handle, or the wanted part of it.
pub fn recall(
    transcript: &Transcript,
    ledger: &Ledger,
    handle: Handle,
    extent: &Extent,
) -> Result<String, RecallError> {
    let original = ledger.original(handle).ok_or(RecallError::Unknown(handle))?;
    extent.of(content_of(transcript, &ledger.originals, original), handle)
}

/// The whole texts that the original behind a handle is cut out of, each with the part of it that belongs to the original.
///
/// Whoever has to know what stands around a part, such as one that takes out secrets, looks at these.
pub fn recall_within(
    transcript: &Transcript,
    ledger: &Ledger,
    handle: Handle,
) -> Result<Vec<(String, Range<usize>)>, RecallError> {
    let original = ledger.original(handle).ok_or(RecallError::Unknown(handle))?;
    let mut out = Vec::new();
    add_wholes(transcript, &ledger.originals, original, &mut out);
    Ok(out)
}

fn add_wholes(
    transcript: &Transcript,
    named: &Originals,
    original: &Original,
    out: &mut Vec<(String, Range<usize>)>,
) {
    match original {
        Original::PlaceSlice(place, bytes) => {
            out.push((content_of(transcript, named, &Original::Place(*place)), bytes.clone()));
        }
        Original::EntrySlice(entry, bytes) => {
            out.push((content_of(transcript, named, &Original::Entries(vec![*entry])), bytes.clone()));
        }
        Original::Several(_, handles) => {
            for (one, _) in handles.iter().filter_map(|handle| named.get(handle)) {
                add_wholes(transcript, named, one, out);
            }
        }
        Original::Place(_) | Original::Text(..) | Original::Entries(_) => {
            let whole = content_of(transcript, named, original);
            let all = 0..whole.len();
            out.push((whole, all));
        }
    }
}

impl Extent {
    /// Lines as people write them: `40`, `1-40` or `40-`. None if these are no lines.
    pub fn of_lines(text: &str) -> Option<Extent> {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0);
        let (from, to) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((from, to)) if to.trim().is_empty() => (number(from)?, usize::MAX),
            Some((from, to)) => (number(from)?, number(to)?),
        };
        (from <= to).then_some(Extent::Lines(from, to))
    }

    /// The wanted part of an original; the handle is for the error.
    pub fn of(&self, content: String, handle: Handle) -> Result<String, RecallError> {
        match self {
            Extent::Whole => Ok(content),
            Extent::Lines(from, to) => {
                let lines: Vec<_> = content.split('\n').collect();
                let is_there = *from >= 1 && from <= to && *from <= lines.len();
                if !is_there {
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

/// Every original of a transcript that has this handle, whatever the ledger: a result, arguments, a text.
///
/// A handle names content, so an original can be found again without knowing how it was folded.
pub fn find_by_content(transcript: &Transcript, handle: Handle) -> Option<Arc<str>> {
    let has_name = |content: &Arc<str>| handle.names(Hash::of(content.as_bytes()));
    for (i, entry) in transcript.entries().iter().enumerate() {
        let found = places_of(entry, EntryId::from(i))
            .into_iter()
            .filter_map(|place| original_at(transcript, place))
            .find(|content| has_name(content));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// What a handle opened when its original was written down: the transcript is the one of that moment.
///
/// None where the transcript has no such place, which means that one of the two is not what it was.
pub fn open(
    transcript: &Transcript,
    original: &Original,
    named: &BTreeMap<Handle, Original>,
) -> Option<String> {
    open_within(transcript, original, named, DEEPEST)
}

/// Names stand for names, but not for ever: what was read from a disk may run in a circle.
const DEEPEST: usize = 64;

fn open_within(
    transcript: &Transcript,
    original: &Original,
    named: &BTreeMap<Handle, Original>,
    depth: usize,
) -> Option<String> {
    let script = |entry: EntryId| {
        let mut out = String::new();
        write_script(transcript.entries().get(entry.index())?, &mut out);
        Some(out)
    };
    let whole = |place: Place| {
        let entry = transcript.entries().get(place.entry().index())?;
        places_of(entry, place.entry()).contains(&place).then(|| original_at(transcript, place))?
    };
    match original {
        Original::Place(place) => whole(*place).map(|text| text.to_string()),
        Original::PlaceSlice(place, bytes) => whole(*place)?.get(bytes.clone()).map(str::to_owned),
        Original::Entries(entries) => entries.iter().map(|entry| script(*entry)).collect(),
        Original::EntrySlice(entry, bytes) => script(*entry)?.get(bytes.clone()).map(str::to_owned),
        Original::Text(_, words) => Some(words.to_string()),
        Original::Several(_, handles) => {
            let depth = depth.checked_sub(1)?;
            let of_handle = |handle: &Handle| open_within(transcript, named.get(handle)?, named, depth);
            handles.iter().map(of_handle).collect()
        }
    }
}

fn search(content: &str, text: &str, around: usize) -> String {
    let wanted = text.to_lowercase();
    let lines: Vec<_> = content.split('\n').collect();
    let mut out = String::new();
    let mut shown_to = 0;
    for (i, line) in lines.iter().enumerate() {
        if !line.to_lowercase().contains(&wanted) {
            continue;
        }
        let from = i.saturating_sub(around).max(shown_to);
        let to = (i + around + 1).min(lines.len());
        if from > shown_to && shown_to > 0 {
            out.push_str("…\n");
        }
        for (n, line) in lines.iter().enumerate().take(to).skip(from) {
            writeln!(out, "{}: {line}", n + 1).expect("a string takes everything");
        }
        shown_to = to.max(shown_to);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_people_write_them() {
        assert_eq!(Extent::of_lines("40"), Some(Extent::Lines(40, 40)));
        assert_eq!(Extent::of_lines("1-40"), Some(Extent::Lines(1, 40)));
        assert_eq!(Extent::of_lines(" 7 - "), Some(Extent::Lines(7, usize::MAX)));
        for wrong in ["", "-", "-3", "0", "0-3", "9-3", "1-2-3", "all"] {
            assert_eq!(Extent::of_lines(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_that_are_not_there_are_told_as_they_were_asked_for() {
        let handle: Handle = "291227".parse().expect("a handle");
        let told = |lines: &str| {
            let extent = Extent::of_lines(lines).expect("lines");
            extent.of("one\ntwo".to_owned(), handle).map_err(|error| error.to_string())
        };
        let wrong = |what: &str| Err(format!("291227 has 2 lines; {what} not among them"));
        assert_eq!(told("900-"), wrong("those from 900 on are"));
        assert_eq!(told("3-4"), wrong("lines 3 to 4 are"));
        assert_eq!(told("3"), wrong("line 3 is"));
        assert_eq!(told("2-"), Ok("two".to_owned()));
    }
}
