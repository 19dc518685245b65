//! Outcome lines: what a call did and how it ended.
//!
//! ```text
//! bash `pytest tests/queue -q` → exit 1, 1 failed, 115 passed, AssertionError: 10 != 9
//! edited src/queue.rs (+2 −1; replaced in #48)
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::facts::{CallFacts, CallKind, StepFacts};
use crate::model::tokens::thousands;
use crate::record::names::PathNames;
use crate::record::standing::{SAME_RESULT, Standing};
use crate::record::state::shortened;

/// How short outcome lines are. Older steps get shorter lines first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowLevel {
    Full,
    Medium,
    Short,
    Shortest,
    /// Steps that only looked at something have no line.
    Changes,
    /// Only tests, failures and edits have a line.
    Verdicts,
}

impl RowLevel {
    /// The levels of the older and the newer half of the steps, from the longest lines to the shortest.
    pub(crate) const LADDER: [(RowLevel, RowLevel); 10] = {
        use RowLevel::*;
        [
            (Full, Full),
            (Medium, Full),
            (Medium, Medium),
            (Short, Medium),
            (Shortest, Medium),
            (Shortest, Short),
            (Shortest, Shortest),
            (Changes, Shortest),
            (Changes, Changes),
            (Verdicts, Verdicts),
        ]
    };

    /// The maximum sizes of a command and of an outcome, in bytes.
    fn limits(self) -> (usize, usize) {
        match self {
            RowLevel::Full => (160, 400),
            RowLevel::Medium => (110, 240),
            RowLevel::Short => (76, 150),
            RowLevel::Shortest | RowLevel::Changes | RowLevel::Verdicts => (56, 120),
        }
    }

    /// Returns whether a call of a step has a line at this level.
    fn includes(self, call: &CallFacts, step: &StepFacts) -> bool {
        match self {
            RowLevel::Changes => !step.calls.iter().all(|call| call.kind.is_look()),
            RowLevel::Verdicts => {
                call.is_test || call.has_failed || matches!(call.kind, CallKind::Edit | CallKind::Write)
            }
            _ => true,
        }
    }
}

/// The outcome line of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutcomeLine {
    pub(crate) text: String,
    /// False if the line is printed only above lines of the call's result.
    pub(crate) is_own: bool,
}

