//! The tools of Go: tests, compiler errors, panics.

use std::collections::BTreeSet;

use super::{ProgramVerdict, VerdictParser, message_at_position};
use crate::actions::status::TestCounts;

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["go"],
    marks: &["--- FAIL", "--- PASS", "FAIL\t", "ok  \t", "panic: ", "\n# "],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut tests = TestCounts::default();
    let mut packages = TestCounts::default();
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    let mut logged: Vec<(&str, usize)> = Vec::new();
    let mut compiler: Vec<&str> = Vec::new();
    let mut panics: Vec<&str> = Vec::new();
    let mut failed_packages: Vec<&str> = Vec::new();
    let (mut test, mut is_compiling) = ("", false);
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let is_indented = bare.len() < line.len();
        match bare.as_bytes().first() {
            Some(b'=') => test = test_name(bare, &["=== RUN", "=== NAME", "=== CONT"]).unwrap_or(test),
            Some(b'-') => {
                if let Some(name) = test_name(bare, &["--- FAIL:"]) {
                    failed.insert(name);
                    test = name;
                    tests.failed += u32::from(!is_indented);
                }
                tests.passed += u32::from(line.starts_with("--- PASS:"));
                tests.skipped += u32::from(line.starts_with("--- SKIP:"));
            }
            Some(b'F') if line.starts_with("FAIL\t") => {
                packages.failed += 1;
                failed_packages.push(line);
            }
            Some(b'o') if line.starts_with("ok  \t") => packages.passed += 1,
            Some(b'p') if line.starts_with("panic: ") => {
                panics.push(line);
                let frames = lines[at..].iter().map(|line| line.trim_start());
                let is_own =
                    |line: &&str| line.contains(".go:") && line.contains(" +0x") && !is_foreign(line);
                panics.extend(frames.take(80).find(is_own));
            }
            Some(b'#') => is_compiling |= line.starts_with("# "),
            Some(_) if is_indented && is_log(bare) => logged.push((test, at)),
            Some(_) if !is_indented && compiler.len() < 9 => {
                let finding = line.strip_prefix("vet: ").unwrap_or(line);
                let is_finding = finding.contains(".go:") && message_at_position(finding).is_some();
                compiler.extend(is_finding.then_some(*line));
            }
            _ => {}
        }
    }
    let has_failed = !failed.is_empty() || packages.failed > 0;
    if !is_compiling {
        compiler.clear();
    }
    let was_aborted = !panics.is_empty() || !compiler.is_empty();
    let are_packages = tests == TestCounts::default();
    let counts = if are_packages { packages } else { tests };
    let mut errors = panics;
    errors.extend(compiler);
    let messages = failure_messages(lines, &logged, &failed);
    errors.extend(messages.iter().take(3));
    let has_failed_subtest = |name: &&str| {
        failed.iter().any(|other| other.strip_prefix(*name).is_some_and(|rest| rest.starts_with('/')))
    };
    let is_leaf = |line: &&&str| {
        test_name(line.trim_start(), &["--- FAIL:"]).is_some_and(|name| !has_failed_subtest(&name))
    };
    errors.extend(lines.iter().filter(is_leaf).take(3));
    errors.extend(failed_packages);
    ProgramVerdict {
        are_packages,
        tests: (counts != TestCounts::default()).then_some(counts),
        has_failed,
        was_aborted,
        errors: if has_failed || was_aborted { errors } else { Vec::new() },
        ..ProgramVerdict::default()
    }
}

/// The name of a test in a line such as `--- FAIL: TestX (0.01s)`.
fn test_name<'a>(line: &'a str, marks: &[&str]) -> Option<&'a str> {
    let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    rest.split_whitespace().next()
}

/// Returns whether a line is printed by a test: `a_test.go:12: message`.
fn is_log(line: &str) -> bool {
    line.split_once(".go:").is_some_and(|(file, rest)| {
        !file.contains([' ', '/', '"'])
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.contains(':')
    })
}

