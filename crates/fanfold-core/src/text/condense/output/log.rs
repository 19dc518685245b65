//! Program output, and any text with lines that is of no other kind.
//!
//! Keeps the first line of each kind of error verbatim, and the first and last lines of the text. Lines that repeat
//! an earlier one except for numbers are counted.
//!
//! In 300 bytes:
//!
//! ```text
//! 10:00:01 INFO start pid=4121 config=/etc/shop/shop.toml
//! 10:00:02 INFO got 3 jobs in 12 ms
//! 10:00:03 INFO got 5 jobs in 9 ms
//! 10:00:04 INFO got 9 jobs in 14 ms
//! 10:00:05 INFO got 2 jobs in 11 ms
//! 10:00:06 WARN queue is slow
//! 10:00:07 ERROR db is gone: connection to 10.0.3.7:5432 refused
//! 10:00:07 INFO retry in 1 s
//! 10:00:08 ERROR db is gone: connection to 10.0.3.7:5432 refused
//! 10:00:08 INFO retry in 2 s
//! 10:00:10 ERROR db is gone: connection to 10.0.3.7:5432 refused
//! 10:00:10 INFO retry in 4 s
//! 10:00:14 INFO db is back after 3 tries
//! 10:00:15 INFO got 40 jobs in 61 ms
//! 10:00:16 INFO got 8 jobs in 13 ms
//! 10:00:17 INFO stop
//! ->
//! 10:00:01 INFO start pid=4121 config=/etc/shop/shop.toml
//! 10:00:02 INFO got 3 jobs in 12 ms
//! … 3 alike
//! 10:00:06 WARN queue is slow
//! 10:00:07 ERROR db is gone: connection to 10.0.3.7:5432 refused
//! 10:00:07 INFO retry in 1 s
//! … 6 lines
//! 10:00:16 INFO got 8 jobs in 13 ms
//! 10:00:17 INFO stop
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;
use xxhash_rust::xxh3::xxh3_64;

use crate::text::condense::lines::{MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::{Severity, head, severity_of};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, trace};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Log,
    detects: |sample| !sample.is_numbered && sample.share(is_stamped) > 0.3,
    condense: |text, options, _| condense(text, options),
    has_errors: true,
    suits_line_choice: true,
    may_be_code: true,
};

pub(crate) fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut rows = Rows::new(options);
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut above = "";
    for line in text.split('\n') {
        if line.trim().is_empty() {
            rows.push(line, NONE);
            continue;
        }
        let n_seen = seen.entry(template(line)).or_default();
        *n_seen += 1;
        weigh(&mut rows, line, above, *n_seen);
        above = line;
    }
    rows.raise_ends(2, 3);
    rows.spread_weight();
    rows.choose()
}

/// Adds a line with its weight in program output; `above` is the line before, `n_seen` counts lines of its template.
pub(crate) fn weigh<'a>(rows: &mut Rows<'a, '_>, line: &'a str, above: &str, n_seen: u32) {
    if let Some(weight) = trace::weight(line, above) {
        rows.push(line, if n_seen == 1 { weight } else { PLAIN });
        return;
    }
    match (severity_of(line), n_seen) {
        (Severity::Error, 1) => rows.push(line, MUST),
        (Severity::Error, 2..=3) => rows.push(line, SHAPE),
        (Severity::Hint, 1) => rows.push(line, SHAPE),
        (Severity::Error | Severity::Hint, _) | (Severity::None, 2..) => rows.push_repeat(line),
        (Severity::None, _) => rows.push(line, PLAIN),
    }
}

/// The size of the error lines, one of each template.
pub(crate) fn n_error_bytes(text: &str) -> usize {
    let mut seen: HashSet<u64> = HashSet::new();
    let alarms =
        text.split('\n').filter(|line| severity_of(line) == Severity::Error && !trace::is_head(line));
    alarms.filter(|line| seen.insert(template(line))).map(|line| line.len().min(400) + 12).sum()
}

/// The hash of a line without its numbers.
pub(crate) fn template(line: &str) -> u64 {
    let mut buffer = [0_u8; 160];
    let mut n = 0;
    let mut was_digit = false;
    for byte in line.trim().bytes() {
        if n == buffer.len() {
            break;
        }
        let is_digit = byte.is_ascii_digit();
        if is_digit && was_digit {
            continue;
        }
        buffer[n] = if is_digit { b'0' } else { byte };
        n += 1;
        was_digit = is_digit;
    }
    xxh3_64(&buffer[..n])
}

/// Returns whether a line begins with a timestamp or a log level.
fn is_stamped(line: &str) -> bool {
    STAMP.is_match(head(line, 80))
}

static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"^\W{0,2}\d{4}[-/]\d\d[-/]\d\d[T ]\d",
        r"^\W{0,2}\d\d:\d\d:\d\d",
        r"^\W{0,2}[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d",
        r"^\W{0,2}(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL)\b",
        r"^(?:  +)?(?:Compiling|Downloading|Downloaded|Installing|Collecting|Requirement|Building|Checking|Fetching|Unpacking|Get:\d) ?",
        r"^time=",
    ];
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_errors_and_counts_repeats() {
        let text = {
            let jobs: String = (0..60).map(|i| format!("10:00:{i:02} got {i} jobs\n")).collect();
            format!(
                "10:00:00 start\n{jobs}10:01:00 ERROR db is gone\n  at pool 3\n{jobs}10:02:00 ERROR db is gone\n10:02:01 stop\n"
            )
        };
        check(
            ContentKind::Log,
            &text,
            300,
            &[],
            &expect![[r#"
            10:00:00 start
            10:00:00 got 0 jobs
            … 59 alike
            10:01:00 ERROR db is gone
              at pool 3
            … 59 alike
            10:00:59 got 59 jobs
            10:02:00 ERROR db is gone
            10:02:01 stop
        "#]],
        );
    }

    #[test]
    fn keeps_lines_in_use() {
        let text = (0..90).map(|i| format!("10:00:00 opened file{}.txt\n", i * i)).collect::<String>();
        check(
            ContentKind::Log,
            &text,
            120,
            &["file49.txt"],
            &expect![[r#"
                10:00:00 opened file0.txt
                10:00:00 opened file1.txt
                … 5 alike
                10:00:00 opened file49.txt
                … 82 alike
            "#]],
        );
    }
}
