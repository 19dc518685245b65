//! Finds the pieces among sixty-four bytes at once, as bits.
//!
//! Text read piece by piece costs a branch or two at each that can't be foreseen. Here the kinds of all bytes are worked out
//! together, where pieces begin follows from them by a few operations on words, and all that is left for each piece is to
//! look it up. What takes more to decide (blank lines, other characters, contractions) ends the block.
//!
//! ```text
//! let max_depth = 3;   ->   let| max|_depth| =| |3|;
//! ```

use wide::u8x16;

use crate::split::Rules;

/// How many bytes are looked at together.
pub(crate) const WIDTH: usize = 64;

/// The pieces at the beginning of some bytes that are certain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Where pieces begin that are to be looked up.
    words: u64,
    /// Where any piece begins, and where the last one ends.
    cuts: u64,
    /// The tokens of the other pieces: single bytes, and digits by threes, which every vocabulary has.
    pub(crate) n_sure: usize,
}

impl Block {
    /// The pieces that begin among these bytes, the first one with the first of them. Fewer than all of the bytes belong to the
    /// text if it ends among them; those behind it are zero.
    #[inline]
    pub(crate) fn of<R: Rules>(bytes: &[u8; WIDTH], n_bytes: usize) -> Block {
        let kinds = Kinds::of(bytes, n_bytes);
        let Kinds { lower, upper, digit, space, newline, sign, .. } = kinds;
        let letter = lower | upper;
        // A word takes along the blank before it, or a sign that stands alone.
        let first_letter = letter & !(letter << 1);
        let before = first_letter >> 1 & (space | sign & !(sign << 1) & !(space << 1));
        let humps = if R::SPLITS_CASE { upper & lower << 1 } else { 0 };
        let words = first_letter & !(before << 1) | before | humps;
        // Signs take along the blank before them and the line end behind, and blanks leave their last for what follows.
        let signs = sign & !(sign << 1) & !(space << 1);
        let lines = newline & !(sign << 1) | newline << 1;
        let blanks = space & !(space << 1 & space >> 1);
        let (end, limit) = kinds.certain::<R>(bytes, n_bytes);
        let cuts = (words | signs | lines | blanks | by_threes(digit) | end) & (u64::MAX >> (63 - limit));
        let last = 1 << cuts.checked_ilog2().unwrap_or(0);
        let starts = cuts & !last;
        let sure = starts & (cuts >> 1 | digit);
        Block { words: starts & !sure, cuts, n_sure: sure.count_ones() as usize }
    }

    /// How many bytes all of its pieces have.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.cuts.checked_ilog2().unwrap_or(0) as usize
    }
}

/// Where each piece to be looked up begins, and its length.
impl Iterator for Block {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.words == 0 {
            return None;
        }
        let start = self.words.trailing_zeros();
        self.words &= self.words - 1;
        let len = 1 + (self.cuts >> start >> 1).trailing_zeros();
        Some((start as usize, len as usize))
    }
}

/// Where digits begin, by threes.
#[inline(always)]
fn by_threes(digit: u64) -> u64 {
    let mut begins = digit & !(digit << 1);
    let mut next = begins;
    while next != 0 {
        // All three before it are digits, and so is this one.
        next = next << 3 & digit & digit << 1 & digit << 2;
        begins |= next;
    }
    begins
}

/// Which of the bytes are of a kind, the first one lowest.
struct Kinds {
    lower: u64,
    upper: u64,
    digit: u64,
    space: u64,
    newline: u64,
    /// Any other that is visible.
    sign: u64,
    /// The sign of contractions.
    quote: u64,
    /// Tabs, and parts of characters that are not ASCII.
    other: u64,
}

impl Kinds {
    #[inline(always)]
    fn of(bytes: &[u8; WIDTH], n_bytes: usize) -> Kinds {
        let lanes = bytes.as_chunks::<16>().0;
        let lanes = [0, 1, 2, 3].map(|i| u8x16::new(lanes[i]));
        let is = |lane: u8x16, byte: u8| lane.simd_eq(u8x16::splat(byte));
        // Those up to the last are no larger than it, once the first is taken off.
        let within = |lane: u8x16, first: u8, n: u8| {
            let above = lane - u8x16::splat(first);
            above.simd_eq(above.min(u8x16::splat(n - 1)))
        };
        let lower = places(&lanes, |lane| within(lane, b'a', 26));
        let upper = places(&lanes, |lane| within(lane, b'A', 26));
        let digit = places(&lanes, |lane| within(lane, b'0', 10));
        let space = places(&lanes, |lane| is(lane, b' '));
        let newline = places(&lanes, |lane| is(lane, b'\n') | is(lane, b'\r'));
        // The highest bit is that of what is not ASCII.
        let other = places(&lanes, |lane| lane | is(lane, b'\t') | within(lane, 0x0b, 2));
        let there = if n_bytes < WIDTH { (1 << n_bytes) - 1 } else { u64::MAX };
        let quote = places(&lanes, |lane| is(lane, b'\''));
        let sign = !(lower | upper | digit | space | newline | other) & there;
        Kinds { lower, upper, digit, space, newline, sign, quote: quote & there, other }
    }

