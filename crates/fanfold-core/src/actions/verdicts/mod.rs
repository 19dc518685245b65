//! Verdicts of programs: the test counts, the summary and the deciding error lines in the output of a command.
//!
//! ```text
//! FAILED tests/a.py::test_b - KeyError: 'x'      ->  3 passed, 1 failed
//! ======= 1 failed, 3 passed in 0.12s =======        FAILED tests/a.py::test_b - KeyError: 'x'
//! ```
//!
//! Each module knows one family of programs. The first family in the table that finds error lines decides on them.

mod pytest; //       pytest and runners with its summary line
mod unittest; //     Python unittest, Django
mod go; //           go test, build and vet
mod cargo; //        cargo test, rustc
mod javascript; //   Jest, Vitest, Mocha, TAP
mod jvm; //          JUnit, Maven, Gradle; dotnet
mod compilers; //    gcc, clang, tsc, mypy
mod linters; //      findings such as `a.py:3:5: F401 …`
mod sphinx; //       sphinx-build
mod python; //       tracebacks
mod node; //         uncaught exceptions of Node.js
mod task_runners; // make, npm, mise
mod plain; //        error lines of any program

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use crate::actions::status::{TestCounts, lines};
use crate::text::condense::severity::head;

/// The verdict of the programs that a command ran, as far as their output shows it.
#[derive(Debug, Default)]
pub(super) struct ProgramVerdict<'a> {
    /// The test counts.
    pub(super) tests: Option<TestCounts>,
    /// True if packages were counted, because the output does not list tests.
    pub(super) are_packages: bool,
    /// The summary in the words of the program.
    pub(super) summary: Option<&'a str>,
    /// True if the output contains a failing summary.
    pub(super) has_failed: bool,
    /// True if the output looks like that of an aborted program: compiler errors, an uncaught exception, a time limit.
    /// Programs can also print such text and succeed.
    pub(super) was_aborted: bool,
    /// The deciding error lines, the most telling first.
    pub(super) errors: Vec<&'a str>,
}

/// A parser for the output of a family of programs.
struct VerdictParser {
    /// Words of the commands that run these programs.
    commands: &'static [&'static str],
    /// An output that contains none of these strings has no verdict of these programs, unless the command matches.
    marks: &'static [&'static str],
    parse: for<'a> fn(&[&'a str]) -> ProgramVerdict<'a>,
}

/// Test runners come before compilers and compilers before task runners, which only repeat that something failed.
const PARSERS: [&VerdictParser; 13] = [
    &plain::PARSER,
    &pytest::PARSER,
    &unittest::PARSER,
    &go::PARSER,
    &cargo::PARSER,
    &javascript::PARSER,
    &jvm::PARSER,
    &compilers::PARSER,
    &linters::PARSER,
    &sphinx::PARSER,
    &python::PARSER,
    &node::PARSER,
    &task_runners::PARSER,
];

const MAX_ERRORS: usize = 6;
const MAX_LINE_BYTES: usize = 400;

/// Parses the verdict of a command from its output.
pub(super) fn parse<'a>(command: &str, output: &'a str) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    if prints_text(command) {
        return verdict;
    }
    let is_candidate = candidates(command, output);
    if !is_candidate.contains(&true) {
        return verdict;
    }
    let lines = bare_lines(output);
    for (parser, _) in PARSERS.iter().zip(is_candidate).filter(|(_, is_candidate)| *is_candidate) {
        verdict.add((parser.parse)(&lines));
    }
    verdict.errors = shortened(verdict.errors);
    verdict
}

/// The error lines of a failed call whose program is unknown.
pub(super) fn plain_errors<'a>(command: &str, output: &'a str) -> Vec<&'a str> {
    shortened(plain::errors(command, &bare_lines(output)))
}

impl<'a> ProgramVerdict<'a> {
    fn add(&mut self, other: ProgramVerdict<'a>) {
        if let Some(tests) = other.tests {
            self.are_packages = other.are_packages && self.tests.is_none();
            self.tests.get_or_insert_default().add(tests);
        }
        self.summary = self.summary.or(other.summary);
        self.has_failed |= other.has_failed;
        self.was_aborted |= other.was_aborted;
        if self.errors.is_empty() {
            self.errors = other.errors;
        }
    }
}

/// Removes blanks and repetitions.
fn shortened(errors: Vec<&str>) -> Vec<&str> {
    let mut out = Vec::new();
    for error in errors {
        let error = head(error.trim(), MAX_LINE_BYTES).trim_end();
        if !error.is_empty() && !out.contains(&error) && out.len() < MAX_ERRORS {
            out.push(error);
        }
    }
    out
}

/// Returns for each parser whether the command or the output may be of its programs.
fn candidates(command: &str, output: &str) -> [bool; PARSERS.len()] {
    let is_run = |name: &&str| command.split([' ', '/', ':']).any(|word| word == *name);
    let mut out = PARSERS.map(|parser| parser.commands.iter().any(is_run));
    for found in MARKS.0.find_overlapping_iter(output) {
        out[MARKS.1[found.pattern().as_usize()]] = true;
    }
    out
}

/// The marks of all parsers, and the index of the parser of each mark.
static MARKS: LazyLock<(AhoCorasick, Vec<usize>)> = LazyLock::new(|| {
    let marks =
        PARSERS.iter().enumerate().flat_map(|(i, parser)| parser.marks.iter().map(move |mark| (mark, i)));
    let (marks, parsers): (Vec<&str>, Vec<usize>) = marks.unzip();
    (AhoCorasick::new(marks).expect("a short list of strings"), parsers)
});

