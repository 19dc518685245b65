//! Task runners: make, npm, mise. They repeat that a task failed; the reason is above.

use super::{ProgramVerdict, VerdictParser};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &[],
    marks: &["ERROR task failed", "*** [", "npm ERR!", "npm error", "ELIFECYCLE"],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let has_failed = lines.iter().rev().take(30).any(|line| is_trailer(line))
        || lines.iter().take(30).any(|line| is_trailer(line));
    ProgramVerdict { has_failed, ..ProgramVerdict::default() }
}

/// Returns whether a line only repeats that a task failed: `[lint] ERROR task failed`, `make: *** [a.o] Error 1`.
pub(super) fn is_trailer(line: &str) -> bool {
    let line = line.trim_start();
    let starts =
        ["npm ERR!", "npm error", "error: Recipe ", "error Command failed", "ELIFECYCLE", "exit status "];
    match line.as_bytes().first() {
        Some(b'[') => line.contains("] ERROR task failed"),
        Some(b'm') => {
            line.starts_with("make") && line.contains("]: *** [") || line.starts_with("make: *** [")
        }
        _ => starts.iter().any(|start| line.starts_with(start)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn trailers_only_decide_that_a_task_failed() {
        check(
            "make test | tail",
            r#"
cc -o cart cart.c
make[1]: *** [Makefile:4: cart] Error 1
make: *** [Makefile:2: all] Error 2
"#,
            &expect![[r#"
                failed
            "#]],
        );
        check(
            "npm run build",
            r#"
npm warn deprecated inflight@1.0.6: not supported
npm error code ELIFECYCLE
"#,
            &expect![[r#"
                failed
            "#]],
        );
    }
}
