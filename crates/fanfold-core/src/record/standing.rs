//! Which edits still stand: later steps replace, rewrite, delete and revert them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::actions::tool_rule::ToolRule;
use crate::actions::{FileRead, is_same_file};
use crate::facts::{CallFacts, CallKind, StepFacts};
use crate::model::transcript::{EntryId, Transcript};
use crate::select::analysis::Analysis;

/// A step of a record: its number and its facts.
#[derive(Debug, Clone)]
pub(crate) struct NumberedStep {
    pub(crate) number: u32,
    pub(crate) entry: EntryId,
    pub(crate) facts: Arc<StepFacts>,
}

/// The steps before entry `end`, with their numbers.
pub(crate) fn numbered_steps(
    analysis: &mut Analysis,
    transcript: &Transcript,
    rules: &[ToolRule],
    end: usize,
) -> Vec<NumberedStep> {
    let ids = (0..end).map(EntryId::from);
    let facts = ids.filter_map(|id| Some((id, analysis.facts(transcript, rules, id)?)));
    (1..).zip(facts).map(|(number, (entry, facts))| NumberedStep { number, entry, facts }).collect()
}

/// The changes that stand after the last step, and notes on those that do not.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// The changed files, in the order of their first change.
    pub(crate) files: Vec<ChangedFile>,
    /// The changes that were reverted, in the order of their reversal.
    pub(crate) reverted: Vec<RevertedChange>,
    /// The last step that brings back what was stashed.
    last_pop: u32,
    /// For a call, by step number and index: what became of its changes, or that its result is elsewhere.
    notes: BTreeMap<(u32, usize), String>,
}

/// Calls that a later one may repeat.
#[derive(Default)]
struct EarlierCalls {
    reads: Vec<((u32, usize), FileRead)>,
    results: BTreeMap<u64, u32>,
}

/// The beginning of the note of a call whose result an earlier one had.
pub(crate) const SAME_RESULT: &str = "same result as #";

/// Changes of a file that were reverted.
#[derive(Debug)]
pub(crate) struct RevertedChange {
    pub(crate) path: String,
    /// The step of the last of these changes.
    pub(crate) made_in: u32,
    pub(crate) reverted_in: u32,
}

/// A changed file and its net changes.
#[derive(Debug, Default)]
pub(crate) struct ChangedFile {
    pub(crate) path: String,
    /// The lines that were added and not removed again.
    added: Vec<String>,
    /// The lines that were removed and not added again.
    removed: Vec<String>,
    /// The number of lines, if it was written as a whole.
    pub(crate) n_written: Option<usize>,
    /// The changes by scripts and commands whose lines are not known: `#48 by fix.py`.
    pub(crate) hidden_changes: Vec<String>,
    /// The step of the last change.
    pub(crate) last_change: u32,
    /// True if a command changed it whose lines are not known, such as `sed -i`.
    is_opaque: bool,
    /// The calls that changed it, with the lines that each of them added.
    calls: Vec<((u32, usize), Vec<String>)>,
}

impl ChangedFile {
    fn is_changed(&self) -> bool {
        self.n_written.is_some() || !self.hidden_changes.is_empty() || self.is_opaque || self.net() != (0, 0)
    }

    /// The numbers of added and removed lines.
    pub(crate) fn net(&self) -> (usize, usize) {
        (self.added.len(), self.removed.len())
    }
}

impl Standing {
    /// Follows the changes of steps in order.
    pub(crate) fn new(steps: &[NumberedStep]) -> Standing {
        let mut standing = Standing::default();
        let mut scripts: Vec<(String, Vec<String>)> = Vec::new();
        let pops = |step: &&NumberedStep| {
            step.facts
                .calls
                .iter()
                .any(|call| call.subject.contains("stash pop") || call.subject.contains("stash apply"))
        };
        standing.last_pop = steps.iter().rev().find(pops).map_or(0, |step| step.number);
        let mut earlier = EarlierCalls::default();
        for NumberedStep { number, facts, .. } in steps {
            for (i, call) in facts.calls.iter().enumerate() {
                if call.is_refused || call.is_unanswered {
                    continue;
                }
                let id = (*number, i);
                standing.find_repeats(call, id, &mut earlier);
                let is_change = matches!(call.kind, CallKind::Edit | CallKind::Write);
                if is_change && (!call.has_failed || call.kind == CallKind::Write && !call.then.is_empty()) {
                    standing.change(call, id);
                }
                if !call.script_targets.is_empty() {
                    let name =
                        call.path.as_deref().unwrap_or("a script").rsplit('/').next().unwrap_or_default();
                    scripts.retain(|(other, _)| other != name);
                    scripts.push((name.to_owned(), call.script_targets.clone()));
                }
                if !call.has_failed {
                    standing.run(call, id, &scripts);
                } else {
                    standing.delete_despite_failure(call, *number);
                    let scripts = scripts_before_failure(call, &scripts).unwrap_or_default();
                    standing.run_scripts(call, id, &scripts);
                }
            }
        }
        standing.files.retain(ChangedFile::is_changed);
        standing
    }

