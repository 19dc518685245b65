//! The facts of a step: what the agent stated, which calls it made, and how each of them ended.

pub(crate) mod prose; //      statements of the agent
pub(crate) mod edits; //      removed and added lines
mod shell_text; //            shell commands in one line
pub(crate) mod results; //    results line by line

use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::actions::tool_rule::ToolRule;
use crate::actions::{
    Action, FileRead, ReadLines, Verb, Verdict, call_status, is_same_file, parse_action_with_rules,
    shell_command,
};
use crate::facts::edits::{Hunk, changed_lines, hunks, patch_hunks};
use crate::facts::prose::{Statement, statements};
use crate::facts::results::{hit_of, unwrap_result};
use crate::facts::shell_text::ShellText;
use crate::model::transcript::{Call, Step};
use crate::text::words::one_line;

/// The facts of a step.
#[derive(Debug, Default)]
pub(crate) struct StepFacts {
    /// The texts of the agent: the text of the reply, and arguments that hold thoughts.
    pub(crate) texts: Vec<AgentText>,
    /// True if the text is addressed to the user: the step has no calls, and no harness answers it.
    pub(crate) is_report: bool,
    pub(crate) calls: Vec<CallFacts>,
}

/// A text of the agent with its statements.
#[derive(Debug)]
pub(crate) struct AgentText {
    pub(crate) text: Arc<str>,
    pub(crate) statements: Vec<Statement>,
}

/// The kind of a call, which decides what its entry in the record shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum CallKind {
    /// Runs a command.
    Run,
    /// Reads a file.
    Read,
    /// Lists files.
    List,
    /// Searches.
    Search,
    /// Changes a part of a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Updates a plan.
    Plan,
    /// Asks a person or another agent.
    Ask,
    /// Anything else.
    #[default]
    Other,
}

impl CallKind {
    /// Returns whether it only looks at something, so that it can be repeated.
    pub(crate) fn is_look(self) -> bool {
        matches!(self, CallKind::Read | CallKind::List | CallKind::Search | CallKind::Plan)
    }
}

/// The facts of a call.
#[derive(Debug, Default)]
pub(crate) struct CallFacts {
    pub(crate) kind: CallKind,
    /// The first word of its line in the record: `bash`, `read`, `wrote`, the name of a tool.
    pub(crate) verb: String,
    /// The object of the verb: a command in backquotes, a path with a range, arguments.
    pub(crate) subject: String,
    /// The file that was read, edited or written.
    pub(crate) path: Option<String>,
    /// The files that were read, with their lines.
    pub(crate) reads: Vec<FileRead>,
    /// The files that a command changed besides, as far as that is known.
    pub(crate) changes: Vec<String>,
    /// The command that runs after a file was written in the same call.
    pub(crate) then: String,
    /// Identifies calls that do the same, so that a later one supersedes an earlier one.
    pub(crate) key: String,
    /// The exit code.
    pub(crate) exit: Option<i32>,
    /// The verdict in the words of the program.
    pub(crate) verdict: String,
    /// True if it ran tests and printed their result.
    pub(crate) is_test: bool,
    /// The number of tests that passed or failed.
    pub(crate) n_tests: u32,
    /// True if the result reports a failure.
    pub(crate) has_failed: bool,
    /// True if the output says that nothing was changed.
    pub(crate) denies_change: bool,
    /// True if a person refused the call, so that nothing ran.
    pub(crate) is_refused: bool,
    /// The deciding error lines, the most telling first.
    pub(crate) errors: Vec<String>,
    pub(crate) hunks: Vec<Hunk>,
    /// The lines of a written file or of a script.
    pub(crate) written: Vec<String>,
    /// The files that the written script opens for writing.
    pub(crate) script_targets: Vec<String>,
    /// The number of the first line of the result in its file.
    pub(crate) first_line: Option<u32>,
    /// True if the result is the answer of a person to a question.
    pub(crate) is_answer: bool,
    /// True if the call has no result.
    pub(crate) is_unanswered: bool,
    /// The hash of a result that is not short.
    pub(crate) result_hash: Option<u64>,
    pub(crate) n_result_lines: usize,
    pub(crate) n_result_chars: usize,
    /// The result, if it is one short line.
    pub(crate) single_line: Option<String>,
    /// The number of hits of a search by file, most first.
    pub(crate) hits: Vec<(String, usize)>,
    /// The arguments of a plan.
    pub(crate) plan: Option<Value>,
    /// True if the call before it in its step made the same change with the same outcome.
    pub(crate) repeats_previous: bool,
}

