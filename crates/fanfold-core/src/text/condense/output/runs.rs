//! Test runner output: keeps failures verbatim and the totals, counts passed tests.
//!
//! In 460 bytes:
//!
//! ```text
//! running 9 tests
//! test lexer::reads_an_empty_file ... ok
//! test lexer::reads_comments ... ok
//! test lexer::reads_numbers ... ok
//! test parser::reads_a_header ... FAILED
//! test parser::reads_a_list ... ok
//! test parser::reads_a_map ... ok
//! test printer::prints_a_header ... ok
//! test printer::prints_a_list ... ok
//! test printer::round_trips ... ok
//!
//! failures:
//!
//! ---- parser::reads_a_header stdout ----
//! thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//! assertion `left == right` failed
//!   left: 3
//!  right: 4
//! note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
//!
//! failures:
//!     parser::reads_a_header
//!
//! test result: FAILED. 8 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
//! ->
//! running 9 tests
//! … 3 passed
//! test parser::reads_a_header ... FAILED
//! … 5 passed
//! failures:
//!
//! ---- parser::reads_a_header stdout ----
//! thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//! assertion `left == right` failed
//!   left: 3
//!  right: 4
//! … 2 lines
//! failures:
//!     parser::reads_a_header
//!
//! test result: FAILED. 8 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
//! ```

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, Gap, MUST, NONE, Rows};
use crate::text::condense::output::log::{template, weigh};
use crate::text::condense::severity::{Severity, head, severity_of, tail};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, trace};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Tests,
    detects: |sample| !sample.is_numbered && is_run(&sample.lines),
    condense: |text, options, _| condense(text, options),
    has_errors: true,
    suits_line_choice: false,
    may_be_code: false,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut rows = Rows::new(options);
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut above = "";
    let mut is_failing = false;
    for line in text.split('\n') {
        if line.trim().is_empty() {
            rows.push(line, NONE);
            continue;
        }
        let n_seen = seen.entry(template(line)).or_default();
        *n_seen += 1;
        let start = head(line, 300);
        if is_pass(start) {
            is_failing = false;
            rows.push_repeat(line);
            rows.gap(Gap::Passed);
        } else if COUNTS.is_match(start) {
            is_failing = false;
            rows.push(line, MUST + 4.0);
        } else if FAILURE.is_match(start) {
            is_failing = true;
            rows.push(line, MUST + 2.0);
        } else if DETAIL.is_match(start) {
            // The place of the failure before its details.
            rows.push(line, if start.contains("panicked at") { MUST + 3.0 } else { MUST + 1.0 });
        } else if is_failing {
            rows.push(line, failing(line, above, *n_seen));
        } else {
            weigh(&mut rows, line, above, *n_seen);
        }
        above = line;
    }
    rows.raise_ends(1, 2);
    rows.spread_weight();
    rows.choose()
}

/// The weight of a line below the name of a failed test: the failure itself before its backtrace.
fn failing(line: &str, above: &str, n_seen: u32) -> f32 {
    let is_error = severity_of(line) == Severity::Error && !trace::is_head(line);
    match (is_error, n_seen) {
        (true, 1) => MUST + 3.0,
        (true, 2..=3) => MUST + 1.0,
        (true, _) => FRAME,
        (false, _) => trace::weight(line, above).unwrap_or(FRAME / 2.0),
    }
}

/// Returns whether the lines are test runner output.
fn is_run(lines: &[&str]) -> bool {
    let n_marks = lines.iter().filter(|line| SURE.is_match(head(line, 200))).count();
    let n_results = lines.iter().filter(|line| is_pass(line) || FAILURE.is_match(head(line, 200))).count();
    n_marks > 0 && (n_marks + n_results) * 20 > lines.len() || n_results * 3 > lines.len()
}

