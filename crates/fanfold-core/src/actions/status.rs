//! How a call ended: the exit code, the verdict, the deciding error lines, the test counts.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::{memchr_iter, memchr2_iter};
use regex::Regex;
use serde_json::value::RawValue;

use crate::actions::verdicts::{self, ProgramVerdict};
use crate::actions::{Action, Verb};
use crate::model::transcript::Outcome;
use crate::text::ansi::strip_ansi;
use crate::text::condense::severity::{head, tail};

/// The verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The call succeeded.
    Passed,
    /// The call failed.
    Failed,
    /// The result shows neither success nor failure.
    Unknown,
}

/// The totals of a test run, summed over several suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestCounts {
    /// Passed tests.
    pub passed: u32,
    /// Failed tests and tests with errors.
    pub failed: u32,
    /// Skipped tests.
    pub skipped: u32,
}

impl TestCounts {
    /// Adds the counts of another suite.
    pub(super) fn add(&mut self, other: TestCounts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStatus {
    /// The verdict.
    pub verdict: Verdict,
    /// The exit code, if the result contains one.
    pub exit: Option<i32>,
    /// The deciding error lines of a failed call, the most telling first.
    pub errors: Vec<String>,
    /// True if packages were counted, because the output does not list tests.
    pub are_packages: bool,
    /// The summary of a program that is not a test runner, such as `3 issues`.
    pub summary: Option<String>,
    /// The test counts, if tests ran.
    pub tests: Option<TestCounts>,
    /// The number of lines of the output.
    pub n_lines: usize,
}

/// Parses the status of a call from its result.
pub fn call_status(action: &Action, outcome: &Outcome) -> CallStatus {
    let output = CommandOutput::new(outcome.body.as_str());
    CallStatus { n_lines: output.n_lines(), ..parse_status(action, outcome, &output) }
}

/// Parses everything except for the number of lines.
pub(super) fn parse_status(action: &Action, outcome: &Outcome, output: &CommandOutput<'_>) -> CallStatus {
    let text = outcome.body.as_str();
    let exit = exit_code(text);
    let is_run = action.verb == Verb::Run;
    let program =
        if is_run { verdicts::parse(&action.target, output.bare()) } else { ProgramVerdict::default() };
    let found_nothing = action.verb == Verb::Search && exit == Some(1);
    let exit_is_known = exit.is_some() && !action.hides_exit_code;
    // The exit code and the counts of a test run outrank text that any program can print.
    let was_aborted = program.was_aborted && program.tests.is_none() && !exit_is_known;
    // A program that reports problems and exits with 0 did what it should, unless tests failed.
    let has_failed = program.has_failed && (program.tests.is_some() || !exit_is_known);
    let verdict = match exit {
        _ if found_nothing => Verdict::Passed,
        Some(code) if code != 0 => Verdict::Failed,
        _ if has_failed || was_aborted || outcome.is_error || begins_with_error(text) => Verdict::Failed,
        Some(_) => Verdict::Passed,
        None if program.tests.is_some_and(|tests| tests.passed > 0) => Verdict::Passed,
        None => Verdict::Unknown,
    };
    let is_tool_error = !is_run && exit.is_none();
    let errors = match verdict {
        // The message of a tool may quote the text that it was given.
        Verdict::Failed if is_tool_error => {
            output.bare().lines().find(|line| !line.trim().is_empty()).into_iter().collect()
        }
        Verdict::Failed if program.errors.is_empty() => verdicts::plain_errors(&action.target, output.bare()),
        Verdict::Failed => program.errors,
        Verdict::Passed | Verdict::Unknown => Vec::new(),
    };
    let stopped = match exit {
        Some(124) => Some("timed out"),
        Some(137) => Some("killed"),
        Some(143) => Some("terminated"),
        _ => None,
    };
    CallStatus {
        verdict,
        exit,
        errors: errors.into_iter().map(str::to_owned).collect(),
        summary: program.summary.or(stopped).map(str::to_owned),
        tests: program.tests,
        are_packages: program.are_packages,
        n_lines: 0,
    }
}

/// The output of a tool. Output inside JSON is extracted on demand, because most results do not need it.
pub(super) struct CommandOutput<'a> {
    text: &'a str,
    inner: OnceCell<Cow<'a, str>>,
}

impl<'a> CommandOutput<'a> {
    pub(super) fn new(text: &'a str) -> CommandOutput<'a> {
        CommandOutput { text, inner: OnceCell::new() }
    }

    /// The text inside a JSON result, or the whole result, without escape sequences of terminals.
    pub(super) fn text(&self) -> &str {
        self.inner.get_or_init(|| match inner_text(self.text) {
            Some(inner) => Cow::Owned(strip_ansi(&inner).into_owned()),
            None => strip_ansi(self.text),
        })
    }

    /// The text without the envelope lines of the harness.
    fn bare(&self) -> &str {
        strip_envelope(self.text())
    }

    /// The number of lines of the output.
    pub(super) fn n_lines(&self) -> usize {
        let output = self.bare();
        if output.trim().is_empty() { 0 } else { n_lines(output.trim_end()) }
    }
}

/// The number of lines of a text.
pub(super) fn n_lines(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count() + 1
}

/// A faster `str::lines` that also returns the empty line after a final line end.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    memchr_iter(b'\n', text.as_bytes()).chain([text.len()]).map(move |end| {
        let line = &text[from..end];
        from = end + 1;
        if end < text.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    })
}

