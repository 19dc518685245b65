//! Stack traces: keeps the message and the frames of the project's own code.
//!
//! Most frames are in libraries and runtimes, where the fault is rarely fixed.
//!
//! In 320 bytes:
//!
//! ```text
//! Traceback (most recent call last):
//!   File "shop/main.py", line 41, in <module>
//!     main()
//!   File "shop/main.py", line 33, in main
//!     app.run(load(path))
//!   File "/usr/lib/python3/site-packages/frame/app.py", line 812, in run
//!     return self._dispatch(request)
//!   File "/usr/lib/python3/site-packages/frame/app.py", line 790, in _dispatch
//!     response = handler(request)
//!   File "/usr/lib/python3/site-packages/frame/wrap.py", line 55, in inner
//!     return call(*args)
//!   File "shop/orders.py", line 118, in place
//!     total = price(item) * item.count
//! TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'
//! ->
//! Traceback (most recent call last):
//!   File "shop/main.py", line 41, in <module>
//!     main()
//!   File "shop/main.py", line 33, in main
//!     app.run(load(path))
//! … 6 lines
//!   File "shop/orders.py", line 118, in place
//!     total = price(item) * item.count
//! TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'
//! ```

use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, MUST, PLAIN};
use crate::text::condense::severity::{Severity, head, severity_of};
use crate::text::condense::{Condenser, ContentKind, log};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Trace,
    detects: |sample| !sample.is_numbered && sample.share(is_frame) > 0.15,
    condense: |text, options, _| log::condense(text, options),
    has_errors: true,
    suits_line_choice: false,
    may_be_code: false,
};

/// The weight of a line of a trace, or `None` for other lines.
pub(crate) fn weight(line: &str, above: &str) -> Option<f32> {
    if is_head(line) {
        return Some(FRAME);
    }
    if is_frame(line) {
        return Some(if is_foreign(line) { PLAIN } else { FRAME });
    }
    let is_source = is_frame(above) && indent(line) > indent(above);
    if is_source {
        return Some(if is_foreign(above) { PLAIN } else { FRAME / 2.0 });
    }
    let ends_trace = is_frame(above) || above.starts_with("    ");
    let is_message = ends_trace && !line.starts_with([' ', '\t']) && severity_of(line) == Severity::Error;
    is_message.then_some(MUST + 1.0)
}

/// Returns whether a line announces a trace.
pub(crate) fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("Traceback (most recent") || line.trim() == "stack backtrace:"
}

/// Returns whether a line is a frame of a call stack.
fn is_frame(line: &str) -> bool {
    let start = line.trim_start();
    let is_likely = start.starts_with("at ")
        || start.starts_with("File \"")
        || start.starts_with(|c: char| c.is_ascii_digit() || c == '/');
    is_likely && STACK.is_match(head(line, 300))
}

fn is_foreign(line: &str) -> bool {
    let marks = [
        "site-packages",
        "dist-packages",
        "/lib/python",
        "node_modules",
        "node:internal",
        "/rustc/",
        "/usr/lib",
        "<frozen ",
        "java.base",
        "java.",
        "javax.",
        "sun.",
        "jdk.",
        "org.junit",
        "org.springframework",
        ".cargo/registry",
        "/go/pkg/mod",
        "/usr/local/go",
        "/go/src/",
        "core::",
        "std::",
        "internal/",
    ];
    let line = head(line, 300);
    marks.iter().any(|mark| line.contains(mark))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

static STACK: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r#"^\s*File ".*", line \d+"#,
        r"^\s+at .*[(:]",
        r"^\s+\d+: .*::",
        r"^\s+/\S+\.\w+:\d+(?: |$)",
        r"^\s*\S+\.(?:go|rb|py):\d+:in ",
    ];
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_own_frames_and_the_message() {
        let text = {
            let foreign: String = (0..20).map(|i| format!("  File \"/usr/lib/python3.9/site-packages/x{i}.py\", line {i}, in f{i}\n    return g{i}()\n")).collect();
            format!(
                "Traceback (most recent call last):\n  File \"app/main.py\", line 3, in main\n    run()\n{foreign}  File \"app/db.py\", line 9, in open\n    raise ValueError(\"no\")\nValueError: no\n"
            )
        };
        check(
            ContentKind::Trace,
            &text,
            400,
            &[],
            &expect![[r#"
            Traceback (most recent call last):
              File "app/main.py", line 3, in main
                run()
              File "/usr/lib/python3.9/site-packages/x0.py", line 0, in f0
                return g0()
              File "/usr/lib/python3.9/site-packages/x1.py", line 1, in f1
                return g1()
            … 35 lines
                return g19()
              File "app/db.py", line 9, in open
                raise ValueError("no")
            ValueError: no
        "#]],
        );
    }
}
