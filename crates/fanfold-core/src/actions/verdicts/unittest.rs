//! unittest of Python, and test runners that are built on it.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, counts_in, python};
use crate::actions::status::TestCounts;

pub(super) const PARSER: VerdictParser =
    VerdictParser { commands: &["unittest"], marks: &["\nRan ", "FAILED (", "\nERRORS:\n"], parse };

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut n_ran: u32 = 0;
    let mut progress: Vec<&str> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match line.as_bytes().first() {
            Some(b'F' | b'E')
                if is_heading(line)
                    && i > 0
                    && lines[i - 1].starts_with("=====")
                    && verdict.errors.len() < MAX_ERRORS =>
            {
                let below = &lines[i + 1..];
                let end = below.iter().position(|line| line.starts_with("=====") || line.starts_with("Ran "));
                let trace = python::last_trace(&below[..end.unwrap_or(below.len())]);
                verdict.errors.extend(trace.map(|trace| trace.exception));
                verdict.errors.push(line);
            }
            // The system check of Django.
            Some(b'E') if *line == "ERRORS:" => verdict.errors.extend(lines.get(i + 1)),
            Some(b'R') if line.starts_with("Ran ") => {
                n_ran = line["Ran ".len()..].split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            }
            Some(b'F' | b'O')
                if line.starts_with("FAILED (") || *line == "OK" || line.starts_with("OK (") =>
            {
                let TestCounts { failed, skipped, .. } =
                    counts_in(&line.replace("expected failures", "expected"));
                let passed = n_ran.saturating_sub(failed + skipped);
                verdict.tests.get_or_insert_default().add(TestCounts { passed, failed, skipped });
                verdict.has_failed |= line.starts_with('F');
                n_ran = 0;
            }
            _ if line.ends_with(" ... FAIL") || line.ends_with(" ... ERROR") => progress.push(line),
            _ => {}
        }
    }
    if verdict.errors.is_empty() {
        verdict.errors = progress;
    }
    verdict.tests = verdict.tests.filter(|tests| *tests != TestCounts::default());
    verdict
}

fn is_heading(line: &str) -> bool {
    line.starts_with("FAIL: ") || line.starts_with("ERROR: ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn failures_are_found() {
        check(
            "python -m unittest",
            r#"
test_total (shop.tests.CartTests) ... FAIL
test_price (shop.tests.CartTests) ... ERROR

======================================================================
ERROR: test_price (shop.tests.CartTests)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/shop/cart.py", line 31, in price
    return PRICES[name]
KeyError: 'pear'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/shop/tests.py", line 14, in test_price
    price("pear")
shop.errors.NoPrice: pear

======================================================================
FAIL: test_total (shop.tests.CartTests)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/shop/tests.py", line 9, in test_total
    self.assertEqual(total(CART), 12)
AssertionError: 11 != 12

----------------------------------------------------------------------
Ran 12 tests in 0.123s

FAILED (failures=1, errors=1, skipped=2)
"#,
            &expect![[r#"
                8 passed, 2 failed, 2 skipped; failed
                shop.errors.NoPrice: pear
                ERROR: test_price (shop.tests.CartTests)
                AssertionError: 11 != 12
                FAIL: test_total (shop.tests.CartTests)
            "#]],
        );
        check(
            "./runtests.py | tail -4",
            r#"
----------------------------------------------------------------------
Ran 3 tests in 0.001s

OK (skipped=1, expected failures=1)
"#,
            &expect![[r#"
                2 passed, 0 failed, 1 skipped
            "#]],
        );
    }

    #[test]
    fn system_checks_are_found() {
        check(
            "python manage.py migrate",
            r#"
SystemCheckError: System check identified some issues:

ERRORS:
shop.Item: (models.E015) 'ordering' refers to the nonexistent field 'size'.
"#,
            &expect![[r#"
                no summary
                shop.Item: (models.E015) 'ordering' refers to the nonexistent field 'size'.
            "#]],
        );
    }
}
