//! The working context: the files that the agent has seen and changed, the newest test runs and the open errors.
//!
//! It is appended at the end of a view, so that it does not change the cached prefix.

use std::collections::BTreeMap;
use std::fmt;

use crate::actions::{Action, LineRange, ReadLines, Verb, Verdict, call_status, parse_action_with_rules};
use crate::fold::ledger::Ledger;
use crate::fold::policy::Policy;
use crate::model::location::Place;
use crate::model::transcript::{CallId, EntryId, Transcript};
use crate::record::names::PathNames;
use crate::record::standing::{Standing, numbered_steps};
use crate::record::state::{StateSection, work_state};
use crate::select::analysis::Analysis;

/// A summary of the agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkingContext {
    /// The files that were read, newest last.
    pub files: Vec<SeenFile>,
    /// The state of the work: changed files, test runs, open failures. The record states the same.
    pub state: Vec<StateSection>,
    /// The newest git command and the number of lines that it printed.
    pub git: Option<String>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// The path of the file.
    pub path: String,
    /// True if the whole file was read.
    pub is_whole: bool,
    /// The lines that were read, as disjoint ranges that are not adjacent.
    pub ranges: Vec<LineRange>,
    /// True if the newest read is in the view verbatim.
    pub is_visible: bool,
    /// True if the file was changed since it was last read.
    pub is_changed_since: bool,
    /// The number of reads.
    pub n_reads: usize,
    /// The index of the entry with the newest read.
    last_read_at: usize,
}

/// Computes the working context of a conversation. The ledger determines the visibility of files.
pub fn working_context(transcript: &Transcript, ledger: &Ledger, policy: &Policy) -> WorkingContext {
    let mut seen: BTreeMap<String, SeenFile> = BTreeMap::new();
    let mut context = WorkingContext::default();
    for (i, entry) in transcript.entries().iter().enumerate() {
        let Some(step) = entry.step() else { continue };
        for (n, call) in step.calls.iter().enumerate() {
            let Some(outcome) = &call.result else { continue };
            let id = CallId { step: EntryId::from(i), call: n as u16 };
            let deed = parse_action_with_rules(&policy.tools, call);
            let status = call_status(&deed, outcome);
            let has_failed = status.verdict == Verdict::Failed;
            if !has_failed {
                record_reads(&mut seen, &deed, i, is_visible(ledger, id));
                record_changes(&mut seen, &deed);
            }
            if deed.target.starts_with("git ") && deed.verb == Verb::Run {
                context.git = Some(format!("{} ({} lines)", deed.target, status.n_lines));
            }
        }
    }
    context.files = seen.into_values().collect();
    context.files.sort_by_key(|file| file.last_read_at);
    context.state = state(transcript, policy);
    context
}

/// The state after the last step.
fn state(transcript: &Transcript, policy: &Policy) -> Vec<StateSection> {
    let mut analysis = Analysis::default();
    let steps = numbered_steps(&mut analysis, transcript, &policy.tools, transcript.len());
    work_state(&steps, &Standing::new(&steps), &mut PathNames::new(&steps))
}

fn is_visible(ledger: &Ledger, id: CallId) -> bool {
    let is_folded = ledger.fold_at(Place::Result(id)).is_some();
    !is_folded && !ledger.is_in_segment(id.step)
}

fn record_reads(seen: &mut BTreeMap<String, SeenFile>, deed: &Action, at: usize, is_visible: bool) {
    for read in &deed.reads {
        let file = seen.entry(read.path.clone()).or_insert_with(|| SeenFile {
            path: read.path.clone(),
            is_whole: false,
            ranges: Vec::new(),
            is_visible: false,
            is_changed_since: false,
            n_reads: 0,
            last_read_at: at,
        });
        // Ranges that were read before a change, or whose reads are folded, are out of date.
        if file.is_changed_since || !file.is_visible {
            file.ranges.clear();
            file.is_whole = false;
        }
        match read.lines {
            ReadLines::All => file.is_whole = true,
            ReadLines::Range(range) => file.ranges = with_range(&file.ranges, range),
            ReadLines::Unknown => {}
        }
        file.is_visible = is_visible;
        file.is_changed_since = false;
        file.n_reads += 1;
        file.last_read_at = at;
    }
}

fn record_changes(seen: &mut BTreeMap<String, SeenFile>, deed: &Action) {
    for path in &deed.changes {
        if let Some(file) = seen.get_mut(path) {
            file.is_changed_since = true;
        }
    }
}

/// Adds a range to a set of ranges. Overlapping and adjacent ranges are merged.
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

impl fmt::Display for SeenFile {
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
        section("files seen", self.files.iter().map(SeenFile::to_string).collect())?;
        for StateSection { title, items } in &self.state {
            section(title, items.clone())?;
        }
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
    fn lists_merged_ranges_and_later_changes() {
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
                changed:
                - src/b.rs +1 −1 (#4)
                tests:
                - `cargo test` → 1 failed, 3 passed (#5: test result: FAILED. 3 passed; 1 failed; 0 ignored)
                open:
                - test result: FAILED. 3 passed; 1 failed; 0 ignored (#5)
            "#]],
        );
    }

    #[test]
    fn is_empty_without_tool_calls() {
        check("user    hello", &expect![""]);
    }
}
