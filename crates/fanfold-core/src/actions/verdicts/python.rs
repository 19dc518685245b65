//! Tracebacks of Python.

use super::{ProgramVerdict, VerdictParser};

pub(super) const PARSER: VerdictParser = VerdictParser {
    commands: &[],
    marks: &["Traceback (most recent", "\n  File \"", "SyntaxError: ", "IndentationError: ", "TabError: "],
    parse,
};

/// A traceback.
pub(super) struct Trace<'a> {
    /// The first line of the exception.
    pub(super) exception: &'a str,
    /// The innermost frame of the project, or of a syntax error.
    frame: Option<&'a str>,
    /// The index of the exception.
    at: usize,
}

fn parse<'a>(lines: &[&'a str]) -> ProgramVerdict<'a> {
    let Some(trace) = last_trace(lines) else { return ProgramVerdict::default() };
    ProgramVerdict {
        was_aborted: lines[trace.at + 1..].iter().all(|line| line.trim().is_empty()),
        errors: [Some(trace.exception), trace.frame].into_iter().flatten().collect(),
        ..ProgramVerdict::default()
    }
}

/// The last traceback, which decides if several exceptions were raised one after the other. Warnings that are raised as
/// exceptions only decide if there are no others.
pub(super) fn last_trace<'a>(lines: &[&'a str]) -> Option<Trace<'a>> {
    let mut last = None;
    // The indent of the open traceback.
    let mut open = None;
    let mut is_logged = false;
    let (mut frame, mut own_frame) = (None, None);
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if bare.ends_with("Traceback (most recent call last):") {
            is_logged = at > 0 && lines[at - 1].starts_with("--- Logging error");
            open = Some(indent);
            (frame, own_frame) = (None, None);
        } else if bare.starts_with("File \"") && bare.contains("\", line ") {
            open = open.or(Some(indent.saturating_sub(2)));
            frame = Some(bare);
            own_frame = if is_foreign(bare) { own_frame } else { frame };
        } else if open.is_some_and(|outer| indent <= outer) && is_exception(bare) {
            let is_syntax =
                ["SyntaxError", "IndentationError", "TabError"].iter().any(|name| bare.starts_with(name));
            let is_outranked =
                is_warning(bare) && last.as_ref().is_some_and(|last: &Trace<'_>| !is_warning(last.exception));
            if !is_logged && !is_outranked {
                last = Some(Trace { exception: bare, frame: if is_syntax { frame } else { own_frame }, at });
            }
            (open, frame, own_frame, is_logged) = (None, None, None, false);
        }
    }
    last
}

/// Returns whether a line below frames is an exception: `ValueError: no`, `socket.timeout: timed out`. Other lines there
/// were printed to another stream.
fn is_exception(line: &str) -> bool {
    let name = line.split_once(':').map_or(line, |(name, _)| name);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
    let is_class =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains(|c: char| c.is_ascii_lowercase());
    let is_path = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.contains('.');
    name.bytes().all(is_name) && (is_class || is_path)
}

fn is_warning(exception: &str) -> bool {
    exception.split(':').next().is_some_and(|name| name.ends_with("Warning"))
}

fn is_foreign(frame: &str) -> bool {
    let marks = ["-packages/", "/lib/python", "\"<frozen ", "\"<__array_function__", "\"<lambdifygenerated"];
    marks.iter().any(|mark| frame.contains(mark))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::actions::verdicts::tests::check;

    #[test]
    fn exceptions_have_the_innermost_frame_of_the_project() {
        check(
            "python run.py",
            r#"
loading
STDERR: Traceback (most recent call last):
  File "/shop/run.py", line 4, in <module>
    main()
  File "/shop/cart.py", line 31, in price
    return fetch(name)
DEBUG: printed to another stream
  File "/usr/lib/python3.9/site-packages/store/api.py", line 3, in fetch
    raise NotFound(name)
store.errors.NotFound: no such item: 'pear'
see the list of items
"#,
            &expect![[r#"
                no summary
                store.errors.NotFound: no such item: 'pear'
                File "/shop/cart.py", line 31, in price
            "#]],
        );
        check(
            "python run.py",
            r#"
Traceback (most recent call last):
  File "/shop/run.py", line 4, in <module>
    main()
ValueError: no
"#,
            &expect![[r#"
                aborted
                ValueError: no
                File "/shop/run.py", line 4, in <module>
            "#]],
        );
    }

    #[test]
    fn syntax_errors_have_their_position() {
        check(
            "python run.py",
            r#"
  File "/shop/run.py", line 4
    def main()
              ^
SyntaxError: expected ':'
"#,
            &expect![[r#"
                aborted
                SyntaxError: expected ':'
                File "/shop/run.py", line 4
            "#]],
        );
    }

    #[test]
    fn logged_exceptions_do_not_decide() {
        check(
            "python run.py",
            r#"
--- Logging error ---
Traceback (most recent call last):
  File "/usr/lib/python3.9/logging/__init__.py", line 1083, in emit
    msg = self.format(record)
TypeError: not all arguments converted
done
"#,
            &expect![[r#"
                no summary
            "#]],
        );
    }
}
