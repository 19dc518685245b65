//! Programs and tests: what a program printed at its beginning and end, changed lines of a diff.
//!
//! ```text
//! call    bash {"command":"python bench.py --size 40"}
//! result  Reading config from bench.toml
//!         row 1 done
//!         row 2 done
//!         row 3 done
//!         row 4 done
//!         row 5 done
//!         row 6 done
//!         row 7 done
//!         row 8 done
//!         fastest run took 12.5 ms with pool_size=8
//! ->
//! #1 bash `python bench.py --size 40` → 10 lines
//!     Reading config from bench.toml …
//!     row 8 done
//!     fastest run took 12.5 ms with pool_size=8
//! ```

use crate::facts::results::ResultLine;
use crate::facts::{CallFacts, CallKind};
use crate::record::kinds::LineValue;

pub(super) fn values(call: &CallFacts, lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let is_diff = lines.iter().any(|line| line.text.starts_with("@@ "));
    let is_plain = call.kind == CallKind::Run && !call.is_test && call.errors.is_empty();
    let value = |(position, line): (usize, &ResultLine<'_>)| {
        let is_end = position == 0 || position + 2 >= lines.len();
        let mut score = if is_plain && is_end { 8.0 } else { 0.0 };
        score += if is_diff && is_changed(line.text) { 4.0 } else { 0.0 };
        // The lines of a stack trace tell less than the error.
        let is_trace = !call.errors.is_empty() && line.text.starts_with("    ");
        LineValue::new(score, if is_trace { 0.35 } else { 1.2 })
    };
    lines.iter().enumerate().map(value).collect()
}

/// Returns whether a line of a diff was added or removed.
fn is_changed(line: &str) -> bool {
    let is_file = line.starts_with("+++") || line.starts_with("---");
    line.starts_with(['+', '-']) && !is_file && line.len() > 1
}
