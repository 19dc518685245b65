//! Sphinx.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, message_at_position};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["sphinx-build", "sphinx"],
    marks: &["Running Sphinx ", "Extension error", "Sphinx error:", "Warning, treated as error:"],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let mut verdict = ProgramVerdict::default();
    let mut warnings: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line.as_bytes().first() {
            Some(b'b') if line.starts_with("build succeeded") || line.starts_with("build finished") => {
                verdict.summary = Some(line);
                verdict.has_failed |= line.starts_with("build finished with problems");
            }
            Some(b'E' | b'S' | b'W' | b'C') if is_heading(line) => {
                let message = lines.get(at + 1).filter(|_| line.ends_with(':')).unwrap_or(line);
                verdict.errors.push(message);
                verdict.has_failed = true;
            }
            Some(b'(') if line.contains(") broken ") => verdict.errors.push(line),
            _ if line.contains(": ") && warnings.len() < MAX_ERRORS => {
                let message = message_at_position(line);
                let is_error = message.is_some_and(|message| message.starts_with("ERROR: "));
                let is_warning = message.is_some_and(|message| message.starts_with("WARNING: "));
                if is_error {
                    verdict.errors.push(line);
                } else if is_warning {
                    warnings.push(line);
                }
            }
            _ => {}
        }
    }
    if verdict.has_failed && verdict.errors.is_empty() {
        verdict.errors = warnings;
    }
    verdict
}

fn is_heading(line: &str) -> bool {
    let marks = [
        "Extension error",
        "Exception occurred:",
        "Sphinx error:",
        "Warning, treated as error:",
        "Configuration error:",
    ];
    marks.iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn the_reason_of_a_failed_build_is_found() {
        check(
            "sphinx-build -W docs out",
            r#"
Running Sphinx v7.2.6
Warning, treated as error:
/shop/docs/index.rst:3:Unknown directive type "noet".
"#,
            &expect![[r#"
                failed
                /shop/docs/index.rst:3:Unknown directive type "noet".
            "#]],
        );
        check(
            "sphinx-build -b linkcheck docs out",
            r#"
Running Sphinx v7.2.6
(           index: line    5) broken    https://example.com/x#y - Anchor 'y' not found
build finished with problems, 1 warning.
"#,
            &expect![[r#"
                `build finished with problems, 1 warning.`; failed
                (           index: line    5) broken    https://example.com/x#y - Anchor 'y' not found
            "#]],
        );
        check(
            "sphinx-build docs out",
            r#"
Running Sphinx v7.2.6
/shop/docs/index.rst:3: WARNING: document isn't included in any toctree
build succeeded, 1 warning.
"#,
            &expect![[r#"
                `build succeeded, 1 warning.`
            "#]],
        );
    }
}
