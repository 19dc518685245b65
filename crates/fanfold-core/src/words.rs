//! The words of which texts and names are made.
//!
//! ```text
//! readHeader, read_header, "Read the header"  ->  read, header
//! ```

use std::ops::Range;

use crate::marks::{MarkedText, Marks};

/// A word by its hash, in any case; zero is none.
pub(crate) type Word = u16;

const LOWER: u8 = 1;
const UPPER: u8 = 2;

const LETTER: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 26 {
        table[b'a' as usize + i] = LOWER;
        table[b'A' as usize + i] = UPPER;
        i += 1;
    }
    table
};

/// No word is shorter.
const SHORTEST: usize = 3;

/// Calls back with each word of a text or a name.
pub(crate) fn each_word(text: &[u8], mut found: impl FnMut(Word)) {
    let mut take = |letters: &[u8]| {
        if letters.len() >= SHORTEST {
            found(word_of(letters, letters.len()));
        }
    };
    let (mut start, mut before) = (0, 0);
    for (i, byte) in text.iter().enumerate() {
        let letter = LETTER[usize::from(*byte)];
        if letter == before && letter != 0 {
            continue;
        }
        match (before, letter) {
            (0, _) => start = i,
            // `HTTPServer`: the last capital belongs to what follows.
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

/// The last three words of a name in a text whose marks are known. Of a long name, its last bytes are looked at.
pub(crate) fn last_words(text: &[u8], marked: &MarkedText, name: Range<usize>) -> [Word; 3] {
    const MOST: usize = 32;
    let start = name.start.max(name.end.saturating_sub(MOST));
    let Marks { lower, upper, .. } = marked.window(start, name.end - start);
    let letter = lower | upper;
    // A word begins behind what is no letter, with a capital behind a small letter, and with the last of several capitals
    // before one: `HTTPServer`.
    let mut begins = letter & !(letter << 1) | upper & (lower << 1 | upper << 1 & lower >> 1);
    let ends = begins | !letter;
    let mut words = [0; 3];
    let mut n_words = 0;
    while let Some(first) = begins.checked_ilog2() {
        begins ^= 1 << first;
        let n_letters = 1 + (ends >> first >> 1).trailing_zeros() as usize;
        if n_letters >= SHORTEST {
            n_words += 1;
            words[3 - n_words] = word_of(&text[..start + first as usize + n_letters], n_letters);
            if n_words == 3 {
                break;
            }
        }
    }
    words
}

/// The word of so many letters at the end of a text. It is told by its last eight.
fn word_of(text: &[u8], n_letters: usize) -> Word {
    let n_letters = n_letters.min(8);
    let last = match text.last_chunk() {
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * n_letters),
        None => {
            text[text.len() - n_letters..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    let lower = last | 0x2020_2020_2020_2020;
    (lower.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as Word | 1
}

/// Words, for asking which are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordSet {
    bits: Vec<u64>,
}

impl WordSet {
    pub(crate) fn insert(&mut self, word: Word) {
        self.bits.resize(1024, 0);
        self.bits[usize::from(word >> 6)] |= 1 << (word & 63);
    }

    /// Which share of some words are there.
    pub(crate) fn share(&self, words: &[Word]) -> f32 {
        let is_there = |word: &&Word| {
            self.bits.get(usize::from(**word >> 6)).is_some_and(|bits| bits >> (**word & 63) & 1 == 1)
        };
        let n_words = words.iter().filter(|word| **word != 0).count();
        let n_there = words.iter().filter(is_there).count();
        n_there as f32 / n_words.max(1) as f32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let mut words = Vec::new();
        each_word(text.as_bytes(), |word| words.push(word));
        words
    }

    #[test]
    fn a_word_is_the_same_in_every_spelling() {
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

    proptest! {
        #[test]
        fn the_last_words_are_those_of_all(text in "[a-zA-Z_0-9./é ]{0,80}", from in 0..40_usize) {
            let name = text.floor_char_boundary(from)..text.len();
            let mut marked = MarkedText::default();
            marked.read(&text);
            let seen = name.start.max(text.len().saturating_sub(32));
            let mut all = vec![0; 3];
            each_word(&text.as_bytes()[seen..], |word| all.push(word));
            prop_assert_eq!(&last_words(text.as_bytes(), &marked, name)[..], &all[all.len() - 3..]);
        }
    }

    #[test]
    fn shares_are_of_the_words_that_there_are() {
        let mut set = WordSet::default();
        assert_eq!(set.share(&words("read")), 0.0);
        words("read the header").into_iter().for_each(|word| set.insert(word));
        let mut some = words("readFooter");
        some.push(0);
        assert_eq!(set.share(&some), 0.5);
        assert_eq!(set.share(&[]), 0.0);
    }
}
