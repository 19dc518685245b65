//! Rows of columns: the header, the first rows and the last, those that tell of a failure, and those in use.
//!
//! The space that lined the columns up, and the rules between them, are left out.
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

use crate::text::condense::Wish;
use crate::text::condense::lines::{Gap, MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::signs::{Sign, head, sign_of};

pub(crate) fn condense(text: &str, wish: &Wish<'_>) -> String {
    let mut rows = Rows::new(wish);
    let mut n_rows = 0;
    for line in text.split('\n') {
        if is_rule(line) {
            rows.push("", NONE);
            rows.gap(Gap::Silent);
            continue;
        }
        let weight = match n_rows {
            0 => MUST,
            _ if sign_of(line) == Sign::Alarm => MUST,
            1..=3 => SHAPE,
            _ => PLAIN,
        };
        rows.push_made(narrow(line), weight);
        rows.gap(Gap::Row);
        n_rows += 1;
    }
    rows.frame(1, 1);
    rows.choose()
}

/// Whether a line only separates: `|----|------|`.
fn is_rule(line: &str) -> bool {
    line.trim().is_empty() || line.bytes().all(|b| b"-=+| :".contains(&b))
}

/// A row without the space that lined its columns up.
fn narrow(line: &str) -> String {
    let mut out = String::with_capacity(line.len().min(1_000));
    let mut last = (' ', 0);
    for c in line.trim().chars() {
        let n = if c == last.0 { last.1 + 1 } else { 1 };
        last = (c, n);
        // Two spaces tell columns without bars apart; three dashes are a bar of a graph.
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

/// Whether the lines have columns: bars, tabs or commas, as many in each.
pub(crate) fn is_table(lines: &[&str]) -> bool {
    if lines.len() < 4 {
        return false;
    }
    ['|', '\t', ','].iter().any(|separator| {
        let n_columns = |line: &str| head(line, 1_000).matches(*separator).count();
        // The second line may be a rule, the last ones a count.
        let usual = n_columns(lines[lines.len() / 2]);
        let n_usual = lines.iter().filter(|line| n_columns(line) == usual).count();
        let n_least = if *separator == ',' { 2 } else { 1 };
        usual >= n_least && n_usual * 10 >= lines.len() * 8
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::Kind;
    use crate::text::condense::check::check;

    #[test]
    fn the_header_and_the_ends_stay() {
        let text = {
            let rows: String = (0..60).map(|i| format!("| {i} | name{i} |\n")).collect();
            format!("| id | name |\n|----|------|\n{rows}")
        };
        check(
            Kind::Table,
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