/// The messages of failed tests. Tests print failures and other messages in the same form.
fn failure_messages<'a>(
    lines: &[&'a str],
    logged: &[(&str, usize)],
    failed: &BTreeSet<&str>,
) -> Vec<&'a str> {
    let mut telling: Vec<&str> = Vec::new();
    let mut last = None;
    for (_, at) in logged.iter().filter(|(test, _)| test.is_empty() || failed.contains(test)) {
        let line = lines[*at].trim_start();
        let message = line.splitn(3, ':').nth(2).unwrap_or_default().trim();
        if message.is_empty() {
            // testify prints the message below.
            let below = lines[at + 1..].iter().take(12).map(|line| line.trim_start());
            let details = below.filter(|line| {
                ["Error:", "expected:", "actual  :"].iter().any(|mark| line.starts_with(mark))
            });
            telling.extend(details.take(3));
            continue;
        }
        let words = [
            "want",
            "expect",
            "should",
            "got",
            "fail",
            "error",
            "Error",
            "not ",
            "unexpected",
            "nvalid",
            "differ",
            "mismatch",
            "missing",
        ];
        let is_telling = line.contains("_test.go:") && words.iter().any(|word| message.contains(word));
        if is_telling {
            telling.push(line);
        }
        last = Some(line);
    }
    if telling.is_empty() { last.into_iter().collect() } else { telling }
}

fn is_foreign(frame: &str) -> bool {
    ["/src/runtime/", "/src/testing/", "/pkg/mod/"].iter().any(|mark| frame.contains(mark))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn messages_of_failed_tests_are_found() {
        check(
            "go test ./...",
            r#"
?   	example.com/shop/cmd	[no test files]
ok  	example.com/shop/cart	(cached)
--- FAIL: TestOrder (0.01s)
    --- FAIL: TestOrder/empty (0.00s)
        order_test.go:21: opened the store
        order_test.go:24: Total() = 3, want 0
FAIL
FAIL	example.com/shop/order	0.441s
FAIL
"#,
            &expect![[r#"
                0 passed, 1 failed, 0 skipped; failed
                order_test.go:24: Total() = 3, want 0
                --- FAIL: TestOrder/empty (0.00s)
                FAIL	example.com/shop/order	0.441s
            "#]],
        );
        check(
            "go test -v ./order",
            r#"
=== RUN   TestPrice
    order_test.go:9: expected prices are loaded
--- PASS: TestPrice (0.00s)
=== RUN   TestStore
    order_test.go:40: 
        	Error Trace:	/shop/order_test.go:40
        	Error:      	Not equal: 
        	            	expected: 1
        	            	actual  : 2
--- FAIL: TestStore (0.00s)
FAIL
FAIL	example.com/shop/order	0.002s
"#,
            &expect![[r#"
                1 passed, 1 failed, 0 skipped; failed
                Error:      	Not equal:
                expected: 1
                actual  : 2
                --- FAIL: TestStore (0.00s)
                FAIL	example.com/shop/order	0.002s
            "#]],
        );
    }

    #[test]
    fn compiler_errors_are_found() {
        check(
            "go build ./...",
            r#"
# example.com/shop/order
order/order.go:3:2: "fmt" imported and not used
order/order.go:9:7: undefined: total
"#,
            &expect![[r#"
                aborted
                order/order.go:3:2: "fmt" imported and not used
                order/order.go:9:7: undefined: total
            "#]],
        );
        check(
            "mise run test",
            r#"
[test] $ go test ./...
# example.com/shop/order [example.com/shop/order.test]
order/order_test.go:8:9: undefined: newOrder
FAIL	example.com/shop/order [build failed]
ok  	example.com/shop/cart	0.348s
FAIL
[test] ERROR task failed
"#,
            &expect![[r#"
                1 passed, 1 failed, 0 skipped; packages; failed; aborted
                order/order_test.go:8:9: undefined: newOrder
                FAIL	example.com/shop/order [build failed]
            "#]],
        );
    }

    #[test]
    fn panics_are_found_with_their_frame() {
        check(
            "go test ./order",
            r#"
--- FAIL: TestOrder (0.00s)
panic: runtime error: index out of range [3] with length 3 [recovered]

goroutine 7 [running]:
testing.tRunner.func1.2({0x1, 0x2})
	/usr/local/go/src/testing/testing.go:1734 +0x21c
example.com/shop/order.Last(...)
	/shop/order/order.go:12 +0x18
FAIL	example.com/shop/order	0.010s
"#,
            &expect![[r#"
                0 passed, 1 failed, 0 skipped; failed; aborted
                panic: runtime error: index out of range [3] with length 3 [recovered]
                /shop/order/order.go:12 +0x18
                --- FAIL: TestOrder (0.00s)
                FAIL	example.com/shop/order	0.010s
            "#]],
        );
    }
}