/// Returns whether a command only prints files or history, which may mention failures of other commands, or arranges
/// files.
pub(super) fn prints_text(command: &str) -> bool {
    command.split(" && ").all(|part| {
        let mut words = part.split_whitespace().filter(|word| !word.starts_with('-'));
        let program = words.next().unwrap_or_default();
        match program.rsplit('/').next().unwrap_or_default() {
            "git" => !words.take(2).any(|word| matches!(word, "commit" | "push" | "bisect" | "hook")),
            "docker" | "kubectl" => words.any(|word| word == "logs"),
            program => TEXT_PROGRAMS.contains(&program),
        }
    })
}

const TEXT_PROGRAMS: [&str; 31] = [
    "cat",
    "grep",
    "rg",
    "head",
    "tail",
    "sed",
    "awk",
    "nl",
    "less",
    "ls",
    "find",
    "wc",
    "echo",
    "printf",
    "sort",
    "diff",
    "jq",
    "gh",
    "journalctl",
    "dmesg",
    "cd",
    "mkdir",
    "rm",
    "rmdir",
    "cp",
    "mv",
    "touch",
    "chmod",
    "ln",
    "xxd",
    "od",
];

/// The lines of an output, without the parts that a progress display has overwritten and without the names of tasks
/// that a runner prints before each line.
fn bare_lines(output: &str) -> Vec<&str> {
    lines(output).map(bare_line).collect()
}

fn bare_line(line: &str) -> &str {
    let line = line.trim_end();
    let line = line.rfind('\r').map_or(line, |at| &line[at + 1..]);
    match line.as_bytes().first() {
        Some(b'[') => match line[1..].split_once("] ") {
            Some((name, rest)) if is_task_name(name) && !task_runners::is_trailer(line) => rest,
            _ => line,
        },
        Some(b'S' | b's') => {
            line.strip_prefix("STDERR: ").or_else(|| line.strip_prefix("stderr: ")).unwrap_or(line)
        }
        _ => line,
    }
}

fn is_task_name(name: &str) -> bool {
    name.len() < 40
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b":_-".contains(&b))
}

/// Parses a position as in `src/a.c:3:5: message` and returns the message.
fn message_at_position(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(':')?;
    let extension = path.rsplit('.').next().filter(|extension| extension.len() < path.len())?;
    let is_path = extension.len() <= 5
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && !path.contains([' ', '\t', '"', '(']);
    if !is_path {
        return None;
    }
    let mut rest = strip_number(rest)?;
    rest = rest.strip_prefix(':').and_then(strip_number).unwrap_or(rest);
    let message = rest.strip_prefix(':').unwrap_or(rest);
    (message.starts_with(' ') && !message.trim().is_empty()).then(|| message.trim())
}

fn strip_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

/// The counts in a summary: `1 failed, 3 passed`, `Failures: 1`.
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
            "skipped" | "ignored" | "pending" | "todo" => counts.skipped += number,
            _ => counts.failed += number,
        }
    }
    counts
}

static COUNTED: LazyLock<Regex> = LazyLock::new(|| {
    let words =
        "passed|passing|pass|failed|failing|failures?|errors?|exceptions?|fail|skipped|ignored|pending|todo";
    Regex::new(&format!(r"(?i)\b(\d+) ({words})\b|\b({words})\s*[:=]\s*(\d+)")).expect("a pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::Expect;

    use super::*;

    /// Compares the verdict on the output of a command: the counts and the summary, then the error lines.
    pub(super) fn check(command: &str, output: &str, expected: &Expect) {
        let verdict = parse(command, output);
        let ProgramVerdict { tests, summary, has_failed, was_aborted, are_packages, errors } = verdict;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(tests.map(|TestCounts { passed, failed, skipped }| {
            format!("{passed} passed, {failed} failed, {skipped} skipped")
        }));
        parts.extend(are_packages.then(|| "packages".to_owned()));
        parts.extend(summary.map(|summary| format!("`{summary}`")));
        parts.extend(has_failed.then(|| "failed".to_owned()));
        parts.extend(was_aborted.then(|| "aborted".to_owned()));
        if parts.is_empty() {
            parts.push("no summary".to_owned());
        }
        let errors: String = errors.iter().map(|error| format!("{error}\n")).collect();
        expected.assert_eq(&format!("{}\n{errors}", parts.join("; ")));
    }

    #[test]
    fn positions_are_parsed() {
        let cases = [
            ("src/a.c:3:5: error: x", Some("error: x")),
            ("./a.go:12: x", Some("x")),
            ("a.py:3:1 F401 unused", Some("F401 unused")),
            ("12:30:01 started", None),
            ("http://a.b:80: x", None),
            ("see a.rs:3: x", None),
            ("a.rs:3:", None),
        ];
        for (line, message) in cases {
            assert_eq!(message_at_position(line), message, "{line}");
        }
    }

    #[test]
    fn commands_that_print_text_have_no_verdict() {
        for command in ["cat a.log", "git log -3", "cd a && git -C b diff", "gh run view 3 --log-failed"] {
            assert!(prints_text(command), "{command}");
        }
        for command in ["make test", "cat a && make", "git commit -m x", "docker compose up"] {
            assert!(!prints_text(command), "{command}");
        }
    }

    #[test]
    fn the_names_of_tasks_and_streams_are_removed() {
        let cases = [
            ("[lint:go] a.go:3:2: x", "a.go:3:2: x"),
            ("[lint] ERROR task failed", "[lint] ERROR task failed"),
            ("[ERROR] a", "[ERROR] a"),
            ("STDERR: Traceback", "Traceback"),
            ("Rebasing (1/2)\rerror: x", "error: x"),
        ];
        for (line, bare) in cases {
            assert_eq!(bare_line(line), bare, "{line}");
        }
    }
}
