//! Source files: keeps the signatures with their line numbers, and whole definitions that were edited.
//!
//! Later work mostly needs names and parameters; bodies can be recalled. Rust, Python, JavaScript, TypeScript, Go,
//! Java, C and C++ are parsed (feature `outline`). In other languages, and if a text does not parse, definitions are
//! recognised by patterns. A function that contains lines of the newest edits of the file is kept whole. Line numbers
//! that a tool printed are kept.
//!
//! `src/basket.py` in 440 bytes, `self.items.append` having been edited:
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
use crate::text::condense::severity::head;
use crate::text::condense::source::outline::{Definition, Outlines};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, FileExcerpt, Sample};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Code,
    detects: |sample| sample.is_numbered || code_share(sample) > 0.35,
    condense: |text, options, _| condense(text, options),
    has_errors: false,
    suits_line_choice: true,
    may_be_code: false,
};

fn condense(text: &str, options: &CondenseOptions<'_>) -> String {
    condense_to_outline(text, options).unwrap_or_else(|| CodeLines::new(text).by_patterns(options))
}

/// Condenses a file to its outline, if its language is known and it parses.
pub(crate) fn condense_to_outline(text: &str, options: &CondenseOptions<'_>) -> Option<String> {
    let file = options.file?;
    let source = CodeLines::new(text);
    let uncached = Outlines::default();
    let outline = options.outlines.unwrap_or(&uncached).definitions(&source.text(), file.path)?;
    Some(source.by_outline(&outline, &file, options))
}

/// The lines of a source file as a tool printed them.
struct CodeLines<'a> {
    lines: Vec<&'a str>,
    /// True if the lines begin with line numbers.
    is_numbered: bool,
}

impl<'a> CodeLines<'a> {
    fn new(text: &'a str) -> CodeLines<'a> {
        let lines: Vec<&str> = text.split('\n').collect();
        let n_numbered = lines.iter().filter(|line| unnumbered(line).len() < line.len()).count();
        let n_filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
        CodeLines { lines, is_numbered: n_numbered * 5 > n_filled * 4 }
    }

    fn line(&self, i: usize) -> &'a str {
        if self.is_numbered { unnumbered(self.lines[i]) } else { self.lines[i] }
    }

    /// The text without line numbers.
    fn text(&self) -> String {
        let lines: Vec<&str> = (0..self.lines.len()).map(|i| self.line(i)).collect();
        lines.join("\n")
    }

    /// Keeps lines that look like definitions and lines of value.
    fn by_patterns(&self, options: &CondenseOptions<'_>) -> String {
        let mut rows = Rows::new(options);
        for (i, line) in self.lines.iter().enumerate() {
            rows.push(line, weight(self.line(i)));
        }
        rows.spread_weight();
        rows.choose()
    }

    /// Keeps the signatures, the edited definitions and lines of value, with their line numbers.
    fn by_outline(
        &self,
        outline: &[Definition],
        file: &FileExcerpt<'_>,
        options: &CondenseOptions<'_>,
    ) -> String {
        let mut weights: Vec<f32> =
            (0..self.lines.len()).map(|i| weight(self.line(i)).min(PLAIN * 3.0)).collect();
        for definition in outline {
            let weight = match definition.depth {
                0 => FRAME,
                1 => FRAME * 0.6,
                _ => SHAPE,
            };
            for line_weight in &mut weights[definition.first..=definition.signature] {
                *line_weight = weight;
            }
        }
        let mut rows = Rows::new(options);
        for (i, line) in self.lines.iter().enumerate() {
            match file.first_line {
                _ if self.is_numbered => {
                    rows.push(line.trim_start_matches(' '), weights[i]);
                    rows.gap(Gap::Silent);
                }
                Some(first) => rows.push_numbered(first as usize + i, line, weights[i]),
                // The line numbers of an excerpt from an unknown place are not known.
                None => rows.push(line, weights[i]),
            }
        }
        let mut left = options.room / 4 * 3;
        for definition in self.edited_definitions(outline, file) {
            let all = definition.first..=definition.last;
            let n_bytes: usize = all.clone().map(|i| self.lines[i].len() + NUMBER).sum();
            if n_bytes <= left {
                left -= n_bytes;
                all.for_each(|i| rows.raise(i, MUST));
            }
        }
        rows.spread_weight();
        rows.choose()
    }

    /// The innermost definitions with edited lines, most edited first.
    fn edited_definitions(&self, outline: &[Definition], file: &FileExcerpt<'_>) -> Vec<Definition> {
        let is_edited: Vec<bool> = (0..self.lines.len()).map(|i| (file.is_edited)(self.line(i))).collect();
        let mut found: Vec<(usize, Definition)> = Vec::new();
        for (i, &definition) in outline.iter().enumerate() {
            let contains_next = outline.get(i + 1).is_some_and(|next| next.first <= definition.last);
            let n_edited = is_edited[definition.first..=definition.last].iter().filter(|is| **is).count();
            if n_edited > 0 && !contains_next {
                found.push((n_edited, definition));
            }
        }
        found.sort_by_key(|(n_edited, _)| std::cmp::Reverse(*n_edited));
        found.into_iter().map(|(_, definition)| definition).collect()
    }
}

/// The approximate size of a line number.
const NUMBER: usize = 8;

/// Returns whether a line looks like the beginning of a definition.
pub(crate) fn is_definition(line: &str) -> bool {
    DEFINITION.is_match(head(line, 200).trim_start())
}

/// The weight of a line of code without its line number.
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

/// The indentation in columns; a tab counts as four.
fn indent(line: &str) -> usize {
    line.bytes().take_while(u8::is_ascii_whitespace).map(|b| if b == b'\t' { 4 } else { 1 }).sum()
}

/// Removes the line number that a tool printed: `12→`, `12|`, `12:`, `12-`, `12` and a tab.
pub(crate) fn unnumbered(line: &str) -> &str {
    let rest = line.trim_start_matches(' ');
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || digits > 7 {
        return line;
    }
    let rest = &rest[digits..];
    let marked = rest.strip_prefix(['→', '|', '\t', ':', '-']).unwrap_or(line);
    // A time such as `12:30` or a range such as `3-4` is not a line number.
    if marked.starts_with(|c: char| c.is_ascii_digit()) && rest.starts_with([':', '-']) {
        line
    } else {
        marked
    }
}

/// The share of lines that look like source code.
pub(crate) fn code_share(sample: &Sample<'_>) -> f32 {
    sample.share(|line| is_code(unnumbered(line)))
}

fn is_code(line: &str) -> bool {
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
    Regex::new(&patterns.join("|")).expect("a valid pattern")
});
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:return|if|for|while|import|from|use|let|const|var|else|elif|match|case|switch|try|except|catch|with|raise|throw|defer|go|assert|@\w+|#\[)\b.*")
        .expect("a valid pattern")
});

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn keeps_definitions() {
        let text = {
            let body = "        let x = compute(1, 2);\n        use_it(x);\n".repeat(9);
            format!(
                "use std::fmt;\n\n/// A point.\npub struct Point {{\n    x: i32,\n}}\n\nimpl Point {{\n    pub fn new() -> Point {{\n{body}    }}\n\n    fn other(&self) {{\n{body}        let wanted = target_name();\n{body}    }}\n}}\n"
            )
        };
        check(
            ContentKind::Code,
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
    fn keeps_line_numbers() {
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
            ContentKind::Code,
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