    /// The fate of a call's changes, if they do not stand: `rewritten in #9`.
    pub(crate) fn note(&self, step: u32, call: usize) -> Option<&str> {
        self.notes.get(&(step, call)).map(String::as_str)
    }

    /// Notes results that a later read shows again, and results that an earlier call had.
    fn find_repeats(&mut self, call: &CallFacts, id: (u32, usize), earlier: &mut EarlierCalls) {
        if call.has_failed {
            return;
        }
        // Confirmations of changes are alike.
        let is_change = matches!(call.kind, CallKind::Edit | CallKind::Write) && call.then.is_empty();
        if let Some(hash) = call.result_hash.filter(|_| call.kind != CallKind::Read && !is_change) {
            let first = *earlier.results.entry(hash).or_insert(id.0);
            if first != id.0 {
                self.notes.insert(id, format!("{SAME_RESULT}{first}"));
            }
        }
        if let ([read], CallKind::Read) = (call.reads.as_slice(), call.kind) {
            let is_repeated =
                |other: &FileRead| is_same_file(&other.path, &read.path) && read.lines.cover(other.lines);
            for (old, _) in earlier.reads.extract_if(.., |(_, other)| is_repeated(other)) {
                self.notes.insert(old, format!("read again in #{}", id.0));
            }
            earlier.reads.push((id, read.clone()));
        }
        if let (Some(path), CallKind::Write) = (&call.path, call.kind) {
            earlier.reads.retain(|(_, other)| !is_same_file(&other.path, path));
        }
    }

    fn file(&mut self, path: &str) -> &mut ChangedFile {
        let at = self.files.iter().position(|file| is_same_file(&file.path, path)).unwrap_or_else(|| {
            self.files.push(ChangedFile { path: path.to_owned(), ..ChangedFile::default() });
            self.files.len() - 1
        });
        &mut self.files[at]
    }

    fn change(&mut self, call: &CallFacts, id: (u32, usize)) {
        let Some(path) = &call.path else { return };
        let file = self.file(path);
        file.last_change = id.0;
        if call.kind == CallKind::Write {
            let old = std::mem::take(&mut file.calls);
            file.n_written = Some(call.written.len());
            (file.added, file.removed, file.hidden_changes) = (Vec::new(), Vec::new(), Vec::new());
            file.calls.push((id, Vec::new()));
            self.note_all(&old, &format!("rewritten in #{}", id.0));
            return;
        }
        file.is_opaque |= call.hunks.is_empty();
        for hunk in &call.hunks {
            for line in &hunk.removed {
                take(&mut file.added, line).unwrap_or_else(|| file.removed.push(line.clone()));
            }
            for line in &hunk.added {
                take(&mut file.removed, line).unwrap_or_else(|| file.added.push(line.clone()));
            }
        }
        let removed: Vec<&String> = call.hunks.iter().flat_map(|hunk| &hunk.removed).collect();
        let is_replaced = |added: &[String]| {
            let long: Vec<&String> = added.iter().filter(|line| line.trim().len() > 8).collect();
            let n_gone =
                long.iter().filter(|line| removed.iter().any(|gone| gone.trim() == line.trim())).count();
            n_gone * 2 > long.len()
        };
        let (old, kept) =
            std::mem::take(&mut file.calls).into_iter().partition(|(_, added)| is_replaced(added));
        file.calls = kept;
        let added = call.hunks.iter().flat_map(|hunk| hunk.added.clone()).collect();
        file.calls.push((id, added));
        self.note_all(&old, &format!("replaced in #{}", id.0));
    }

