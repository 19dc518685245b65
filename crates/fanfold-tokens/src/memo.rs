//! Remembers how many tokens a short text has.
//!
//! Real text is made of few pieces that come again and again. A slot holds the exact bytes of one,
//! so what is remembered can be forgotten at any time and never be wrong.

use crate::split::load8;

/// Texts of up to this many bytes fit in a slot of the table for short ones.
pub(crate) const SHORT: usize = 15;
/// Texts of up to this many bytes fit in a slot of the table for longer ones.
const MEDIUM: usize = 62;

/// It begins with room for so many short texts: a page or two, for who counts one line.
const LEAST: usize = 512;
/// It never has room for more: a megabyte, enough for the pieces that make up most of any text.
const MOST: usize = 64 * 1024;

/// A table from texts to counts, where a newer text takes the place of an older one. It grows with what it is asked.
pub(crate) struct Memo {
    /// Fifteen bytes of text, then its length in the low half of a byte and its count in the high one.
    short: Box<[[(u64, u64); 2]]>,
    /// Sixty-two bytes of text, its length, its count.
    medium: Box<[[u8; 64]]>,
    /// How many short texts may still be new before it grows.
    n_free: usize,
}

impl Memo {
    /// An empty table.
    pub(crate) fn new() -> Memo {
        Memo::of_room(LEAST)
    }

    /// An empty table with room for some short texts: a power of two.
    fn of_room(n_short: usize) -> Memo {
        Memo {
            short: vec![[(0, 0); 2]; n_short / 2].into_boxed_slice(),
            medium: vec![[0; 64]; n_short / 16].into_boxed_slice(),
            n_free: if n_short < MOST { n_short / 2 } else { usize::MAX },
        }
    }

    /// The count of `bytes[start..end]`, remembered or else asked for.
    #[inline(always)]
    pub(crate) fn count(&mut self, bytes: &[u8], start: usize, end: usize, ask: impl Fn() -> usize) -> usize {
        let len = end - start;
        if len > SHORT {
            return self.count_medium(&bytes[start..end], ask);
        }
        self.count_short((load8(bytes, start), load8(bytes, start + 8)), len, ask)
    }

    /// The count of the first `len` of sixteen bytes, remembered or else asked for. There are at most fifteen.
    #[inline(always)]
    pub(crate) fn count_short(
        &mut self,
        (low, high): (u64, u64),
        len: usize,
        ask: impl Fn() -> usize,
    ) -> usize {
        let (low_mask, high_mask) = MASKS[len];
        let low = low & low_mask;
        let high = (high & high_mask) | (len as u64) << 56;
        let at = mix(low, high) as usize & (self.short.len() - 1);
        let [newer, older] = &mut self.short[at];
        if newer.0 == low && newer.1 & !COUNT == high {
            return (newer.1 >> 60) as usize;
        }
        let is_older = older.0 == low && older.1 & !COUNT == high;
        if is_older {
            std::mem::swap(newer, older);
            return (newer.1 >> 60) as usize;
        }
        let found = ask();
        *older = *newer;
        *newer = (low, high | (found as u64) << 60);
        self.n_free -= 1;
        if self.n_free == 0 {
            self.grow();
        }
        found
    }

    /// Four times the room, with what is remembered of short texts in it.
    #[cold]
    fn grow(&mut self) {
        let mut larger = Memo::of_room((8 * self.short.len()).min(MOST));
        for &slot in self.short.iter().flat_map(|[newer, older]| [older, newer]).filter(|slot| slot.1 > 0) {
            let at = mix(slot.0, slot.1 & !COUNT) as usize & (larger.short.len() - 1);
            let [newer, older] = &mut larger.short[at];
            *older = std::mem::replace(newer, slot);
        }
        *self = larger;
    }

    #[inline(never)]
    pub(crate) fn count_medium(&mut self, text: &[u8], ask: impl Fn() -> usize) -> usize {
        if text.len() > MEDIUM {
            return ask();
        }
        let mut wanted = [0; 64];
        wanted[..text.len()].copy_from_slice(text);
        wanted[62] = text.len() as u8;
        let hash = (0..8).fold(0, |hash, i| mix(hash, load8(&wanted, 8 * i)));
        let at = hash as usize & (self.medium.len() - 1);
        let slot = &mut self.medium[at];
        if slot[..63] == wanted[..63] {
            return usize::from(slot[63]);
        }
        let count = ask();
        wanted[63] = count as u8;
        *slot = wanted;
        count
    }
}

/// The bits of a short slot that hold its count: no more tokens than bytes, so four are enough.
const COUNT: u64 = 0xf << 60;

/// The bytes that belong to a text of each length, in two halves.
static MASKS: [(u64, u64); SHORT + 1] = {
    let mut masks = [(0, 0); SHORT + 1];
    let mut len = 0;
    while len <= SHORT {
        let all = (1u128 << (8 * len)) - 1;
        masks[len] = (all as u64, (all >> 64) as u64);
        len += 1;
    }
    masks
};

#[inline(always)]
fn mix(low: u64, high: u64) -> u64 {
    let both = low ^ high.rotate_left(29);
    // Texts that differ in their last letters alone differ high up, where a product has little left to show it by.
    (both ^ both >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_not_asked_again() {
        let mut memo = Memo::new();
        for len in 0..=70 {
            let text = "x".repeat(len);
            let first = memo.count(text.as_bytes(), 0, len, || len.min(9));
            let again = memo.count(text.as_bytes(), 0, len, || if len > MEDIUM { 9 } else { 99 });
            assert_eq!((first, again), (len.min(9), len.min(9)));
        }
    }

    #[test]
    fn what_is_remembered_stays_so_when_the_table_grows() {
        let mut memo = Memo::new();
        let texts: Vec<String> = (0..LEAST).map(|n| format!("word{n}")).collect();
        let n_asked = std::cell::Cell::new(0);
        let mut ask_all = || {
            texts.iter().for_each(|text| {
                let ask = || n_asked.replace(n_asked.get() + 1) % 5;
                memo.count(text.as_bytes(), 0, text.len(), ask);
            });
        };
        ask_all();
        ask_all();
        assert!(n_asked.get() < LEAST + LEAST / 4, "of {LEAST} texts, {} were asked", n_asked.get());
        assert!(memo.short.len() > LEAST / 2);
    }

    #[test]
    fn texts_that_share_a_slot_are_told_apart() {
        let mut memo = Memo::new();
        let texts: Vec<String> = (0..99_999).map(|n| format!("{n}\0").repeat(1 + n % 9)).collect();
        for _ in 0..2 {
            for text in &texts {
                let count = memo.count(text.as_bytes(), 0, text.len(), || text.len() % 13);
                assert_eq!(count, text.len() % 13);
            }
        }
    }
}
