//! The state after the last folded step: changed files, test runs, failures that are still open, commits, the plan.
//!
//! Every statement is counted or quoted from its newest evidence.

use serde_json::Value;

use crate::facts::{CallFacts, CallKind};
use crate::record::names::PathNames;
use crate::record::standing::{ChangedFile, NumberedStep, Standing};
use crate::text::words::one_line;

/// Statements about the state after a step, by subject: `tests`, with a text for each test command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSection {
    /// The subject.
    pub title: &'static str,
    /// The statements.
    pub items: Vec<String>,
}

/// A run of a command, with the step that it belongs to.
struct CommandRun<'a> {
    step: u32,
    call: &'a CallFacts,
    n_runs: usize,
    /// The first of the failures in a row that this one continues.
    fails_since: u32,
}

/// The state after the last of all steps.
pub(crate) fn work_state(
    steps: &[NumberedStep],
    standing: &Standing,
    names: &mut PathNames,
) -> Vec<StateSection> {
    let runs = newest_runs(steps);
    let (written, edited): (Vec<_>, Vec<_>) =
        standing.files.iter().partition(|file| file.n_written.is_some());
    let mut first = None;
    let sections = [
        ("changed", files(&edited, names, &mut first)),
        ("written", files(&written, names, &mut first)),
        ("tried and dropped", dropped(steps, standing, names)),
        ("tests", tests(&runs, standing, names)),
        ("open", open_failures(&runs, standing)),
        ("last commit", last_commit(steps).into_iter().collect()),
        ("plan", plan(steps)),
    ];
    let sections = sections.into_iter().map(|(title, items)| StateSection { title, items });
    sections.filter(|section| !section.items.is_empty()).collect()
}

/// The newest run of each command, in the order of these runs.
fn newest_runs(steps: &[NumberedStep]) -> Vec<CommandRun<'_>> {
    let mut runs: Vec<CommandRun<'_>> = Vec::new();
    for NumberedStep { number, facts, .. } in steps {
        for call in &facts.calls {
            let is_run = matches!(call.kind, CallKind::Run | CallKind::Write) && !command(call).is_empty();
            if !is_run || call.is_refused || call.is_unanswered {
                continue;
            }
            let earlier = runs.iter().position(|run| run.call.key == call.key).map(|at| runs.remove(at));
            let n_runs = earlier.as_ref().map_or(0, |earlier| earlier.n_runs) + 1;
            let is_same = |earlier: &CommandRun<'_>| earlier.call.errors.first() == call.errors.first();
            let fails_before = earlier.filter(|earlier| earlier.call.has_failed && is_same(earlier));
            let fails_since = fails_before.map_or(*number, |earlier| earlier.fails_since);
            runs.push(CommandRun { step: *number, call, n_runs, fails_since });
        }
    }
    runs
}

/// The command of a run; empty for a written file.
fn command(call: &CallFacts) -> &str {
    match call.kind {
        CallKind::Write => &call.then,
        _ => call.subject.split("` (script").next().unwrap_or_default().trim_matches('`'),
    }
}

/// Lists changed files. The folders that a path shares with the first one are left out: `…/store/mod.rs`.
fn files(files: &[&ChangedFile], names: &mut PathNames, first: &mut Option<String>) -> Vec<String> {
    const MAX_FILES: usize = 14;
    let mut files = files.to_vec();
    files.sort_by_key(|file| file.last_change);
    let n_more = files.len().saturating_sub(MAX_FILES);
    let shown = files[n_more..].iter().map(|file| {
        let first = first.get_or_insert_with(|| file.path.clone());
        let name = match shared_folders(first, &file.path) {
            Some(n) if *first != file.path => format!("…/{}", &file.path[n..]),
            _ => names.short(&file.path),
        };
        let (added, removed) = file.net();
        let lines =
            if (added, removed) == (0, 0) { String::new() } else { format!(" +{added} −{removed}") };
        let size = file.n_written.map(|n| format!(" {n} lines")).unwrap_or_default();
        let detail = match file.hidden_changes.as_slice() {
            [] => format!("#{}", file.last_change),
            hidden => newest_changes(hidden, file.last_change),
        };
        format!("{name}{size}{lines} ({detail})")
    });
    let more = (n_more > 0).then(|| format!("{n_more} earlier files"));
    more.into_iter().chain(shown).collect()
}

