//! The fast count of any text is the plain crate's count of it, on every thread.

use fanfold_core::{Count, Tokens};
use fanfold_tokens::{cl100k, o200k};
use proptest::prelude::*;

/// Compares both vocabularies on one text.
fn check(text: &str) {
    let counters: [&dyn Count; 2] = [o200k(), cl100k()];
    for counter in counters {
        let plain = tiktoken::get_encoding(counter.name()).expect("the vocabulary is embedded");
        assert_eq!(counter.count(text), Tokens(plain.count(text) as u64), "{} of {text:?}", counter.name());
    }
}

/// Whether a line may be counted by itself: something visible follows its blanks, and no slash comes first.
fn stands_alone(line: &str) -> bool {
    let visible = line.trim_start_matches([' ', '\t']);
    !line.starts_with('/') && visible.starts_with(|first: char| !first.is_whitespace())
}

proptest! {
    /// What `is_cut_at_lines` says.
    #[test]
    fn a_text_costs_what_its_lines_cost(
        lines in prop::collection::vec(prop::collection::vec(0..PARTS.len(), 1..8), 1..6),
    ) {
        let lines: Vec<String> = lines
            .into_iter()
            .map(|parts| parts.into_iter().map(|part| PARTS[part]).collect::<String>() + "\n")
            .filter(|line| stands_alone(line))
            .collect();
        let counters: [&dyn Count; 2] = [o200k(), cl100k()];
        for counter in counters {
            prop_assert!(counter.is_cut_at_lines());
            let alone: Tokens = lines.iter().map(|line| counter.count(line)).sum();
            prop_assert_eq!(counter.count(&lines.concat()), alone);
        }
    }
}

/// What texts are made of: everything the rules treat in a way of its own, and its neighbours.
const PARTS: [&str; 96] = [
    "a",
    "the",
    "Hello",
    "HTTP",
    "readAll",
    "XMLHttpRequest",
    "snake_case",
    "internationalization",
    "Z",
    "iPhone",
    "'s",
    "'S",
    "'t",
    "'re",
    "'RE",
    "'ve",
    "'ll",
    "'LL",
    "'m",
    "'d",
    "'x",
    "'",
    "''",
    "don't",
    "I'LL",
    "we're",
    "’s",
    " ",
    "  ",
    "   ",
    "        ",
    "                    ",
    "\t",
    "\t\t",
    " \t",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "\u{85}",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\n ",
    " \n",
    "\n    ",
    "\r\n\t",
    "\n/",
    "\n//",
    "/",
    "//",
    "/*",
    "*/",
    "; ",
    ";\n",
    "{",
    "}\n",
    "({",
    "});\n",
    "=>",
    "::",
    "->",
    "\"",
    "\\n",
    "...",
    "!",
    "==========",
    "0",
    "12",
    "123",
    "1234",
    "3.14",
    "0x1F",
    "2026-11-15",
    "é",
    "naïve",
    "e\u{301}",
    "\u{301}",
    "ß",
    "ſ",
    "İ",
    "你好",
    "，",
    "。世界",
    "日本語です",
    "한국어",
    "мир",
    "Ⅻ",
    "½",
    "٣",
    "😀",
    "→",
    "│",
    "\0",
];

/// Real code, with tests full of odd characters.
const SOURCES: [&str; 4] = [
    include_str!("../../src/split.rs"),
    include_str!("../../src/memo.rs"),
    include_str!("golden.rs"),
    include_str!("agreement.rs"),
];

/// A small generator, the same on every machine.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }

    fn slice(&mut self) -> &'static str {
        let source = SOURCES[self.below(SOURCES.len())];
        let start = source.floor_char_boundary(self.below(source.len()));
        &source[start..source.floor_char_boundary(start + self.below(120).min(source.len() - start))]
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(12) {
            match self.below(8) {
                0 => text.push_str(self.slice()),
                1 => text.extend(char::from_u32(self.below(0x3100) as u32)),
                2 => text.push(self.below(128) as u8 as char),
                _ => text.push_str(PARTS[self.below(PARTS.len())]),
            }
        }
        text
    }
}

#[test]
fn on_texts_from_a_seed() {
    let mut seeded = Seeded(20_261_115);
    for _ in 0..18_000 {
        check(&seeded.text());
    }
}

#[test]
fn on_every_pair_and_triple_of_ascii_kinds() {
    let kinds = ["a", "B", "1", "(", "/", "'", " ", "\t", "\n", "\r", "é", "s"];
    for first in kinds {
        for second in kinds {
            for third in kinds {
                for fourth in kinds {
                    check(&[first, second, third, fourth].concat());
                }
            }
        }
    }
}

#[test]
fn on_whole_files() {
    for source in SOURCES {
        check(source);
        check(&source.replace('\n', "\r\n"));
    }
}

#[test]
fn on_log_lines() {
    let mut seeded = Seeded(7);
    let levels = ["INFO", "WARN ", "error", "DEBUG"];
    let mut log = String::new();
    for n in 0..2_000 {
        let (level, ms, id) = (levels[seeded.below(4)], seeded.below(99_999), seeded.below(usize::MAX >> 2));
        log += &format!(
            "2026-11-15T04:{:02}:{:02}.{ms:05}Z {level} [worker-{n}] req={id:016x} took {ms}ms\n",
            n % 60,
            n % 7
        );
    }
    check(&log);
}

#[test]
fn on_pieces_up_to_the_longest_kept_whole() {
    for part in ["a", "A", " ", "=", "\n", "\t", "ab", "é", " é", "=\n"] {
        for len in [7, 8, 15, 16, 17, 31, 62, 63, 64, 128, 1000, 3900] {
            check(&part.repeat(len / part.len()));
            check(&format!("x{}y", part.repeat(len / part.len())));
        }
    }
}

#[test]
fn on_many_threads_at_once() {
    let mut seeded = Seeded(3);
    let texts: Vec<String> = (0..64).map(|_| seeded.text().repeat(20)).collect();
    let alone: Vec<Tokens> = texts.iter().map(|text| o200k().count(text)).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let together: Vec<Tokens> = texts.iter().map(|text| o200k().count(text)).collect();
                    assert_eq!(alone, together);
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_parts_in_any_order(parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..12)) {
        check(&parts.concat());
    }

    #[test]
    fn on_any_characters(text in prop::collection::vec(any::<char>(), 0..12)) {
        check(&text.into_iter().collect::<String>());
    }
}
