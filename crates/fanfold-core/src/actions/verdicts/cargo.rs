//! Cargo and rustc: failed tests, panics, compiler errors.

use super::{ProgramVerdict, VerdictParser, counts_in};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["cargo", "rustc"],
    marks: &["error[E", "test result: ", "panicked at", "error: could not compile"],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut compiler: Vec<&str> = Vec::new();
    let mut panics: Vec<&str> = Vec::new();
    let mut failed: Vec<&str> = Vec::new();
    let mut other: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line.as_bytes().first() {
            Some(b'e') if line.starts_with("error: could not compile") => {
                verdict.summary = verdict.summary.or(Some(line));
                verdict.has_failed = true;
            }
            Some(b'e') if line.starts_with("error: test failed") => verdict.has_failed = true,
            Some(b'e') if line.starts_with("error[") || line.starts_with("error: ") => {
                let below = lines[at + 1..].iter().take(6).map(|line| line.trim_start());
                match below.clone().find(|line| line.starts_with("--> ")) {
                    Some(position) => compiler.extend([*line, position]),
                    None => other.push(line),
                }
            }
            Some(b't') if line.starts_with("test result: ") => {
                verdict.tests.get_or_insert_default().add(counts_in(line));
                verdict.has_failed |= line.starts_with("test result: FAILED");
            }
            Some(b't') if line.starts_with("test ") && line.ends_with("FAILED") => failed.push(line),
            Some(b't') if line.starts_with("thread ") && line.contains(" panicked at ") => {
                let message = lines.get(at + 1).copied().unwrap_or_default();
                if message.starts_with("assertion `left") && message.ends_with("` failed") {
                    let values = lines[at + 1..].iter().take(3).map(|line| line.trim());
                    panics.extend([*line].into_iter().chain(values));
                } else {
                    panics.extend([message, line]);
                }
            }
            _ => {}
        }
    }
    let lists = [compiler, panics, failed, other];
    verdict.errors = lists.into_iter().flat_map(|list| list.into_iter().take(4)).collect();
    verdict
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn compiler_errors_have_their_position() {
        check(
            "cargo build",
            r#"
   Compiling shop v0.1.0 (/shop)
warning: unused variable: `n`
 --> src/cart.rs:8:9
error[E0308]: mismatched types
 --> src/order.rs:12:5
  |
12 |     "x"
  |     ^^^ expected `u32`, found `&str`

error: could not compile `shop` (lib) due to 1 previous error; 1 warning emitted
"#,
            &expect![[r#"
                `error: could not compile `shop` (lib) due to 1 previous error; 1 warning emitted`; failed
                error[E0308]: mismatched types
                --> src/order.rs:12:5
            "#]],
        );
    }

    #[test]
    fn failed_tests_are_found() {
        check(
            "cargo test 2>&1 | tail -20",
            r#"
running 3 tests
test cart::tests::adds ... ok
test order::tests::totals ... FAILED

failures:

---- order::tests::totals stdout ----

thread 'order::tests::totals' panicked at src/order.rs:31:9:
assertion `left == right` failed
  left: 3
 right: 4

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
"#,
            &expect![[r#"
                2 passed, 1 failed, 1 skipped; failed
                thread 'order::tests::totals' panicked at src/order.rs:31:9:
                assertion `left == right` failed
                left: 3
                right: 4
                test order::tests::totals ... FAILED
            "#]],
        );
    }
}