/// The newest changes of a file by scripts and commands, and the last change of all.
fn newest_changes(hidden: &[String], last: u32) -> String {
    const MAX_SHOWN: usize = 4;
    let n_old = hidden.len().saturating_sub(MAX_SHOWN);
    let mut shown = hidden[n_old..].to_vec();
    shown.dedup();
    let last = format!("#{last}");
    if !shown.iter().any(|change| change.split(' ').next() == Some(&last)) {
        shown.push(last);
    }
    let more = if n_old > 0 { "…, " } else { "" };
    format!("{more}{}", shown.join(", "))
}

/// The length of the folders that two paths share, if they are long.
fn shared_folders(one: &str, other: &str) -> Option<usize> {
    const LONG: usize = 20;
    let n = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let folders = other.as_bytes()[..n].iter().rposition(|byte| *byte == b'/')? + 1;
    (folders > LONG).then_some(folders)
}

/// Changes that were reverted, with the reason.
fn dropped(steps: &[NumberedStep], standing: &Standing, names: &mut PathNames) -> Vec<String> {
    const MAX_SHOWN: usize = 4;
    let n_old = standing.reverted.len().saturating_sub(MAX_SHOWN);
    let shown = standing.reverted[n_old..].iter().map(|change| {
        let step = steps.iter().find(|step| step.number == change.reverted_in);
        const SHORT: usize = 24;
        let reason = step.and_then(|step| step.facts.main_statement()).unwrap_or_default();
        let reason = if reason.len() < SHORT { String::new() } else { reason };
        let reason =
            if reason.is_empty() { reason } else { format!(": {}", shortened(&one_line(&reason), 120)) };
        format!("{} of #{} (#{}{reason})", names.short(&change.path), change.made_in, change.reverted_in)
    });
    shown.collect()
}

