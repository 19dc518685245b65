//! Splits a text into normalized words.
//!
//! ```text
//! Straße ＡＢＣ  src/max_retries.rs  日本語   ->   strasse abc src max retries rs 日 本 語
//! ```
//!
//! A word is a run of letters and digits in lower case; Latin letters lose their accents. In scripts without spaces
//! between words, each character is a word. Texts and queries are split by the same function, so any excerpt of a
//! text finds it, regardless of punctuation.

use std::ops::Range;

use unicode_normalization::char::{compose, decompose_compatible};

/// The maximum length of a word; a longer run is split into consecutive words.
pub(crate) const MAX_WORD_CHARS: usize = 64;

/// Calls `visit` with the byte range of each word in the text, and the normalized word.
pub(crate) fn for_each_word(text: &str, mut visit: impl FnMut(Range<usize>, &str)) {
    let mut word = String::new();
    let mut n_chars = 0;
    let mut start = 0;
    let mut end = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((at, first)) = rest.next() {
        let mut letter = first;
        let mut after = at + first.len_utf8();
        // A combining accent may follow its letter.
        while !first.is_ascii_whitespace()
            && let Some((mark_at, mark)) = rest.next_if(|(_, next)| is_accent(*next))
        {
            letter = with_accent(letter, mark);
            after = mark_at + mark.len_utf8();
        }
        let folded = FoldedChar::new(letter);
        if folded.is_whole_word || folded.len == 0 || n_chars >= MAX_WORD_CHARS {
            if !word.is_empty() {
                visit(start..end, &word);
            }
            word.clear();
            n_chars = 0;
        }
        if folded.len == 0 {
            continue;
        }
        if word.is_empty() {
            start = at;
        }
        word.extend(folded.chars());
        n_chars += folded.len;
        end = after;
        if folded.is_whole_word {
            visit(start..end, &word);
            word.clear();
            n_chars = 0;
        }
    }
    if !word.is_empty() {
        visit(start..end, &word);
    }
}

/// Returns the words of a text.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |_, word| words.push(word.to_owned()));
    words
}

/// Returns whether a word is a single character of a script without spaces.
pub(crate) fn is_single_char_word(word: &str) -> bool {
    word.chars().next().is_some_and(is_unspaced)
}

/// The normalized form of one character.
struct FoldedChar {
    letters: [char; 4],
    len: usize,
    /// True if the character is a word by itself.
    is_whole_word: bool,
}

impl FoldedChar {
    fn new(letter: char) -> FoldedChar {
        let mut folded = FoldedChar { letters: ['\0'; 4], len: 0, is_whole_word: false };
        if letter.is_ascii() {
            if letter.is_ascii_alphanumeric() {
                folded.push(letter.to_ascii_lowercase());
            }
            return folded;
        }
        // Decompose full-width and half-width forms, ligatures and superscript digits; leave other letters unchanged.
        let mut plain = FoldedChar { letters: ['\0'; 4], len: 0, is_whole_word: false };
        let mut is_latin = true;
        decompose_compatible(letter, |part| {
            if plain.len == 0 && part.is_alphanumeric() || part.is_ascii_alphanumeric() {
                is_latin &= part.is_ascii();
                plain.push(part);
            }
        });
        let is_form = matches!(letter, '\u{ff00}'..='\u{ffef}' | '\u{2e80}'..='\u{2fdf}');
        if !(is_latin && plain.len > 0 || is_form && plain.len == 1) {
            plain.len = 0;
            if letter.is_alphanumeric() {
                plain.push(letter);
            }
        }
        for letter in plain.chars() {
            for lower in letter.to_lowercase().filter(|lower| lower.is_alphanumeric()) {
                match lower {
                    'ς' => folded.push('σ'),
                    'ß' => ['s', 's'].into_iter().for_each(|letter| folded.push(letter)),
                    lower => folded.push(lower),
                }
            }
        }
        folded.is_whole_word = folded.len > 0 && is_unspaced(folded.letters[0]);
        folded
    }

    fn push(&mut self, letter: char) {
        if let Some(slot) = self.letters.get_mut(self.len) {
            *slot = letter;
            self.len += 1;
        }
    }

    fn chars(&self) -> impl Iterator<Item = char> + '_ {
        self.letters[..self.len].iter().copied()
    }
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}')
}

/// Combines a letter with an accent; returns the letter alone if Unicode has no such combination.
fn with_accent(letter: char, accent: char) -> char {
    let plain = |c: char| {
        let mut plain = c;
        if matches!(c, '\u{ff66}'..='\u{ff9f}') {
            decompose_compatible(c, |part| plain = part);
        }
        plain
    };
    compose(plain(letter), plain(accent)).unwrap_or(letter)
}

/// Returns whether a letter belongs to Chinese, Japanese, Korean, Thai, Lao, Burmese or Khmer, which are split into
/// characters.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3100}'..='\u{318f}' | '\u{31a0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(
            words("Straße ＡＢＣ src/max_retries.rs 日本語").join(" "),
            "strasse abc src max retries rs 日 本 語"
        );
        assert_eq!(words("  \0--\"*(: ").join(" "), "");
        assert_eq!(words("don't 3.14 x²").join(" "), "don t 3 14 x2");
        assert_eq!(words("ΟΔΟΣ οδός Ёлка ёлка").join(" "), "οδοσ οδόσ ёлка ёлка");
    }

    #[test]
    fn composed_and_combining_accents_are_equal() {
        assert_eq!(words("caf\u{e9} cafe\u{301} CAFÉ cafe").join(" "), "cafe cafe cafe cafe");
        assert_eq!(words("が か\u{3099} ｶﾞ").join(" "), "が が ガ");
        assert_eq!(words("한국어 ไทย").join(" "), "한 국 어 ไ ท ย");
    }

    #[test]
    fn long_run_is_split_into_several_words() {
        let long = "a".repeat(MAX_WORD_CHARS * 2 + 1);
        assert_eq!(words(&long).iter().map(String::len).collect::<Vec<_>>(), [64, 64, 1]);
    }

    #[test]
    fn words_have_their_byte_ranges() {
        let text = "a Cafe\u{301}, 日本!";
        let mut seen = Vec::new();
        for_each_word(text, |range, word| seen.push((&text[range], word.to_owned())));
        let seen: Vec<(&str, &str)> = seen.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(seen, [("a", "a"), ("Cafe\u{301}", "cafe"), ("日", "日"), ("本", "本")]);
    }
}