impl StepFacts {
    pub(crate) fn new(step: &Step, is_report: bool, rules: &[ToolRule]) -> StepFacts {
        let mut texts: Vec<Arc<str>> = Vec::new();
        if !step.text.is_empty() {
            texts.push(step.text.as_str().into());
        }
        let mut calls: Vec<CallFacts> = step.calls.iter().map(|call| CallFacts::new(call, rules)).collect();
        for i in 1..calls.len() {
            calls[i].repeats_previous = calls[i].is_same_change(&calls[i - 1]);
        }
        for call in &step.calls {
            let arguments = parse_object(call.arguments.as_str());
            let thoughts = ["thought", "plan", "reason", "reasoning"];
            texts.extend(thoughts.iter().filter_map(|name| Some(arguments.get(*name)?.as_str()?.into())));
        }
        let text = |text: Arc<str>| AgentText { statements: statements(&text, is_report), text };
        StepFacts { texts: texts.into_iter().map(text).collect(), is_report, calls }
    }
}

impl StepFacts {
    /// The statement with the most value.
    pub(crate) fn main_statement(&self) -> Option<String> {
        let text = self.texts.first()?;
        let best = text.statements.iter().max_by(|one, other| one.value.total_cmp(&other.value))?;
        Some(text.text[best.range.clone()].to_owned())
    }
}

fn parse_object(arguments: &str) -> Map<String, Value> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

impl CallFacts {
    /// Returns whether a call changes the same file by the same lines with the same outcome, perhaps in another place.
    fn is_same_change(&self, other: &CallFacts) -> bool {
        let outcome = |call: &CallFacts| (call.exit, call.has_failed, call.is_refused, call.is_unanswered);
        self.kind == CallKind::Edit
            && other.kind == CallKind::Edit
            && (&self.path, &self.subject, &self.then) == (&other.path, &other.subject, &other.then)
            && (self.hunks == other.hunks || self.has_failed)
            && outcome(self) == outcome(other)
            && (&self.verdict, &self.errors) == (&other.verdict, &other.errors)
    }

    pub(crate) fn new(call: &Call, rules: &[ToolRule]) -> CallFacts {
        let action = parse_action_with_rules(rules, call);
        let mut facts = match shell_command(&call.tool, call.arguments.as_str()) {
            Some(command) => CallFacts::from_shell(&command, &action),
            None => CallFacts::from_arguments(call, &action),
        };
        if facts.key.is_empty() {
            facts.key = format!("{} {}", facts.verb, facts.subject);
        }
        facts.read_result(call, &action);
        facts
    }

    fn from_shell(command: &str, action: &Action) -> CallFacts {
        let text = ShellText::parse(command);
        let written: Vec<String> =
            text.bodies.iter().flat_map(|body| body.lines().map(str::to_owned)).collect();
        let mut facts = CallFacts {
            kind: CallKind::Run,
            verb: "bash".to_owned(),
            script_targets: script_targets(&written),
            written,
            ..CallFacts::default()
        };
        if let Some(path) = text.written_file {
            facts.kind = CallKind::Write;
            facts.verb = "wrote".to_owned();
            facts.subject.clone_from(&path);
            if text.is_appended {
                facts.kind = CallKind::Edit;
                facts.verb = "appended to".to_owned();
                facts.hunks = changed_lines("", &std::mem::take(&mut facts.written).join("\n"));
            }
            let is_other = |change: &&String| !is_same_file(change, &path);
            facts.changes = action.changes.iter().filter(is_other).cloned().collect();
            facts.path = Some(path);
            facts.then = text.then;
            facts.key = if facts.then.is_empty() { facts.subject.clone() } else { facts.then.clone() };
            return facts;
        }
        let is_simple = !text.flat.contains("&&") && !text.flat.contains(';') && text.bodies.is_empty();
        facts.kind = match action.verb {
            Verb::Read if is_simple && action.shows_file() => CallKind::Read,
            Verb::List if is_simple => CallKind::List,
            Verb::Search if is_simple => CallKind::Search,
            Verb::Edit => CallKind::Edit,
            _ => CallKind::Run,
        };
        facts.key = [&text.flat, &text.bodies.concat()].map(String::as_str).concat();
        facts.subject = format!("`{}`", text.flat);
        facts.changes =
            action.changes.iter().skip(usize::from(facts.kind == CallKind::Edit)).cloned().collect();
        match facts.kind {
            CallKind::Read => facts.set_read(action),
            CallKind::Edit => {
                facts.path = action.changes.first().cloned();
                facts.hunks = patch_hunks(command);
            }
            _ if !facts.written.is_empty() => {
                facts.subject.push_str(&format!(" (script of {} lines)", facts.written.len()));
            }
            _ => {}
        }
        facts
    }