/// Writes outcome lines in the order of steps.
pub(crate) struct RowWriter<'a> {
    pub(crate) names: PathNames,
    pub(crate) standing: &'a Standing,
    /// The step with the first failure of each kind.
    failures: BTreeMap<(String, Vec<String>), u32>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(names: PathNames, standing: &'a Standing) -> RowWriter<'a> {
        RowWriter { names, standing, failures: BTreeMap::new() }
    }

    /// The line of each call of a step.
    pub(crate) fn rows(&mut self, step: u32, facts: &StepFacts, level: RowLevel) -> Vec<OutcomeLine> {
        let is_repeat = |i: usize, call: &CallFacts| {
            call.repeats_previous && self.standing.note(step, i) == self.standing.note(step, i - 1)
        };
        let is_repeat: Vec<bool> =
            facts.calls.iter().enumerate().map(|(i, call)| is_repeat(i, call)).collect();
        let row = |(i, call): (usize, &CallFacts)| {
            if is_repeat[i] {
                return OutcomeLine::default();
            }
            let n_times = 1 + is_repeat[i + 1..].iter().take_while(|is_repeat| **is_repeat).count();
            let text = self.row((step, i), call, n_times, level);
            OutcomeLine { is_own: level.includes(call, facts) && !text.is_empty(), text }
        };
        facts.calls.iter().enumerate().map(row).collect()
    }

    /// The line of a call that was made `n_times` in a row.
    fn row(&mut self, (step, i): (u32, usize), call: &CallFacts, n_times: usize, level: RowLevel) -> String {
        if call.kind == CallKind::Plan {
            return if level <= RowLevel::Short { plan_row(call) } else { String::new() };
        }
        let (mut max_command, max_outcome) = level.limits();
        // The text that a command inserts is nowhere else.
        let inserts_text = call.verb == "bash" && INSERTS_TEXT.iter().any(|name| call.subject.contains(name));
        if inserts_text && level <= RowLevel::Short {
            const MAX_INSERTED: usize = 600;
            max_command = MAX_INSERTED;
        }
        let mut details: Vec<String> = Vec::new();
        if call.kind == CallKind::Edit && !call.has_failed {
            let count =
                |lines: fn(&crate::facts::edits::Hunk) -> usize| call.hunks.iter().map(lines).sum::<usize>();
            let (added, removed) = (count(|hunk| hunk.added.len()), count(|hunk| hunk.removed.len()));
            details.extend((added + removed > 0).then(|| format!("+{added} −{removed}")));
        }
        details.extend((call.kind == CallKind::Write).then(|| format!("{} lines", call.written.len())));
        let shows_note = level <= RowLevel::Medium || call.kind != CallKind::Read;
        details.extend(self.standing.note(step, i).filter(|_| shows_note).map(str::to_owned));
        details.extend((n_times > 1).then(|| format!("{n_times} times")));
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join("; ")) };
        let subject = self.subject(call, max_command);
        let then = match call.then.as_str() {
            "" => String::new(),
            then => format!(", then `{}`", self.names.command(then, max_command)),
        };
        let space = if subject.is_empty() || subject.starts_with('(') { "" } else { " " };
        let outcome = shortened(&self.outcome((step, i), call), max_outcome);
        format!("{}{space}{subject}{details}{then}{outcome}", call.verb)
    }

    fn subject(&mut self, call: &CallFacts, max: usize) -> String {
        match (&call.path, call.kind) {
            (Some(path), CallKind::Read | CallKind::Edit | CallKind::Write)
                if call.subject.starts_with(path.as_str()) =>
            {
                self.names.short(path) + &shortened(&call.subject[path.len()..], max)
            }
            _ => {
                let (command, rest) = call.subject.split_once("` (script").unwrap_or((&call.subject, ""));
                let shown = self.names.command(command, max);
                if rest.is_empty() { shown } else { format!("{shown}` (script{rest}") }
            }
        }
    }

    /// The hits of a search in several files.
    fn hits(&mut self, call: &CallFacts) -> Option<String> {
        const MAX_FILES: usize = 6;
        let n_hits: usize = call.hits.iter().map(|(_, n)| n).sum();
        if call.hits.len() < 2 || n_hits <= 8 {
            return None;
        }
        let files =
            call.hits.iter().take(MAX_FILES).map(|(file, n)| format!("{} {n}", self.names.shorten(file)));
        let files: Vec<String> = files.collect();
        let more = call.hits.len().saturating_sub(MAX_FILES);
        let more = if more > 0 { format!(", {more} more files") } else { String::new() };
        Some(format!("{n_hits} hits: {}{more}", files.join(", ")))
    }

    /// How a call ended, with an arrow.
    fn outcome(&mut self, (step, i): (u32, usize), call: &CallFacts) -> String {
        if call.is_refused {
            return format!(" → {}", call.verdict);
        }
        if call.is_unanswered {
            return " → no result".to_owned();
        }
        let is_change =
            matches!(call.kind, CallKind::Edit) || call.kind == CallKind::Write && call.then.is_empty();
        if is_change && !call.has_failed {
            return String::new();
        }
        let mut parts: Vec<String> = Vec::new();
        let runs = matches!(call.kind, CallKind::Run | CallKind::Write);
        let is_repeated = self.standing.note(step, i).is_some_and(|note| note.starts_with(SAME_RESULT));
        parts.extend(call.exit.filter(|code| runs || *code != 0).map(|code| format!("exit {code}")));
        parts.extend(Some(call.verdict.clone()).filter(|verdict| !verdict.is_empty()));
        if call.has_failed && !call.errors.is_empty() {
            let known = self.failures.entry((call.verdict.clone(), call.errors.clone())).or_insert(step);
            let first = &call.errors[0];
            match *known != step && first.len() > 40 {
                true => parts.push(format!("same error as #{known}")),
                false if !call.verdict.contains(first.as_str()) => parts.push(shortened(first, 200)),
                false => {}
            }
        } else if call.verdict.is_empty() && !is_repeated {
            parts.extend(self.hits(call).or_else(|| size_of_result(call)));
        }
        if parts.is_empty() { String::new() } else { format!(" → {}", parts.join(", ")) }
    }
}

/// The commands that edit files in place.
const INSERTS_TEXT: [&str; 3] = ["sed -i", "perl -pi", "perl -i"];

