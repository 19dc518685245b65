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
        let mut was_escape = 0;
        let (blocks, rest) = text.as_bytes().as_chunks::<64>();
        for block in blocks {
            self.blocks.push(marks_of(block, &mut was_escape));
        }
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.blocks.push(marks_of(&last, &mut was_escape));
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
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const JOINT: u8 = 16;
const QUOTE: u8 = 32;
const ESCAPE: u8 = 64;
/// What is a blank once it is escaped.
const BLANK: u8 = 128;

fn marks_of(block: &[u8; 64], was_escape: &mut u64) -> Marks {
    let [lower, upper, digit, underscore, joint, quote, escape, blank] = turned(&classes(block));
    let escaped = (escape << 1 | *was_escape) & blank;
    *was_escape = escape >> 63;
    Marks { lower: lower & !escaped, upper, digit, underscore, joint, quote }
}

/// The class of each byte. Plain arithmetic, so that many are worked out at once.
fn classes(block: &[u8; 64]) -> [u8; 64] {
    let mut out = [0; 64];
    for (class, &byte) in out.iter_mut().zip(block) {
        let is = |other: u8, class: u8| if byte == other { class } else { 0 };
        let within = |first: u8, n: u8, class: u8| if byte.wrapping_sub(first) < n { class } else { 0 };
        *class = within(b'a', 26, LOWER)
            | within(b'A', 26, UPPER)
            | within(b'0', 10, DIGIT)
            | is(b'_', UNDERSCORE)
            | within(b'-', 3, JOINT)
            | is(b'@', JOINT)
            | is(b'#', JOINT)
            | is(b'"', QUOTE)
            | is(b'\'', QUOTE)
            | is(b'`', QUOTE)
            | is(b'\\', ESCAPE)
            | is(b'n', BLANK)
            | is(b't', BLANK)
            | is(b'r', BLANK);
    }
    out
}

/// The bits of sixty-four bytes, turned: the first word has the lowest bit of each.
fn turned(bytes: &[u8; 64]) -> [u64; 8] {
    let mut words = [0; 8];
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks().0) {
        // Eight bytes as a square of bits, turned by swapping ever larger squares in it.
        let mut square = u64::from_le_bytes(*chunk);
        for (shift, mask) in
            [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
        {
            let swap = (square ^ square >> shift) & mask;
            square ^= swap ^ swap << shift;
        }
        *word = square;
    }
    // The same with eight words as a square of bytes.
    for (step, shift, mask) in
        [(1, 8, 0x00ff_00ff_00ff_00ff_u64), (2, 16, 0x0000_ffff_0000_ffff), (4, 32, 0x0000_0000_ffff_ffff)]
    {
        for i in (0..8).filter(|i| i & step == 0) {
            let swap = (words[i] >> shift ^ words[i + step]) & mask;
            words[i] ^= swap << shift;
            words[i + step] ^= swap;
        }
    }
    words
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