    /// Follows commands that delete, move or revert files, and scripts that change them.
    fn run(&mut self, call: &CallFacts, id: (u32, usize), scripts: &[(String, Vec<String>)]) {
        if !matches!(call.kind, CallKind::Run | CallKind::Write | CallKind::Edit)
            || call.verb != "bash" && call.then.is_empty()
        {
            return;
        }
        let command = if call.then.is_empty() { call.subject.trim_matches('`') } else { &call.then };
        let moves = || MOVE.captures_iter(command).filter_map(|found| found.get(1));
        let is_moved = |path: &str| {
            moves().any(|names| names.as_str().split_whitespace().any(|name| is_same_file(name, path)))
        };
        let is_own = |path: &&String| !path.starts_with("/tmp/") && !path.starts_with("/dev/");
        for path in call.changes.iter().filter(is_own).filter(|path| !is_moved(path)) {
            let file = self.file(path);
            (file.is_opaque, file.last_change) = (true, id.0);
            file.hidden_changes.push(format!("#{}", id.0));
        }
        for found in UNDO.captures_iter(command) {
            let names = found[2].split_whitespace().filter(|name| !name.starts_with('-'));
            self.undo(&found[1], &names.collect::<Vec<_>>(), id.0);
        }
        for found in MOVE.captures_iter(command) {
            let names = found[1].split_whitespace().filter(|name| !name.starts_with('-'));
            self.rename(&names.collect::<Vec<_>>(), id.0);
        }
        self.run_scripts(call, id, scripts);
    }

    /// Follows scripts that change files.
    fn run_scripts(&mut self, call: &CallFacts, id: (u32, usize), scripts: &[(String, Vec<String>)]) {
        let command = if call.then.is_empty() { call.subject.trim_matches('`') } else { &call.then };
        for (name, targets) in scripts.iter().filter(|_| !call.denies_change) {
            let is_run = call.path.is_none() && !call.script_targets.is_empty() && name == "a script"
                || RUNS.captures_iter(command).any(|found| found[1].rsplit('/').next() == Some(name));
            if !is_run {
                continue;
            }
            for target in targets {
                let file = self.file(target);
                file.hidden_changes.push(format!("#{} by {name}", id.0));
                file.last_change = id.0;
            }
        }
    }

    /// Follows `rm a b` that failed: it deletes the files that exist.
    fn delete_despite_failure(&mut self, call: &CallFacts, step: u32) {
        let command = if call.then.is_empty() { call.subject.trim_matches('`') } else { &call.then };
        for found in UNDO.captures_iter(command).filter(|found| found[1].starts_with("rm")) {
            let is_kept = |name: &str| {
                call.errors.iter().any(|error| error.contains("cannot remove") && error.contains(name))
            };
            let names = found[2].split_whitespace().filter(|name| !name.starts_with('-') && !is_kept(name));
            self.undo(&found[1], &names.collect::<Vec<_>>(), step);
        }
    }

    /// Follows `mv a b` and `mv a b folder/`.
    fn rename(&mut self, names: &[&str], step: u32) {
        let Some((target, sources)) = names.split_last() else { return };
        let is_folder = target.ends_with('/') || sources.len() > 1;
        for source in sources {
            let name = source.rsplit('/').next().unwrap_or_default();
            let to = if is_folder {
                format!("{}/{name}", target.trim_end_matches('/'))
            } else {
                (*target).to_owned()
            };
            self.files.retain(|file| !is_same_file(&file.path, &to) || is_same_file(&file.path, source));
            if let Some(file) = self.files.iter_mut().find(|file| is_same_file(&file.path, source)) {
                (file.path, file.last_change) = (to, step);
            }
        }
    }

    fn undo(&mut self, word: &str, names: &[&str], step: u32) {
        let (is_delete, is_stash) = (word.starts_with("rm"), word.contains("stash"));
        let saves = |name: &&str| matches!(*name, "push" | "save");
        if is_stash && (self.last_pop >= step || names.iter().any(|name| !saves(name))) {
            return;
        }
        let is_meant = |file: &ChangedFile| {
            is_stash
                || names.iter().any(|name| {
                    let folder = name.trim_end_matches(['/', '*']);
                    *name == "."
                        || is_same_file(&file.path, name)
                        || file.path.ends_with(&format!("/{name}"))
                        || !folder.is_empty() && file.path.starts_with(&format!("{folder}/"))
                })
        };
        // A new branch is no undo.
        if word.contains("checkout") && names.is_empty() {
            return;
        }
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.files).into_iter().partition(is_meant);
        self.files = kept;
        let fate = if is_delete { "deleted" } else { "reverted" };
        for file in gone {
            self.note_all(&file.calls, &format!("{fate} in #{step}"));
            if !is_delete && file.is_changed() && file.last_change < step {
                let made_in = file.last_change;
                self.reverted.push(RevertedChange { path: file.path, made_in, reverted_in: step });
            }
        }
    }

    fn note_all(&mut self, calls: &[((u32, usize), Vec<String>)], note: &str) {
        for (id, _) in calls {
            self.notes.entry(*id).or_insert_with(|| note.to_owned());
        }
    }
}

