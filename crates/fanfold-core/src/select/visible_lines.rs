//! Finds lines of a result that are already visible in the view, so that they need not be sent again.
//!
//! Agents read a file, change a few lines and read it again, or write a file and print it. Visible lines are those of
//! results and of the arguments of calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::location::Place;
use crate::model::transcript::{Call, CallId, EntryId, Outcome, Step};
use crate::text::line_hash::{IdentityHasher, LineHash, LineSet, without_number};

/// The minimum length of a run: its first and last line are sent anyway.
const FEWEST: usize = 6;
/// The minimum length of the first line of a run in bytes; shorter lines appear everywhere.
const SHORTEST: usize = 12;

/// The lines that are visible in the view.
#[derive(Debug, Clone, Default)]
pub(crate) struct VisibleLines {
    /// Where each line appeared last.
    positions: HashMap<LineHash, LinePosition, BuildHasherDefault<IdentityHasher>>,
    /// The calls whose results are no longer whole.
    shortened: LineSet,
}

/// Where a line appears.
#[derive(Debug, Clone, Copy)]
struct LinePosition {
    source: VisibleText,
    /// The byte offset of the line.
    at: u32,
}

/// The result or the arguments of an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisibleText {
    pub(crate) call: CallId,
    /// True if these are the arguments.
    pub(crate) is_arguments: bool,
}

impl VisibleText {
    /// The location of the text.
    pub(crate) fn place(self) -> Place {
        if self.is_arguments { Place::Arguments(self.call) } else { Place::Result(self.call) }
    }

    /// The text.
    fn text(self, call: &Call) -> Option<Cow<'_, str>> {
        match self.is_arguments {
            true => argument_text(call.arguments.as_str()),
            false => call.result.as_ref().map(|outcome| Cow::Borrowed(outcome.body.as_str())),
        }
    }
}

/// Lines of a result that appear earlier in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepeatedRun {
    /// The byte range without the first and the last line.
    pub(crate) inner: Range<usize>,
    /// The number of lines in that range.
    pub(crate) n_lines: usize,
    /// Where they appear.
    pub(crate) source: VisibleText,
}

impl VisibleLines {
    /// Adds the arguments of a step's calls.
    pub(crate) fn add_arguments(&mut self, id: EntryId, step: &Step) {
        for (call_id, call) in calls(id, step) {
            if let Some(text) = argument_text(call.arguments.as_str()) {
                self.add_text(VisibleText { call: call_id, is_arguments: true }, &text);
            }
        }
    }

    /// Adds the results of a step; a result that is not verbatim in the view is only remembered as shortened.
    pub(crate) fn add_results(&mut self, id: EntryId, step: &Step, is_verbatim: impl Fn(Place) -> bool) {
        for (call_id, call) in calls(id, step) {
            let (call_hash, source) =
                (hash_of_call(call), VisibleText { call: call_id, is_arguments: false });
            if !is_verbatim(source.place()) {
                self.shortened.insert(call_hash);
            } else if let Some(outcome) = &call.result {
                self.shortened.remove(&call_hash);
                self.add_text(source, outcome.body.as_str());
            }
        }
    }

    fn add_text(&mut self, source: VisibleText, text: &str) {
        for (at, line) in lines(text).filter(|(_, line)| may_begin(line)) {
            self.positions.insert(hash_of(line), LinePosition { source, at: at as u32 });
        }
    }

