//! Source files: an outline of definitions, with the lines in use.
//!
//! Which names there are and what they take is what later work needs; bodies can be recalled. Line numbers that the
//! tool put in front stay.
//!
//! ```text
//! use std::fmt;                     … 2 lines
//!                                   /// A point.
//! /// A point.                      pub struct Point {
//! pub struct Point {            ->  … 2 lines
//!     x: i32,                       impl Point {
//! }                                     pub fn new() -> Point {
//! impl Point {                      … 3 lines
//!     pub fn new() -> Point {
//!         Point { x: 0 }
//!     }
//! }
//! ```

use std::sync::LazyLock;

use regex::Regex;

use super::lines::{FRAME, Gap, MUST, NONE, PLAIN, Rows, SHAPE};
use super::outline::{Definition, definitions};
use super::signs::head;
use super::{FileShown, Wish};

pub(super) fn condense(text: &str, wish: &Wish<'_>) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let n_numbered = lines.iter().filter(|line| unnumbered(line).len() < line.len()).count();
    let n_filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let source = Source { lines, is_numbered: n_numbered * 5 > n_filled * 4 };
    let outline = wish.file.and_then(|file| Some((definitions(&source.bare(), file.path)?, file)));
    match outline {
        Some((outline, file)) => source.by_outline(&outline, &file, wish),
        None => source.by_look(wish),
    }
}

/// The lines of a file, as a tool showed them.
struct Source<'a> {
    lines: Vec<&'a str>,
    /// Each begins with its number.
    is_numbered: bool,
}

impl<'a> Source<'a> {
    fn line(&self, i: usize) -> &'a str {
        if self.is_numbered { unnumbered(self.lines[i]) } else { self.lines[i] }
    }

    /// The text without numbers.
    fn bare(&self) -> String {
        let lines: Vec<&str> = (0..self.lines.len()).map(|i| self.line(i)).collect();
        lines.join("\n")
    }

    /// The lines that look like definitions, and those of value.
    fn by_look(&self, wish: &Wish<'_>) -> String {
        let mut rows = Rows::new(wish);
        for (i, line) in self.lines.iter().enumerate() {
            rows.push(line, weight(self.line(i)));
        }
        rows.lend();
        rows.choose()
    }

    /// The signatures, the definitions that are worked on, and the lines of value, all with their numbers.
    fn by_outline(&self, outline: &[Definition], file: &FileShown<'_>, wish: &Wish<'_>) -> String {
        let mut weights: Vec<f32> =
            (0..self.lines.len()).map(|i| weight(self.line(i)).min(PLAIN * 3.0)).collect();
        for definition in outline {
            let weight = match definition.depth {
                0 => FRAME,
                1 => FRAME * 0.6,
                _ => SHAPE,
            };
            for lined in &mut weights[definition.first..=definition.signature] {
                *lined = weight;
            }
        }
        let mut rows = Rows::new(wish);
        for (i, line) in self.lines.iter().enumerate() {
            if self.is_numbered {
                rows.push(line.trim_start_matches(' '), weights[i]);
                rows.gap(Gap::Silent);
            } else {
                rows.push_numbered(i + 1, line, weights[i]);
            }
        }
        let mut left = wish.room / 4 * 3;
        for definition in self.worked_on(outline, file) {
            let all = definition.first..=definition.last;
            let n_bytes: usize = all.clone().map(|i| self.lines[i].len() + NUMBER).sum();
            if n_bytes <= left {
                left -= n_bytes;
                all.for_each(|i| rows.raise(i, MUST));
            }
        }
        rows.lend();
        rows.choose()
    }

    /// The innermost definitions with lines that were changed, those with most of them first.
    fn worked_on(&self, outline: &[Definition], file: &FileShown<'_>) -> Vec<Definition> {
        let is_changed: Vec<bool> =
            (0..self.lines.len()).map(|i| (file.is_worked_on)(self.line(i))).collect();
        let mut found: Vec<(usize, Definition)> = Vec::new();
        for (i, &definition) in outline.iter().enumerate() {
            let holds_next = outline.get(i + 1).is_some_and(|next| next.first <= definition.last);
            let n_changed = is_changed[definition.first..=definition.last].iter().filter(|is| **is).count();
            if n_changed > 0 && !holds_next {
                found.push((n_changed, definition));
            }
        }
        found.sort_by_key(|(n_changed, _)| std::cmp::Reverse(*n_changed));
        found.into_iter().map(|(_, definition)| definition).collect()
    }
}

/// What a line number takes, about.
const NUMBER: usize = 8;