fn is_pass(line: &str) -> bool {
    let start = head(line.trim_start(), 200);
    let starts = [
        "ok  \t",
        "?   \t",
        "--- PASS",
        "=== RUN",
        "=== PAUSE",
        "=== CONT",
        "=== NAME",
        "✓ ",
        "✔ ",
        "√ ",
        "[       OK ]",
        "[ RUN ",
    ];
    starts.iter().any(|mark| start.starts_with(mark))
        || (start.starts_with("test ") && tail(line, 3) == " ok")
        || (tail(line, 3) == " ok" && start.contains(" ... "))
        || start.contains("::") && (start.contains(" PASSED") || start.contains(" SKIPPED"))
        || (start.starts_with("PASS ") && start.len() > 5)
        || PROGRESS.is_match(start)
}

static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\S+\.py [.sxX]+\s*(?:\[ *\d+%\])?$|^[.sx]{5,}\s*(?:\[ *\d+%\])?$").expect("a valid pattern")
});
static SURE: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"^test result: ",
        r"^running \d+ tests?$",
        r"^=+ .*\b(?:passed|failed|error|test session starts)\b.*=+$",
        r"^Ran \d+ tests? in ",
        r"^Tests:? +(?:\d+ (?:failed|passed)|.*\btotal\b)",
        r"^Test (?:Suites|Files):? +\d+",
        r"^\s+\d+ (?:passing|failing)\b",
        r"^--- (?:FAIL|PASS)",
        r"^(?:ok|FAIL|\?)\s+\S+\s+(?:\(cached\)|[\d.]+s|\[)",
        r"^\d+ examples?, \d+ failures?",
        r"^tests finished: ",
        r"^\d+ passed\b.* in \d",
    ];
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});
static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"^test result: ",
        r"^=+ .*\b(?:passed|failed|error)s?\b.*=+$",
        r"^Ran \d+ tests? in ",
        r"^(?:FAILED|OK)(?: \(|$)",
        r"^Tests:? +\d",
        r"^Test (?:Suites|Files):? +\d+",
        r"^\s+\d+ (?:passing|failing)\b",
        r"^FAIL(?:\t|$)",
        r"^\d+ examples?, \d+ failures?",
        r"^tests finished: ",
        r"^\d+ (?:passed|failed)\b.* in \d",
        r"^(?:error: test failed|exit status)",
    ];
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});
static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"^\s*--- FAIL",
        r"^test .* \.\.\. FAILED$",
        r"^---- .* stdout ----$",
        r"^_{3,} .* _{3,}$",
        r"^(?:FAIL|FAILED|ERROR)[: ]",
        r"\.\.\. (?:FAIL|ERROR)$",
        r"^\s*(?:●|✗|✕|×|✘) ",
        r"^not ok ",
        r"^\[  FAILED  \]",
        r"::\S+ (?:FAILED|ERROR)",
    ];
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});
static DETAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^E  |^>  |^\s*(?:Expected|Received|expected|actual|got|want|left|right)\s*[:=]|assert(?:ion)? .*failed|panicked at")
        .expect("a valid pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_failures_and_totals() {
        let text = {
            let passed: String = (0..40).map(|i| format!("test unit::t{i} ... ok\n")).collect();
            format!(
                "running 41 tests\n{passed}test unit::bad ... FAILED\n\nfailures:\n\n---- unit::bad stdout ----\nthread 'unit::bad' panicked at src/a.rs:3:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\ntest result: FAILED. 40 passed; 1 failed; 0 ignored\n"
            )
        };
        check(
            ContentKind::Tests,
            &text,
            400,
            &[],
            &expect![[r#"
                running 41 tests
                … 40 passed
                test unit::bad ... FAILED

                failures:

                ---- unit::bad stdout ----
                thread 'unit::bad' panicked at src/a.rs:3:5:
                assertion `left == right` failed
                  left: 1
                 right: 2

                test result: FAILED. 40 passed; 1 failed; 0 ignored
            "#]],
        );
    }
}
