//! The tokens of a text are those of its lines (`Count::is_cut_at_lines`).

use fanfold_core::{Count, Tokens};
use fanfold_tokens::{cl100k, o200k};
use proptest::prelude::*;

/// True for lines that the property covers: they do not begin with a slash, and are not empty after their blanks.
fn can_be_counted_alone(line: &str) -> bool {
    let visible = line.trim_start_matches([' ', '\t']);
    !line.starts_with('/') && visible.starts_with(|first: char| !first.is_whitespace())
}

proptest! {
    #[test]
    fn a_text_has_the_tokens_of_its_lines(
        lines in prop::collection::vec(prop::collection::vec(prop::sample::select(&PARTS[..]), 1..8), 1..6),
    ) {
        let lines = lines.into_iter().map(|parts| parts.concat() + "\n");
        let lines: Vec<String> = lines.filter(|line| can_be_counted_alone(line)).collect();
        let counters: [&dyn Count; 2] = [o200k(), cl100k()];
        for counter in counters {
            prop_assert!(counter.is_cut_at_lines());
            let alone: Tokens = lines.iter().map(|line| counter.count(line)).sum();
            prop_assert_eq!(counter.count(&lines.concat()), alone);
        }
    }
}

/// Parts of texts: one of everything that the regular expressions of the vocabularies distinguish.
#[rustfmt::skip]
const PARTS: [&str; 96] = [
    "a", "the", "Hello", "HTTP", "readAll", "XMLHttpRequest", "snake_case", "internationalization", "Z",
    "iPhone", "'s", "'S", "'t", "'re", "'RE", "'ve", "'ll", "'LL", "'m", "'d", "'x", "'", "''", "don't",
    "I'LL", "we're", "’s", " ", "  ", "   ", "        ", "                    ", "\t", "\t\t", " \t",
    "\u{b}", "\u{c}", "\u{a0}", "\u{3000}", "\u{2028}", "\u{85}", "\n", "\n\n", "\r\n", "\r", "\n ", " \n",
    "\n    ", "\r\n\t", "\n/", "\n//", "/", "//", "/*", "*/", "; ", ";\n", "{", "}\n", "({", "});\n", "=>",
    "::", "->", "\"", "\\n", "...", "!", "==========", "0", "12", "123", "1234", "3.14", "0x1F",
    "2026-11-15", "é", "naïve", "e\u{301}", "\u{301}", "ß", "ſ", "İ", "你好", "，", "。世界", "日本語です", "한국어",
    "мир", "Ⅻ", "½", "٣", "😀", "→", "│", "\0",
];