/// The newest run of each test command, newest first.
fn tests(runs: &[CommandRun<'_>], standing: &Standing, names: &PathNames) -> Vec<String> {
    const MAX_RUNS: usize = 3;
    let is_superseded = |at: usize| {
        runs[at].call.has_failed && runs[at + 1..].iter().any(|later| closes(later.call, runs[at].call))
    };
    let tests = runs.iter().enumerate().rev().filter(|(at, run)| run.call.is_test && !is_superseded(*at));
    let tests = tests.take(MAX_RUNS).map(|(_, run)| {
        let error = match run.call.errors.first() {
            Some(error) if run.call.has_failed => format!(": {}", shortened(error, 100)),
            _ => String::new(),
        };
        let command = shortened(&names.shorten(command(run.call)), 110);
        let is_stale = standing.files.iter().any(|file| file.last_change > run.step);
        let stale = if is_stale { ", files changed since" } else { "" };
        format!("`{command}` → {} (#{}{stale}{error})", run.call.verdict, run.step)
    });
    tests.collect()
}

/// Returns whether a run that succeeded shows that the failure of another one is gone: it ran the same program, or all of
/// its tests and more.
fn closes(later: &CallFacts, failed: &CallFacts) -> bool {
    let programs = |call: &CallFacts| -> Vec<String> {
        let parts = command(call).split(['&', ';', '|']).filter(|part| !part.trim().is_empty());
        let words = parts.map(|part| part.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        let is_program = |words: &String| {
            !["cd ", "echo", "export ", "source ", "set ", "tail", "head"]
                .iter()
                .any(|word| words.starts_with(word))
        };
        words.filter(is_program).collect()
    };
    if later.has_failed {
        return false;
    }
    let (later_programs, failed_programs) = (programs(later), programs(failed));
    let runs_same = [failed_programs.first(), failed_programs.last()]
        .into_iter()
        .flatten()
        .any(|program| later_programs.contains(program));
    let name = |programs: &[String]| programs.last().and_then(|it| it.split(' ').next().map(str::to_owned));
    let has_all = later.is_test
        && name(&later_programs) == name(&failed_programs)
        && later.n_tests >= failed.n_tests.max(1);
    runs_same || has_all
}

/// Failures of tests, and of commands that ran more than once, without a later success of the same command.
fn open_failures(runs: &[CommandRun<'_>], standing: &Standing) -> Vec<String> {
    const MAX_OPEN: usize = 3;
    let is_closed = |at: usize| runs[at + 1..].iter().any(|later| closes(later.call, runs[at].call));
    let is_open = |(at, run): &(usize, &CommandRun<'_>)| {
        run.call.has_failed && (run.call.is_test || run.n_runs > 1) && !is_closed(*at)
    };
    let mut shown: Vec<String> = Vec::new();
    for (_, run) in runs.iter().enumerate().filter(is_open) {
        let what = match (run.call.errors.first(), run.call.exit) {
            (Some(error), _) => shortened(error, 110),
            (None, _) if !run.call.verdict.is_empty() => run.call.verdict.clone(),
            (None, Some(code)) => format!("exit {code} of `{}`", shortened(command(run.call), 80)),
            (None, None) => continue,
        };
        let since = if run.fails_since == run.step { "" } else { "since " };
        let is_stale = standing.files.iter().any(|file| file.last_change > run.step);
        let stale = if is_stale { ", files changed since" } else { "" };
        let line = format!("{what} ({since}#{}{stale})", run.fails_since);
        if !shown.contains(&line) {
            shown.push(line);
        }
    }
    let n_old = shown.len().saturating_sub(MAX_OPEN);
    shown.split_off(n_old)
}

fn last_commit(steps: &[NumberedStep]) -> Option<String> {
    steps.iter().rev().find_map(|step| {
        let commit = step.facts.calls.iter().rev().find(|call| call.verdict.starts_with("committed "))?;
        Some(format!("{} (#{})", &commit.verdict["committed ".len()..], step.number))
    })
}

/// The newest state of the agent's own plan.
fn plan(steps: &[NumberedStep]) -> Vec<String> {
    const MAX_OPEN: usize = 6;
    let mut tasks: Vec<(String, String, String)> = Vec::new();
    for call in steps.iter().flat_map(|step| &step.facts.calls) {
        let Some(plan) = call.plan.as_ref().filter(|_| !call.has_failed && !call.is_refused) else {
            continue;
        };
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let list = ["todos", "plan", "tasks"].iter().find_map(|name| plan.get(*name)?.as_array());
        if let Some(list) = list {
            let task = |(i, task): (usize, &Value)| {
                let name =
                    text(task, "content").or_else(|| text(task, "step")).or_else(|| text(task, "title"))?;
                Some((i.to_string(), name, text(task, "status").unwrap_or_default()))
            };
            tasks = list.iter().enumerate().filter_map(task).collect();
        } else if let Some(subject) = text(plan, "subject") {
            let id = call.single_line.as_deref().and_then(task_number);
            tasks.push((id.unwrap_or_else(|| (tasks.len() + 1).to_string()), subject, "pending".to_owned()));
        } else if let (Some(id), Some(status)) = (text(plan, "taskId"), text(plan, "status")) {
            tasks.iter_mut().filter(|task| task.0 == id).for_each(|task| task.2.clone_from(&status));
        }
    }
    let is_done = |task: &&(String, String, String)| task.2 == "completed" || task.2 == "done";
    let n_done = tasks.iter().filter(is_done).count();
    let left = tasks.iter().filter(|task| !is_done(task) && task.2 != "deleted" && task.2 != "cancelled");
    let left = left.take(MAX_OPEN);
    let left = left.map(|(_, name, status)| format!("{}: {}", status.replace('_', " "), shortened(name, 90)));
    let done = (!tasks.is_empty()).then(|| format!("{n_done} done"));
    done.into_iter().chain(left).collect()
}

/// The number of a created task: `Task #3 created successfully`.
fn task_number(result: &str) -> Option<String> {
    let rest = result.split_once('#')?.1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// The beginning of a text, with a mark if it is cut.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}…", text[..text.floor_char_boundary(max)].trim_end())
}