    /// The runs of lines in a call's result that appear earlier. `in_view` returns the call of a text that is still
    /// visible. If the same call is made again after its result was shortened, the agent wants the whole result.
    pub(crate) fn repeated_runs<'a>(
        &self,
        call: &Call,
        in_view: impl Fn(VisibleText) -> Option<&'a Call>,
    ) -> Vec<RepeatedRun> {
        // A result with images is folded as a whole.
        let may_shorten =
            |outcome: &&Outcome| outcome.media.is_empty() && !self.shortened.contains(&hash_of_call(call));
        let Some(outcome) = call.result.as_ref().filter(may_shorten) else {
            return Vec::new();
        };
        let own: Vec<(usize, &str)> = lines(outcome.body.as_str()).collect();
        // Texts read during this search; `None` if no longer visible.
        let mut texts: BTreeMap<VisibleText, Option<Cow<'a, str>>> = BTreeMap::new();
        let (mut runs, mut i) = (Vec::new(), 0);
        while i < own.len() {
            let position = Some(own[i].1)
                .filter(|line| may_begin(line))
                .and_then(|line| self.positions.get(&hash_of(line)));
            let n = position.map_or(0, |position| {
                let read = || in_view(position.source).and_then(|call| position.source.text(call));
                let text = texts.entry(position.source).or_insert_with(read);
                let other = text.as_ref().and_then(|text| text.get(position.at as usize..));
                let pairs = own[i..].iter().zip(lines(other.unwrap_or_default()));
                pairs.take_while(|((_, one), (_, other))| one == other).count()
            });
            // A run does not end with blank lines.
            let is_blank = |(_, line): &&(usize, &str)| line.trim_ascii().is_empty();
            let n = n - own[i..i + n].iter().rev().take_while(is_blank).count();
            match position.filter(|_| n >= FEWEST) {
                Some(position) => {
                    let inner = own[i + 1].0..own[i + n - 1].0;
                    runs.push(RepeatedRun { inner, n_lines: n - 2, source: position.source });
                    i += n;
                }
                None => i += 1,
            }
        }
        runs
    }

    /// Removes lines that are no longer visible.
    pub(crate) fn retain(&mut self, is_in_view: impl Fn(Place) -> bool) {
        self.positions.retain(|_, position| is_in_view(position.source.place()));
    }
}

/// The calls of a step.
pub(crate) fn calls(id: EntryId, step: &Step) -> impl Iterator<Item = (CallId, &Call)> {
    step.calls.iter().enumerate().map(move |(i, call)| (CallId { step: id, call: i as u16 }, call))
}

/// The multi-line strings in JSON arguments, joined; the arguments themselves if they are not JSON.
fn argument_text(arguments: &str) -> Option<Cow<'_, str>> {
    if !arguments.contains("\\n") && !arguments.contains('\n') {
        return None;
    }
    let Ok(value) = serde_json::from_str(arguments) else { return Some(Cow::Borrowed(arguments)) };
    let mut out = String::new();
    push_texts(&value, &mut out);
    (!out.is_empty()).then_some(Cow::Owned(out))
}

fn push_texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) if text.contains('\n') => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| push_texts(value, out)),
        Value::Object(fields) => fields.values().for_each(|value| push_texts(value, out)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The lines of a text without their line numbers, each with the offset of its beginning, line number included.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split('\n').map(move |line| (line.as_ptr() as usize - start, without_number(line)))
}

fn may_begin(line: &str) -> bool {
    line.trim_ascii().len() >= SHORTEST
}

/// Hashes a line including its indentation.
fn hash_of(line: &str) -> LineHash {
    xxh3_64(line.as_bytes())
}