/// The text inside a JSON result.
fn inner_text(text: &str) -> Option<String> {
    let is_object = text.trim_start().starts_with('{') && text.len() < 1 << 20;
    if !is_object {
        return None;
    }
    if let Some(inner) = first_string(text) {
        return Some(inner);
    }
    // Only the wanted fields are unescaped.
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    let field = |name: &str| {
        let text: String = serde_json::from_str(fields.get(name)?.get()).ok()?;
        Some(text).filter(|text| !text.trim().is_empty())
    };
    field("error")
        .or_else(|| field("stderr"))
        .or_else(|| field("output"))
        .or_else(|| field("content"))
        .or_else(|| field("stdout"))
}

/// The text of a result that begins with it, as in `{"output": "…`, without parsing the rest.
fn first_string(text: &str) -> Option<String> {
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    let rest = ["\"output\"", "\"content\"", "\"stdout\""].iter().find_map(|key| rest.strip_prefix(key))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let (bytes, mut out) = (rest.as_bytes(), String::with_capacity(rest.len()));
    let mut from = 0;
    for at in memchr2_iter(b'"', b'\\', bytes) {
        if at < from {
            // The second byte of an escape.
            continue;
        }
        out.push_str(&rest[from..at]);
        if bytes[at] == b'"' {
            return Some(out).filter(|text| !text.trim().is_empty());
        }
        // Fall back to the JSON parser for other escapes.
        out.push(match bytes.get(at + 1)? {
            b'n' => '\n',
            b't' => '\t',
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'r' => '\r',
            _ => return None,
        });
        from = at + 2;
    }
    None
}

/// Removes the envelope lines of the harness.
fn strip_envelope(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\n');
    while ENVELOPE.iter().any(|frame| rest.starts_with(frame)) {
        rest = rest.split_once('\n').map_or("", |(_, below)| below);
    }
    let error = rest
        .strip_prefix("<tool_use_error>")
        .and_then(|rest| rest.trim_end().strip_suffix("</tool_use_error>"));
    rest = error.unwrap_or(rest);
    if rest.starts_with("<warning>") {
        // A long output is cut.
        rest = rest.split_once("<output_head>").map_or(rest, |(_, shown)| shown);
    }
    let end = rest.trim_end();
    ["</output>", "</output_tail>"].iter().find_map(|tag| end.strip_suffix(tag)).unwrap_or(end)
}

const ENVELOPE: [&str; 9] = [
    "<returncode>",
    "<output>",
    "Exit code",
    "Chunk ID:",
    "Wall time:",
    "Process exited",
    "Original token count:",
    "Output:",
    "<tool_use_error>Exit",
];

fn exit_code(text: &str) -> Option<i32> {
    numbers(&EXIT, text, 500).find_map(|number| number.parse().ok())
}

/// The first number that a pattern finds in the first and in the last bytes of a text. The number is the first group
/// that matches.
pub(super) fn numbers<'t>(pattern: &Regex, text: &'t str, n_bytes: usize) -> impl Iterator<Item = &'t str> {
    let end = Some(tail(text, n_bytes)).filter(|_| text.len() > n_bytes);
    [Some(head(text, n_bytes)), end].into_iter().flatten().filter_map(|part| {
        let found = pattern.captures(part)?;
        Some(found.iter().skip(1).flatten().next()?.as_str())
    })
}

static EXIT: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"<returncode>(-?\d+)</returncode>",
        r#""(?:exit_code|exitCode|returncode|return_code)"\s*:\s*(-?\d+)"#,
        r"(?m)^(?:Error: )?[Ee]xit code:?\s+(-?\d+)",
        r"(?:exited|failed) with (?:exit )?(?:code|status)[ :]+(-?\d+)",
        r"(?m)^exit_code: (-?\d+)",
    ];
    Regex::new(&patterns.join("|")).expect("a pattern")
});

