//! Grep hits: groups them by file, keeps all file names, the first hits of each file and hits in use.
//!
//! Each path is printed once, and line numbers are kept. If there are too many files for one line each, they are
//! listed by directory with their number of hits.
//!
//! In 260 bytes:
//!
//! ```text
//! src/parser.rs:12:use crate::input::Input;
//! src/parser.rs:31:    pub fn new(input: Input) -> Parser {
//! src/parser.rs:48:    fn peek(input: &Input) -> Option<char> {
//! src/parser.rs:77:    fn skip(input: &mut Input) {
//! src/parser.rs:115:fn read_header(input: &mut Input) -> Header {
//! src/parser.rs:140:fn read_row(input: &mut Input) -> Row {
//! src/lexer.rs:9:use crate::input::Input;
//! src/lexer.rs:20:    pub fn of(input: &Input) -> Lexer {
//! tests/it/parser.rs:5:use shop::input::Input;
//! ->
//! src/parser.rs (6)
//!   12:use crate::input::Input;
//!   31:pub fn new(input: Input) -> Parser {
//! … 4 hits
//! src/lexer.rs (2)
//!   9:use crate::input::Input;
//!   20:pub fn of(input: &Input) -> Lexer {
//! tests/it/parser.rs
//!   5:use shop::input::Input;
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, Gap, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::head;
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, listing};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Search,
    detects: |sample| !sample.is_numbered && sample.share(is_hit) > 0.6,
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: true,
    may_be_code: false,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    let mut files: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && *line != "--") {
        let (path, hit) = split(line).unwrap_or(("", line));
        let at = *known.entry(path).or_insert_with(|| {
            files.push((path, Vec::new()));
            files.len() - 1
        });
        files[at].1.push(hit);
    }
    let n_path_bytes: usize = files.iter().map(|(path, _)| path.len() + 6).sum();
    if n_path_bytes > options.room * 3 / 5 {
        return listing::by_directory(&directories(&files), options);
    }
    let mut rows = Rows::new(options);
    for (path, hits) in &files {
        if !path.is_empty() {
            let n = if hits.len() > 1 { format!(" ({})", hits.len()) } else { String::new() };
            rows.push_owned(format!("{path}{n}"), FRAME);
            rows.gap(Gap::Hit);
        }
        for (i, hit) in hits.iter().enumerate() {
            let weight = match (path.is_empty(), i) {
                (true, _) | (false, 3..) => PLAIN,
                (false, 0) => SHAPE,
                (false, _) => SHAPE / 2.0,
            };
            // The indentation of a single line of code has no meaning.
            let (number, code) = number_of(hit);
            let indent = if path.is_empty() { "" } else { "  " };
            rows.push_owned(format!("{indent}{number}{}", code.trim()), weight);
            rows.gap(Gap::Hit);
        }
    }
    rows.choose()
}

/// The files with their number of hits, by directory.
fn directories<'a>(files: &[(&'a str, Vec<&str>)]) -> Vec<(&'a str, Vec<Cow<'a, str>>)> {
    let mut found: Vec<(&str, Vec<Cow<'_, str>>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (path, hits) in files {
        let (directory, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        let at = *known.entry(directory).or_insert_with(|| {
            found.push((directory, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(match hits.len() {
            1 => Cow::Borrowed(name),
            n => Cow::Owned(format!("{name} ({n})")),
        });
    }
    found
}

/// Returns whether a line is a hit of grep or its context.
fn is_hit(line: &str) -> bool {
    split(line).is_some()
}

/// Splits a hit into the path and the rest.
fn split(line: &str) -> Option<(&str, &str)> {
    let start = head(line, 400);
    let found = HIT.captures(start)?;
    let path = found.get(1)?;
    let is_path = path.as_str().contains(['/', '.']) && !path.as_str().contains("://");
    is_path.then(|| (path.as_str(), &line[path.end() + 1..]))
}

fn number_of(hit: &str) -> (&str, &str) {
    let n_digits = hit.len() - hit.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let has_number = n_digits > 0 && hit[n_digits..].starts_with([':', '-']);
    if has_number { hit.split_at(n_digits + 1) } else { ("", hit) }
}

static HIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^((?:[A-Za-z]:)?[^\s:]+?)(?::\d+:|-\d+-|:(?:[^\d\s:\\/]|\s{2,}|\t|$))")
        .expect("a valid pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn groups_hits_by_file() {
        let text = {
            let hits = |file: &str, n: usize| {
                (1..=n).map(|i| format!("src/{file}.rs:{i}:    let found = {i};\n")).collect::<String>()
            };
            hits("a", 20) + &hits("b", 1) + &hits("c", 9)
        };
        check(
            ContentKind::Search,
            &text,
            240,
            &["found = 17"],
            &expect![[r#"
                src/a.rs (20)
                  1:let found = 1;
                  2:let found = 2;
                  3:let found = 3;
                … 13 hits
                  17:let found = 17;
                … 3 hits
                src/b.rs
                  1:let found = 1;
                src/c.rs (9)
                  1:let found = 1;
                  2:let found = 2;
                  3:let found = 3;
                … 6 hits
            "#]],
        );
    }
}