    /// Where the last piece ends if nothing begins there, and up to where all cuts are certain.
    #[inline(always)]
    fn certain<R: Rules>(&self, bytes: &[u8; WIDTH], n_bytes: usize) -> (u64, u32) {
        let &Kinds { lower, upper, digit, newline, quote, other, .. } = self;
        let letter = lower | upper;
        let (mut end, mut limit) = match n_bytes {
            // Whether a piece begins with the last byte is told by the one behind it.
            WIDTH.. => (0, WIDTH as u32 - 2),
            _ => (1 << n_bytes, self.before_blanks(n_bytes as u32)),
        };
        let hard = if newline == 0 { other } else { other | self.hard_newlines::<R>(bytes) };
        if hard != 0 {
            let at = hard.trailing_zeros();
            let is_certain = newline & (letter | digit) << 1 & 1 << at != 0;
            end |= u64::from(is_certain) << at;
            let until = if is_certain { at } else { self.before_blanks(at).min(at.saturating_sub(1)) };
            limit = limit.min(until);
        }
        let contractions =
            if R::SPLITS_CASE { letter << 1 & quote & letter >> 1 } else { quote & letter >> 1 };
        if contractions != 0 {
            limit = limit.min(contractions.trailing_zeros().saturating_sub(1));
        }
        (end, limit)
    }

    /// Line ends that belong together with blanks, with others or with a slash; up to the first that does.
    #[inline(always)]
    fn hard_newlines<R: Rules>(&self, bytes: &[u8; WIDTH]) -> u64 {
        let &Kinds { space, newline, sign, other, .. } = self;
        let mut hard = newline & (space << 1 | newline << 1 | newline >> 1);
        // Blanks behind a line end may have another one behind them.
        let (behind, is_open) = space.overflowing_add(newline << 1 & space);
        let open = behind & !space & (newline | other);
        if is_open || open != 0 {
            let blanks_end = if open != 0 { open.trailing_zeros() } else { WIDTH as u32 };
            hard |= 1 << (self.before_blanks(blanks_end) - 1);
        }
        if R::SLASH_ENDS_LINE {
            let mut between = newline & sign << 1 & sign >> 1;
            while between != 0 {
                let at = between.trailing_zeros();
                between &= between - 1;
                hard |= u64::from(bytes[at as usize + 1] == b'/') << at;
            }
        }
        hard
    }

    /// Where the blanks begin that end here: those before a line end or the end of the text belong together.
    #[inline(always)]
    fn before_blanks(&self, at: u32) -> u32 {
        if at == 0 { 0 } else { at - (self.space << (64 - at)).leading_ones() }
    }
}

/// Where bytes are so, the first one lowest: where the highest bit is set of what is told of each.
#[inline(always)]
fn places(lanes: &[u8x16; 4], tell: impl Fn(u8x16) -> u8x16) -> u64 {
    let [a, b, c, d] = lanes.map(|lane| u64::from(tell(lane).to_bitmask()));
    a | b << 16 | c << 32 | d << 48
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::split::{Cl100kRules, O200kRules, piece_end};

    fn block_of<R: Rules>(text: &str) -> Block {
        let mut bytes = [0; WIDTH];
        let n_bytes = text.len().min(WIDTH);
        bytes[..n_bytes].copy_from_slice(&text.as_bytes()[..n_bytes]);
        Block::of::<R>(&bytes, n_bytes)
    }

    /// Holds a block against the pieces found one by one.
    fn check<R: Rules>(text: &str) {
        let block = block_of::<R>(text);
        let len = block.len();
        let (mut expected, mut n_sure, mut at) = (Vec::new(), 0, 0);
        while at < len {
            let end = piece_end::<R>(text.as_bytes(), at).unwrap_or(usize::MAX);
            assert!(end <= len, "{text:?}: a piece from {at} to {end} reaches over {len}");
            let piece = &text[at..end];
            if piece.len() == 1 || piece.bytes().all(|byte| byte.is_ascii_digit()) {
                n_sure += 1;
            } else {
                expected.push((at, end - at));
            }
            at = end;
        }
        assert_eq!((block.collect::<Vec<_>>(), block.n_sure), (expected, n_sure), "{text:?}");
    }

    #[test]
    fn the_header_is_true() {
        let block = block_of::<O200kRules>("let max_depth = 3;");
        assert_eq!(block.collect::<Vec<_>>(), [(0, 3), (3, 4), (7, 6), (13, 2)]);
        assert_eq!(block.len(), 18);
    }

    #[test]
    fn most_of_a_line_is_one_block() {
        let line = "    if parser.max_depth > LIMIT { return Err(\"too deep\"); }";
        assert_eq!(block_of::<O200kRules>(line).len(), line.len());
        assert_eq!(block_of::<Cl100kRules>(line).len(), line.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn a_block_has_the_pieces_found_one_by_one(
            text in "([a-z]{1,9}|[A-Z]{1,3}|[0-9]{1,8}| {1,3}|[-_.,:;(){}/\"'=]{1,3}|'(s|t|ll)|(\n|\r\n)( {0,5}|/)|[\t\n]|é|世){1,30}",
        ) {
            check::<O200kRules>(&text);
            check::<Cl100kRules>(&text);
        }
    }
}
