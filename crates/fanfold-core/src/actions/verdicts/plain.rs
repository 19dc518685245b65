//! Error lines of any program: time limits, signals, messages of the shell, lines that report an error.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, prints_text, task_runners};
use crate::text::condense::severity::{Severity, severity_of};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &[],
    marks: &["imed out", "command not found", "Killed", "Segmentation fault"],
    parse,
};

/// Finds the reason why a command was stopped.
fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let ends = lines.iter().take(3).chain(lines.iter().rev().take(3));
    let errors: Vec<&str> = ends.filter_map(|line| stop(line)).collect();
    ProgramVerdict { was_aborted: !errors.is_empty(), errors, ..ProgramVerdict::default() }
}

/// The part of a line that says that a command was stopped or not found.
fn stop(line: &str) -> Option<&str> {
    if let Some((_, rest)) = line.split_once("</command> ") {
        return rest.starts_with("timed out").then_some(rest);
    }
    let is_shell =
        || ["bash: ", "sh: ", "/bin/", "zsh: ", "(eval):"].iter().any(|shell| line.starts_with(shell));
    let is_stop = line.starts_with("Command timed out")
        || line == "Killed"
        || line.starts_with("Segmentation fault")
        || line.contains("timed out after ") && line.len() < 120
        || line.contains("command not found") && is_shell();
    is_stop.then_some(line)
}

/// The error lines of a failed command.
pub(super) fn errors<'a>(command: &str, lines: &[&'a str]) -> Vec<&'a str> {
    let prints_text = prints_text(command);
    let programs: Vec<&str> = command.split([' ', '/']).filter(|word| !word.is_empty()).collect();
    let is_message = |line: &str| {
        if line.starts_with(['✗', '✖', '❌']) {
            return true;
        }
        let Some((program, _)) = line.split_once(": ") else { return false };
        let program = program.rsplit('/').next().unwrap_or_default();
        let shells = ["fatal", "error", "Error", "bash", "sh", "zsh", "CONFLICT (content)"];
        shells.contains(&program) || program.starts_with("(eval):") || programs.contains(&program)
    };
    let is_error = |line: &&str| {
        let line = line.trim_start();
        match prints_text {
            true => is_message(line),
            false => severity_of(line) == Severity::Error && !is_noise(line) || is_message(line),
        }
    };
    let found: Vec<&str> = lines.iter().copied().filter(is_error).take(4 * MAX_ERRORS).collect();
    let (mut errors, marks): (Vec<&str>, Vec<&str>) = found.into_iter().partition(|line| line.contains(": "));
    errors.extend(marks);
    if errors.is_empty() {
        errors.extend(lines.iter().filter(|line| task_runners::is_trailer(line)));
    }
    if errors.is_empty() {
        errors.extend(short_message(lines));
    }
    errors
}

/// The message of a program that prints little or explains its usage.
fn short_message<'a>(lines: &[&'a str]) -> Option<&'a str> {
    const MAX_LINES: usize = 5;
    let shown: Vec<&str> =
        lines.iter().copied().filter(|line| !line.trim().is_empty()).take(MAX_LINES + 1).collect();
    if shown.iter().any(|line| line.starts_with("Usage:") || line.starts_with("usage:")) {
        return shown.first().copied();
    }
    let is_likely = |line: &&&str| severity_of(line) != Severity::None;
    let is_progress = |line: &&str| line.ends_with("...") || line.ends_with('…');
    let likely = shown.iter().find(is_likely).or(shown.first()).copied();
    likely.filter(|line| shown.len() <= MAX_LINES && !is_progress(line))
}

/// Returns whether a line is a warning, a hint, the heading of a trace, or repeats that a task failed.
fn is_noise(line: &str) -> bool {
    let starts = [
        "warning",
        "Warning",
        "WARN",
        "npm warn",
        "npm WARN",
        "hint:",
        "--- Logging error",
        "INFO",
        "DEBUG",
        "+",
        "//",
        "#",
    ];
    starts.iter().any(|start| line.starts_with(start))
        || line.contains("Warning: ")
        || line.contains("Traceback (most recent")
        || task_runners::is_trailer(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::verdicts::plain_errors;

    #[test]
    fn reasons_for_a_stop_are_found() {
        let cases = [
            (
                "The last command <command>make</command> timed out and has been killed.",
                Some("timed out and has been killed."),
            ),
            ("Command timed out after 2m 0.0s", Some("Command timed out after 2m 0.0s")),
            ("bash: line 1: rg: command not found", Some("bash: line 1: rg: command not found")),
            ("Killed", Some("Killed")),
            ("the request timed out", None),
        ];
        for (line, reason) in cases {
            assert_eq!(stop(line), reason, "{line}");
        }
    }

    #[test]
    fn error_lines_are_found() {
        let cases: [(&str, &str, &[&str]); 10] = [
            (
                "./run.sh",
                "npm warn old\nWARNING: no errors\nrun.sh: line 3: a: Permission denied",
                &["run.sh: line 3: a: Permission denied"],
            ),
            ("./run.sh", "step 1\nFAIL\nFAIL: a.js exists\nbye", &["FAIL: a.js exists", "FAIL"]),
            ("make", "cc a.c\nmake: *** [Makefile:4: a.o] Error 1", &["make: *** [Makefile:4: a.o] Error 1"]),
            (
                "cat a.log b.log",
                "x: error: y\ncat: b.log: No such file or directory",
                &["cat: b.log: No such file or directory"],
            ),
            ("git diff x", "+error: y\nfatal: bad revision 'x'", &["fatal: bad revision 'x'"]),
            (
                "gh pr diff 3 --stat",
                "unknown flag: --stat\n\nUsage:  gh pr diff\n\nFlags:\n  a\n  b",
                &["unknown flag: --stat"],
            ),
            (
                "pylint -v",
                "usage: pylint [options]\npylint: error: expected one argument",
                &["pylint: error: expected one argument"],
            ),
            ("gh pr create", "no commits between a and b", &["no commits between a and b"]),
            ("./run.sh", "==> checking...\nb", &[]),
            ("./run.sh", "==> checking...\n✗ no branch", &["✗ no branch"]),
        ];
        for (command, output, errors) in cases {
            assert_eq!(plain_errors(command, output), errors, "{command}");
        }
    }
}
