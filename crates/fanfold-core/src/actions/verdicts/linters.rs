//! Linters: ESLint, pylint, ruff, flake8, golangci-lint.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, message_at_position};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["lint", "eslint", "pylint", "ruff", "flake8", "golangci-lint", "vet", "shellcheck"],
    marks: &[
        " issues:",
        " problems (",
        " problem (",
        "************* Module ",
        "Found 1 error",
        " errors.",
        " errors in ",
        " errors (",
    ],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut file = "";
    for (at, line) in lines.iter().enumerate() {
        if verdict.errors.len() < MAX_ERRORS {
            if is_finding(line) {
                verdict.errors.push(line);
            } else if is_eslint_finding(line) {
                verdict.errors.push(line);
                verdict.errors.push(std::mem::take(&mut file));
            } else if let Some(position) =
                lines.get(at + 1).and_then(|below| below.trim_start().strip_prefix("--> "))
            {
                // ruff
                verdict.errors.extend([*line, position]);
            } else if line.starts_with('/') && !line.contains(' ') {
                file = line;
            }
        }
        if let Some(n_errors) = n_errors(line) {
            verdict.summary = Some(line.trim_end_matches(':'));
            verdict.has_failed |= n_errors > 0;
        }
    }
    verdict
}

fn is_finding(line: &str) -> bool {
    message_at_position(line).is_some_and(|message| {
        let is_banner = message.starts_with(": #") || message.starts_with('#') || message.contains("(-: #");
        !is_banner && !["Warning: ", "note: "].iter().any(|mark| message.contains(mark))
    })
}

/// Returns whether a line is a finding of ESLint: `  3:5  error  message  rule`.
fn is_eslint_finding(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let position = words.next().filter(|_| line.starts_with("  ")).and_then(|word| word.split_once(':'));
    position.is_some_and(|(line, column)| line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok())
        && words.next() == Some("error")
}

/// The number of errors in a summary: `3 issues:`, `Found 3 errors.`, `✖ 3 problems (2 errors, 1 warning)`,
/// `Your code has been rated at 5.00/10`, which has none.
fn n_errors(line: &str) -> Option<u32> {
    let number = |text: &str| text.split(' ').next().and_then(|n| n.parse().ok());
    if let Some(rest) = line.strip_prefix("✖ ") {
        return rest.split_once('(').and_then(|(_, counts)| number(counts));
    }
    if line.starts_with("Your code has been rated at ") {
        return Some(0);
    }
    match line.strip_prefix("Found ") {
        Some(rest) => number(rest).filter(|_| rest.contains(" error")),
        None if line.ends_with(" issues:") => number(line),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn findings_are_found() {
        check(
            "mise run lint",
            r#"
[lint] $ golangci-lint run ./...
cart/cart.go:1: : # example.com/shop/cart [example.com/shop/cart.test]
cart/cart.go:68:13: Error return value of `os.Remove` is not checked (errcheck)
	os.Remove(path)
	         ^
1 issues:
* errcheck: 1
[lint] ERROR task failed
"#,
            &expect![[r#"
                `1 issues`; failed
                cart/cart.go:68:13: Error return value of `os.Remove` is not checked (errcheck)
            "#]],
        );
        check(
            "pylint shop",
            r#"
************* Module shop.cart
shop/cart.py:1:0: C0114: Missing module docstring (missing-module-docstring)

------------------------------------------------------------------
Your code has been rated at 5.00/10 (previous run: 5.00/10, +0.00)
"#,
            &expect![[r#"
                `Your code has been rated at 5.00/10 (previous run: 5.00/10, +0.00)`
                shop/cart.py:1:0: C0114: Missing module docstring (missing-module-docstring)
            "#]],
        );
    }

    #[test]
    fn findings_of_eslint_and_ruff_are_found() {
        check(
            "npm run lint",
            r#"
/shop/src/cart.js
  3:5   error    'n' is assigned a value but never used  no-unused-vars
  9:1   warning  Unexpected console statement            no-console

✖ 2 problems (1 error, 1 warning)
"#,
            &expect![[r#"
                `✖ 2 problems (1 error, 1 warning)`; failed
                3:5   error    'n' is assigned a value but never used  no-unused-vars
                /shop/src/cart.js
            "#]],
        );
        check(
            "ruff check",
            r#"
F401 [*] `os` imported but unused
 --> shop/cart.py:1:8
  |
1 | import os

Found 1 error.
"#,
            &expect![[r#"
                `Found 1 error.`; failed
                F401 [*] `os` imported but unused
                shop/cart.py:1:8
            "#]],
        );
    }

    #[test]
    fn passing_runs_have_no_errors() {
        check(
            "ruff check",
            r#"
/shop/cart.py:3: DeprecationWarning: old
All checks passed!
"#,
            &expect![[r#"
                no summary
            "#]],
        );
    }
}
