//! Splits texts and names into words.
//!
//! ```text
//! readHeader, read_header, "Read the header"  ->  read, header
//! ```

use std::borrow::Cow;
use std::ops::Range;

/// The case-insensitive hash of a word; never zero.
pub(crate) type Word = u16;

const LOWER: u8 = 1;
const UPPER: u8 = 2;

/// The case of each ASCII letter, zero for other bytes.
const CASE: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 26 {
        table[b'a' as usize + i] = LOWER;
        table[b'A' as usize + i] = UPPER;
        i += 1;
    }
    table
};

/// The minimum number of letters in a word.
const SHORTEST: usize = 3;

/// Calls back with each word of a text or a name.
pub(crate) fn each_word(text: &[u8], mut found: impl FnMut(Word)) {
    let mut take = |letters: &[u8]| {
        if letters.len() >= SHORTEST {
            found(word_of(letters));
        }
    };
    let (mut start, mut before) = (0, 0);
    for (i, byte) in text.iter().enumerate() {
        let letter = CASE[usize::from(*byte)];
        if letter == before && letter != 0 {
            continue;
        }
        match (before, letter) {
            (0, _) => start = i,
            // The last capital of `HTTPS` in `HTTPServer` begins the next word.
            (UPPER, LOWER) => {
                take(&text[start..i - 1]);
                start = i - 1;
            }
            _ => {
                take(&text[start..i]);
                start = i;
            }
        }
        before = letter;
    }
    if before != 0 {
        take(&text[start..]);
    }
}

/// The last three words of a name inside a text; zeros fill up. Only the last 32 bytes of the name are split.
pub(crate) fn last_words(text: &[u8], name: Range<usize>) -> [Word; 3] {
    const LONGEST: usize = 32;
    let is_escaped = |i: usize| i > 0 && text[i - 1] == b'\\' && matches!(text[i], b'n' | b't' | b'r');
    let mut words = [0; 3];
    let start = name.start.max(name.end.saturating_sub(LONGEST));
    let mut from = start;
    for i in start..=name.end {
        if i == name.end || is_escaped(i) {
            each_word(&text[from..i], |word| words = [words[1], words[2], word]);
            from = i + 1;
        }
    }
    words
}

/// The hash of the last eight letters of a word.
fn word_of(letters: &[u8]) -> Word {
    let last = &letters[letters.len().saturating_sub(8)..];
    let bits = last.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let lower = bits | 0x2020_2020_2020_2020;
    (lower.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as Word | 1
}

/// A set of words.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordSet {
    bits: Vec<u64>,
}

impl WordSet {
    pub(crate) fn insert(&mut self, word: Word) {
        self.bits.resize(1024, 0);
        self.bits[usize::from(word >> 6)] |= 1 << (word & 63);
    }

    /// The share of some words that are in the set; zeros do not count.
    pub(crate) fn share(&self, words: &[Word]) -> f32 {
        let is_member = |word: &&Word| {
            self.bits.get(usize::from(**word >> 6)).is_some_and(|bits| bits >> (**word & 63) & 1 == 1)
        };
        let n_words = words.iter().filter(|word| **word != 0).count();
        let n_members = words.iter().filter(is_member).count();
        n_members as f32 / n_words.max(1) as f32
    }
}

/// A text with single spaces instead of blanks and line breaks.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    // Fast path: most texts are one line already.
    let is_blank = |byte: &u8| !byte.is_ascii_graphic();
    let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let bytes = text.as_bytes();
    let is_open = [bytes.first(), bytes.last()].into_iter().flatten().any(is_blank);
    if bytes.iter().all(is_plain) && !is_open && !text.contains("  ") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let mut words = Vec::new();
        each_word(text.as_bytes(), |word| words.push(word));
        words
    }

    #[test]
    fn splits_every_spelling_into_the_same_words() {
        let expected = words("read header");
        assert_eq!(expected.len(), 2);
        for text in [
            "readHeader",
            "read_header",
            "ReadHeader",
            "READ_HEADER",
            "a/read/header.x1",
            "12 read, é header",
            "READHeader",
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn last_words_skip_escapes() {
        let check = |text: &str, expected: &str| {
            let expected = words(expected);
            assert_eq!(last_words(text.as_bytes(), 0..text.len())[3 - expected.len()..], expected, "{text}");
        };
        check("oneTwo_threeFour", "two three four");
        check("src/x", "src");
        check(r"one\nameTwo", "one ame two");
        check(&format!("first{}last", "_".repeat(32)), "last");
    }

    #[test]
    fn share_ignores_absent_words() {
        let mut set = WordSet::default();
        assert_eq!(set.share(&words("read")), 0.0);
        words("read the header").into_iter().for_each(|word| set.insert(word));
        let mut some = words("readFooter");
        some.push(0);
        assert_eq!(set.share(&some), 0.5);
        assert_eq!(set.share(&[]), 0.0);
    }
}
