//! Source files: the signatures in order, under their line numbers, and whole what is worked on.
//!
//! Which names there are and what they take is what later work needs; bodies can be recalled. Rust, Python, JavaScript,
//! TypeScript, Go, Java, C and C++ are parsed (feature `outline`); in other languages, and where a text does not parse,
//! definitions are told by how their lines look. A function whose lines stand in one of the newest edits of the file stays
//! whole. Line numbers that a tool put in front stay.
//!
//! `src/basket.py` in 440 bytes, `self.items.append` being worked on:
//!
//! ```text
//! import json
//! from dataclasses import dataclass, field
//!
//!
//! @dataclass
//! class Item:
//!     """Something to buy."""
//!     name: str
//!     cents: int
//!
//!
//! class Basket:
//!     def __init__(self, owner: str) -> None:
//!         self.owner = owner
//!         self.items: list[Item] = []
//!
//!     def add(self, item: Item, count: int = 1) -> None:
//!         if count < 1:
//!             raise ValueError("count must be positive")
//!         for _ in range(count):
//!             self.items.append(item)
//!
//!     def total(self) -> int:
//!         return sum(item.cents for item in self.items)
//!
//!     def to_json(self) -> str:
//!         lines = [{"name": item.name, "cents": item.cents} for item in self.items]
//!         return json.dumps({"owner": self.owner, "items": lines}, indent=2)
//!
//!
//! def load(path: str) -> Basket:
//!     with open(path) as file:
//!         data = json.load(file)
//!     basket = Basket(data["owner"])
//!     for line in data["items"]:
//!         basket.add(Item(line["name"], line["cents"]))
//!     return basket
//! ->
//! 5→@dataclass
//! 6→class Item:
//! 12→class Basket:
//! 13→    def __init__(self, owner: str) -> None:
//! 17→    def add(self, item: Item, count: int = 1) -> None:
//! 18→        if count < 1:
//! 19→            raise ValueError("count must be positive")
//! 20→        for _ in range(count):
//! 21→            self.items.append(item)
//! 23→    def total(self) -> int:
//! 26→    def to_json(self) -> str:
//! 31→def load(path: str) -> Basket:
//! ```

use std::sync::LazyLock;

use regex::Regex;

use crate::text::condense::lines::{FRAME, Gap, MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::signs::head;
use crate::text::condense::source::outline::{Definition, Outlines};
use crate::text::condense::{FileShown, Wish};

pub(crate) fn condense(text: &str, wish: &Wish<'_>) -> String {
    outlined(text, wish).unwrap_or_else(|| Source::of(text).by_look(wish))
}

/// The outline of a file, where its language is known and it parses.
pub(crate) fn outlined(text: &str, wish: &Wish<'_>) -> Option<String> {
    let file = wish.file?;
    let source = Source::of(text);
    let fresh = Outlines::default();
    let outline = wish.outlines.unwrap_or(&fresh).definitions(&source.bare(), file.path)?;
    Some(source.by_outline(&outline, &file, wish))
}

/// The lines of a file, as a tool showed them.
struct Source<'a> {
    lines: Vec<&'a str>,
    /// Each begins with its number.
    is_numbered: bool,
}

impl<'a> Source<'a> {
    fn of(text: &'a str) -> Source<'a> {
        let lines: Vec<&str> = text.split('\n').collect();
        let n_numbered = lines.iter().filter(|line| unnumbered(line).len() < line.len()).count();
        let n_filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
        Source { lines, is_numbered: n_numbered * 5 > n_filled * 4 }
    }

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
            match file.first_line {
                _ if self.is_numbered => {
                    rows.push(line.trim_start_matches(' '), weights[i]);
                    rows.gap(Gap::Silent);
                }
                Some(first) => rows.push_numbered(first as usize + i, line, weights[i]),
                // A piece from somewhere in the file: a number would mislead.
                None => rows.push(line, weights[i]),
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

/// Whether a line looks like the first of a definition.
pub(crate) fn is_definition(line: &str) -> bool {
    DEFINITION.is_match(head(line, 200).trim_start())
}

/// The weight of a line of code, without its number.
pub(crate) fn weight(line: &str) -> f32 {
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
pub(crate) fn unnumbered(line: &str) -> &str {
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
pub(crate) fn is_code(line: &str) -> bool {
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

    use crate::text::condense::Kind;
    use crate::text::condense::check::check;

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
