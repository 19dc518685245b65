//! Tells what a text is, by a sample of its lines.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::signs::{head, tail};
use crate::text::condense::{code, frame, html, listing, log, runs, search, table, trace};

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An answer of a program, as data.
    Json,
    /// Output of a program, and whatever else has lines.
    Log,
    /// A stack trace.
    Trace,
    /// Output of a test runner.
    Tests,
    /// A patch.
    Diff,
    /// A source file.
    Code,
    /// Hits of a grep.
    Search,
    /// Names of files.
    Listing,
    /// Rows of columns.
    Table,
    /// A web page.
    Html,
    /// A text for people.
    Prose,
    /// Encoded or minified data.
    Dense,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 12] = [
        Kind::Json,
        Kind::Log,
        Kind::Trace,
        Kind::Tests,
        Kind::Diff,
        Kind::Code,
        Kind::Search,
        Kind::Listing,
        Kind::Table,
        Kind::Html,
        Kind::Prose,
        Kind::Dense,
    ];
}

const SAMPLE_HEAD: usize = 8_192;
const SAMPLE_TAIL: usize = 4_096;

/// The kind of a text. Looks at twelve kilobytes of it, so that it costs the same for any length.
pub fn kind_of(text: &str) -> Kind {
    let text = frame::split(text).body.trim_ascii_start();
    let start = head(text, SAMPLE_HEAD);
    let end =
        if text.len() > start.len() { tail(text, SAMPLE_TAIL.min(text.len() - start.len())) } else { "" };
    if is_json(start, text) {
        return Kind::Json;
    }
    if html::is_html(start) {
        return Kind::Html;
    }
    let lines: Vec<&str> =
        start.lines().chain(end.lines()).map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if is_dense(start, &lines) {
        return Kind::Dense;
    }
    if lines.is_empty() {
        return Kind::Log;
    }
    let share = |is_so: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|line| is_so(line)).count() as f32 / lines.len() as f32
    };
    let is_numbered = share(&|line| code::unnumbered(line).len() < line.len()) > 0.8;
    let is_diff = lines.iter().any(|line| {
        line.starts_with("@@ -") || line.starts_with("diff --git ") || *line == "*** Begin Patch"
    });
    if is_diff && !is_numbered && share(&|line| line.starts_with(['+', '-', ' ', '@', 'd', 'i', '*'])) > 0.6 {
        return Kind::Diff;
    }
    if !is_numbered {
        if runs::is_run(&lines) {
            return Kind::Tests;
        }
        if share(&trace::is_frame) > 0.15 {
            return Kind::Trace;
        }
        if share(&search::is_hit) > 0.6 {
            return Kind::Search;
        }
        if share(&listing::is_name) > 0.75 {
            return Kind::Listing;
        }
        if table::is_table(&lines) {
            return Kind::Table;
        }
        if share(&log::is_stamped) > 0.3 {
            return Kind::Log;
        }
    }
    let prose = share(&is_prose);
    let code = share(&|line| code::is_code(code::unnumbered(line)));
    let n_headings = lines.iter().filter(|line| code::unnumbered(line).starts_with("##")).count();
    if n_headings >= 2 && prose > 0.15 {
        return Kind::Prose;
    }
    match (code > 0.35, prose > 0.35) {
        (true, _) if code >= prose => Kind::Code,
        (_, true) => Kind::Prose,
        (true, false) => Kind::Code,
        (false, false) if is_numbered => Kind::Code,
        (false, false) => Kind::Log,
    }
}

fn is_json(start: &str, text: &str) -> bool {
    let first = start.chars().next();
    let last = text.trim_ascii_end().chars().next_back();
    let closes = matches!((first, last), (Some('{'), Some('}')) | (Some('['), Some(']')));
    let second = start.get(1..).unwrap_or_default().trim_ascii_start().chars().next();
    closes && matches!(second, Some('"' | '{' | '[' | '}' | ']' | '-' | '0'..='9' | 't' | 'f' | 'n'))
}

fn is_dense(start: &str, lines: &[&str]) -> bool {
    let n_blank = start.bytes().filter(u8::is_ascii_whitespace).count();
    let is_unbroken = start.len() >= 400 && n_blank * 25 < start.len() && start.is_ascii();
    let is_long = start.len() >= 400 && lines.len() * 300 < start.len();
    is_unbroken && (is_long || lines.iter().all(|line| !line.contains([' ', '/', '.'])))
}

fn is_prose(line: &str) -> bool {
    let line = code::unnumbered(line);
    let trimmed = line.trim_start();
    let is_mark =
        ["# ", "## ", "### ", "- ", "* ", "> ", "**", "1. "].iter().any(|mark| trimmed.starts_with(mark));
    is_mark || SENTENCE.is_match(head(trimmed, 300))
}

static SENTENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\w\x60*\x22'(][^{}=;<>]*(?:\s[\w'’,-]+){4}").expect("a pattern"));
