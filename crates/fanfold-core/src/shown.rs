//! Lines that stand in view, by what they say: those that come again in a result need not be sent again.
//!
//! Agents look at a file, change a few lines of it and look at it again, or write it and print it. What stands in view is
//! what results showed and what the agent wrote in its calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::copies::{Hashed, LineHash, LineSet, without_number};
use crate::transcript::{Call, CallId, EntryId, Outcome, Step};
use crate::view::Place;

/// A run of fewer lines is sent as it is: the first and the last of it stay anyway.
const FEWEST: usize = 6;
/// A line of fewer bytes may stand anywhere, so that no run begins with it.
const SHORTEST: usize = 12;

/// Lines that stand in view.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    /// Where a line stood last.
    spots: HashMap<LineHash, Spot, BuildHasherDefault<Hashed>>,
    /// What was asked by calls of whose results lines were left out.
    left_out: LineSet,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy)]
struct Spot {
    above: Above,
    /// The byte at which it begins.
    at: u32,
}

/// A result that stands above, or what the agent wrote there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Above {
    pub(crate) call: CallId,
    /// Whether it stands in the arguments of the call.
    pub(crate) is_written: bool,
}

impl Above {
    /// Where that is.
    pub(crate) fn place(self) -> Place {
        if self.is_written { Place::Arguments(self.call) } else { Place::Result(self.call) }
    }

    /// What stands there.
    fn text(self, call: &Call) -> Option<Cow<'_, str>> {
        match self.is_written {
            true => written_in(call.arguments.as_str()),
            false => call.result.as_ref().map(|outcome| Cow::Borrowed(outcome.body.as_str())),
        }
    }
}

/// Lines of a result that stand above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The bytes of all but the first line and the last.
    pub(crate) inner: Range<usize>,
    /// How many lines those are.
    pub(crate) n_lines: usize,
    /// Where they stand.
    pub(crate) above: Above,
}

impl Shown {
    /// Takes note of what the calls of a step ask for.
    pub(crate) fn ask(&mut self, id: EntryId, step: &Step) {
        for (call_id, call) in calls(id, step) {
            if let Some(text) = written_in(call.arguments.as_str()) {
                self.show(Above { call: call_id, is_written: true }, &text);
            }
        }
    }

    /// Takes note of the results of a step, each as it came or with lines left out.
    pub(crate) fn answer(&mut self, id: EntryId, step: &Step, is_as_it_came: impl Fn(Place) -> bool) {
        for (call_id, call) in calls(id, step) {
            let (asked, above) = (hash_of_call(call), Above { call: call_id, is_written: false });
            if !is_as_it_came(above.place()) {
                self.left_out.insert(asked);
            } else if let Some(outcome) = &call.result {
                self.left_out.remove(&asked);
                self.show(above, outcome.body.as_str());
            }
        }
    }

    fn show(&mut self, above: Above, text: &str) {
        for (at, line) in lines(text).filter(|(_, line)| may_begin(line)) {
            self.spots.insert(hash_of(line), Spot { above, at: at as u32 });
        }
    }

    /// The runs of lines of a call's result that stand above, where `in_view` tells the call of what is still there. Who
    /// asks the same again, after lines were left out, wants to see them.
    pub(crate) fn runs<'a>(&self, call: &Call, in_view: impl Fn(Above) -> Option<&'a Call>) -> Vec<Run> {
        // Images are folded with the text beside them.
        let may_lose =
            |outcome: &&Outcome| outcome.media.is_empty() && !self.left_out.contains(&hash_of_call(call));
        let Some(outcome) = call.result.as_ref().filter(may_lose) else {
            return Vec::new();
        };
        let own: Vec<(usize, &str)> = lines(outcome.body.as_str()).collect();
        // What was looked at, each read once; none where it is no longer in view.
        let mut texts: BTreeMap<Above, Option<Cow<'a, str>>> = BTreeMap::new();
        let (mut runs, mut i) = (Vec::new(), 0);
        while i < own.len() {
            let spot =
                Some(own[i].1).filter(|line| may_begin(line)).and_then(|line| self.spots.get(&hash_of(line)));
            let n = spot.map_or(0, |spot| {
                let read = || in_view(spot.above).and_then(|call| spot.above.text(call));
                let text = texts.entry(spot.above).or_insert_with(read);
                let other = text.as_ref().and_then(|text| text.get(spot.at as usize..));
                let pairs = own[i..].iter().zip(lines(other.unwrap_or_default()));
                pairs.take_while(|((_, one), (_, other))| one == other).count()
            });
            // It ends with a line that says something.
            let is_blank = |(_, line): &&(usize, &str)| line.trim_ascii().is_empty();
            let n = n - own[i..i + n].iter().rev().take_while(is_blank).count();
            match spot.filter(|_| n >= FEWEST) {
                Some(spot) => {
                    let inner = own[i + 1].0..own[i + n - 1].0;
                    runs.push(Run { inner, n_lines: n - 2, above: spot.above });
                    i += n;
                }
                None => i += 1,
            }
        }
        runs
    }

    /// Forgets what no longer stands in view.
    pub(crate) fn keep(&mut self, is_in_view: impl Fn(Place) -> bool) {
        self.spots.retain(|_, spot| is_in_view(spot.above.place()));
    }
}

