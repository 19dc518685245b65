//! Tables: keeps the header, the last row, rows that report a failure, rows with names that are likely to be used again, and the first rows if there is room.
//!
//! Padding and rules between rows are dropped.
//!
//! In 200 bytes:
//!
//! ```text
//! | id   | name             | state     | updated             |
//! |------|------------------|-----------|---------------------|
//! | 1001 | nightly import   | done      | 2024-05-14 02:00:11 |
//! | 1002 | nightly export   | done      | 2024-05-14 02:10:45 |
//! | 1003 | invoices         | failed: disk full | 2024-05-14 03:00:02 |
//! | 1004 | stock count      | done      | 2024-05-14 04:00:00 |
//! | 1005 | price update     | done      | 2024-05-14 05:30:20 |
//! | 1006 | nightly import   | done      | 2024-05-15 02:00:09 |
//! | 1007 | nightly export   | running   | 2024-05-15 02:10:44 |
//! ->
//! | id | name | state | updated |
//! … 2 rows
//! | 1003 | invoices | failed: disk full | 2024-05-14 03:00:02 |
//! … 3 rows
//! | 1007 | nightly export | running | 2024-05-15 02:10:44 |
//! ```

use crate::text::condense::lines::{Gap, MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::{Severity, head, severity_of};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Table,
    detects: |sample| !sample.is_numbered && is_table(&sample.lines),
    condense: |text, options, _| condense(text, options),
    has_errors: true,
    suits_line_choice: false,
    may_be_code: true,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut rows = Rows::new(options);
    let mut n_rows = 0;
    for line in text.split('\n') {
        if is_rule(line) {
            rows.push("", NONE);
            rows.gap(Gap::Silent);
            continue;
        }
        let weight = match n_rows {
            0 => MUST,
            _ if severity_of(line) == Severity::Error => MUST,
            1..=3 => SHAPE,
            _ => PLAIN,
        };
        rows.push_owned(narrow(line), weight);
        rows.gap(Gap::Row);
        n_rows += 1;
    }
    rows.raise_ends(1, 1);
    rows.choose()
}

/// Returns whether a line is a rule such as `|----|------|`.
fn is_rule(line: &str) -> bool {
    line.trim().is_empty() || line.bytes().all(|b| b"-=+| :".contains(&b))
}

/// Removes the padding of a row.
fn narrow(line: &str) -> String {
    let mut out = String::with_capacity(line.len().min(1_000));
    let mut last = (' ', 0);
    for c in line.trim().chars() {
        let n = if c == last.0 { last.1 + 1 } else { 1 };
        last = (c, n);
        // Two spaces separate columns without bars; dashes may be a bar chart.
        let most = match c {
            ' ' => 2,
            '-' | '+' | '=' | '#' | '*' => 3,
            _ => usize::MAX,
        };
        if n <= most {
            out.push(c);
        }
    }
    if out.contains('|') { out.replace("  ", " ") } else { out }
}

/// Returns whether the lines have about the same number of bars, tabs or commas.
fn is_table(lines: &[&str]) -> bool {
    if lines.len() < 4 {
        return false;
    }
    ['|', '\t', ','].iter().any(|separator| {
        let n_columns = |line: &str| head(line, 1_000).matches(*separator).count();
        // The second line may be a rule and the last one a total.
        let usual = n_columns(lines[lines.len() / 2]);
        let n_usual = lines.iter().filter(|line| n_columns(line) == usual).count();
        let n_least = if *separator == ',' { 2 } else { 1 };
        usual >= n_least && n_usual * 10 >= lines.len() * 8
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_the_header_and_the_ends() {
        let text = {
            let rows: String = (0..60).map(|i| format!("| {i} | name{i} |\n")).collect();
            format!("| id | name |\n|----|------|\n{rows}")
        };
        check(
            ContentKind::Table,
            &text,
            160,
            &["name33"],
            &expect![[r#"
                | id | name |
                | 0 | name0 |
                | 1 | name1 |
                | 2 | name2 |
                | 3 | name3 |
                … 29 rows
                | 33 | name33 |
                … 24 rows
                | 58 | name58 |
                | 59 | name59 |
            "#]],
        );
    }
}
