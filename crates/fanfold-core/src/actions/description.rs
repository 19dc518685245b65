//! Describes a call and its result in one line: the tool, the target, the outcome, the size. The caller adds the
//! handle.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::actions::status::{CommandOutput, n_lines, numbers, parse_status};
use crate::actions::{Action, CallStatus, LineRange, ReadLines, Verb, Verdict, parse_action, patch};
use crate::model::tokens::thousands;
use crate::model::transcript::Call;
use crate::text::condense::severity::{head, tail};
use crate::text::words::one_line;

/// Describes a call and its result in one line.
pub fn describe_call(call: &Call) -> String {
    describe_with_failure(call, &parse_action(&call.tool, call.arguments.as_str())).0
}

/// Describes a call and its result in one line, and returns whether the call failed.
pub(crate) fn describe_with_failure(call: &Call, action: &Action) -> (String, bool) {
    let mut line = LineBuilder(String::with_capacity(LONGEST));
    line.push(&["[", &shortened(one_line(&call.tool), 48), "] "]);
    let Some(outcome) = &call.result else {
        line.push(&["`", &target(action), "` → no result"]);
        return (line.0, false);
    };
    let output = CommandOutput::new(outcome.body.as_str());
    let status = parse_status(action, outcome, &output);
    line.push_action(call, action, &output, &status);
    line.failure(action, &status);
    (line.0, status.verdict == Verdict::Failed)
}

/// A short name for the result of a call: a file name, a query or a command.
pub(crate) fn short_name(call: &Call, action: &Action) -> String {
    const LONGEST: usize = 32;
    let target = one_line(action.display_name());
    match action.verb {
        Verb::Read | Verb::Edit | Verb::Write => {
            let name = target.rsplit('/').next().unwrap_or_default();
            if name.is_empty() { target.into_owned() } else { name.to_owned() }
        }
        Verb::Search => ["\"", head(&target, LONGEST), "\""].concat(),
        Verb::Run => ["`", head(&target, LONGEST), "`"].concat(),
        Verb::List | Verb::Fetch if !target.is_empty() => head(&target, LONGEST).to_owned(),
        _ if action.name.is_some() => head(&target, LONGEST).to_owned(),
        Verb::List | Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => {
            head(&call.tool, LONGEST).to_owned()
        }
    }
}

const LONGEST: usize = 120;

/// Builds a description.
struct LineBuilder(String);

