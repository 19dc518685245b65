//! Chooses the lines of originals that are worth their tokens, for a model that writes a summary.
//!
//! Greedy: the next line is the one with the highest value per token. An atom of a chosen line adds no value to
//! later lines.

use std::collections::BinaryHeap;

use crate::model::tokens::Count;
use crate::model::transcript::EntryId;
use crate::select::scorer::AtomId;

/// A line that may be chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateLine<'a> {
    pub(crate) entry: EntryId,
    pub(crate) text: &'a str,
    pub(crate) atoms: &'a [AtomId],
    /// The value of the line as a whole, without its atoms.
    pub(crate) worth: f32,
}

/// A chosen line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenLine {
    /// The index of the line.
    pub(crate) line: usize,
    /// Its tokens, with the line end.
    pub(crate) cost: usize,
}

/// Chooses lines by value per token.
pub(crate) struct Chooser<'a> {
    lines: &'a [CandidateLine<'a>],
    counter: &'a dyn Count,
    /// The value of each atom; zero once it is in a chosen line.
    values: &'a mut [f32],
    queue: Queue,
    /// The chosen lines, best first.
    pub(crate) chosen: Vec<ChosenLine>,
}

impl<'a> Chooser<'a> {
    /// Lines are in order; values are by atom id.
    pub(crate) fn new(
        lines: &'a [CandidateLine<'a>],
        values: &'a mut [f32],
        counter: &'a dyn Count,
    ) -> Chooser<'a> {
        let mut chooser = Chooser { lines, counter, values, queue: Queue::default(), chosen: Vec::new() };
        chooser.queue = Queue::new((0..lines.len()).filter_map(|i| chooser.key(i)).collect());
        chooser
    }

    /// Chooses lines for about `room` tokens.
    pub(crate) fn choose(&mut self, room: usize) {
        let mut left = room;
        let mut misses = Vec::new();
        while let Some(top) = self.queue.pop() {
            let i = (top & 0xffff_ffff) as usize;
            let Some(now) = self.key(i) else { continue };
            if now < top && self.queue.peek().is_some_and(|next| now < next) {
                self.queue.later.push(now);
                continue;
            }
            let cost = self.counter.count(self.lines[i].text).0 as usize + 1;
            if cost > left {
                misses.push(now);
                if misses.len() > MOST_MISSES {
                    break;
                }
                continue;
            }
            left -= cost;
            self.chosen.push(ChosenLine { line: i, cost });
            // An atom adds value only once.
            self.lines[i].atoms.iter().for_each(|atom| self.values[*atom as usize] = 0.0);
        }
        self.queue.later.extend(misses);
    }

    /// The value per token of a line as the upper half of a sort key, with the index of the line as the lower half.
    fn key(&self, i: usize) -> Option<u64> {
        let line = &self.lines[i];
        let gain = line.worth + line.atoms.iter().map(|atom| self.values[*atom as usize]).sum::<f32>();
        if gain <= LEAST {
            return None;
        }
        let ratio = gain / (line.text.len() / 3 + 6) as f32;
        // The bits of non-negative floats sort like their values; of equal lines the newest comes first.
        Some(u64::from(ratio.to_bits()) << 32 | i as u64)
    }
}

/// A priority queue.
#[derive(Default)]
struct Queue {
    /// The initial keys, sorted with the largest last. Most keys are never updated.
    first: Vec<u64>,
    /// Updated keys.
    later: BinaryHeap<u64>,
}

impl Queue {
    fn new(mut keys: Vec<u64>) -> Queue {
        keys.sort_unstable();
        Queue { first: keys, later: BinaryHeap::new() }
    }

    fn peek(&self) -> Option<u64> {
        self.first.last().max(self.later.peek()).copied()
    }

    fn pop(&mut self) -> Option<u64> {
        if self.first.last() >= self.later.peek() { self.first.pop() } else { self.later.pop() }
    }
}

/// The minimum value of a line.
const LEAST: f32 = 0.0004;
/// Stop after this many lines that did not fit.
const MOST_MISSES: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::tokens::Words;

    proptest! {
        #[test]
        fn pops_the_largest_key(keys in prop::collection::vec(0..50_u64, 0..40), later in prop::collection::vec(0..50_u64, 0..40)) {
            let mut queue = Queue::new(keys.clone());
            let mut heap: BinaryHeap<u64> = keys.into();
            for key in later {
                prop_assert_eq!((queue.peek(), queue.pop()), (heap.peek().copied(), heap.pop()));
                queue.later.push(key);
                heap.push(key);
            }
            while let Some(key) = heap.pop() {
                prop_assert_eq!((queue.peek(), queue.pop()), (Some(key), Some(key)));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }

    #[test]
    fn atoms_add_value_once() {
        let line = |text, atoms| CandidateLine { entry: EntryId(0), text, atoms, worth: 0.0 };
        let lines = [line("one two", &[0, 1]), line("two", &[1]), line("three", &[2])];
        let mut values = [0.1; 3];
        let mut chooser = Chooser::new(&lines, &mut values, &Words);
        chooser.choose(100);
        let chosen: Vec<usize> = chooser.chosen.iter().map(|chosen| chosen.line).collect();
        assert_eq!(chosen, [0, 2]);
    }
}
