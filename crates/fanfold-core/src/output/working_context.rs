//! What the agent has seen and done so far: the working context.
//!
//! It rides at the very end of a view, so that the cached prefix never changes with it.

use std::collections::BTreeMap;
use std::fmt;

use crate::actions::{Action, LineRange, ReadLines, Verb, Verdict, call_status, parse_action_with_rules};
use crate::fold::ledger::Ledger;
use crate::fold::policy::Policy;
use crate::model::location::Place;
use crate::model::transcript::{CallId, EntryId, Transcript};

/// What the agent has seen and done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkingContext {
    /// Files that were looked at, newest last.
    pub files: Vec<FileSeen>,
    /// Files that were changed, newest last.
    pub edited: Vec<String>,
    /// The newest verdict of each test run: the command, and how it ended.
    pub verdicts: Vec<(String, String)>,
    /// Errors of commands whose newest run failed.
    pub open_errors: Vec<String>,
    /// The newest look at the state of the repository.
    pub git: Option<String>,
}

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// The file.
    pub path: String,
    /// Whether the whole of it was seen.
    pub is_whole: bool,
    /// The lines that were seen, as a set of ranges that do not touch.
    pub ranges: Vec<LineRange>,
    /// Whether what was seen still stands in the view word for word.
    pub is_visible: bool,
    /// Whether it was changed since it was last looked at.
    pub is_changed_since: bool,
    /// How often it was looked at.
    pub n_reads: usize,
    last: usize,
}

/// The working context of a conversation as its ledger shows it.
pub fn working_context(transcript: &Transcript, ledger: &Ledger, policy: &Policy) -> WorkingContext {
    let mut seen: BTreeMap<String, FileSeen> = BTreeMap::new();
    let mut context = WorkingContext::default();
    let mut runs: BTreeMap<String, (usize, Option<String>)> = BTreeMap::new();
    let mut verdicts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let Some(step) = entry.step() else { continue };
        for (n, call) in step.calls.iter().enumerate() {
            let Some(outcome) = &call.result else { continue };
            let id = CallId { step: EntryId::from(i), call: n as u16 };
            let deed = parse_action_with_rules(&policy.tools, call);
            let ending = call_status(&deed, outcome);
            let has_failed = ending.verdict == Verdict::Failed;
            if !has_failed {
                see(&mut seen, &deed, i, is_visible(ledger, id));
                change(&mut seen, &mut context.edited, &deed);
            }
            if deed.verb == Verb::Run {
                runs.insert(deed.target.clone(), (i, ending.error.clone().filter(|_| has_failed)));
            }
            if deed.is_test {
                let told = match (ending.tests, has_failed) {
                    (Some(tests), _) => format!("{} passed, {} failed", tests.passed, tests.failed),
                    (None, true) => "failed".to_owned(),
                    (None, false) => "passed".to_owned(),
                };
                verdicts.insert(deed.target.clone(), (i, told));
            }
            if deed.target.starts_with("git ") && deed.verb == Verb::Run {
                context.git = Some(format!("{} ({} lines)", deed.target, ending.n_lines));
            }
        }
    }
    context.files = seen.into_values().collect();
    context.files.sort_by_key(|file| file.last);
    let mut verdicts: Vec<_> = verdicts.into_iter().map(|(run, (at, told))| (at, run, told)).collect();
    verdicts.sort();
    context.verdicts = verdicts.into_iter().map(|(_, run, told)| (run, told)).collect();
    let mut errors: Vec<_> = runs.into_values().filter_map(|(at, error)| Some((at, error?))).collect();
    errors.sort();
    context.open_errors = errors.into_iter().map(|(_, error)| error).collect();
    context
}

fn is_visible(ledger: &Ledger, id: CallId) -> bool {
    let is_folded = ledger.fold_at(Place::Result(id)).is_some();
    !is_folded && !ledger.is_in_segment(id.step)
}

