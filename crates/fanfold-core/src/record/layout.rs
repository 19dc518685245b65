//! The lines of an entry in the record, and the format of records: one printer and one parser.
//!
//! ```text
//! Record of steps 1–3, written by fanfold, not by the user. Recall #N for the original of step N. … marks text left out.
//! #1-2 grep `def requeue` in src → 4 lines; read src/queue.py
//! #3 The claim is lost, so I keep it.
//!   edited src/queue.py (+1 −1)
//!     - job.attempts = 0
//!     + job.attempts += 1
//! ```

use crate::facts::StepFacts;
use crate::record::pieces::{Piece, PiecePart};
use crate::record::rows::OutcomeLine;

/// A part of a record: the text of one message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordText {
    /// The heading, if the part begins the record.
    pub heading: Option<String>,
    /// The entries, in the order of their steps.
    pub entries: Vec<RecordEntry>,
}

/// The lines of a record for one step, or for neighbouring steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEntry {
    /// The handle: `#12`, `#7-11`.
    pub handle: String,
    /// The first line after the handle, then the others with their indentation.
    pub lines: Vec<String>,
}

impl RecordText {
    /// Prints the part without its fence.
    pub fn print(&self) -> String {
        let mut out = self.heading.clone().unwrap_or_default();
        for RecordEntry { handle, lines } in &self.entries {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(handle);
            out.push(' ');
            out.push_str(&lines.join("\n"));
        }
        out
    }

    /// Parses a printed part. Every text has a reading: lines before the first entry are the heading.
    pub fn parse(text: &str) -> RecordText {
        let mut record = RecordText::default();
        let mut heading: Vec<&str> = Vec::new();
        for line in text.split('\n') {
            match (entry_head(line), record.entries.last_mut()) {
                (Some((handle, rest)), _) => {
                    let (handle, lines) = (handle.to_owned(), vec![rest.to_owned()]);
                    record.entries.push(RecordEntry { handle, lines });
                }
                (None, Some(entry)) => entry.lines.push(line.to_owned()),
                (None, None) => heading.push(line),
            }
        }
        record.heading = (!heading.is_empty()).then(|| heading.join("\n"));
        record
    }
}

/// The handle at the beginning of an entry's first line, and the rest of the line.
fn entry_head(line: &str) -> Option<(&str, &str)> {
    let (handle, rest) = line.split_once(' ')?;
    let name = handle.strip_prefix('#')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_range = || name.split_once('-').is_some_and(|(first, last)| is_number(first) && is_number(last));
    let is_entry = name.strip_prefix('e').is_some_and(is_number);
    (is_number(name) || is_entry || is_range()).then_some((handle, rest))
}

/// The lines of a step: statements, then each call with its outcome and its pieces.
pub(crate) fn step_lines(facts: &StepFacts, rows: &[OutcomeLine], pieces: &[&Piece<'_>]) -> Vec<String> {
    let mut lines = statement_lines(facts, pieces);
    for (i, row) in rows.iter().enumerate() {
        let of_call = |piece: &&&Piece<'_>| call_of(piece.part) == Some(i as u16);
        let details: Vec<&Piece<'_>> = pieces.iter().filter(of_call).copied().collect();
        if details.is_empty() && !row.is_own {
            continue;
        }
        lines.push(format!("  {}", if row.text.is_empty() { &facts.calls[i].verb } else { &row.text }));
        lines.extend(detail_lines(&details, "    "));
    }
    if let Some(first) = lines.first_mut() {
        *first = first.trim_start().to_owned();
    }
    lines
}

fn call_of(part: PiecePart) -> Option<u16> {
    match part {
        PiecePart::Text(_) => None,
        PiecePart::Errors(call)
        | PiecePart::Hunk(call, _)
        | PiecePart::Written(call)
        | PiecePart::Result(call) => Some(call),
    }
}

/// The chosen statements. Neighbours stand as in the original; a gap is marked.
fn statement_lines(facts: &StepFacts, pieces: &[&Piece<'_>]) -> Vec<String> {
    let mut out = String::new();
    for (i, text) in facts.texts.iter().enumerate() {
        let mut before: Option<usize> = None;
        for piece in pieces.iter().filter(|piece| piece.part == PiecePart::Text(i as u16)) {
            let at = piece.position as usize;
            let statement = &text.statements[at];
            if let Some(before) = before {
                let is_next = at == before + 1;
                let last = &text.statements[before];
                let between = &text.text[last.range.end..statement.range.start];
                let is_new_line = last.paragraph != statement.paragraph;
                let gap = if is_next && between.trim().is_empty() { "" } else { " …" };
                out.push_str(gap);
                out.push_str(if is_new_line { "\n    " } else { " " });
            } else if !out.is_empty() {
                out.push_str("\n    ");
            } else if facts.is_report {
                out.push_str("to the user: ");
            }
            // A statement may contain line ends of a paragraph that was wrapped.
            let lines = piece.text.lines().filter(|line| !line.trim().is_empty());
            out.push_str(&lines.collect::<Vec<_>>().join("\n    "));
            before = Some(at);
        }
    }
    if out.is_empty() { Vec::new() } else { out.split('\n').map(str::to_owned).collect() }
}

/// The pieces of a call, as blocks. A gap is marked at the end of the line before it, or by the number of the next line.
pub(crate) fn detail_lines(pieces: &[&Piece<'_>], indentation: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut before: Option<&Piece<'_>> = None;
    for (i, piece) in pieces.iter().enumerate() {
        let is_next =
            before.is_some_and(|before| before.part == piece.part && before.position + 1 == piece.position);
        let is_same_part = before.is_some_and(|before| before.part == piece.part);
        match piece.number {
            // Parts of a long line have one number.
            Some(number)
                if !is_next
                    && before.is_none_or(|before| before.number != Some(number))
                    && (piece.position > 0 || number > 1) =>
            {
                lines.push(format!("{indentation}…{number}"));
            }
            None if !is_same_part && piece.position > 0 && matches!(piece.part, PiecePart::Result(_)) => {
                lines.push(format!("{indentation}…"));
            }
            _ if is_same_part && !is_next => {
                if let Some(last) = lines.last_mut() {
                    last.push_str(" …");
                }
            }
            _ => {}
        }
        let kept = piece.text.lines().filter(|line| !line.trim().is_empty());
        lines.extend(kept.map(|line| format!("{indentation}{}{line}", piece.sign)));
        let is_end = pieces.get(i + 1).is_none_or(|next| next.part != piece.part);
        if let Some(last) = lines.last_mut().filter(|_| is_end && !piece.is_last) {
            last.push_str(" …");
        }
        before = Some(piece);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn printed_records_parse_to_themselves(
            heading in proptest::option::of("[A-Z][a-z ….]{0,20}(\n [a-z]{1,9}){0,3}"),
            entries in proptest::collection::vec(("#[1-9][0-9]{0,3}(-[1-9][0-9]{0,3})?|#e[1-9]", "[a-z# `…]{0,20}", proptest::collection::vec("  [ -~]{0,20}", 0..4)), 0..6),
        ) {
            let entry = |(handle, first, rest): (String, String, Vec<String>)| {
                RecordEntry { handle, lines: [vec![first], rest].concat() }
            };
            let heading = if entries.is_empty() { Some(heading.unwrap_or_default()) } else { heading };
            let record = RecordText { heading, entries: entries.into_iter().map(entry).collect() };
            prop_assert_eq!(RecordText::parse(&record.print()), record);
        }
    }
}