    fn set_read(&mut self, action: &Action) {
        let name = |read: &FileRead| match read.lines {
            ReadLines::Range(range) if range.last == u32::MAX => format!("{} {}-", read.path, range.first),
            ReadLines::Range(range) => format!("{} {}-{}", read.path, range.first, range.last),
            ReadLines::All | ReadLines::Unknown => read.path.clone(),
        };
        self.verb = "read".to_owned();
        self.subject = action.reads.iter().map(name).collect::<Vec<_>>().join(", ");
        self.path = action.reads.first().map(|read| read.path.clone());
        self.reads.clone_from(&action.reads);
        self.first_line = match action.reads.as_slice() {
            [read] => read.lines.first(),
            _ => None,
        };
    }

    fn from_arguments(call: &Call, action: &Action) -> CallFacts {
        let arguments = parse_object(call.arguments.as_str());
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let mut facts = CallFacts { verb: one_line(&call.tool).into_owned(), ..CallFacts::default() };
        let file_hunks =
            if arguments.is_empty() { patch_hunks(call.arguments.as_str()) } else { hunks(&arguments) };
        let content = ["content", "contents", "file_text"].iter().find_map(|name| text(name));
        match action.verb {
            Verb::Read if action.shows_file() => {
                facts.kind = CallKind::Read;
                facts.set_read(action);
            }
            Verb::Edit | Verb::Write if content.is_some() && file_hunks.is_empty() => {
                facts.kind = CallKind::Write;
                facts.verb = "wrote".to_owned();
                facts.subject.clone_from(&action.target);
                facts.path = action.changes.first().cloned();
                facts.written = content.unwrap_or_default().lines().map(str::to_owned).collect();
                facts.script_targets = script_targets(&facts.written);
            }
            Verb::Edit | Verb::Write => {
                facts.kind = CallKind::Edit;
                facts.verb = "edited".to_owned();
                facts.subject =
                    if action.changes.is_empty() { action.target.clone() } else { action.changes.join(", ") };
                facts.path = action.changes.first().cloned();
                facts.hunks = match content {
                    Some(content) => changed_lines("", content),
                    None => file_hunks,
                };
            }
            Verb::Search | Verb::List => {
                facts.kind = if action.verb == Verb::List { CallKind::List } else { CallKind::Search };
                facts.verb = facts.verb.to_lowercase();
                let scope = action.scope.as_ref().map(|scope| format!(" in {scope}")).unwrap_or_default();
                let more = ["glob", "type", "output_mode"].iter().filter_map(|name| text(name));
                let more: Vec<&str> = more.filter(|more| !scope.ends_with(more)).collect();
                let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
                facts.subject = format!("`{}`{scope}{more}", one_line(&action.target));
            }
            Verb::Plan => {
                facts.kind = CallKind::Plan;
                facts.subject.clone_from(&action.target);
                facts.plan = Some(Value::Object(arguments));
            }
            Verb::Ask => {
                facts.kind = CallKind::Ask;
                facts.is_answer = arguments.contains_key("questions") || arguments.contains_key("question");
                let who = text("subagent_type").map(|who| format!("{who} ")).unwrap_or_default();
                facts.subject = format!("{who}`{}`", one_line(&action.target));
            }
            Verb::Run | Verb::Fetch | Verb::Other | Verb::Read => facts.set_other(&arguments, call, action),
        }
        facts
    }