/// The calls of a step.
pub(crate) fn calls(id: EntryId, step: &Step) -> impl Iterator<Item = (CallId, &Call)> {
    step.calls.iter().enumerate().map(move |(i, call)| (CallId { step: id, call: i as u16 }, call))
}

/// The texts of several lines in arguments, one after another; all of them where they are no JSON.
fn written_in(arguments: &str) -> Option<Cow<'_, str>> {
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

/// The lines of a text without their numbers, each with where it begins, its number with it.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split('\n').map(move |line| (line.as_ptr() as usize - start, without_number(line)))
}

fn may_begin(line: &str) -> bool {
    line.trim_ascii().len() >= SHORTEST
}

/// What a line says with its indentation, whatever its number.
fn hash_of(line: &str) -> LineHash {
    xxh3_64(line.as_bytes())
}

fn hash_of_call(call: &Call) -> LineHash {
    xxh3_64(call.arguments.as_str().as_bytes()) ^ xxh3_64(call.tool.as_bytes()).rotate_left(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse;
    use crate::transcript::Entry;

    fn steps(notation: &str) -> Vec<Step> {
        let entries = parse(notation).expect("the notation is right").into_iter();
        let step = |entry| if let Entry::Step(step) = entry { Some(step) } else { None };
        entries.filter_map(step).collect()
    }

    /// What is left out of the last result, and whether it stands in arguments.
    fn left_out(notation: &str, is_in_view: bool) -> Vec<(String, bool)> {
        let steps = steps(notation);
        let mut shown = Shown::default();
        let (last, before) = steps.split_last().expect("there are steps");
        for (i, step) in before.iter().enumerate() {
            shown.ask(EntryId::from(i), step);
            shown.answer(EntryId::from(i), step, |_| true);
        }
        let text = last.calls[0].result.as_ref().expect("it has one").body.as_str();
        let runs = shown.runs(&last.calls[0], |above| {
            is_in_view.then(|| &steps[above.call.step.index()].calls[usize::from(above.call.call)])
        });
        runs.into_iter().map(|run| (text[run.inner].to_owned(), run.above.is_written)).collect()
    }

    fn lines(numbers: std::ops::Range<usize>, number: impl Fn(usize) -> String) -> String {
        numbers.map(|n| format!("\n        {}line number {n} of it", number(n))).collect()
    }

    fn plain(_: usize) -> String {
        String::new()
    }

    #[test]
    fn runs_are_found_whatever_their_numbers() {
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
    fn short_runs_and_changed_lines_stay() {
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
        // What is indented otherwise is another line.
        check(&lines(0..20, |_| "    ".to_owned()), 0);
    }

    #[test]
    fn what_was_written_is_known() {
        let written: String = (0..9).map(|n| format!("line number {n} of it\\n")).collect();
        let notation = format!(
            "call    write {{\"path\":\"a\",\"content\":\"{written}\"}}\nresult  ok\ncall    cat a\nresult  now{}",
            lines(0..9, plain)
        );
        let inner: String = (1..8).map(|n| format!("line number {n} of it\n")).collect();
        assert_eq!(left_out(&notation, true), [(inner, true)]);
    }

    #[test]
    fn what_was_written_is_read_once() {
        let line = |of: &str, i: usize| format!("line {i} of the file {of}");
        let written = |of: &str| -> String {
            let lines: String = (0..50).map(|i| line(of, i) + "\\n").collect();
            format!("call    write {{\"content\":\"{lines}\"}}\nresult  ok\n")
        };
        let both: String =
            (0..50).map(|i| format!("\n        {}\n        {}", line("a", i), line("b", i))).collect();
        let steps = steps(&format!("{}{}call    paste a b\nresult  both{both}", written("a"), written("b")));
        let mut shown = Shown::default();
        (0..2).for_each(|i| shown.ask(EntryId::from(i), &steps[i]));
        let n_read = std::cell::Cell::new(0);
        let runs = shown.runs(&steps[2].calls[0], |above| {
            n_read.set(n_read.get() + 1);
            Some(&steps[above.call.step.index()].calls[0])
        });
        assert_eq!((runs.len(), n_read.get()), (0, 2));
    }

    #[test]
    fn many_equal_lines_take_linear_time() {
        let many = "\n        the very same line".repeat(200_000);
        let notation = format!("call    read a\nresult  a{many}\ncall    cat a\nresult  b{many}");
        // A line is known where it stood last, so that no run begins with any of them.
        assert_eq!(left_out(&notation, true), []);
    }
}
