//! How a call ended: the exit code, the verdict, the first error line, the test counts.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::{memchr_iter, memchr2, memchr2_iter};
use regex::Regex;
use serde_json::value::RawValue;

use crate::actions::{Action, Verb};
use crate::model::transcript::Outcome;
use crate::text::condense::severity::{Severity, head, severity_of, tail};

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

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStatus {
    /// The verdict.
    pub verdict: Verdict,
    /// The exit code, if the result contains one.
    pub exit: Option<i32>,
    /// The first error line.
    pub error: Option<String>,
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
    let tests = if is_run { test_counts(output.bare()) } else { None };
    let found_nothing = action.verb == Verb::Search && exit == Some(1);
    let verdict = match (exit, tests) {
        _ if found_nothing => Verdict::Passed,
        (Some(code), _) if code != 0 => Verdict::Failed,
        (_, Some(tests)) if tests.failed > 0 => Verdict::Failed,
        _ if outcome.is_error || begins_with_error(text) => Verdict::Failed,
        (Some(_), _) => Verdict::Passed,
        (None, Some(tests)) if tests.passed > 0 => Verdict::Passed,
        _ => Verdict::Unknown,
    };
    let error = match verdict {
        Verdict::Failed => first_error(output.bare()).or_else(|| first_line(output.bare())),
        Verdict::Unknown if is_run && !is_history(&action.target) => first_error(output.bare()),
        Verdict::Passed | Verdict::Unknown => None,
    };
    CallStatus { verdict, exit, error, tests, n_lines: 0 }
}

/// The output of a tool. Output inside JSON is extracted on demand, because most results do not need it.
pub(super) struct CommandOutput<'a> {
    text: &'a str,
    inner: OnceCell<Option<String>>,
}