fn hash_of_call(call: &Call) -> LineHash {
    xxh3_64(call.arguments.as_str().as_bytes()) ^ xxh3_64(call.tool.as_bytes()).rotate_left(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::transcript::Entry;
    use crate::notation::parse;

    fn steps(notation: &str) -> Vec<Step> {
        let entries = parse(notation).expect("the notation is right").into_iter();
        let step = |entry| if let Entry::Step(step) = entry { Some(step) } else { None };
        entries.filter_map(step).collect()
    }

    /// The text left out of the last result, and whether it appears in arguments.
    fn left_out(notation: &str, is_in_view: bool) -> Vec<(String, bool)> {
        let steps = steps(notation);
        let mut visible = VisibleLines::default();
        let (last, before) = steps.split_last().expect("there are steps");
        for (i, step) in before.iter().enumerate() {
            visible.add_arguments(EntryId::from(i), step);
            visible.add_results(EntryId::from(i), step, |_| true);
        }
        let text = last.calls[0].result.as_ref().expect("it has one").body.as_str();
        let runs = visible.repeated_runs(&last.calls[0], |source| {
            is_in_view.then(|| &steps[source.call.step.index()].calls[usize::from(source.call.call)])
        });
        runs.into_iter().map(|run| (text[run.inner].to_owned(), run.source.is_arguments)).collect()
    }

    fn lines(numbers: std::ops::Range<usize>, number: impl Fn(usize) -> String) -> String {
        numbers.map(|n| format!("\n        {}line number {n} of it", number(n))).collect()
    }

    fn plain(_: usize) -> String {
        String::new()
    }

    #[test]
    fn finds_runs_despite_line_numbers() {
        let numbered = |n: usize| format!("{n}\u{2192}");
        let notation = format!(
            "call    read a\nresult  the file a{}\ncall    cat a\nresult  again a{}\n        and its end",
            lines(10..20, numbered),
            lines(10..20, plain)
        );
        let inner: String = (11..19).map(|n| format!("line number {n} of it\n")).collect();
        assert_eq!(left_out(&notation, true), [(inner, false)]);
        assert_eq!(left_out(&notation, false), []);
    }

    #[test]
    fn keeps_short_runs_and_changed_lines() {
        let check = |second: &str, expected: usize| {
            let notation = format!(
                "call    read a\nresult  the file a{}\ncall    cat a\nresult  again a{second}",
                lines(0..20, plain)
            );
            assert_eq!(left_out(&notation, true).len(), expected, "{second}");
        };
        check(&lines(0..5, plain), 0);
        check(&lines(0..6, plain), 1);
        check(&format!("{}\n        another line{}", lines(0..9, plain), lines(9..20, plain)), 2);
        check(&format!("{}{}", lines(0..9, plain), lines(10..20, plain)), 2);
        // Different indentation makes a different line.
        check(&lines(0..20, |_| "    ".to_owned()), 0);
    }

    #[test]
    fn finds_runs_in_arguments() {
        let written: String = (0..9).map(|n| format!("line number {n} of it\\n")).collect();
        let notation = format!(
            "call    write {{\"path\":\"a\",\"content\":\"{written}\"}}\nresult  ok\ncall    cat a\nresult  now{}",
            lines(0..9, plain)
        );
        let inner: String = (1..8).map(|n| format!("line number {n} of it\n")).collect();
        assert_eq!(left_out(&notation, true), [(inner, true)]);
    }

    #[test]
    fn parses_arguments_once() {
        let line = |of: &str, i: usize| format!("line {i} of the file {of}");
        let written = |of: &str| -> String {
            let lines: String = (0..50).map(|i| line(of, i) + "\\n").collect();
            format!("call    write {{\"content\":\"{lines}\"}}\nresult  ok\n")
        };
        let both: String =
            (0..50).map(|i| format!("\n        {}\n        {}", line("a", i), line("b", i))).collect();
        let steps = steps(&format!("{}{}call    paste a b\nresult  both{both}", written("a"), written("b")));
        let mut visible = VisibleLines::default();
        (0..2).for_each(|i| visible.add_arguments(EntryId::from(i), &steps[i]));
        let n_read = std::cell::Cell::new(0);
        let runs = visible.repeated_runs(&steps[2].calls[0], |source| {
            n_read.set(n_read.get() + 1);
            Some(&steps[source.call.step.index()].calls[0])
        });
        assert_eq!((runs.len(), n_read.get()), (0, 2));
    }

    #[test]
    fn equal_lines_take_linear_time() {
        let many = "\n        the very same line".repeat(200_000);
        let notation = format!("call    read a\nresult  a{many}\ncall    cat a\nresult  b{many}");
        // Equal lines are indexed by their last occurrence, so no run begins with any of them.
        assert_eq!(left_out(&notation, true), []);
    }
}