impl LineBuilder {
    fn push(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.0.push_str(part));
    }

    fn push_action(&mut self, call: &Call, action: &Action, output: &CommandOutput<'_>, status: &CallStatus) {
        let arguments = call.arguments.as_str();
        let text = call.result.as_ref().map_or("", |outcome| outcome.body.as_str());
        let target = target(action);
        let name_has_verb = name_has_verb(&call.tool, action.verb);
        let more = if action.has_more { " and more" } else { "" };
        let verb_text = |verb: &'static str| if name_has_verb { "" } else { verb };
        match action.verb {
            Verb::Read => {
                self.push(&[verb_text("read "), &target]);
                self.lines_seen(action, text, output.text());
                self.push(&[more]);
            }
            Verb::List => {
                self.push(&[verb_text("listed "), &target]);
                self.push_scope(action);
                self.push(&[" → "]);
                self.count(output.n_lines(), "entry", "entries");
            }
            Verb::Search => {
                self.push(&[verb_text("searched "), "\"", &target, "\""]);
                self.push_scope(action);
                self.push(&[" → "]);
                self.count(hits(text, output), "hit", "hits");
            }
            Verb::Run => {
                self.push(&["ran `", &target, "` → "]);
                self.exit(status);
                self.tests(status);
                self.count(output.n_lines(), "line", "lines");
            }
            Verb::Edit => {
                self.push(&[verb_text("edited "), &target, more]);
                self.hunks(arguments);
            }
            Verb::Write => {
                self.push(&[verb_text("wrote "), &target, more]);
                self.push_written_size(arguments);
            }
            Verb::Fetch => {
                self.push(&[verb_text("fetched "), &target, more, " → "]);
                self.size(text);
            }
            Verb::Ask => {
                self.push(&["asked \"", &target, "\" → "]);
                self.size(text);
            }
            Verb::Plan => self.push(&[if target == "plan" { "updated the plan" } else { &target }]),
            Verb::Other => {
                self.push(&[&target, if target.is_empty() { "" } else { " " }, "→ "]);
                self.size(text);
            }
        }
    }

    fn count(&mut self, n: usize, one: &str, many: &str) {
        self.push(&[&thousands(n as u64), " ", if n == 1 { one } else { many }]);
    }

    fn size(&mut self, text: &str) {
        match n_lines(text.trim()) {
            0 | 1 => self.count(text.chars().count(), "char", "chars"),
            n => self.count(n, "line", "lines"),
        }
    }

    fn push_scope(&mut self, action: &Action) {
        match (&action.scope, action.verb) {
            (Some(scope), Verb::Search) => self.push(&[" in ", &shortened(one_line(scope), LONGEST)]),
            (Some(scope), Verb::List) if scope.starts_with('/') => self.push(&[" in ", scope]),
            _ => {}
        }
    }

    fn exit(&mut self, status: &CallStatus) {
        match (status.exit, status.verdict) {
            (Some(code), _) => self.push(&["exit ", &code.to_string(), ", "]),
            (None, Verdict::Failed) => self.push(&["failed, "]),
            (None, Verdict::Passed | Verdict::Unknown) => {}
        }
    }

    fn tests(&mut self, status: &CallStatus) {
        let Some(tests) = status.tests else { return };
        for (n, word) in [(tests.failed, "failed"), (tests.passed, "passed"), (tests.skipped, "skipped")] {
            if n > 0 {
                self.push(&[&n.to_string(), " ", word, ", "]);
            }
        }
    }

    fn failure(&mut self, action: &Action, status: &CallStatus) {
        if status.verdict == Verdict::Failed && action.verb != Verb::Run {
            self.push(&[" → failed"]);
        }
        if let Some(error) = status.errors.first() {
            self.push(&[": ", &shortened(one_line(error), LONGEST)]);
        }
    }

    /// Adds the lines that a read returned, preferably by their printed line numbers, and the total.
    fn lines_seen(&mut self, action: &Action, text: &str, shown: &str) {
        let shown_range = numbered(shown);
        let total = numbers(&TOTAL, text, 400).next().and_then(|number| number.parse::<u32>().ok());
        let range = match (shown_range, action.reads.first().map(|file_read| file_read.lines)) {
            (Some(range), _) => Some(range),
            (None, Some(ReadLines::Range(range))) => Some(range),
            (None, Some(ReadLines::All | ReadLines::Unknown) | None) => None,
        };
        let of = total.map(|total| [" of ", &total.to_string()].concat()).unwrap_or_default();
        match range {
            Some(LineRange { first, last: u32::MAX }) => {
                self.push(&[" from line ", &first.to_string(), &of]);
            }
            Some(LineRange { first: 1, last }) if total == Some(last) => {
                self.push(&[" ("]);
                self.count(last as usize, "line", "lines");
                self.push(&[")"]);
            }
            Some(LineRange { first, last }) => {
                self.push(&[" lines ", &first.to_string(), "–", &last.to_string(), &of]);
            }
            None => {
                self.push(&[" ("]);
                self.count(n_lines(shown.trim_end()), "line", "lines");
                self.push(&[&of, ")"]);
            }
        }
    }

    fn hunks(&mut self, arguments: &str) {
        let n = match serde_json::from_str::<Value>(arguments) {
            Ok(value) => {
                let edits = value.get("edits").and_then(Value::as_array).map_or(0, Vec::len);
                let text = ["patch", "input", "diff"].iter().find_map(|name| value.get(name)?.as_str());
                edits.max(text.map_or(0, patch::hunks))
            }
            Err(_) => patch::hunks(arguments),
        };
        if n > 1 {
            self.push(&[" (", &n.to_string(), " hunks)"]);
        }
    }

    fn push_written_size(&mut self, arguments: &str) {
        let Ok(value) = serde_json::from_str::<Value>(arguments) else { return };
        let names = ["content", "contents", "file_text", "text"];
        let Some(text) = names.iter().find_map(|name| value.get(name)?.as_str()) else { return };
        self.push(&[" ("]);
        self.count(text.trim_end_matches('\n').split('\n').count(), "line", "lines");
        self.push(&[")"]);
    }
}

/// The target, shortened except for paths.
fn target(action: &Action) -> Cow<'_, str> {
    let text = one_line(action.display_name());
    match action.verb {
        Verb::Read | Verb::Edit | Verb::Write => text,
        Verb::List | Verb::Fetch if !text.contains(' ') => text,
        Verb::List | Verb::Search | Verb::Run | Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => {
            shortened(text, LONGEST)
        }
    }
}

/// Returns whether the name of the tool contains the verb.
fn name_has_verb(tool: &str, verb: Verb) -> bool {
    let words: &[&str] = match verb {
        Verb::Read => &["read", "view"],
        Verb::List => &["list", "ls", "glob", "find"],
        Verb::Search => &["search", "grep", "rg"],
        Verb::Edit => &["edit", "patch", "replace"],
        Verb::Write => &["write", "create"],
        Verb::Fetch => &["fetch", "extract", "navigate"],
        Verb::Run | Verb::Ask | Verb::Plan | Verb::Other => &[],
    };
    let is_at =
        |word: &&str| tool.as_bytes().windows(word.len()).any(|at| at.eq_ignore_ascii_case(word.as_bytes()));
    words.iter().any(is_at)
}

