//! Finds lines that report a failure.
//!
//! Later work needs exact error lines more than anything else in a result, so all condensers use this.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// How clearly a line reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Not at all.
    None,
    /// It contains a word such as `error`.
    Hint,
    /// It is an error message, a failed test or a crash.
    Error,
}

/// The severity of a line, judged by its beginning.
pub(crate) fn severity_of(line: &str) -> Severity {
    let line = head(line.trim_start(), 240);
    if line.len() < 4 {
        return Severity::None;
    }
    if line.starts_with("E   ") {
        return Severity::Error;
    }
    let mut severity = Severity::None;
    for hit in WORDS.find_iter(line) {
        let word = &line[hit.start()..hit.end()];
        let (before, after) = (&line[..hit.start()], &line[hit.end()..]);
        if is_negated(before) || after.starts_with('=') {
            continue;
        }
        let is_phrase = hit.pattern().as_usize() < N_PHRASES;
        if is_phrase {
            return Severity::Error;
        }
        let is_word = before.is_empty() || !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_camel = word.starts_with(|c: char| c.is_ascii_uppercase());
        if !is_word && !is_camel {
            continue;
        }
        let after = after.trim_start_matches("ed").trim_start_matches('s');
        let is_last = is_word && after.is_empty() && word.len() <= "failed".len();
        let is_message = after.starts_with([':', '[', '!']) || is_last;
        let is_upper_case = is_word && word.bytes().all(|b| b.is_ascii_uppercase());
        let is_first =
            before.trim_matches(['[', '(', '*', '-', ' ', '>', '#']).is_empty() && after.starts_with(' ');
        if is_message || is_upper_case || (is_first && word != "error") {
            return Severity::Error;
        }
        severity = Severity::Hint;
    }
    severity
}

/// Returns whether the word before negates the failure: `0 errors`, `no failures`.
fn is_negated(before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit([' ', '(', '=', ',']).next().unwrap_or_default();
    matches!(last, "0" | "no" | "No" | "without" | "ignore" | "expected" | "if" | "on" | "except" | "catch")
}

/// The longest prefix of at most `bytes` bytes.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}

/// The longest suffix of at most `bytes` bytes.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

const N_PHRASES: usize = 15;

static WORDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = [
        "panicked at",
        "traceback (most recent",
        "segmentation fault",
        "core dumped",
        "command not found",
        "no such file",
        "permission denied",
        "undefined reference",
        "cannot find ",
        "could not ",
        "npm err!",
        "killed by signal",
        "<tool_use_error>",
        "--- fail",
        "caused by:",
        "assertionerror",
        "exception",
        "assertion",
        "failure",
        "failed",
        "error",
        "fatal",
        "panic",
        "fail",
        "abort",
        "denied",
        "timed out",
        "timeout",
        "conflict",
        "invalid",
        "unexpected",
        "critical",
    ];
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(words)
        .expect("a short list of words")
});

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], severity: Severity) {
        for line in lines {
            assert_eq!(severity_of(line), severity, "{line}");
        }
    }

    #[test]
    fn error_messages_are_errors() {
        let lines = [
            "error[E0599]: no method named `clone`",
            "TypeError: x is not a function",
            "java.lang.NullPointerException: null",
            "thread 'main' panicked at src/main.rs:3:5:",
            "E       assert 1 == 2",
            "2024-01-01 12:00:00 ERROR db is gone",
            "--- FAIL: TestX (0.00s)",
            "FAILED tests/test_a.py::test_b - AssertionError",
            "src/a.c:3:5: error: expected ';'",
            "bash: foo: command not found",
            "npm ERR! missing script",
            "fatal: not a git repository",
            "test tests::a ... FAILED",
            "    [FAIL]",
        ];
        check(&lines, Severity::Error);
    }

    #[test]
    fn other_mentions_are_hints_or_none() {
        check(&["0 errors, 0 failed", "no failures", "ok", "", "let terrors = 3;", "ünï"], Severity::None);
        check(&["return the error to the caller", "the request timed out", "Err(error)"], Severity::Hint);
    }
}
