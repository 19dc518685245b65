//! Chooses the lines of folded entries that are worth their tokens.
//!
//! Greedy: the next line is the one with the highest value per token. An atom of a chosen line adds no value to
//! later lines.

use std::collections::BinaryHeap;

use crate::model::tokens::Count;
use crate::model::transcript::EntryId;
use crate::select::scorer::AtomId;
use crate::text::copied_lines::{LineHash, LineSet, hash_of};

/// A line that may be chosen for a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CandidateLine<'a> {
    pub(crate) entry: EntryId,
    /// The offset in the entry's script.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    pub(crate) atoms: &'a [AtomId],
    /// A short name of the call it is from; may be empty.
    pub(crate) source: &'a str,
    pub(crate) kind: CandidateKind,
    /// The value of the line as a whole, without its atoms.
    pub(crate) worth: f32,
    /// The probability that it is copied while it is new, if it is a line of a file.
    pub(crate) copied: f32,
    /// Its hash, if it may be copied; otherwise zero.
    pub(crate) hash: LineHash,
    /// Its cost in a segment, if it was counted before.
    pub(crate) cost: Option<u32>,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CandidateKind {
    /// The description of a call.
    Action,
    /// A failure.
    Failure,
    /// The first line of a user message.
    User,
    Other,
}

impl CandidateKind {
    /// The fixed value of such a line.
    pub(crate) fn worth(self) -> f32 {
        match self {
            CandidateKind::Action => 0.015,
            CandidateKind::Failure => 0.15,
            CandidateKind::User => 0.3,
            CandidateKind::Other => 0.0,
        }
    }
}

/// A chosen line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenLine {
    /// The index of the line.
    pub(crate) line: usize,
    /// Its cost in a segment.
    pub(crate) own: u32,
    /// Its cost with the handle and the source name that it adds.
    pub(crate) cost: usize,
}

/// Chooses lines by value per token.
pub(crate) struct Chooser<'a> {
    lines: &'a [CandidateLine<'a>],
    /// The stretch of each line, in order.
    stretches: &'a [u32],
    counter: &'a dyn Count,
    /// The value of each atom; zero once it is in a chosen line.
    values: &'a mut [f32],
    /// The value of each line as a whole.
    whole: Vec<f32>,
    is_open: Vec<bool>,
    is_chosen: Vec<bool>,
    queue: Queue,
    /// A buffer for the line as written in a segment.
    buffer: String,
    /// The chosen lines, best first.
    pub(crate) chosen: Vec<ChosenLine>,
}