/// The change of a plan: the task in progress, or the status of a task.
fn plan_row(call: &CallFacts) -> String {
    const MAX: usize = 70;
    let Some(plan) = &call.plan else { return String::new() };
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = ["todos", "plan", "tasks"].iter().find_map(|name| plan.get(*name)?.as_array());
    let is_current = |task: &&Value| text(task, "status").as_deref() == Some("in_progress");
    let current = list.and_then(|list| list.iter().find(is_current));
    let current = current.and_then(|task| text(task, "content").or_else(|| text(task, "step")));
    match (current, text(plan, "subject"), text(plan, "taskId"), text(plan, "status")) {
        (Some(current), ..) => format!("plan: {}", shortened(&current, MAX)),
        (None, Some(subject), ..) => format!("plan: new task {}", shortened(&subject, MAX)),
        (None, None, Some(id), Some(status)) => format!("plan: task {id} {}", status.replace('_', " ")),
        _ => String::new(),
    }
}

/// A short result, or its size.
fn size_of_result(call: &CallFacts) -> Option<String> {
    if let Some(line) = call.single_line.as_ref().filter(|_| call.kind != CallKind::List) {
        return Some(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let n = call.n_result_lines;
    match call.kind {
        CallKind::Ask if call.is_answer => None,
        CallKind::Run | CallKind::Write if n == 0 => Some("no output".to_owned()),
        CallKind::Search | CallKind::List if n == 0 => Some("nothing".to_owned()),
        CallKind::Search | CallKind::Run | CallKind::Other | CallKind::Ask | CallKind::List => {
            Some(match n {
                1 => format!("{} characters", thousands(call.n_result_chars as u64)),
                n => format!("{n} lines"),
            })
        }
        CallKind::Read | CallKind::Write | CallKind::Edit | CallKind::Plan => None,
    }
}

/// One line for several steps of an early part of the record: how often each kind of call was made, the changed files,
/// the last verdict.
pub(crate) fn coarse_row(steps: &[(u32, &StepFacts)], names: &PathNames) -> String {
    let mut counts: BTreeMap<(CallKind, &str), usize> = BTreeMap::new();
    let mut files: BTreeSet<&str> = BTreeSet::new();
    let mut read: BTreeSet<&str> = BTreeSet::new();
    let mut verdict = "";
    for call in steps.iter().flat_map(|(_, facts)| &facts.calls).filter(|call| !call.is_refused) {
        let tool = if call.kind == CallKind::Other { call.verb.as_str() } else { "" };
        *counts.entry((call.kind, tool)).or_default() += 1;
        if matches!(call.kind, CallKind::Edit | CallKind::Write) {
            files.extend(call.path.as_deref());
        }
        let names = call.reads.iter().filter_map(|read| read.path.rsplit('/').next());
        read.extend(names);
        if call.is_test || call.verdict.starts_with("committed ") {
            verdict = &call.verdict;
        }
    }
    let name = |kind: CallKind| match kind {
        CallKind::Run => ("command", "commands"),
        CallKind::Read => ("read", "reads"),
        CallKind::List => ("listing", "listings"),
        CallKind::Search => ("search", "searches"),
        CallKind::Edit => ("edit", "edits"),
        CallKind::Write => ("file written", "files written"),
        CallKind::Plan => ("plan update", "plan updates"),
        CallKind::Ask => ("question or subagent", "questions or subagents"),
        CallKind::Other => ("call", "calls"),
    };
    const MAX_READ: usize = 3;
    let read_names = match read.len() {
        0 => String::new(),
        1..=MAX_READ => format!(" ({})", read.iter().copied().collect::<Vec<_>>().join(", ")),
        _ => format!(" ({}, …)", read.iter().take(MAX_READ).copied().collect::<Vec<_>>().join(", ")),
    };
    let part = |(&(kind, tool), n): (&(CallKind, &str), &usize)| {
        let space = if tool.is_empty() { "" } else { " " };
        let names = if kind == CallKind::Read { read_names.as_str() } else { "" };
        format!("{n} {tool}{space}{}{names}", if *n == 1 { name(kind).0 } else { name(kind).1 })
    };
    if counts.len() > 1 {
        counts.remove(&(CallKind::Plan, ""));
    }
    let mut parts: Vec<String> = counts.iter().map(part).collect();
    if !files.is_empty() {
        let files: Vec<String> = files.iter().take(6).map(|path| names.shorten(path)).collect();
        parts.push(format!("changed {}", files.join(", ")));
    }
    if !verdict.is_empty() {
        parts.push(format!("last verdict: {verdict}"));
    }
    if parts.is_empty() { "text only".to_owned() } else { parts.join(", ") }
}