/// The weight of a line of code, without its number.
pub(super) fn weight(line: &str) -> f32 {
    let start = head(line, 200);
    let trimmed = start.trim_start();
    let n_indent = indent(start);
    let is_bare = trimmed.len() <= 2 || trimmed.bytes().all(|b| !b.is_ascii_alphanumeric());
    if is_bare {
        return NONE;
    }
    if DEFINITION.is_match(trimmed) {
        return match n_indent {
            0 => FRAME,
            1..=4 => FRAME * 0.6,
            5..=8 => SHAPE,
            _ => PLAIN,
        };
    }
    let is_comment = ["//", "#", "*", "/*", "--", "\"\"\""].iter().any(|mark| trimmed.starts_with(mark));
    let is_mark = is_comment && (trimmed.contains("TODO") || trimmed.contains("FIXME"));
    match () {
        () if is_mark => SHAPE,
        () if trimmed.starts_with("#[") || trimmed.starts_with('@') => PLAIN * 2.0,
        () if is_comment => PLAIN / 2.0,
        () if n_indent == 0 => PLAIN * 3.0,
        () => PLAIN,
    }
}

/// Columns of indentation; a tab is four.
fn indent(line: &str) -> usize {
    line.bytes().take_while(u8::is_ascii_whitespace).map(|b| if b == b'\t' { 4 } else { 1 }).sum()
}

/// The line without the number that a tool put in front: `12→`, `12|`, `12:`, `12-`, `12` and a tab.
pub(super) fn unnumbered(line: &str) -> &str {
    let rest = line.trim_start_matches(' ');
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || digits > 7 {
        return line;
    }
    let rest = &rest[digits..];
    let marked = rest.strip_prefix(['→', '|', '\t', ':', '-']).unwrap_or(line);
    // `12:30` is a time, `3-4` a range.
    if marked.starts_with(|c: char| c.is_ascii_digit()) && rest.starts_with([':', '-']) {
        line
    } else {
        marked
    }
}

/// Whether a line looks like source code.
pub(super) fn is_code(line: &str) -> bool {
    let start = head(line, 200);
    let trimmed = start.trim();
    let has_end = line.len() < 200 && trimmed.ends_with(['{', '}', ';', ':', '(', ',', '[', ']', ')']);
    let is_deep = indent(start) >= 4;
    let is_comment =
        ["//", "/*", "* ", "#include", "\"\"\"", "#!", "--"].iter().any(|mark| trimmed.starts_with(mark));
    let has_sign = [" = ", " == ", "()", " := ", "->", "=>", "::", "&&", "</", ");"]
        .iter()
        .any(|sign| trimmed.contains(sign));
    is_comment
        || DEFINITION.is_match(trimmed)
        || STATEMENT.is_match(trimmed)
        || (has_end && (is_deep || has_sign))
        || (is_deep && has_sign)
}

static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    let patterns = [
        r"^(?:pub(?:\([\w:]+\))? |export |default |async |static |public |private |protected |internal |final |abstract |override |unsafe |extern |declare |virtual |inline |const |sealed |partial )*(?:fn|struct|enum|trait|impl|mod|class|interface|def|func|function|type|module|namespace|record|object|protocol|extension|union|macro_rules!|sub|defmodule|defp?|package)\b[ (<]",
        r"^(?:export )?(?:const|static|let|var) [A-Z_$][\w$]*\b.*=",
        r"^(?:export )(?:const|let|var|default)\b",
        r"^(?:public|private|protected|static|final|override|virtual|async)\b[\w<>\[\], ?*&]*\(",
        r"^[A-Z_][A-Z0-9_]{2,} *[:=]",
        r"^(?:CREATE|ALTER|create|alter) (?:TABLE|VIEW|INDEX|FUNCTION|table|view|index|function)\b",
        r"^#define \w",
    ];
    Regex::new(&patterns.join("|")).expect("a pattern")
});
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:return|if|for|while|import|from|use|let|const|var|else|elif|match|case|switch|try|except|catch|with|raise|throw|defer|go|assert|@\w+|#\[)\b.*")
        .expect("a pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::condense::Kind;
    use crate::condense::check::check;

    #[test]
    fn definitions_stay() {
        let text = {
            let body = "        let x = compute(1, 2);\n        use_it(x);\n".repeat(9);
            format!(
                "use std::fmt;\n\n/// A point.\npub struct Point {{\n    x: i32,\n}}\n\nimpl Point {{\n    pub fn new() -> Point {{\n{body}    }}\n\n    fn other(&self) {{\n{body}        let wanted = target_name();\n{body}    }}\n}}\n"
            )
        };
        check(
            Kind::Code,
            &text,
            300,
            &["target_name"],
            &expect![[r#"
                … 2 lines
                /// A point.
                pub struct Point {
                    x: i32,
                }
                impl Point {
                    pub fn new() -> Point {
                        let x = compute(1, 2);
                … 19 lines
                    fn other(&self) {
                … 17 lines
                        use_it(x);
                        let wanted = target_name();
                        let x = compute(1, 2);
                … 19 lines
            "#]],
        );
    }

    #[test]
    fn line_numbers_stay() {
        let text = (1..80)
            .map(|i| {
                if i == 40 {
                    "    40→fn found() {\n".to_owned()
                } else {
                    format!("{i:6}→    call({i});\n")
                }
            })
            .collect::<String>();
        check(
            Kind::Code,
            &text,
            160,
            &[],
            &expect![[r#"
                 1→    call(1);
            … 37 lines
                39→    call(39);
                40→fn found() {
                41→    call(41);
            … 37 lines
                79→    call(79);
        "#]],
        );
    }
}
