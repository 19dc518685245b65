//! The words of which texts and names are made.
//!
//! ```text
//! readHeader, read_header, "Read the header"  ->  read, header
//! ```

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

/// Calls back with each word of a text or a name.
pub(crate) fn each_word(text: &[u8], mut found: impl FnMut(Word)) {
    const SHORTEST: usize = 3;
    let mut take = |letters: &[u8]| {
        if letters.len() >= SHORTEST {
            found(word_of(letters));
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

/// The last three words of a name, of which its last bytes are looked at.
pub(crate) fn last_words(name: &[u8]) -> [Word; 3] {
    const MOST: usize = 32;
    let mut words = [0; 3];
    each_word(&name[name.len().saturating_sub(MOST)..], |word| words = [words[1], words[2], word]);
    words
}

/// A word is told by its last eight letters.
fn word_of(letters: &[u8]) -> Word {
    let last = &letters[letters.len().saturating_sub(8)..];
    let mut bytes = [0; 8];
    bytes[..last.len()].copy_from_slice(last);
    let lower = u64::from_le_bytes(bytes) | 0x2020_2020_2020_2020;
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
