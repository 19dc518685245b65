//! Test runners for JavaScript: Jest, Vitest, Mocha, and TAP.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, counts_in};
use crate::actions::status::TestCounts;

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["jest", "vitest", "mocha"],
    marks: &["Tests: ", "Tests  ", " passing (", " failing", "# pass ", "# fail ", "\nnot ok "],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut tests = TestCounts::default();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let heading = match bare.as_bytes().first() {
            Some(b'T' | b'#')
                if ["Tests:", "Tests  ", "# pass ", "# fail "].iter().any(|mark| bare.starts_with(mark)) =>
            {
                tests.add(tap_counts(bare).unwrap_or_else(|| counts_in(bare)));
                false
            }
            Some(b'0'..=b'9') if is_mocha_summary(bare) => {
                tests.add(counts_in(bare));
                false
            }
            Some(b'0'..=b'9') => tests.failed > 0 && bare.split_once(") ").is_some_and(|(n, _)| n.len() < 4),
            Some(b'n') => bare.starts_with("not ok "),
            Some(b'F') => bare.starts_with("FAIL ") && bare.contains(" > "),
            _ => bare.strip_prefix("● ").is_some_and(|name| !name.starts_with("Console")),
        };
        if heading && verdict.errors.len() < MAX_ERRORS {
            let below = lines[at + 1..].iter().take(12).map(|line| line.trim());
            verdict.errors.extend(below.clone().find(|line| is_message(line)));
            verdict.errors.push(bare);
            let details =
                below.filter(|line| line.starts_with("Expected: ") || line.starts_with("Received: "));
            verdict.errors.extend(details.take(2));
        }
    }
    verdict.tests = (tests != TestCounts::default()).then_some(tests);
    verdict.has_failed = tests.failed > 0;
    verdict
}

fn is_mocha_summary(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    [" passing", " failing", " pending"].iter().any(|word| rest.starts_with(word))
}

/// The counts of `# pass 3`.
fn tap_counts(line: &str) -> Option<TestCounts> {
    let (word, n) = line.strip_prefix("# ")?.split_once(' ')?;
    let n = n.trim().parse().ok()?;
    match word {
        "pass" => Some(TestCounts { passed: n, ..TestCounts::default() }),
        _ => Some(TestCounts { failed: n, ..TestCounts::default() }),
    }
}

fn is_message(line: &str) -> bool {
    let is_named =
        line.split_once(':').is_some_and(|(name, _)| name.ends_with("Error") && !name.contains(' '));
    is_named
        || line.starts_with("expect(")
        || line.starts_with("AssertionError")
        || line.starts_with("error: ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn failures_of_jest_are_found() {
        check(
            "npm test",
            r#"
FAIL src/cart.test.ts
  ● cart › adds items

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 1

      at Object.<anonymous> (src/cart.test.ts:8:25)

Test Suites: 1 failed, 3 passed, 4 total
Tests:       1 failed, 10 passed, 11 total
"#,
            &expect![[r#"
                10 passed, 1 failed, 0 skipped; failed
                expect(received).toBe(expected) // Object.is equality
                ● cart › adds items
                Expected: 2
                Received: 1
            "#]],
        );
    }

    #[test]
    fn failures_of_vitest_and_mocha_are_found() {
        check(
            "npx vitest run",
            r#"
 FAIL  src/cart.test.ts > cart > adds items
AssertionError: expected 1 to be 2 // Object.is equality
 ❯ src/cart.test.ts:8:25

 Test Files  1 failed | 3 passed (4)
      Tests  1 failed | 10 passed (11)
"#,
            &expect![[r#"
                10 passed, 1 failed, 0 skipped; failed
                AssertionError: expected 1 to be 2 // Object.is equality
                FAIL  src/cart.test.ts > cart > adds items
            "#]],
        );
        check(
            "npx mocha",
            r#"
  10 passing (3s)
  1 failing

  1) cart
       adds items:

      AssertionError [ERR_ASSERTION]: 1 == 2
      at Context.<anonymous> (test/cart.js:8:12)
"#,
            &expect![[r#"
                10 passed, 1 failed, 0 skipped; failed
                AssertionError [ERR_ASSERTION]: 1 == 2
                1) cart
            "#]],
        );
        check(
            "node --test",
            r#"
not ok 1 - adds items
# tests 2
# pass 1
# fail 1
"#,
            &expect![[r#"
                1 passed, 1 failed, 0 skipped; failed
                not ok 1 - adds items
            "#]],
        );
    }
}
