//! What stands where in a text, as bits: a word of each kind of byte for every sixty-four bytes.
//!
//! Reading text byte by byte costs a branch that cannot be foreseen at the end of every word. With bits, the beginning and
//! the end of a name are found by counting zeros, and plain words are not looked at.

use wide::u8x16;

/// Which of sixty-four bytes are of a kind, the first one lowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Small letters; not the `n` of a line end that was escaped, nor such a `t` or `r`.
    pub(crate) lower: u64,
    pub(crate) upper: u64,
    pub(crate) digit: u64,
    pub(crate) underscore: u64,
    /// What may stand inside a name: `.`, `/`, `-`, `@`, `#`.
    pub(crate) joint: u64,
    pub(crate) quote: u64,
}

impl Marks {
    fn map(self, other: Marks, join: impl Fn(u64, u64) -> u64) -> Marks {
        Marks {
            lower: join(self.lower, other.lower),
            upper: join(self.upper, other.upper),
            digit: join(self.digit, other.digit),
            underscore: join(self.underscore, other.underscore),
            joint: join(self.joint, other.joint),
            quote: join(self.quote, other.quote),
        }
    }
}

/// The marks of a whole text.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkedText {
    blocks: Vec<Marks>,
}

impl MarkedText {
    /// Marks another text.
    pub(crate) fn read(&mut self, text: &str) {
        self.blocks.clear();
        self.blocks.reserve(text.len() / 64 + 2);
        let mut before = 0;
        let (blocks, rest) = text.as_bytes().as_chunks::<64>();
        for block in blocks {
            self.blocks.push(marks_of(block, before));
            before = block[63];
        }
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.blocks.push(marks_of(&last, before));
        // A window that begins in the last block ends behind it.
        self.blocks.push(Marks::default());
    }

    /// The marks of at most sixty-four bytes from here on, and none behind them.
    #[inline]
    pub(crate) fn window(&self, at: usize, n: usize) -> Marks {
        let (block, shift) = (at / 64, at % 64);
        let (here, next) = (self.blocks[block], self.blocks[block + 1]);
        let limit = if n < 64 { (1 << n) - 1 } else { u64::MAX };
        // Twice, because a shift by sixty-four is none.
        here.map(next, |here, next| (here >> shift | next << 1 << (63 - shift)) & limit)
    }
}

/// Where letters are among sixty-four bytes, the first one lowest.
pub(crate) fn letters_of(block: &[u8; 64]) -> u64 {
    // A capital and its small letter differ in one bit.
    places(&lanes_of(block), |lane| within(lane | u8x16::splat(0x20), b'a', 26))
}

/// Which bytes are among so many from the first on.
#[inline(always)]
fn within(lane: u8x16, first: u8, n: u8) -> u8x16 {
    // Those up to the last are no larger than it, once the first is taken off.
    let above = lane - u8x16::splat(first);
    above.simd_eq(above.min(u8x16::splat(n - 1)))
}

fn marks_of(block: &[u8; 64], before: u8) -> Marks {
    let lanes = lanes_of(block);
    let is = |lane: u8x16, byte: u8| lane.simd_eq(u8x16::splat(byte));
    let backslash = places(&lanes, |lane| is(lane, b'\\'));
    let behind_backslash = backslash << 1 | u64::from(before == b'\\');
    let escaped = match behind_backslash {
        0 => 0,
        _ => behind_backslash & places(&lanes, |lane| is(lane, b'n') | is(lane, b't') | is(lane, b'r')),
    };
    Marks {
        lower: places(&lanes, |lane| within(lane, b'a', 26)) & !escaped,
        upper: places(&lanes, |lane| within(lane, b'A', 26)),
        digit: places(&lanes, |lane| within(lane, b'0', 10)),
        underscore: places(&lanes, |lane| is(lane, b'_')),
        joint: places(&lanes, |lane| within(lane, b'-', 3) | is(lane, b'@') | is(lane, b'#')),
        quote: places(&lanes, |lane| is(lane, b'"') | is(lane, b'\'') | is(lane, b'`')),
    }
}

/// Sixty-four bytes, sixteen of which are worked on at once.
fn lanes_of(block: &[u8; 64]) -> [u8x16; 4] {
    let lanes = block.as_chunks::<16>().0;
    [0, 1, 2, 3].map(|i| u8x16::new(lanes[i]))
}

/// Where bytes are so, the first one lowest.
#[inline(always)]
fn places(lanes: &[u8x16; 4], is_so: impl Fn(u8x16) -> u8x16) -> u64 {
    let [a, b, c, d] = lanes.map(|lane| u64::from(is_so(lane).to_bitmask()));
    a | b << 16 | c << 32 | d << 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_mark() {
        let text: String = (0..300_u32).filter_map(char::from_u32).collect();
        let mut marked = MarkedText::default();
        marked.read(&text);
        for (i, byte) in text.bytes().enumerate() {
            let marks = marked.window(i, 1);
            let expected = Marks {
                lower: u64::from(byte.is_ascii_lowercase()),
                upper: u64::from(byte.is_ascii_uppercase()),
                digit: u64::from(byte.is_ascii_digit()),
                underscore: u64::from(byte == b'_'),
                joint: u64::from(b"./-@#".contains(&byte)),
                quote: u64::from(b"\"'`".contains(&byte)),
            };
            assert_eq!(marks, expected, "{byte}");
        }
    }

    #[test]
    fn letters_are_known_in_any_case() {
        for byte in 0..=u8::MAX {
            let expected = if byte.is_ascii_alphabetic() { u64::MAX } else { 0 };
            assert_eq!(letters_of(&[byte; 64]), expected, "{byte}");
        }
    }

    #[test]
    fn an_escaped_line_end_is_no_letter() {
        let text = format!("{}\\name\\\\trn", " ".repeat(63));
        let mut marked = MarkedText::default();
        marked.read(&text);
        assert_eq!(marked.window(63, 64).lower, 0b11_0001_1100);
        assert_eq!(marked.window(65, 2).lower, 0b11);
    }
}
