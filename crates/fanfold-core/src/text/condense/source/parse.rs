//! Parses source files with tree-sitter, within limits.
//!
//! A parser can be slow and use much memory for text in another language: 64 kB of `a<a<a<` as Java takes gigabytes.
//! The number of parser operations is therefore limited in proportion to the bytes read. Counting operations instead
//! of time makes the limit the same on every machine.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree, TreeCursor};

use crate::text::condense::source::grammar::{NodeRole, language_of};
use crate::text::condense::source::outline::Definition;

/// The maximum size of a file.
const LONGEST: usize = 64 << 10;
/// The parser reports progress every hundred operations. Source code needs one report per 110 to 200 bytes.
const BYTES_PER_REPORT: usize = 100;
/// Additional reports, because excerpts of files begin in the middle of a construct.
const FIRST_REPORTS: usize = 64;
/// The maximum nesting of brackets.
const DEEPEST_BRACKET: usize = 100;
/// The maximum depth of the search for definitions.
const DEEPEST: usize = 24;

/// The definitions of a file in order, or `None` if its language is unknown or the text does not parse.
pub(crate) fn definitions(text: &str, path: &str) -> Option<Vec<Definition>> {
    if text.len() > LONGEST || bracket_depth(text) > DEEPEST_BRACKET {
        return None;
    }
    let tree = parse(text, &language_of(path)?)?;
    let mut collector = DefinitionCollector { found: Vec::new(), n_error_bytes: 0 };
    collector.collect(&mut tree.walk());
    let is_poor = collector.found.is_empty() || collector.n_error_bytes * 2 > text.len();
    (!is_poor).then_some(collector.found)
}

/// Parses a text, or returns `None` if that takes too many operations.
fn parse(text: &str, language: &Language) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(language).ok()?;
    let mut n_reports = 0;
    let mut report = |state: &ParseState| {
        n_reports += 1;
        let allowed = FIRST_REPORTS + state.current_byte_offset() / BYTES_PER_REPORT;
        if n_reports > allowed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = text.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut report);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// The nesting of brackets, counting those in strings too.
fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Collects definitions from a syntax tree.
struct DefinitionCollector {
    found: Vec<Definition>,
    /// The number of bytes in error nodes.
    n_error_bytes: usize,
}

