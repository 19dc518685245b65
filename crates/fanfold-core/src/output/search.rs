//! Searches everything that is folded in a view, for a recall without a handle.
//!
//! ```text
//! #12.2 33- the line before it
//! #12.2 34: the line
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use crate::fold::ledger::{EntryState, Ledger};
use crate::fold::originals::address_of_place;
use crate::model::handle::Handle;
use crate::model::location::{Place, body_at, original_at, places_of};
use crate::model::tokens::thousands;
use crate::model::transcript::{EntryId, Transcript};

/// The maximum number of lines in an answer.
const MAX_LINES: usize = 40;
/// The maximum number of matches that are shown with the lines around them, and the number of these lines on each side.
const MAX_WITH_CONTEXT: usize = 8;
const CONTEXT_LINES: usize = 2;
/// The maximum length of a line in an answer, in bytes. Of a longer one, only the part around the match is shown.
const MAX_LINE_BYTES: usize = 320;

/// Finds the folded lines that contain a text, compared without regard to case: the handle, the line number and the line.
/// Returns an empty text if no line contains it.
pub fn search_folded(transcript: &Transcript, ledger: &Ledger, text: &str) -> String {
    let mut places = Vec::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let id = EntryId::from(i);
        match ledger.entry_states.get(i) {
            Some(EntryState::Segment(_)) => places.extend(places_of(entry, id)),
            Some(EntryState::Edited(_)) => {
                let is_folded = |place: &Place| ledger.fold_at(*place).is_some();
                places.extend(places_of(entry, id).into_iter().filter(is_folded));
            }
            Some(EntryState::Whole) | None => {}
        }
    }
    search_places(transcript, &places, text)
}

/// Finds the lines with a text in the whole entries.
pub fn search_entries(transcript: &Transcript, entries: &[EntryId], text: &str) -> String {
    let entries = entries.iter().filter_map(|id| Some((transcript.entries().get(id.index())?, *id)));
    let places: Vec<Place> = entries.flat_map(|(entry, id)| places_of(entry, id)).collect();
    search_places(transcript, &places, text)
}

fn search_places(transcript: &Transcript, places: &[Place], text: &str) -> String {
    let pattern = text.to_lowercase();
    let mut found: Vec<(Place, Vec<(usize, usize)>)> = Vec::new();
    for &place in places {
        let Some(original) = text_at(transcript, place) else { continue };
        let lines = original.split('\n').enumerate();
        let hits: Vec<_> =
            lines.filter_map(|(i, line)| Some((i, line.to_lowercase().find(&pattern)?))).collect();
        if !hits.is_empty() {
            found.push((place, hits));
        }
    }
    let n_found: usize = found.iter().map(|(_, hits)| hits.len()).sum();
    // A few matches are shown with the lines around them, so that no second recall is needed.
    let around = if n_found <= MAX_WITH_CONTEXT { CONTEXT_LINES } else { 0 };
    let mut out = String::new();
    let mut left = MAX_LINES;
    for (place, hits) in &found {
        let Some(original) = text_at(transcript, *place) else { continue };
        let handle =
            address_of_place(transcript, *place).unwrap_or_else(|| Handle::from_content(original.as_bytes()));
        let lines: Vec<&str> = original.split('\n').collect();
        let mut shown_to = 0;
        for &(i, at) in hits.iter().take(left) {
            let from = i.saturating_sub(around).max(shown_to);
            for (near, line) in lines.iter().enumerate().take(i + around + 1).skip(from) {
                let is_hit = hits.iter().any(|(hit, _)| *hit == near);
                let mark = if is_hit { ':' } else { '-' };
                let line = excerpt(line, if near == i { at } else { 0 }, MAX_LINE_BYTES);
                writeln!(out, "{handle} {}{mark} {line}", near + 1)
                    .expect("writing to a string does not fail");
                shown_to = near + 1;
            }
        }
        left = left.saturating_sub(hits.len());
    }
    if n_found > MAX_LINES {
        let n_more = thousands((n_found - MAX_LINES) as u64);
        let hint = "search for a rarer text, or search in one of these handles";
        writeln!(out, "[{n_more} more lines; {hint}]").expect("writing to a string does not fail");
    }
    out
}

/// The text at a place that holds one.
fn text_at(transcript: &Transcript, place: Place) -> Option<Arc<str>> {
    body_at(transcript, place).and_then(|_| original_at(transcript, place))
}

/// The part of a line around a match.
pub(crate) fn excerpt(line: &str, at: usize, max: usize) -> String {
    if line.len() <= max {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(max / 4));
    let to = line.floor_char_boundary(from + max);
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{}{}", dots(from > 0), &line[from..to], dots(to < line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::Words;
    use crate::notation::parse;

    fn transcript(text: &str) -> Transcript {
        let mut transcript = Transcript::new();
        for entry in parse(text).expect("a conversation") {
            transcript.append(entry, &Words);
        }
        transcript
    }

    fn found(transcript: &Transcript, text: &str) -> String {
        let all: Vec<EntryId> = (0..transcript.len()).map(EntryId::from).collect();
        search_entries(transcript, &all, text)
    }

    #[test]
    fn lines_have_the_handle_and_the_number() {
        let transcript = transcript(
            "
user    find the Parser
say     I read it
call    read parser.rs
result  fn one() {}
        fn parser() {}
call    bash grep parser
result  none
",
        );
        expect_test::expect![[r#"
            #e1 1: find the Parser
            #1.1a 1: parser.rs
            #1.1 1- fn one() {}
            #1.1 2: fn parser() {}
            #2.1a 1: grep parser
        "#]]
        .assert_eq(&found(&transcript, "PARSER"));
        assert_eq!(found(&transcript, "lexer"), "");
    }

    #[test]
    fn only_the_first_lines_are_shown() {
        let lines: Vec<String> = (1..=57).map(|n| format!("match {n}")).collect();
        let transcript =
            transcript(&format!("user    go\ncall    bash x\nresult  {}\n", lines.join("\n        ")));
        let found = found(&transcript, "match");
        assert_eq!(found.lines().count(), 41);
        let last = found.lines().last();
        assert_eq!(last, Some("[17 more lines; search for a rarer text, or search in one of these handles]"));
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let line = format!("{}needle{}", "é".repeat(1000), "ü".repeat(1000));
        let shown = excerpt(&line, 2000, MAX_LINE_BYTES);
        assert!(shown.starts_with("…é") && shown.contains("needle") && shown.ends_with("ü…"), "{shown}");
        assert!(shown.len() < MAX_LINE_BYTES + 8);
    }
}
