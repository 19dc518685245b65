//! Tells the lines that say that something went wrong.
//!
//! An exact error line is worth more to later work than anything else in a result, so every kind of text asks here.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// How loudly a line says that something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// It does not.
    Calm,
    /// It has such a word in it.
    Hint,
    /// It is an error message, a failure or a crash.
    Alarm,
}

/// What the beginning of a line says.
pub(crate) fn sign_of(line: &str) -> Sign {
    let line = head(line.trim_start(), 240);
    if line.len() < 4 {
        return Sign::Calm;
    }
    if line.starts_with("E   ") {
        return Sign::Alarm;
    }
    let mut found = Sign::Calm;
    for hit in WORDS.find_iter(line) {
        let word = &line[hit.start()..hit.end()];
        let (before, after) = (&line[..hit.start()], &line[hit.end()..]);
        if is_denied(before) || after.starts_with('=') {
            continue;
        }
        let is_phrase = hit.pattern().as_usize() < N_PHRASES;
        if is_phrase {
            return Sign::Alarm;
        }
        let is_word = before.is_empty() || !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_camel = word.starts_with(|c: char| c.is_ascii_uppercase());
        if !is_word && !is_camel {
            continue;
        }
        let after = after.trim_start_matches("ed").trim_start_matches('s');
        let is_last = is_word && after.is_empty() && word.len() <= "failed".len();
        let is_message = after.starts_with([':', '[', '!']) || is_last;
        let is_loud = is_word && word.bytes().all(|b| b.is_ascii_uppercase());
        let is_first =
            before.trim_matches(['[', '(', '*', '-', ' ', '>', '#']).is_empty() && after.starts_with(' ');
        if is_message || is_loud || (is_first && word != "error") {
            return Sign::Alarm;
        }
        found = Sign::Hint;
    }
    found
}

/// Whether the words before say that there is none of it: `0 errors`, `no failures`.
fn is_denied(before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit([' ', '(', '=', ',']).next().unwrap_or_default();
    matches!(last, "0" | "no" | "No" | "without" | "ignore" | "expected" | "if" | "on" | "except" | "catch")
}

/// The longest beginning of a text that has at most so many bytes.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}

/// The longest end of a text that has at most so many bytes.
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

    fn check(lines: &[&str], sign: Sign) {
        for line in lines {
            assert_eq!(sign_of(line), sign, "{line}");
        }
    }

    #[test]
    fn messages_are_alarms() {
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
        check(&lines, Sign::Alarm);
    }

    #[test]
    fn other_mentions_are_hints_or_nothing() {
        check(&["0 errors, 0 failed", "no failures", "ok", "", "let terrors = 3;", "ünï"], Sign::Calm);
        check(&["return the error to the caller", "the request timed out", "Err(error)"], Sign::Hint);
    }
}