    /// A tool of unknown kind, or one that runs code: its arguments as `name=value`.
    fn set_other(&mut self, arguments: &Map<String, Value>, call: &Call, action: &Action) {
        if let Some(name) = &action.name {
            self.subject.clone_from(name);
            return;
        }
        let mut arguments = arguments;
        if let (Some(Value::Object(inner)), Some(tool)) =
            (arguments.get("params"), arguments.get("tool_name").and_then(Value::as_str))
        {
            let server = arguments.get("server_name").and_then(Value::as_str).unwrap_or(&self.verb);
            self.verb = format!("{server}/{tool}");
            arguments = inner;
        }
        if self.set_written_file(arguments) {
            return;
        }
        let is_shown = |(name, value): &(&String, &Value)| {
            let is_thought = matches!(name.as_str(), "plan" | "thought" | "prompt" | "reason" | "reasoning");
            !value.is_null() && !is_thought
        };
        let shown = arguments.iter().filter(is_shown).map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        self.subject = match (shown.is_empty(), arguments.is_empty()) {
            (false, _) => format!("({})", one_line(&shown)),
            (true, false) => String::new(),
            (true, true) => match one_line(call.arguments.as_str()).trim_matches(['{', '}', ' ', '"']) {
                "" | "null" => String::new(),
                plain => format!("({plain})"),
            },
        };
    }

    /// A tool of unknown kind that gets a path and a text of several lines wrote a file.
    fn set_written_file(&mut self, arguments: &Map<String, Value>) -> bool {
        let find = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)?.as_str());
        let path = find(&["path", "file_path", "filename", "file"]);
        let content = find(&["content", "contents", "file_text", "text"]).filter(|text| text.contains('\n'));
        let (Some(path), Some(content)) = (path, content) else { return false };
        self.kind = CallKind::Write;
        self.verb = "wrote".to_owned();
        self.subject = path.to_owned();
        self.path = Some(path.to_owned());
        self.written = content.lines().map(str::to_owned).collect();
        self.script_targets = script_targets(&self.written);
        true
    }

    fn read_result(&mut self, call: &Call, action: &Action) {
        let Some(outcome) = &call.result else {
            self.is_unanswered = true;
            return;
        };
        let raw = outcome.body.as_str();
        let text = unwrap_result(raw);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        self.n_result_lines = lines.clone().count();
        self.n_result_chars = text.chars().count();
        const SHORT: usize = 120;
        self.result_hash = (text.len() > SHORT).then(|| xxh3_64(text.as_bytes()));
        self.denies_change = text.len() < 2_000 && DENIES_CHANGE.is_match(&text);
        if self.kind == CallKind::Search && self.n_result_lines > 1 {
            self.hits = hits_by_file(&text);
        }
        let first = lines.next().unwrap_or_default().trim();
        // Instructions of the harness follow the confirmation that a subagent was started.
        let is_start = first.starts_with("Async agent launched");
        let is_single = self.n_result_lines == 1 && first.len() <= 160 || is_start;
        self.single_line = is_single.then(|| first.to_owned());
        if let Some(reason) = refusal(raw) {
            self.is_refused = true;
            self.verdict = reason;
            return;
        }
        let status = call_status(action, outcome);
        self.exit = status.exit;
        self.has_failed = status.verdict == Verdict::Failed;
        if let Some(tests) = status.tests.filter(|_| matches!(self.kind, CallKind::Run | CallKind::Write)) {
            self.is_test = true;
            self.n_tests = tests.passed + tests.failed;
            let counts = [(tests.failed, "failed"), (tests.passed, "passed"), (tests.skipped, "skipped")];
            let unit = if status.are_packages { "packages " } else { "" };
            let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {unit}{word}"));
            self.verdict = counts.collect::<Vec<_>>().join(", ");
        } else if let Some(summary) = status.summary {
            self.verdict = summary;
        }
        self.errors = status.errors;
        if let Some(commit) = COMMIT.captures(&text).filter(|_| !self.is_test && !self.has_failed) {
            self.verdict = format!("committed {}", &commit[1]);
        }
    }
}

/// The number of hits in each file, most first.
fn hits_by_file(text: &str) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (file, _) in text.lines().filter_map(hit_of) {
        match counts.iter_mut().find(|(known, _)| known == file) {
            Some((_, n)) => *n += 1,
            None => counts.push((file.to_owned(), 1)),
        }
    }
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    counts
}

