//! Files and scripts that a call wrote: definitions before their bodies.
//!
//! ```text
//! call    bash {"command":"cat <<'EOF' > check_pool.py\nfrom pool import Pool\n\n# The pool must not hand out a connection twice.\ndef check():\n    pool = Pool(2)\n    first = pool.take()\n    assert first is not pool.take()\n\ncheck()\nEOF\npython check_pool.py"}
//! result  ok
//! ->
//! #1 wrote check_pool.py (9 lines), then `python check_pool.py` → ok
//!     + # The pool must not hand out a connection twice.
//!     + def check():
//!     +     pool = Pool(2)
//!     +     first = pool.take()
//!     +     assert first is not pool.take()
//!     + check()
//! ```

use crate::facts::{CallFacts, CallKind};
use crate::record::kinds::LineValue;
use crate::record::kinds::report::{document_line, is_document};
use crate::text::condense::is_definition;

/// Parts of the lines of a script that only read a file, find a place in it and write it.
const FRAME: [&str; 14] = [
    "open(",
    ".read()",
    ".write(",
    "writelines",
    "readlines",
    "file_path",
    "enumerate(",
    "append(",
    "extend(",
    "insert(",
    "for line in",
    "in line",
    "else:",
    "break",
];

/// The value of a line that a script inserts into a file.
pub(crate) const INSERTED: LineValue = LineValue { score: 4.0, weight: 1.0, is_code: false };

/// For each line of a script that changes files: true if it is text that the script inserts, in a string.
pub(crate) fn inserted_lines(call: &CallFacts) -> Vec<bool> {
    if call.script_targets.is_empty() {
        return Vec::new();
    }
    let mut open: Option<&str> = None;
    let is_inserted = |line: &String| {
        let text = line.trim();
        if let Some(mark) = open {
            if text.contains(mark) {
                open = None;
            }
            return text.len() > 3;
        }
        for mark in ["\"\"\"", "'''"] {
            if text.matches(mark).count() % 2 == 1 {
                open = Some(mark);
            }
        }
        // An element of a list of lines.
        let is_element = text.starts_with(['"', '\'']) && text.ends_with([',', '"', '\'', ']']);
        open.is_none() && is_element && text.len() > 8
    };
    call.written.iter().map(is_inserted).collect()
}

/// The value of a line that a call wrote to a file, or of a script that it only ran.
/// A short one is kept as a whole rather than its definitions.
pub(crate) fn value_written(line: &str, call: &CallFacts) -> LineValue {
    const SHORT: usize = 14;
    let text = line.trim();
    if text.len() <= 3 || text.starts_with("import ") || text.starts_with("from ") {
        return LineValue::NONE;
    }
    if is_document(call.path.as_deref().unwrap_or_default()) {
        // Its structure and its reasons tell more than names in it.
        return LineValue { weight: 0.3, ..document_line(text) };
    }
    let share = if call.kind == CallKind::Write { 1.0 } else { 0.6 };
    if !call.script_targets.is_empty() {
        // The script is the only place that shows the change.
        let is_frame = FRAME.iter().any(|part| text.contains(part));
        return if is_frame { LineValue::new(0.1, 0.1) } else { LineValue::new(1.2, 0.5) };
    }
    let is_heading = text.starts_with('#') && text.contains(' ');
    match () {
        () if is_definition(line) => LineValue::new(2.0, 1.0).scaled(share),
        () if call.written.len() <= SHORT || is_heading => LineValue::new(0.8, 1.0).scaled(share),
        () => LineValue::code(0.7).scaled(share),
    }
}
