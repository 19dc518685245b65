//! JUnit, Maven and Gradle, and the test runner of .NET.

use super::{ProgramVerdict, VerdictParser, counts_in};
use crate::actions::status::TestCounts;

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["mvn", "gradle", "gradlew", "dotnet"],
    marks: &["Tests run: ", "BUILD FAIL", "BUILD SUCC", "Failed!  -", "Passed!  -", "Exception in thread "],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut failures: Vec<&str> = Vec::new();
    let mut other: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let bare = strip_level(line).trim_start();
        if let Some(counts) = bare.strip_prefix("Tests run: ") {
            // The lines of single classes also have the time.
            if !bare.contains("Time elapsed") {
                let TestCounts { failed, skipped, .. } = counts_in(counts);
                let n_ran: u32 = counts.split(',').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                let passed = n_ran.saturating_sub(failed + skipped);
                verdict.tests.get_or_insert_default().add(TestCounts { passed, failed, skipped });
            }
        } else if bare.starts_with("Failed!  -") || bare.starts_with("Passed!  -") {
            verdict.tests.get_or_insert_default().add(counts_in(bare));
        } else if bare.starts_with("BUILD FAIL") || bare.starts_with("BUILD SUCC") {
            verdict.summary = Some(bare);
            verdict.has_failed |= bare.starts_with("BUILD FAIL");
        } else if line.ends_with(" FAILED") && line.contains(" > ") {
            failures.extend(lines.get(at + 1).filter(|below| below.starts_with(' ')));
            failures.push(line);
        } else if line.starts_with("[ERROR]") || line.starts_with("Exception in thread ") {
            let is_advice = ["Failures:", "Errors:", "->", "Re-run", "To see", "For more", "After"]
                .iter()
                .any(|start| bare.starts_with(start));
            let is_finding = bare.contains(':') && !is_advice;
            if is_finding { failures.push(bare) } else { other.push(bare) }
        } else if line.starts_with("Execution failed for task ")
            || line.starts_with("> There were failing tests")
        {
            other.push(line);
        }
    }
    verdict.has_failed |= verdict.tests.is_some_and(|tests| tests.failed > 0);
    verdict.errors = if failures.is_empty() { other } else { failures };
    verdict
}

/// Removes the level that Maven prints before each line.
fn strip_level(line: &str) -> &str {
    ["[ERROR] ", "[INFO] ", "[WARNING] "].iter().find_map(|level| line.strip_prefix(level)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn failures_of_maven_are_found() {
        check(
            "mvn test",
            r#"
[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.03 s <<< FAILURE! -- in CartTest
[ERROR] Failures: 
[ERROR]   CartTest.adds:12 expected: <2> but was: <1>
[INFO] 
[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test
[ERROR] -> [Help 1]
"#,
            &expect![[r#"
                3 passed, 1 failed, 1 skipped; `BUILD FAILURE`; failed
                CartTest.adds:12 expected: <2> but was: <1>
                Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test
            "#]],
        );
    }

    #[test]
    fn failures_of_gradle_are_found() {
        check(
            "./gradlew test",
            r#"
CartTest > adds() FAILED
    org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
        at CartTest.adds(CartTest.java:12)

3 tests completed, 1 failed

* What went wrong:
Execution failed for task ':test'.

BUILD FAILED in 3s
"#,
            &expect![[r#"
                `BUILD FAILED in 3s`; failed
                org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
                CartTest > adds() FAILED
            "#]],
        );
    }

    #[test]
    fn counts_of_dotnet_are_found() {
        check(
            "dotnet test",
            r#"
Failed!  - Failed:     1, Passed:    10, Skipped:     2, Total:    13
"#,
            &expect![[r#"
                10 passed, 1 failed, 2 skipped; failed
            "#]],
        );
    }
}
