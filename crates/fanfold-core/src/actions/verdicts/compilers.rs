//! Compilers and type checkers: gcc, clang, tsc, mypy, javac.

use super::{MAX_ERRORS, ProgramVerdict, VerdictParser, message_at_position};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &["tsc", "gcc", "clang", "cc"],
    marks: &[": error: ", ": fatal error: ", "error TS", "undefined reference to", "ld returned"],
    parse,
};

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let errors: Vec<&str> = lines.iter().copied().filter(|line| is_error(line)).take(MAX_ERRORS).collect();
    ProgramVerdict { was_aborted: !errors.is_empty(), errors, ..ProgramVerdict::default() }
}

fn is_error(line: &str) -> bool {
    if !line.contains("error") && !line.contains("undefined reference to `") {
        return false;
    }
    let message = message_at_position(line);
    message.is_some_and(|message| {
        ["error: ", "fatal error: ", "- error TS"].iter().any(|mark| message.starts_with(mark))
    }) || line.contains("undefined reference to `")
        || line.split_once("): error TS").is_some_and(|(place, _)| !place.contains(' '))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn errors_of_c_compilers_are_found() {
        check(
            "make",
            r#"
gcc -c cart.c
cart.c:3:5: warning: unused variable 'n'
cart.c:9:12: error: expected ';' before 'return'
make: *** [Makefile:4: cart.o] Error 1
"#,
            &expect![[r#"
                failed; aborted
                cart.c:9:12: error: expected ';' before 'return'
            "#]],
        );
        check(
            "make",
            r#"
/usr/bin/ld: cart.o: in function `main':
cart.c:(.text+0x9): undefined reference to `total'
collect2: error: ld returned 1 exit status
"#,
            &expect![[r#"
                aborted
                cart.c:(.text+0x9): undefined reference to `total'
            "#]],
        );
    }

    #[test]
    fn errors_of_tsc_are_found() {
        check(
            "npx tsc",
            r#"
src/cart.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.
src/order.ts:8:1 - error TS2304: Cannot find name 'total'.

Found 2 errors in 2 files.
"#,
            &expect![[r#"
                `Found 2 errors in 2 files.`; failed; aborted
                src/cart.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.
                src/order.ts:8:1 - error TS2304: Cannot find name 'total'.
            "#]],
        );
    }
}