fn see(seen: &mut BTreeMap<String, FileSeen>, deed: &Action, at: usize, is_visible: bool) {
    for sight in &deed.reads {
        let file = seen.entry(sight.path.clone()).or_insert_with(|| FileSeen {
            path: sight.path.clone(),
            is_whole: false,
            ranges: Vec::new(),
            is_visible: false,
            is_changed_since: false,
            n_reads: 0,
            last: at,
        });
        // What was seen before a change, or is folded by now, is not what is visible.
        if file.is_changed_since || !file.is_visible {
            file.ranges.clear();
            file.is_whole = false;
        }
        match sight.lines {
            ReadLines::All => file.is_whole = true,
            ReadLines::Range(range) => file.ranges = with_range(&file.ranges, range),
            ReadLines::Unknown => {}
        }
        file.is_visible = is_visible;
        file.is_changed_since = false;
        file.n_reads += 1;
        file.last = at;
    }
}

fn change(seen: &mut BTreeMap<String, FileSeen>, edited: &mut Vec<String>, deed: &Action) {
    for path in &deed.changes {
        if let Some(file) = seen.get_mut(path) {
            file.is_changed_since = true;
        }
        edited.retain(|other| other != path);
        edited.push(path.clone());
    }
}

/// A set of ranges with one more in it; ranges that touch become one.
fn with_range(ranges: &[LineRange], range: LineRange) -> Vec<LineRange> {
    let mut all = ranges.to_vec();
    all.push(range);
    all.sort();
    let mut out: Vec<LineRange> = Vec::new();
    for range in all {
        match out.last_mut() {
            Some(last) if range.first <= last.last.saturating_add(1) => last.last = last.last.max(range.last),
            _ => out.push(range),
        }
    }
    out
}

impl fmt::Display for FileSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if !self.is_whole && !self.ranges.is_empty() {
            let range = |range: &LineRange| match range.last {
                u32::MAX => format!("{}–end", range.first),
                last => format!("{}–{last}", range.first),
            };
            write!(f, " lines {}", self.ranges.iter().map(range).collect::<Vec<_>>().join(", "))?;
        }
        if self.n_reads > 1 {
            write!(f, ", read {} times", self.n_reads)?;
        }
        match (self.is_changed_since, self.is_visible) {
            (true, _) => f.write_str("; changed since: read again before editing"),
            (false, true) => Ok(()),
            (false, false) => f.write_str("; folded: read again before editing"),
        }
    }
}

impl fmt::Display for WorkingContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 20;
        let mut section = |title: &str, lines: Vec<String>| {
            if lines.is_empty() {
                return Ok(());
            }
            writeln!(f, "{title}:")?;
            let surplus = lines.len().saturating_sub(MOST);
            lines[surplus..].iter().try_for_each(|line| writeln!(f, "- {line}"))
        };
        section("files seen", self.files.iter().map(FileSeen::to_string).collect())?;
        section("files changed", self.edited.clone())?;
        section(
            "last test runs",
            self.verdicts.iter().map(|(run, told)| format!("{run}: {told}")).collect(),
        )?;
        section("open errors", self.open_errors.clone())?;
        section("repository", self.git.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::model::budget::Budget;
    use crate::model::tokens::{Tokens, Words};
    use crate::notation::parse;
    use crate::session::Session;

    fn check(conversation: &str, expected: &Expect) {
        let budget = Budget::with_reserve(Tokens(1_000), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        for entry in parse(conversation).expect("the notation is right") {
            session.append(entry);
        }
        let context = working_context(session.transcript(), session.ledger(), session.policy());
        expected.assert_eq(&context.to_string());
    }

    #[test]
    fn ranges_are_sets_and_changes_are_seen() {
        check(
            r#"
call    Read {"file_path":"src/a.rs","offset":1,"limit":10}
result  one
call    Read {"file_path":"src/a.rs","offset":900,"limit":11}
result  nine hundred
call    Read {"file_path":"src/b.rs"}
result  all of it
call    Edit {"file_path":"src/b.rs","old_string":"all","new_string":"none"}
result  ok
call    Bash {"command":"cargo test"}
result  test result: FAILED. 3 passed; 1 failed; 0 ignored
"#,
            &expect![[r#"
                files seen:
                - src/a.rs lines 1–10, 900–910, read 2 times
                - src/b.rs; changed since: read again before editing
                files changed:
                - src/b.rs
                last test runs:
                - cargo test: 3 passed, 1 failed
                open errors:
                - test result: FAILED. 3 passed; 1 failed; 0 ignored
            "#]],
        );
    }

    #[test]
    fn nothing_seen_says_nothing() {
        check("user    hello", &expect![""]);
    }
}