impl DefinitionCollector {
    /// Visits the descendants of the node at the cursor. Iterative, because trees can be deep.
    fn collect(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut containers: Vec<bool> = Vec::new();
        let mut is_down = cursor.goto_first_child();
        if is_down {
            containers.push(false);
        }
        while !containers.is_empty() {
            let node = cursor.node();
            let depth = containers.iter().filter(|is_container| **is_container).count();
            let role = NodeRole::from_node(&node);
            self.visit(&node, role, depth);
            let goes_down =
                matches!(role, NodeRole::Container | NodeRole::Wrapper) && containers.len() < DEEPEST;
            is_down = goes_down && cursor.goto_first_child();
            if is_down {
                containers.push(role == NodeRole::Container);
                continue;
            }
            while !cursor.goto_next_sibling() {
                containers.pop();
                if containers.is_empty() || !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn visit(&mut self, node: &Node<'_>, role: NodeRole, depth: usize) {
        if node.is_error() {
            let is_inside = node.parent().is_some_and(|parent| parent.is_error());
            self.n_error_bytes += if is_inside { 0 } else { node.end_byte() - node.start_byte() };
        }
        if !matches!(role, NodeRole::Definition | NodeRole::Container) {
            return;
        }
        let (first, last) = (node.start_position().row, node.end_position().row);
        let signature = match node.child_by_field_name("body") {
            Some(body) => {
                let row = body.start_position().row;
                // The brace may be on a line of its own; an indented body always is.
                let is_below = row > first && !is_after_signature(node, &body);
                if is_below { row - 1 } else { row }
            }
            None if last - first < SHORT => last,
            None => first,
        };
        self.found.push(Definition { first, signature: signature.clamp(first, first + MOST), last, depth });
    }
}

/// Definitions without a body are shown whole up to this many additional lines.
const SHORT: usize = 3;
/// The maximum number of additional lines of a signature.
const MOST: usize = 12;

/// Returns whether a body begins on the line on which the signature ends.
fn is_after_signature(node: &Node<'_>, body: &Node<'_>) -> bool {
    let before = body.prev_sibling().filter(|before| before.start_byte() >= node.start_byte());
    before.is_some_and(|before| before.end_position().row == body.start_position().row)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Prints the signatures with their depth and line range.
    fn check(path: &str, text: &str, expected: &Expect) {
        let lines: Vec<&str> = text.lines().collect();
        let mut out = String::new();
        for definition in definitions(text, path).unwrap_or_default() {
            let signature: Vec<_> =
                lines[definition.first..=definition.signature].iter().map(|line| line.trim()).collect();
            out += &format!(
                "{}{}-{} {}\n",
                "  ".repeat(definition.depth),
                definition.first + 1,
                definition.last + 1,
                signature.join(" ")
            );
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn rust() {
        let text = "\
use std::fmt;

pub struct Point {
    x: i32,
}

impl Point {
    pub fn new(
        x: i32,
    ) -> Point {
        Point { x }
    }

    fn x(&self) -> i32 { self.x }
}

mod inner {
    const LONGEST: usize = 3;
    trait Named {
        fn name(&self) -> String;
    }
}
";
        check(
            "src/point.rs",
            text,
            &expect![[r#"
                3-5 pub struct Point {
                7-15 impl Point {
                  8-12 pub fn new( x: i32, ) -> Point {
                  14-14 fn x(&self) -> i32 { self.x }
                17-22 mod inner {
                  18-18 const LONGEST: usize = 3;
                  19-21 trait Named {
                    20-20 fn name(&self) -> String;
            "#]],
        );
    }

    #[test]
    fn python() {
        let text = "\
import os

@dataclass
class Shop:
    name: str

    def open(self, key: str,
             door: int = 0) -> bool:
        \"\"\"Opens it.\"\"\"
        def inner():
            return 1
        return inner()

async def main():
    pass
";
        check(
            "shop.py",
            text,
            &expect![[r#"
                4-12 class Shop:
                  7-12 def open(self, key: str, door: int = 0) -> bool:
                14-15 async def main():
            "#]],
        );
    }

    #[test]
    fn typescript_and_javascript() {
        let text = "\
import { a } from './a';
export interface Shop { name: string; open(key: string): boolean }
export class Stall implements Shop {
  name = 'x';
  constructor(private key: string) {}
  open(key: string): boolean {
    return key === this.key;
  }
}
export const LIMIT = 3;
const twice = (x: number) => {
  return 2 * x;
};
type Key = string | number;
export default function main() { return twice(2); }
";
        check(
            "src/shop.ts",
            text,
            &expect![[r#"
                2-2 export interface Shop { name: string; open(key: string): boolean }
                  2-2 export interface Shop { name: string; open(key: string): boolean }
                3-9 export class Stall implements Shop {
                  5-5 constructor(private key: string) {}
                  6-8 open(key: string): boolean {
                10-10 export const LIMIT = 3;
                11-13 const twice = (x: number) => { return 2 * x; };
                14-14 type Key = string | number;
                15-15 export default function main() { return twice(2); }
            "#]],
        );
        check(
            "a.jsx",
            "function App({ name }) {\n  return <b>{name}</b>;\n}\n",
            &expect![[r#"
                1-3 function App({ name }) {
            "#]],
        );
    }

    #[test]
    fn go() {
        let text = "\
package shop

import \"fmt\"

const limit = 3

type Shop struct {
	Name string
}

type Opener interface {
	Open(key string) error
}

func (s *Shop) Open(key string) error {
	return fmt.Errorf(\"no %s\", key)
}
";
        check(
            "shop.go",
            text,
            &expect![[r#"
                5-5 const limit = 3
                7-9 type Shop struct { Name string }
                11-13 type Opener interface { Open(key string) error }
                  12-12 Open(key string) error
                15-17 func (s *Shop) Open(key string) error {
            "#]],
        );
    }

    #[test]
    fn java() {
        let text = "\
package shop;

public class Shop {
    private final String name;

    public Shop(String name) {
        this.name = name;
    }

    @Override
    public String toString() {
        return name;
    }

    interface Opener { boolean open(String key); }
}
";
        check(
            "Shop.java",
            text,
            &expect![[r#"
                3-16 public class Shop {
                  6-8 public Shop(String name) {
                  10-13 @Override public String toString() {
                  15-15 interface Opener { boolean open(String key); }
                    15-15 interface Opener { boolean open(String key); }
            "#]],
        );
    }

    #[test]
    fn c_and_cpp() {
        let text = "\
#include <map>
#define TWICE(x) (2 * (x))
typedef struct point { int x; } point_t;
int open_shop(const char *key);
namespace shop {
class Shop {
public:
  Shop() {}
  bool open(const char *key) const;
};
template <typename T>
T twice(T x)
{
  return 2 * x;
}
}
";
        check(
            "shop.cpp",
            text,
            &expect![[r#"
                2-3 #define TWICE(x) (2 * (x)) typedef struct point { int x; } point_t;
                3-3 typedef struct point { int x; } point_t;
                4-4 int open_shop(const char *key);
                5-16 namespace shop {
                  6-10 class Shop {
                    8-8 Shop() {}
                    9-9 bool open(const char *key) const;
                  12-15 T twice(T x)
            "#]],
        );
    }

    #[test]
    fn parses_excerpts() {
        let text = "\
        let x = 1;
        x + 1
    }

    pub fn next(&mut self) -> Option<u8> {
        self.bytes.next()
    }

    pub fn last(&self) -> Option<u8> {
        self.bytes.last()
    }
}
";
        check(
            "src/a.rs",
            text,
            &expect![[r#"
            5-7 pub fn next(&mut self) -> Option<u8> {
            9-11 pub fn last(&self) -> Option<u8> {
        "#]],
        );
    }

    #[test]
    fn rejects_texts_that_are_not_source_code() {
        for (path, text) in [
            ("a.rs", "error: no such file\n"),
            ("a.py", "Traceback (most recent call last):\n  File \"a.py\", line 3\n"),
            ("a.txt", "fn main() {}\n"),
            ("Makefile", "all:\n\tcc a.c\n"),
            ("a.rs", ""),
        ] {
            assert_eq!(definitions(text, path), None, "{path}: {text}");
        }
    }

    /// Without the limits, some of these take minutes and gigabytes.
    #[test]
    fn hostile_texts_are_rejected_early() {
        let size = LONGEST;
        let texts = [
            "a".repeat(size),
            "a ".repeat(size / 2),
            "a<".repeat(size / 2),
            "a<\n".repeat(size / 3),
            "(".repeat(size),
            "{".repeat(size),
            "if (a) {\n".repeat(size / 9),
            "\"".repeat(size),
            "`${".repeat(size / 3),
            "((a,b)=>".repeat(size / 8),
            "class A { ".repeat(size / 10),
            "error: x y z\n".repeat(size / 13),
            (0..500).map(|i| format!("{}if a:\n", " ".repeat(i))).collect(),
            "\0".repeat(size),
            "ü".repeat(size / 2),
        ];
        for text in &texts {
            for path in ["a.rs", "a.py", "a.ts", "a.js", "a.go", "a.java", "a.cc"] {
                // Rejected because of deep nesting or too many errors.
                assert_eq!(definitions(text, path), None, "{path}: {}", &text[..12]);
            }
        }
    }
}