/// The scripts that ran before another command of a call failed.
fn scripts_before_failure(
    call: &CallFacts,
    scripts: &[(String, Vec<String>)],
) -> Option<Vec<(String, Vec<String>)>> {
    let command = if call.then.is_empty() { call.subject.trim_matches('`') } else { &call.then };
    let (first, _) = command.rsplit_once("&&").or_else(|| command.rsplit_once(" ; "))?;
    let has_run = |name: &str| first.contains(name) && !call.errors.iter().any(|error| error.contains(name));
    let known = !call.errors.is_empty();
    Some(scripts.iter().filter(|(name, _)| known && has_run(name)).cloned().collect())
}

/// Removes a line from a list, if it is there.
fn take(lines: &mut Vec<String>, line: &str) -> Option<()> {
    let at = lines.iter().position(|other| other.trim() == line.trim())?;
    lines.swap_remove(at);
    Some(())
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

pattern!(
    UNDO,
    r"(?:^|[;&|] *)(git checkout(?: --)?|git restore(?: --staged)?|git stash|rm(?: -\w+)*)((?: +[^\s;&|]+)*)"
);
pattern!(MOVE, r"(?:^|[;&] *)(?:git )?mv((?: +[^\s;&|]+)+)");
pattern!(RUNS, r"(?:python[\d.]*|node|sh|bash|ruby|\./) *([\w./-]+)");

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::notation::parse;

    fn check(conversation: &str, expected: &Expect) {
        let entries = parse(conversation).expect("the notation is right");
        let steps = entries.iter().filter_map(|entry| entry.step());
        let steps: Vec<_> = (1..)
            .zip(steps)
            .map(|(number, step)| NumberedStep {
                number,
                entry: EntryId(0),
                facts: Arc::new(StepFacts::new(step, false, &[])),
            })
            .collect();
        let standing = Standing::new(&steps);
        let mut out = String::new();
        for file in &standing.files {
            out +=
                &format!("{} {:?} {:?} {:?}\n", file.path, file.net(), file.n_written, file.hidden_changes);
        }
        for ((step, call), note) in &standing.notes {
            out += &format!("#{step}.{} {note}\n", call + 1);
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn changes_are_net() {
        check(
            r#"
call    Edit {"file_path":"src/a.rs","old_string":"one","new_string":"two"}
result  ok
call    Edit {"file_path":"src/a.rs","old_string":"two","new_string":"three"}
result  ok
call    Edit {"file_path":"src/b.rs","old_string":"x","new_string":"y"}
result  ok
call    Edit {"file_path":"src/b.rs","old_string":"y","new_string":"x"}
result  ok
call    Write {"file_path":"c.py","content":"a\nb"}
result  ok
call    Write {"file_path":"c.py","content":"a\nb\nc"}
result  ok
call    Edit {"file_path":"src/d.rs","old_string":"x","new_string":"y"}
result  ok
call    bash {"command":"git checkout src/d.rs && rm c.py"}
result  ok
call    bash {"command":"cat <<'EOF' > fix.py\nopen('src/e.py', 'w').write('x')\nEOF\npython fix.py"}
result  ok
call    bash {"command":"sed -i 's/a/b/' src/f.py"}
result  <returncode>0</returncode>
call    bash {"command":"cat <<'EOF' > g.py\nx = 1\nEOF"}
result  <returncode>0</returncode>
call    bash {"command":"mkdir tools && mv fix.py g.py tools/ && sed -i 's/b/c/' src/h.py && pytest -q"}
result  <returncode>0</returncode>
"#,
            &expect![[r##"
                src/a.rs (1, 1) None []
                tools/fix.py (0, 0) Some(1) []
                src/e.py (0, 0) None ["#9 by fix.py"]
                src/f.py (0, 0) None []
                tools/g.py (0, 0) Some(1) []
                tools (0, 0) None ["#12"]
                src/h.py (0, 0) None ["#12"]
                #5.1 rewritten in #6
                #6.1 deleted in #8
                #7.1 reverted in #8
            "##]],
        );
    }
}
