//! What stands where in a text, as bits: a word of each kind of byte for every sixty-four bytes.
//!
//! Reading text byte by byte costs a branch that cannot be foreseen at the end of every word. With bits, the beginning and
//! the end of a name are found by counting zeros, and plain words are not looked at.

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

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 3;
const UNDERSCORE: u8 = 4;
const JOINT: u8 = 5;
const QUOTE: u8 = 6;

fn marks_of(block: &[u8; 64], before: u8) -> Marks {
    let [one, two, four] = planes(&classes(block, before));
    let class = |class: u8| {
        let bit = |plane: u64, bit: u8| if class & bit != 0 { plane } else { !plane };
        bit(one, 1) & bit(two, 2) & bit(four, 4)
    };
    Marks {
        lower: class(LOWER),
        upper: class(UPPER),
        digit: class(DIGIT),
        underscore: class(UNDERSCORE),
        joint: class(JOINT),
        quote: class(QUOTE),
    }
}

/// The class of each byte, or zero. Plain arithmetic, so that many are worked out at once.
fn classes(block: &[u8; 64], before: u8) -> [u8; 64] {
    let mut previous = [before; 64];
    previous[1..].copy_from_slice(&block[..63]);
    let mut out = [0; 64];
    for ((class, &byte), &previous) in out.iter_mut().zip(block).zip(&previous) {
        // All bits of what is so, none of what is not.
        let is = |other: u8| if byte == other { u8::MAX } else { 0 };
        let within = |first: u8, n: u8| if byte.wrapping_sub(first) < n { u8::MAX } else { 0 };
        let blank = is(b'n') | is(b't') | is(b'r');
        let escaped = if previous == b'\\' { blank } else { 0 };
        *class = within(b'a', 26) & !escaped & LOWER
            | within(b'A', 26) & UPPER
            | within(b'0', 10) & DIGIT
            | is(b'_') & UNDERSCORE
            | (within(b'-', 3) | is(b'@') | is(b'#')) & JOINT
            | (is(b'"') | is(b'\'') | is(b'`')) & QUOTE;
    }
    out
}

/// The lowest three bits of sixty-four bytes, each as a word: kinds of bytes, worked out for many at once, become places.
#[inline]
pub fn planes(bytes: &[u8; 64]) -> [u64; 3] {
    const ONES: u64 = u64::MAX / 255;
    // Brings the lowest bits of eight bytes together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut planes = [0; 3];
    for (i, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        for (bit, plane) in planes.iter_mut().enumerate() {
            *plane |= ((word >> bit & ONES).wrapping_mul(GATHER) >> 56) << (8 * i);
        }
    }
    planes
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
    fn an_escaped_line_end_is_no_letter() {
        let text = format!("{}\\name\\\\trn", " ".repeat(63));
        let mut marked = MarkedText::default();
        marked.read(&text);
        assert_eq!(marked.window(63, 64).lower, 0b11_0001_1100);
        assert_eq!(marked.window(65, 2).lower, 0b11);
    }
}