fn shortened(text: Cow<'_, str>, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return text;
    }
    let room = longest - "…".len();
    let end = tail(&text, room / 4);
    Cow::Owned([head(&text, room - end.len()), "…", end].concat())
}

/// The first and the last line number of a numbered listing: `12→`, `12|`, `12` and a tab.
fn numbered(text: &str) -> Option<LineRange> {
    let number = |line: &str| {
        let line = line.trim_start();
        let n_digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = (1..=7).contains(&n_digits) && line[n_digits..].starts_with(['→', '|', '\t']);
        if is_number { line[..n_digits].parse::<u32>().ok() } else { None }
    };
    let first = text.lines().take(4).find_map(number)?;
    let last = tail(text, 4_000).lines().rev().find_map(number).filter(|last| *last >= first)?;
    Some(LineRange { first, last })
}

static TOTAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""?(?:total_lines|totalLines)"?\s*[:=]\s*(\d+)"#).expect("a pattern"));
static HITS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#""?(?:total_count|total_matches|numMatches)"?\s*[:=]\s*(\d+)|Found (\d+)"#;
    Regex::new(pattern).expect("a pattern")
});

fn hits(text: &str, output: &CommandOutput<'_>) -> usize {
    let number = numbers(&HITS, text, 400).next().and_then(|number| number.parse().ok());
    let found_none = || head(text, 60).to_ascii_lowercase().starts_with("no ");
    number.unwrap_or_else(|| if found_none() { 0 } else { output.n_lines() })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::notation::parse;

    /// Each conversation is a call and its result.
    fn check(conversation: &str, expected: &Expect) {
        let entries = parse(conversation).expect("a conversation");
        let calls = entries.iter().filter_map(|entry| entry.step()).flat_map(|step| &step.calls);
        let lines: String = calls.map(|call| describe_call(call) + "\n").collect();
        expected.assert_eq(&lines);
    }

    #[test]
    fn describes_tool_target_outcome_and_size() {
        check(
            r#"
call    terminal {"command": "npm test"}
result  {"output": "a\nb\nc", "exit_code": 0, "error": null}
call    Read {"file_path": "src/a.rs", "offset": 10, "limit": 2}
result      10→fn main() {
            11→}
call    read_file {"path": "src/a.rs", "offset": 1, "limit": 2}
result  {"content": "     1|a\n     2|b", "total_lines": 300}
call    Bash {"command": "cat src/a.rs"}
result  one
        two
call    Grep {"pattern": "foo", "path": "src"}
result  src/a.rs:1:foo
        src/b.rs:2:foo
call    Grep {"pattern": "foo", "path": "src"}
result  No matches found
call    apply_patch {"input": "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n@@\n-c\n+d\n*** End Patch"}
result  Done
call    Edit {"file_path": "src/a.rs", "old_string": "x", "new_string": "y"}
error   <tool_use_error>String to replace not found in file.</tool_use_error>
call    Write {"file_path": "src/b.rs", "content": "a\nb\n"}
result  ok
call    bash {"command": "cargo test 2>&1 | tail -3"}
result  test tests::a ... FAILED
        error: test failed, to rerun pass `--lib`
        test result: FAILED. 11 passed; 1 failed; 0 ignored
call    WebFetch {"url": "https://a.b/c", "prompt": "?"}
result  hello
call    TodoWrite {"todos": []}
result  ok
call    get_reservation_details {"reservation_id": "XEWRD9"}
result  {"a": 1}
call    bash {"command": "sleep 100 && run"}
open
call    bash null
result
"#,
            &expect![[r#"
                [terminal] ran `npm test` → exit 0, 3 lines
                [Read] src/a.rs lines 10–11
                [read_file] src/a.rs lines 1–2 of 300
                [Bash] read src/a.rs (2 lines)
                [Grep] "foo" in src → 2 hits
                [Grep] "foo" in src → 0 hits
                [apply_patch] src/a.rs (2 hunks)
                [Edit] src/a.rs → failed: String to replace not found in file.
                [Write] src/b.rs (2 lines)
                [bash] ran `cargo test` → failed, 1 failed, 11 passed, 3 lines: test tests::a ... FAILED
                [WebFetch] https://a.b/c → 5 chars
                [TodoWrite] updated the plan
                [get_reservation_details] reservation_id=XEWRD9 → 8 chars
                [bash] `run` → no result
                [bash] ran `` → 0 lines
            "#]],
        );
    }

    #[test]
    fn long_commands_are_shortened_on_a_character() {
        let command = "ü".repeat(300);
        let conversation = format!("call    bash {{\"command\": \"{command}\"}}\nresult  x\n");
        let entries = parse(&conversation).expect("a conversation");
        let line = describe_call(&entries[0].step().expect("a step").calls[0]);
        assert!(line.len() < 160, "{line}");
    }
}
