//! Reports of subagents, documents: headings and list items before running text, code last.
//!
//! ```text
//! call    Task {"description":"find the config","prompt":"where is it read?"}
//! result  ## Findings
//!         The configuration is read twice, because the pool is created before the arguments are parsed.
//!         - `src/config.py` line 88: `load_config()` reads pool.toml
//!         - `src/main.py` line 12: calls it again after parsing
//!         ```python
//!         def load_config():
//!             return toml.load("pool.toml")
//!         ```
//!         ## Next
//!         - Pass the parsed arguments to `Pool.__init__` instead
//! ->
//! #1 Task `find the config` → 10 lines
//!     ## Findings
//!     The configuration is read twice, because the pool is created before the arguments are parsed.
//!     - `src/config.py` line 88: `load_config()` reads pool.toml
//!     - `src/main.py` line 12: calls it again after parsing
//!     ```python
//!     def load_config():
//!         return toml.load("pool.toml")
//!     ```
//!     ## Next
//!     - Pass the parsed arguments to `Pool.__init__` instead
//! ```

use crate::facts::prose::gives_reason;
use crate::facts::results::ResultLine;
use crate::record::kinds::LineValue;

/// Returns whether a file holds text for people.
pub(super) fn is_document(path: &str) -> bool {
    [".md", ".rst", ".txt", ".adoc"].iter().any(|ending| path.ends_with(ending))
}

/// Returns whether lines are in Markdown.
pub(super) fn is_markdown(lines: &[ResultLine<'_>]) -> bool {
    let n_marked = lines.iter().filter(|line| is_heading(line.text) || is_item(line.text)).count();
    let has_heading = lines.iter().any(|line| is_heading(line.text));
    has_heading && n_marked * 4 > lines.len()
}

pub(super) fn values(lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let mut is_code = false;
    let value = |line: &ResultLine<'_>| {
        if line.text.trim_start().starts_with("```") {
            is_code = !is_code;
            return LineValue::NONE;
        }
        if is_code { LineValue::new(0.0, 0.25) } else { document_line(line.text) }
    };
    lines.iter().map(value).collect()
}

/// The value of a line of a document that is no code.
pub(super) fn document_line(line: &str) -> LineValue {
    match () {
        () if is_heading(line) => LineValue::new(0.6, 0.6),
        () if gives_reason(line) => LineValue::new(2.0, 1.0),
        () if is_item(line) => LineValue::new(1.0, 1.2),
        () => LineValue::new(0.7, 1.0),
    }
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

fn is_item(line: &str) -> bool {
    let text = line.trim_start();
    let after_number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = after_number.len() < text.len() && after_number.starts_with(". ");
    is_numbered || ["- ", "* ", "| "].iter().any(|mark| text.starts_with(mark))
}