impl<'a> CommandOutput<'a> {
    pub(super) fn new(text: &'a str) -> CommandOutput<'a> {
        CommandOutput { text, inner: OnceCell::new() }
    }

    /// The text inside a JSON result, or the whole result.
    pub(super) fn text(&self) -> &str {
        self.inner.get_or_init(|| inner_text(self.text)).as_deref().unwrap_or(self.text)
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
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    memchr_iter(b'\n', text.as_bytes()).chain([text.len()]).map(move |end| {
        let line = &text[from..end];
        from = end + 1;
        if end < text.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    })
}

/// Returns whether a command prints history, which may mention errors of the past.
fn is_history(command: &str) -> bool {
    let shows = ["log", "diff", "show", "blame", "status", "branch", "reflog", "stash"];
    command.strip_prefix("git ").is_some_and(|rest| shows.iter().any(|word| rest.starts_with(word)))
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
    while let Some((line, below)) = rest.split_once('\n') {
        let is_frame = ENVELOPE.iter().any(|frame| line.starts_with(frame));
        if !is_frame {
            break;
        }
        rest = below;
    }
    let end = rest.trim_end();
    end.strip_suffix("</output>").unwrap_or(end)
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

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(|line| head(line, 400).to_owned())
}

fn first_error(text: &str) -> Option<String> {
    let is_traceback =
        |line: &str| line.starts_with("Traceback (most") || line.starts_with("--- Logging error");
    let mut alarms =
        lines(text).filter(|line| severity_of(line) == Severity::Error && !is_traceback(line.trim()));
    // Prefer a line with a message to one with a mark such as `FAIL`.
    let first = alarms.next()?;
    let line =
        if first.contains(':') { first } else { alarms.find(|line| line.contains(':')).unwrap_or(first) };
    Some(head(line.trim(), 400).to_owned())
}

/// The counts at the end of a test run.
fn test_counts(text: &str) -> Option<TestCounts> {
    let mut sum: Option<TestCounts> = None;
    let mut go_counts = TestCounts::default();
    for line in lines(text) {
        let line = line.trim_start();
        let may_count = line.as_bytes().first().is_some_and(|byte| b"tT=FORP#-o0123456789".contains(byte));
        if !may_count {
            continue;
        }
        let line = line.trim_end();
        let is_summary = is_summary(line) && may_count_tests(line) && COUNTED.is_match(head(line, 200));
        if is_summary {
            let counts = counts_in(line);
            let sum = sum.get_or_insert_default();
            sum.passed += counts.passed;
            sum.failed += counts.failed;
            sum.skipped += counts.skipped;
        }
        go_counts.passed += u32::from(line.starts_with("--- PASS") || line.starts_with("ok  \t"));
        go_counts.failed += u32::from(line.starts_with("--- FAIL") || line.starts_with("FAIL\t"));
    }
    sum.or((go_counts != TestCounts::default()).then_some(go_counts))
}

/// Returns whether a line with counts is a total of a test run.
fn is_summary(line: &str) -> bool {
    let starts = [
        "test result:",
        "Tests:",
        "Tests ",
        "=",
        "FAILED (",
        "OK",
        "Ran ",
        "Failed!",
        "Passed!",
        "tests finished",
        "# pass",
        "# fail",
    ];
    let is_short = line.len() < 120 && line.starts_with(|c: char| c.is_ascii_digit());
    starts.iter().any(|start| line.starts_with(start)) || is_short
}

/// A cheap necessary condition for the pattern of counts: `3 passed`, `failures=1`.
fn may_count_tests(line: &str) -> bool {
    let is_pair = |bytes: &[u8]| {
        bytes[0].is_ascii_digit() && bytes[1] == b' ' && b"pfesit".contains(&bytes[2].to_ascii_lowercase())
    };
    memchr2(b':', b'=', line.as_bytes()).is_some()
        || !line.is_ascii()
        || line.as_bytes().windows(3).any(is_pair)
}

fn counts_in(line: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    for found in COUNTED.captures_iter(head(line, 300)) {
        let text = |i: usize| found.get(i).map(|part| part.as_str());
        let (number, word) = match (text(1), text(2), text(3), text(4)) {
            (Some(number), Some(word), _, _) | (_, _, Some(word), Some(number)) => (number, word),
            _ => continue,
        };
        let number: u32 = number.parse().unwrap_or(0);
        match word.to_ascii_lowercase().as_str() {
            "passed" | "passing" | "pass" => counts.passed += number,
            "failed" | "failing" | "failures" | "failure" | "errors" | "error" | "fail" => {
                counts.failed += number;
            }
            "skipped" | "ignored" | "pending" | "todo" => counts.skipped += number,
            "tests" | "test" if line.starts_with("Ran ") || line.starts_with("OK") => counts.passed += number,
            _ => {}
        }
    }
    counts
}

static COUNTED: LazyLock<Regex> = LazyLock::new(|| {
    let words = "passed|passing|pass|failed|failing|failures?|errors?|fail|skipped|ignored|pending|todo";
    Regex::new(&format!(r"(?i)\b(\d+) ({words}|tests?)\b|\b({words})\s*[:=]\s*(\d+)")).expect("a pattern")
});

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
        assert_eq!((status.verdict, status.exit, status.error.as_deref()), (verdict, exit, error), "{text}");
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
        check(
            "python a.py",
            "Traceback (most recent call last):\n  x\nValueError: no",
            Verdict::Unknown,
            None,
            Some("ValueError: no"),
        );
    }

    fn check_tests(text: &str, passed: u32, failed: u32, skipped: u32) {
        assert_eq!(status("pytest", text).tests, Some(TestCounts { passed, failed, skipped }), "{text}");
    }

    #[test]
    fn counts_tests() {
        check_tests(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\ntest result: FAILED. 2 passed; 1 failed; 0 ignored",
            5,
            1,
            1,
        );
        check_tests("=== 3 failed, 10 passed, 1 skipped in 0.12s ===", 10, 3, 1);
        check_tests("Tests:       1 failed, 10 passed, 11 total", 10, 1, 0);
        check_tests("  10 passing (3s)\n  2 failing", 10, 2, 0);
        check_tests("--- PASS: A\n--- FAIL: B\nFAIL\tx/y\t0.1s", 1, 2, 0);
        check_tests("Ran 12 tests in 0.1s\n\nFAILED (failures=1, errors=2)", 12, 3, 0);
        check_tests("Failed!  - Failed:     1, Passed:    10, Skipped:     2", 10, 1, 2);
        assert_eq!(status("ls", "nothing").tests, None);
    }
}
