//! Takes a text apart into the words it is found by.
//!
//! ```text
//! Straße ＡＢＣ  src/max_retries.rs  日本語   ->   strasse abc src max retries rs 日 本 語
//! ```
//!
//! A word is a run of letters and digits, in small letters, Latin ones without their accents. Where a script puts no
//! spaces between words, each character is one. Texts and queries are taken apart by this one function, so that what
//! is in a text is found by it, whatever signs stand between.

use std::ops::Range;

use unicode_normalization::char::{compose, decompose_compatible};

/// A word is no longer than this; a longer run is several words behind one another.
pub(crate) const MAX_WORD_CHARS: usize = 64;

/// Calls `see` with each word and where in the text it stands.
pub fn for_each_word(text: &str, mut see: impl FnMut(Range<usize>, &str)) {
    let mut word = String::new();
    let mut n_chars = 0;
    let mut start = 0;
    let mut end = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((at, first)) = rest.next() {
        let mut letter = first;
        let mut after = at + first.len_utf8();
        // An accent may follow its letter as a sign of its own.
        while !first.is_ascii_whitespace()
            && let Some((mark_at, mark)) = rest.next_if(|(_, next)| is_accent(*next))
        {
            letter = with_accent(letter, mark);
            after = mark_at + mark.len_utf8();
        }
        let folded = FoldedChar::new(letter);
        if folded.is_whole_word || folded.len == 0 || n_chars >= MAX_WORD_CHARS {
            if !word.is_empty() {
                see(start..end, &word);
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
            see(start..end, &word);
            word.clear();
            n_chars = 0;
        }
    }
    if !word.is_empty() {
        see(start..end, &word);
    }
}

/// The words of a text.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |_, word| words.push(word.to_owned()));
    words
}

/// The words of a text with a space between them: what a full text index is given.
pub fn joined_words(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for_each_word(text, |_, word| {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    });
    joined
}

/// Whether a word is one character of a script without spaces.
pub(crate) fn is_single_char_word(word: &str) -> bool {
    word.chars().next().is_some_and(is_unspaced)
}

/// What one letter becomes.
struct FoldedChar {
    letters: [char; 4],
    len: usize,
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
        // Wide and narrow forms, ligatures and raised digits become plain; other letters keep all they have.
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
            for small in letter.to_lowercase().filter(|small| small.is_alphanumeric()) {
                match small {
                    'ς' => folded.push('σ'),
                    'ß' => ['s', 's'].into_iter().for_each(|letter| folded.push(letter)),
                    small => folded.push(small),
                }
            }
        }
        folded.is_whole_word = folded.len > 0 && is_unspaced(folded.letters[0]);
        folded
    }

    fn push(&mut self, letter: char) {
        if let Some(place) = self.letters.get_mut(self.len) {
            *place = letter;
            self.len += 1;
        }
    }

    fn chars(&self) -> impl Iterator<Item = char> + '_ {
        self.letters[..self.len].iter().copied()
    }
}

fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}')
}

/// A letter with an accent, or without it where there is no such letter.
fn with_accent(letter: char, accent: char) -> char {
    let plain = |sign: char| {
        let mut plain = sign;
        if matches!(sign, '\u{ff66}'..='\u{ff9f}') {
            decompose_compatible(sign, |part| plain = part);
        }
        plain
    };
    compose(plain(letter), plain(accent)).unwrap_or(letter)
}

/// Scripts that put no spaces between words: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer.
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
            joined_words("Straße ＡＢＣ src/max_retries.rs 日本語"),
            "strasse abc src max retries rs 日 本 語"
        );
        assert_eq!(joined_words("  \0--\"*(: "), "");
        assert_eq!(joined_words("don't 3.14 x²"), "don t 3 14 x2");
        assert_eq!(joined_words("ΟΔΟΣ οδός Ёлка ёлка"), "οδοσ οδόσ ёлка ёлка");
    }

    #[test]
    fn accents_are_the_same_however_they_are_written() {
        assert_eq!(joined_words("caf\u{e9} cafe\u{301} CAFÉ cafe"), "cafe cafe cafe cafe");
        assert_eq!(joined_words("が か\u{3099} ｶﾞ"), "が が ガ");
        assert_eq!(joined_words("한국어 ไทย"), "한 국 어 ไ ท ย");
    }

    #[test]
    fn a_long_run_is_several_words() {
        let long = "a".repeat(MAX_WORD_CHARS * 2 + 1);
        assert_eq!(words(&long).iter().map(String::len).collect::<Vec<_>>(), [64, 64, 1]);
    }

    #[test]
    fn each_word_knows_its_place() {
        let text = "a Cafe\u{301}, 日本!";
        let mut seen = Vec::new();
        for_each_word(text, |range, word| seen.push((&text[range], word.to_owned())));
        let seen: Vec<(&str, &str)> = seen.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(seen, [("a", "a"), ("Cafe\u{301}", "cafe"), ("日", "日"), ("本", "本")]);
    }
}
