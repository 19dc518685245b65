//! Detects the kind of a text from a sample of its lines.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::severity::{head, tail};
use crate::text::condense::{code, envelope, html, listing, log, runs, search, table, trace};

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentKind {
    /// Structured program output.
    Json,
    /// Program output, and any text with lines that is of no other kind.
    Log,
    /// A stack trace.
    Trace,
    /// Test runner output.
    Tests,
    /// A patch.
    Diff,
    /// A source file.
    Code,
    /// Hits of grep.
    Search,
    /// File names.
    Listing,
    /// A table.
    Table,
    /// A web page.
    Html,
    /// Prose.
    Prose,
    /// Encoded or minified data.
    Dense,
}

impl ContentKind {
    /// All kinds.
    pub const ALL: [ContentKind; 12] = [
        ContentKind::Json,
        ContentKind::Log,
        ContentKind::Trace,
        ContentKind::Tests,
        ContentKind::Diff,
        ContentKind::Code,
        ContentKind::Search,
        ContentKind::Listing,
        ContentKind::Table,
        ContentKind::Html,
        ContentKind::Prose,
        ContentKind::Dense,
    ];
}

const SAMPLE_HEAD: usize = 8_192;
const SAMPLE_TAIL: usize = 4_096;

/// Detects the kind of a text from at most twelve kilobytes of it.
pub fn detect_kind(text: &str) -> ContentKind {
    let text = envelope::split(text).body.trim_ascii_start();
    let start = head(text, SAMPLE_HEAD);
    let end =
        if text.len() > start.len() { tail(text, SAMPLE_TAIL.min(text.len() - start.len())) } else { "" };
    if is_json(start, text) {
        return ContentKind::Json;
    }
    if html::is_html(start) {
        return ContentKind::Html;
    }
    let lines: Vec<&str> =
        start.lines().chain(end.lines()).map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if is_dense(start, &lines) {
        return ContentKind::Dense;
    }
    if lines.is_empty() {
        return ContentKind::Log;
    }
    let share = |is_so: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|line| is_so(line)).count() as f32 / lines.len() as f32
    };
    let is_numbered = share(&|line| code::unnumbered(line).len() < line.len()) > 0.8;
    let is_diff = lines.iter().any(|line| {
        line.starts_with("@@ -") || line.starts_with("diff --git ") || *line == "*** Begin Patch"
    });
    if is_diff && !is_numbered && share(&|line| line.starts_with(['+', '-', ' ', '@', 'd', 'i', '*'])) > 0.6 {
        return ContentKind::Diff;
    }
    if !is_numbered {
        if runs::is_run(&lines) {
            return ContentKind::Tests;
        }
        if share(&trace::is_frame) > 0.15 {
            return ContentKind::Trace;
        }
        if share(&search::is_hit) > 0.6 {
            return ContentKind::Search;
        }
        if share(&listing::is_name) > 0.75 {
            return ContentKind::Listing;
        }
        if table::is_table(&lines) {
            return ContentKind::Table;
        }
        if share(&log::is_stamped) > 0.3 {
            return ContentKind::Log;
        }
    }
    let prose = share(&is_prose);
    let code = share(&|line| code::is_code(code::unnumbered(line)));
    let n_headings = lines.iter().filter(|line| code::unnumbered(line).starts_with("##")).count();
    if n_headings >= 2 && prose > 0.15 {
        return ContentKind::Prose;
    }
    match (code > 0.35, prose > 0.35) {
        (true, _) if code >= prose => ContentKind::Code,
        (_, true) => ContentKind::Prose,
        (true, false) => ContentKind::Code,
        (false, false) if is_numbered => ContentKind::Code,
        (false, false) => ContentKind::Log,
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
    LazyLock::new(|| Regex::new(r"^[\w\x60*\x22'(][^{}=;<>]*(?:\s[\w'’,-]+){4}").expect("a valid pattern"));
