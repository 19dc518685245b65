//! Uncaught exceptions of Node.js.

use super::{ProgramVerdict, VerdictParser};

pub(super) const PARSER: VerdictParser =
    VerdictParser { commands: &[], marks: &["\n    at ", "\nNode.js v"], parse };

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let is_frame = |line: &&str| line.trim_start().starts_with("at ") && line.starts_with("    ");
    let mut verdict = ProgramVerdict::default();
    for (at, line) in lines.iter().enumerate() {
        verdict.was_aborted |= line.starts_with("Node.js v");
        let is_message = !line.starts_with(' ')
            && line
                .split_once(": ")
                .is_some_and(|(name, _)| name.split(' ').any(|word| word.ends_with("Error")));
        let mut frames = lines[at + 1..].iter().take(20).take_while(|line| !line.is_empty());
        if is_message && frames.clone().take(12).any(is_frame) {
            let is_own =
                |line: &&&str| is_frame(line) && !line.contains("node_modules") && !line.contains("node:");
            verdict.errors = vec![line];
            verdict.errors.extend(frames.find(is_own));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn uncaught_exceptions_have_a_frame_of_the_project() {
        check(
            "node run.js",
            r#"
/shop/src/cart.js:8
  return item.price;
              ^

TypeError: Cannot read properties of undefined (reading 'price')
    at Module._compile (node:internal/modules/cjs/loader:1256:14)
    at price (/shop/src/cart.js:8:15)
    at main (/shop/run.js:3:1)

Node.js v20.11.0
"#,
            &expect![[r#"
                aborted
                TypeError: Cannot read properties of undefined (reading 'price')
                at price (/shop/src/cart.js:8:15)
            "#]],
        );
    }
}
