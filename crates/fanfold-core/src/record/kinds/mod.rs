//! The value of the lines of a result in a record. Every kind of action has a module with examples.

mod command; //  programs and tests
mod data; //     tools of unknown kind
mod listing; //  lists of files
mod read; //     files
mod report; //   subagents and documents
mod search; //   hits
mod written; //  files and scripts that a call wrote

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::facts::results::ResultLine;
use crate::facts::{CallFacts, CallKind};

pub(crate) use written::{INSERTED, inserted_lines, value_written};

/// The value of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineValue {
    /// The value of the line as a whole.
    pub(crate) score: f32,
    /// The weight of its atoms.
    pub(crate) weight: f32,
    /// True for a line of code that begins no definition: alone it tells nothing.
    pub(crate) is_code: bool,
}

impl LineValue {
    /// A line that only fills a gap between others.
    pub(crate) const NONE: LineValue = LineValue { score: 0.0, weight: 0.0, is_code: false };

    fn new(score: f32, weight: f32) -> LineValue {
        LineValue { score, weight, is_code: false }
    }

    fn code(weight: f32) -> LineValue {
        LineValue { score: 0.0, weight, is_code: true }
    }

    fn scaled(self, share: f32) -> LineValue {
        LineValue { score: self.score * share, weight: self.weight * share, ..self }
    }
}

/// Returns whether a result is so small that the record keeps it as a whole or not at all.
pub(crate) fn is_small(call: &CallFacts, lines: &[ResultLine<'_>]) -> bool {
    let (max_lines, max_bytes) = match call.kind {
        CallKind::Search => (8, 900),
        CallKind::List => (10, 300),
        CallKind::Read => (8, 480),
        CallKind::Other => (7, 900),
        CallKind::Ask if call.is_answer => (40, 4_000),
        _ => (7, 560),
    };
    let n_bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    let n_lines = lines.iter().filter(|line| !line.continues).count();
    // The outcome line of a test run has its counts.
    !call.is_test && (1..=max_lines).contains(&n_lines) && n_bytes <= max_bytes
}

/// The score of a small result.
pub(crate) const SMALL: f32 = 16.0;

/// The value of each line of a result.
pub(crate) fn value_lines(call: &CallFacts, lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let mut values = match call.kind {
        CallKind::Read => match report::is_document(call.path.as_deref().unwrap_or_default()) {
            true => report::values(lines),
            false => read::values(lines),
        },
        CallKind::Search => search::values(lines),
        CallKind::List => listing::values(lines),
        CallKind::Ask => report::values(lines),
        CallKind::Run | CallKind::Write => command::values(call, lines),
        CallKind::Other if report::is_markdown(lines) => report::values(lines),
        CallKind::Other | CallKind::Edit | CallKind::Plan => data::values(lines),
    };
    // A line that is too long is in parts, and the first part has the subject.
    let is_one_line = lines.iter().filter(|line| !line.continues).count() == 1;
    if let Some(first) = values.first_mut().filter(|_| is_one_line && lines.len() > 1) {
        first.score += 8.0;
    }
    let shapes: Vec<u64> = lines.iter().map(|line| shape(line.text)).collect();
    let mut n_alike: HashMap<u64, usize> = HashMap::new();
    shapes.iter().for_each(|shape| *n_alike.entry(*shape).or_default() += 1);
    for ((line, value), shape) in lines.iter().zip(&mut values).zip(&shapes) {
        let text = line.text;
        let is_stated =
            call.errors.iter().any(|error| error.contains(text.trim()) || text.contains(error.as_str()));
        // The outcome line has the counts of a test run.
        let is_count = call.is_test && COUNTS.is_match(text);
        if text.trim().len() < 4 || is_stated || is_count || is_boilerplate(text) || is_binary(text) {
            *value = LineValue::NONE;
            continue;
        }
        // Lines of one shape, such as progress reports, count less the more there are.
        const MANY: f32 = 6.0;
        *value = value.scaled((MANY / n_alike[shape] as f32).min(1.0));
    }
    values
}

static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d+ (?:passed|failed|passing|failing|tests?)\b|^(?:OK|PASS|ok)\b").expect("a pattern")
});

/// Returns whether a line has many characters that are no text.
fn is_binary(line: &str) -> bool {
    let is_odd = |c: &char| c.is_control() && *c != '\t' || *c == '\u{fffd}' || *c == '\\';
    line.chars().filter(is_odd).count() * 8 > line.chars().count()
}

/// Returns whether a line is never worth keeping: imports, closing brackets, headings of listings, progress.
fn is_boilerplate(line: &str) -> bool {
    const STARTS: [&str; 27] = [
        "import ",
        "from ",
        "#include",
        "use ",
        "using ",
        "total ",
        "Traceback (",
        "Finished in",
        "Done in",
        "=== RUN",
        "=== PAUSE",
        "=== CONT",
        "--- PASS",
        "....",
        "Compiling ",
        "Downloading ",
        "Collecting ",
        "Requirement already",
        "go: downloading",
        "-rw",
        "drw",
        "# Copyright",
        "platform ",
        "rootdir:",
        "plugins:",
        "collected ",
        "cachedir:",
    ];
    let text = line.trim_start();
    const PASSED: [&str; 6] =
        ["(cached)", "... ok", " PASSED", "[no test files]", "%]", "binary file matches"];
    let is_passed =
        text.starts_with("ok  \t") || text.starts_with('✓') || PASSED.iter().any(|end| text.ends_with(end));
    is_passed
        || is_import_path(text)
        || STARTS.iter().any(|start| text.starts_with(start))
        || text.chars().all(|c| !c.is_alphanumeric())
}

/// Returns whether a line only names an imported package, as in the import blocks of Go: `alias "example.com/a/b"`.
fn is_import_path(text: &str) -> bool {
    let Some((alias, rest)) = text.split_once('"') else { return false };
    let Some(path) = rest.strip_suffix('"') else { return false };
    let is_name = |text: &str, marks: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || marks.contains(c))
    };
    is_name(alias.trim(), ".") && !path.is_empty() && is_name(path, "./-~")
}

/// The common form of the lines of one listing or progress report, as a hash.
fn shape(line: &str) -> u64 {
    const LEN: usize = 24;
    let mut shape = 0;
    let mut n_bytes = 0;
    for word in line.split_whitespace() {
        let is_path = word.contains('/');
        let is_number = word.bytes().any(|b| b.is_ascii_digit());
        let word = if is_path || is_number { "#" } else { word };
        shape = xxh3_64_with_seed(word.as_bytes(), shape);
        n_bytes += word.len() + 1;
        if n_bytes >= LEN {
            break;
        }
    }
    shape
}