impl<'a> Chooser<'a> {
    /// Lines and stretches are in order; values are by atom id.
    pub(crate) fn new(
        lines: &'a [CandidateLine<'a>],
        stretches: &'a [u32],
        values: &'a mut [f32],
        counter: &'a dyn Count,
    ) -> Chooser<'a> {
        let mut chooser = Chooser {
            lines,
            stretches,
            counter,
            values,
            whole: whole_worth(lines),
            is_open: vec![false; stretches.last().map_or(0, |last| *last as usize + 1)],
            is_chosen: vec![false; lines.len()],
            queue: Queue::default(),
            buffer: String::new(),
            chosen: Vec::new(),
        };
        let mut keys: Vec<u64> = Vec::with_capacity(lines.len());
        keys.extend((0..lines.len()).filter_map(|i| chooser.key(i)));
        chooser.queue = Queue::new(keys);
        chooser
    }

    /// Chooses lines for about `room` tokens.
    pub(crate) fn choose(&mut self, room: usize) {
        let mut left = room;
        let mut misses = Vec::new();
        while let Some(top) = self.queue.pop() {
            let i = (top & 0xffff_ffff) as usize;
            if self.is_chosen[i] {
                continue;
            }
            let Some(now) = self.key(i) else { continue };
            if now < top && self.queue.peek().is_some_and(|next| now < next) {
                self.queue.later.push(now);
                continue;
            }
            let own = self.lines[i].cost.unwrap_or_else(|| self.own_cost(i));
            let cost = own as usize + self.opening_cost(i);
            if cost > left {
                misses.push(now);
                if misses.len() > MOST_MISSES {
                    break;
                }
                continue;
            }
            left -= cost;
            self.take(ChosenLine { line: i, own, cost });
        }
        self.queue.later.extend(misses);
    }

    /// The number of stretches with a chosen line.
    pub(crate) fn n_open(&self) -> usize {
        self.is_open.iter().filter(|is_open| **is_open).count()
    }

    fn take(&mut self, chosen: ChosenLine) {
        let i = chosen.line;
        self.is_chosen[i] = true;
        self.chosen.push(chosen);
        // An atom adds value only once.
        for &atom in self.lines[i].atoms {
            self.values[atom as usize] = 0.0;
        }
        let stretch = self.stretches[i];
        if !std::mem::replace(&mut self.is_open[stretch as usize], true) {
            // The other lines of the stretch no longer have to pay for its handle.
            let first = self.stretches.partition_point(|other| *other < stretch);
            let others = (first..self.lines.len()).take_while(|&i| self.stretches[i] == stretch);
            let keys: Vec<u64> = others.filter(|&i| !self.is_chosen[i]).filter_map(|i| self.key(i)).collect();
            self.queue.later.extend(keys);
        }
    }

    /// The cost of a line in a segment, with its indentation and line end, or with the separator between actions.
    fn own_cost(&mut self, i: usize) -> u32 {
        let CandidateLine { text, kind, .. } = self.lines[i];
        if kind == CandidateKind::Action || !self.counter.is_cut_at_lines() {
            return self.counter.count(text).0 as u32 + 1;
        }
        self.buffer.clear();
        self.buffer.extend([" ", text, "\n"]);
        self.counter.count(&self.buffer).0 as u32
    }

    /// The additional cost of the first line of a stretch: a handle and a source name.
    fn opening_cost(&self, i: usize) -> usize {
        if self.is_open[self.stretches[i] as usize] { 0 } else { HANDLE + SOURCE }
    }

    /// The value per token of a line as the upper half of a sort key, with the index of the line as the lower half.
    fn key(&self, i: usize) -> Option<u64> {
        let line = &self.lines[i];
        let gain = self.whole[i] + line.atoms.iter().map(|atom| self.values[*atom as usize]).sum::<f32>();
        if gain <= LEAST {
            return None;
        }
        let ratio = gain / (line.text.len() / 3 + self.opening_cost(i) + 6) as f32;
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

/// The approximate cost of a handle.
pub(crate) const HANDLE: usize = 4;
/// The approximate cost of a source name.
const SOURCE: usize = 3;

/// The minimum value of a line.
const LEAST: f32 = 0.0004;
/// Stop after this many lines that did not fit.
const MOST_MISSES: usize = 40;

/// The value of each line as a whole. Of equal lines only the newest counts.
fn whole_worth(lines: &[CandidateLine<'_>]) -> Vec<f32> {
    let mut worth = vec![0.0; lines.len()];
    let mut seen = LineSet::default();
    seen.reserve(lines.iter().filter(|line| line.worth > 0.0).count());
    for (i, line) in lines.iter().enumerate().rev() {
        let hash = || if line.hash == 0 { hash_of(line.text) } else { line.hash };
        if line.worth > 0.0 && seen.insert(hash()) {
            worth[i] = line.worth;
        }
    }
    worth
}

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
        let line = |at, text, atoms| CandidateLine {
            entry: EntryId(0),
            at,
            text,
            atoms,
            source: "",
            kind: CandidateKind::Other,
            worth: 0.0,
            copied: 0.0,
            hash: 0,
            cost: None,
        };
        let lines = [line(0, "one two", &[0, 1]), line(1, "two", &[1]), line(2, "three", &[2])];
        let mut values = [0.1; 3];
        let mut chooser = Chooser::new(&lines, &[0, 0, 0], &mut values, &Words);
        chooser.choose(100);
        let chosen: Vec<usize> = chooser.chosen.iter().map(|chosen| chosen.line).collect();
        assert_eq!(chosen, [0, 2]);
    }
}