/// The reason if a call was refused or rejected, so that nothing ran.
fn refusal(raw: &str) -> Option<String> {
    const MAX_WORDS: usize = 1_000;
    let start = raw.get(..raw.floor_char_boundary(400)).unwrap_or(raw);
    let marks = ["The user doesn't want to", "[Request interrupted", "user rejected"];
    if marks.iter().any(|mark| start.contains(mark)) {
        let words = raw.split_once("the user said:").map_or("", |(_, words)| words.trim());
        let words = &words[..words.floor_char_boundary(MAX_WORDS)];
        return Some(match words {
            "" => "refused by the user".to_owned(),
            words => format!("refused by the user, who said: {}", one_line(words)),
        });
    }
    start
        .starts_with("Please always provide EXACTLY")
        .then(|| "rejected by the harness, nothing ran".to_owned())
}

/// The files that a script opens for writing.
fn script_targets(script: &[String]) -> Vec<String> {
    const MAX_TARGETS: usize = 4;
    let text = script.join("\n");
    if !OPENS_FOR_WRITING.is_match(&text) {
        return Vec::new();
    }
    let mut targets: Vec<String> = Vec::new();
    for found in QUOTED_PATH.captures_iter(&text) {
        let path = found[1].to_owned();
        if !path.starts_with("/tmp/") && !targets.contains(&path) && targets.len() < MAX_TARGETS {
            targets.push(path);
        }
    }
    targets
}

static DENIES_CHANGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:could|did|can) ?not find|not found|no (?:match|changes?|replacement)|nothing to|unchanged",
    )
    .expect("a pattern")
});
static COMMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\[([^\]\n]+ [0-9a-f]{7,})\] ").expect("a pattern"));
static OPENS_FOR_WRITING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"['"]w\+?['"]|\.write_text\(|fs\.writeFile"#).expect("a pattern"));
static QUOTED_PATH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"['"]((?:[\w.-]+/|/)[\w./-]*\.\w{1,5})['"]"#).expect("a pattern"));

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::notation::parse;

    /// The facts of each call of a conversation in the notation, a line each.
    fn check(conversation: &str, expected: &Expect) {
        let entries = parse(conversation).expect("the notation is right");
        let mut out = String::new();
        for step in entries.iter().filter_map(|entry| entry.step()) {
            for call in StepFacts::new(step, false, &[]).calls {
                let CallFacts { kind, verb, subject, then, verdict, errors, .. } = &call;
                out += &format!("{kind:?}: {verb} {subject}");
                out += &if then.is_empty() { String::new() } else { format!(", then {then}") };
                out += &format!(" -> {:?} {verdict} {}", call.exit, errors.join(" / "));
                out += &call.hunks.iter().map(|hunk| format!(" {hunk:?}")).collect::<String>();
                out = out.trim_end().to_owned() + "\n";
            }
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn calls_of_all_kinds_have_facts() {
        check(
            r#"
call    bash {"command":"cat <<'EOF' > a.py\nprint(1)\nEOF\npython a.py"}
result  1
call    bash {"command":"sed -n 10,80p src/a.rs"}
result  fn main() {
call    bash {"command":"pytest -q tests"}
result  1 failed, 3 passed in 0.1s
call    Edit {"file_path":"src/a.rs","old_string":"a\nb","new_string":"a\nc"}
result  ok
call    Grep {"pattern":"fn main","path":"src","output_mode":"content"}
result  src/a.rs:1:fn main
call    Read {"file_path":"src/a.rs","offset":10,"limit":5}
result  x
call    execute-tool {"server_name":"maps","tool_name":"route","params":{"from":"A","to":"B"}}
result  ok
call    Task {"description":"look around","subagent_type":"Explore","prompt":"look"}
result  done
"#,
            &expect![[r#"
                Write: wrote a.py, then python a.py -> None
                Read: read src/a.rs 10-80 -> None
                Run: bash `pytest -q tests` -> None 1 failed, 3 passed 1 failed, 3 passed in 0.1s
                Edit: edited src/a.rs -> None   Hunk { removed: ["b"], added: ["c"] }
                Search: grep `fn main` in src (content) -> None
                Read: read src/a.rs 10-14 -> None
                Other: maps/route (from=A, to=B) -> None
                Ask: Task Explore `look around` -> None
            "#]],
        );
    }
}