/// Returns whether the beginning of the result reports a failure of the tool.
fn begins_with_error(text: &str) -> bool {
    let start = head(text.trim_start(), 200);
    let marks = [
        "<tool_use_error>",
        "Error:",
        "Error ",
        "error:",
        "ERROR:",
        "{\"error\":\"",
        "{\"error\": \"",
        "{\"success\": false",
        "{\"success\":false",
    ];
    marks.iter().any(|mark| start.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::parse_action;
    use crate::model::transcript::{Body, Origin};

    fn status(command: &str, text: &str) -> CallStatus {
        let outcome = Outcome {
            body: Body::text(text),
            is_error: false,
            media: Vec::new(),
            origin: Origin::message(0),
        };
        call_status(&parse_action("bash", command), &outcome)
    }

    fn check(command: &str, text: &str, verdict: Verdict, exit: Option<i32>, error: Option<&str>) {
        let status = status(command, text);
        let first = status.errors.first().map(String::as_str);
        assert_eq!((status.verdict, status.exit, first), (verdict, exit, error), "{text}");
    }

    #[test]
    fn finds_exit_codes() {
        check(
            "make",
            "Exit code 2\nmake: *** error: no rule",
            Verdict::Failed,
            Some(2),
            Some("make: *** error: no rule"),
        );
        check("make", "<returncode>0</returncode>\n<output>\nok\n</output>", Verdict::Passed, Some(0), None);
        check("make", r#"{"output": "a\nb", "exit_code": 0}"#, Verdict::Passed, Some(0), None);
        check(
            "make",
            r#"{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}"#,
            Verdict::Failed,
            Some(1),
            Some("x"),
        );
        check("rg foo", "<returncode>1</returncode>\n<output>\n</output>", Verdict::Passed, Some(1), None);
    }

    #[test]
    fn hidden_exit_codes_do_not_decide() {
        let trace =
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no";
        let exit_0 = format!("<returncode>0</returncode>\n<output>\n{trace}\n</output>");
        check("python a.py", trace, Verdict::Failed, None, Some("ValueError: no"));
        check("python a.py | tail -5", &exit_0, Verdict::Failed, Some(0), Some("ValueError: no"));
        check("python a.py; echo done", &exit_0, Verdict::Failed, Some(0), Some("ValueError: no"));
        check("python a.py", &exit_0, Verdict::Passed, Some(0), None);
        let compiler = "<returncode>0</returncode>\n<output>\na.c:3:5: error: x\n</output>";
        check("make | tail", compiler, Verdict::Failed, Some(0), Some("a.c:3:5: error: x"));
        check("make", compiler, Verdict::Passed, Some(0), None);
        let summary = "<returncode>0</returncode>\n<output>\n1 failed, 2 passed in 0.12s\n</output>";
        check("pytest -q || true", summary, Verdict::Failed, Some(0), Some("1 failed, 2 passed in 0.12s"));
    }

    #[test]
    fn printed_text_is_no_verdict() {
        let log = "FAILED tests/a.py::test_b - KeyError\n=== 1 failed in 0.12s ===";
        for command in ["cat a.log", "grep -rn FAILED .", "git log -3", "cd a && git diff && tail b.log"] {
            check(command, log, Verdict::Unknown, None, None);
        }
        check("pytest", log, Verdict::Failed, None, Some("FAILED tests/a.py::test_b - KeyError"));
    }

    #[test]
    fn stopped_commands_have_failed() {
        let shown = |text: &str| {
            let status = status("make test", text);
            (status.verdict, status.errors.concat(), status.summary)
        };
        let failed = |error: &str, summary: Option<&str>| {
            (Verdict::Failed, error.to_owned(), summary.map(str::to_owned))
        };
        let cases = [
            (
                "Exit code 143\nCommand timed out after 2m 0.0s\ncompiling",
                "Command timed out after 2m 0.0s",
                Some("terminated"),
            ),
            (
                "The last command <command>make</command> timed out and has been killed.",
                "timed out and has been killed.",
                None,
            ),
            ("<returncode>137</returncode>\n<output>\nKilled\n</output>", "Killed", Some("killed")),
            ("bash: line 1: make: command not found", "bash: line 1: make: command not found", None),
        ];
        for (text, error, summary) in cases {
            assert_eq!(shown(text), failed(error, summary), "{text}");
        }
    }
}
