//! pytest, and test runners that print the same summary line.

use std::sync::LazyLock;

use regex::Regex;

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, counts_in};
use crate::actions::status::TestCounts;
use crate::text::condense::severity::head;

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["pytest", "py.test"],
    marks: &[
        "tests finished:",
        "\nE   ",
        " passed",
        " failed",
        " skipped",
        "no tests ran",
        " error in ",
        " errors in ",
    ],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut assertions: Vec<&str> = Vec::new();
    let mut failures: Vec<&str> = Vec::new();
    let mut progress: Vec<&str> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match line.as_bytes().first() {
            Some(b'E') if line.starts_with("E   ") => {
                let is_first = i == 0 || !lines[i - 1].starts_with("E ");
                assertions.extend(is_first.then(|| line["E   ".len()..].trim()));
            }
            Some(b'E' | b'F') => {
                let is_failure = ["FAILED ", "ERROR ", "ERROR: "].iter().any(|mark| line.starts_with(mark));
                failures.extend(is_failure.then_some(*line));
            }
            Some(b'=' | b' ' | b'0'..=b'9') if SUMMARY.is_match(head(line, 200)) => {
                let counts = counts_in(line);
                if counts != TestCounts::default() {
                    verdict.tests.get_or_insert_default().add(counts);
                }
            }
            Some(b'!') if line.contains("Interrupted:") => verdict.has_failed = true,
            _ if line.contains(".py::") && line.contains(" FAILED") => progress.push(line),
            _ => {}
        }
        if failures.len() > MAX_ERRORS && assertions.len() > MAX_ERRORS && verdict.tests.is_some() {
            break;
        }
    }
    verdict.summary = lines
        .iter()
        .rev()
        .take(3)
        .find(|line| line.contains("no tests ran"))
        .map(|line| line.trim_matches(['=', ' ']));
    verdict.has_failed |= verdict.tests.is_some_and(|tests| tests.failed > 0);
    let ran = verdict.tests.is_some() || verdict.has_failed || !assertions.is_empty();
    if ran || failures.iter().any(|line| line.contains(".py")) {
        let has_message = failures.first().is_some_and(|line| line.contains(" - ") && !line.ends_with("..."));
        let n_first = usize::from(!has_message).min(assertions.len());
        verdict.errors.extend(assertions.drain(..n_first));
        let n_second = failures.len().min(2);
        verdict.errors.extend(failures.drain(..n_second));
        verdict.errors.extend(assertions.into_iter().take(2));
        verdict.errors.extend(failures);
        if verdict.errors.is_empty() {
            verdict.errors = progress;
        }
    }
    verdict
}

static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    let words = "passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|expected|exceptions?";
    Regex::new(&format!(r"^[= ]*(?:tests finished: \d|\d+ (?:{words})\b.* in \d)")).expect("a pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn failures_are_found() {
        check(
            "pytest tests/shop",
            r#"
============================= test session starts ==============================
rootdir: /shop
collected 13 items

tests/shop/test_cart.py ...F......F..                                    [100%]

=================================== FAILURES ===================================
__________________________________ test_total __________________________________

    def test_total():
>       assert total(CART) == 12
E       assert 11 == 12
E        +  where 11 = total(CART)

tests/shop/test_cart.py:9: AssertionError
__________________________________ test_price __________________________________
>       return PRICES[name]
E       KeyError: 'pear'

shop/cart.py:31: KeyError
=========================== short test summary info ============================
FAILED tests/shop/test_cart.py::test_total - assert 11 == 12
FAILED tests/shop/test_cart.py::test_price - KeyError: 'pear'
================== 2 failed, 10 passed, 1 skipped in 0.12s =====================
"#,
            &expect![[r#"
                10 passed, 2 failed, 1 skipped; failed
                FAILED tests/shop/test_cart.py::test_total - assert 11 == 12
                FAILED tests/shop/test_cart.py::test_price - KeyError: 'pear'
                assert 11 == 12
                KeyError: 'pear'
            "#]],
        );
        check(
            "make test",
            r#"
1 failed, 3 passed in 0.1s
"#,
            &expect![[r#"
                3 passed, 1 failed, 0 skipped; failed
            "#]],
        );
    }

    #[test]
    fn collection_errors_are_found() {
        check(
            "python -m pytest",
            r#"
==================================== ERRORS ====================================
____________________ ERROR collecting tests/test_order.py ______________________
ImportError while importing test module '/shop/tests/test_order.py'.
tests/test_order.py:2: in <module>
    from shop import order
E   ImportError: cannot import name 'order' from 'shop'
=========================== short test summary info ============================
ERROR tests/test_order.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.05s ===============================
"#,
            &expect![[r#"
                0 passed, 1 failed, 0 skipped; failed
                ImportError: cannot import name 'order' from 'shop'
                ERROR tests/test_order.py
            "#]],
        );
        check(
            "pytest tests/none.py",
            r#"
============================ no tests ran in 0.00s =============================
ERROR: file or directory not found: tests/none.py
"#,
            &expect![[r#"
                `no tests ran in 0.00s`
                ERROR: file or directory not found: tests/none.py
            "#]],
        );
    }

    #[test]
    fn passing_runs_have_no_errors() {
        check(
            "bin/test",
            r#"
shop/tests/test_cart.py[16] ................                               [OK]

================== tests finished: 16 passed, in 0.04 seconds ==================
"#,
            &expect![[r#"
                16 passed, 0 failed, 0 skipped
            "#]],
        );
    }
}
