//! Chooses the lines of folded entries that are worth their tokens.
//!
//! Line by line, always the one that adds most for what it costs: an atom that stands in a chosen line adds nothing
//! more in the next.

use std::collections::BinaryHeap;

use crate::copies::{LineHash, LineSet, hash_of};
use crate::tokens::Count;
use crate::transcript::EntryId;
use crate::value::AtomId;

/// A line that could stand in a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The entry it is from.
    pub(crate) entry: EntryId,
    /// Where it begins in the entry's script.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    pub(crate) atoms: &'a [AtomId],
    /// What it is from, in a word or two; nothing where that goes without saying.
    pub(crate) source: &'a str,
    pub(crate) is: LineOf,
    /// What the line is worth as a whole, whatever its atoms.
    pub(crate) worth: f32,
    /// How likely it was to be copied when it was new, if it is of a file that was looked at.
    pub(crate) copied: f32,
    /// What it says, if it was so; zero if not.
    pub(crate) hash: LineHash,
    /// What it costs in a segment, where that was counted before.
    pub(crate) cost: Option<u32>,
}

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineOf {
    /// What was done, in our words.
    Deed,
    /// What went wrong.
    Failure,
    /// What a person said first in a message.
    User,
    /// Anything else.
    Rest,
}

impl LineOf {
    /// What such a line is worth whatever stands in it.
    pub(crate) fn worth(self) -> f32 {
        match self {
            LineOf::Deed => 0.015,
            LineOf::Failure => 0.15,
            LineOf::User => 0.3,
            LineOf::Rest => 0.0,
        }
    }
}

/// A line that was chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen {
    /// Which of the lines it is.
    pub(crate) line: usize,
    /// What it costs in a segment.
    pub(crate) own: u32,
    /// And with what it opens.
    pub(crate) cost: usize,
}

/// Chooses among lines, the one that adds most for what it costs first.
pub(crate) struct Chooser<'a> {
    lines: &'a [Line<'a>],
    /// The stretch in which each line stands, in order.
    of_stretch: &'a [u32],
    counter: &'a dyn Count,
    /// What each atom is worth; nothing once it stands in a chosen line.
    values: &'a mut [f32],
    /// What each line is worth as a whole.
    whole: Vec<f32>,
    /// Whether an atom counts once.
    pub(crate) is_once: bool,
    is_open: Vec<bool>,
    is_chosen: Vec<bool>,
    queue: Queue,
    /// A line as it stands in a segment.
    placed: String,
    /// The chosen lines, the best first.
    pub(crate) chosen: Vec<Chosen>,
}

impl<'a> Chooser<'a> {
    /// Both the lines and the stretches in which they stand are in order; the values are by atom.
    pub(crate) fn new(
        lines: &'a [Line<'a>],
        of_stretch: &'a [u32],
        values: &'a mut [f32],
        counter: &'a dyn Count,
    ) -> Chooser<'a> {
        let mut chooser = Chooser {
            lines,
            of_stretch,
            counter,
            values,
            whole: whole_worth(lines),
            is_once: true,
            is_open: vec![false; of_stretch.last().map_or(0, |last| *last as usize + 1)],
            is_chosen: vec![false; lines.len()],
            queue: Queue::default(),
            placed: String::new(),
            chosen: Vec::new(),
        };
        let mut keys: Vec<u64> = Vec::with_capacity(lines.len());
        keys.extend((0..lines.len()).filter_map(|i| chooser.key(i)));
        chooser.queue = Queue::of(keys);
        chooser
    }

    /// Chooses lines for about so many tokens.
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
            let cost = own as usize + self.opening(i);
            if cost > left {
                misses.push(now);
                if misses.len() > MOST_MISSES {
                    break;
                }
                continue;
            }
            left -= cost;
            self.take(Chosen { line: i, own, cost });
        }
        self.queue.later.extend(misses);
    }

    /// How many stretches have lines in the view.
    pub(crate) fn n_open(&self) -> usize {
        self.is_open.iter().filter(|is_open| **is_open).count()
    }

    fn take(&mut self, chosen: Chosen) {
        let i = chosen.line;
        self.is_chosen[i] = true;
        self.chosen.push(chosen);
        if self.is_once {
            for &atom in self.lines[i].atoms {
                self.values[atom as usize] = 0.0;
            }
        }
        let stretch = self.of_stretch[i];
        if !std::mem::replace(&mut self.is_open[stretch as usize], true) {
            // Its other lines have become cheaper.
            let first = self.of_stretch.partition_point(|other| *other < stretch);
            let others = (first..self.lines.len()).take_while(|&i| self.of_stretch[i] == stretch);
            let keys: Vec<u64> = others.filter(|&i| !self.is_chosen[i]).filter_map(|i| self.key(i)).collect();
            self.queue.later.extend(keys);
        }
    }

    /// What a line costs in a segment: with the blank before it and its line end, or the joint between deeds.
    fn own_cost(&mut self, i: usize) -> u32 {
        let Line { text, is, .. } = self.lines[i];
        if is == LineOf::Deed || !self.counter.is_cut_at_lines() {
            return self.counter.count(text).0 as u32 + 1;
        }
        self.placed.clear();
        self.placed.extend([" ", text, "\n"]);
        self.counter.count(&self.placed).0 as u32
    }

    /// What the first line of a stretch costs in addition: a handle and the source.
    fn opening(&self, i: usize) -> usize {
        if self.is_open[self.of_stretch[i] as usize] { 0 } else { HANDLE + SOURCE }
    }

    /// What a line adds for what it costs, and behind that its number, as one number to sort by.
    fn key(&self, i: usize) -> Option<u64> {
        let line = &self.lines[i];
        let gain = self.whole[i] + line.atoms.iter().map(|atom| self.values[*atom as usize]).sum::<f32>();
        if gain <= LEAST {
            return None;
        }
        let ratio = gain / (line.text.len() / 3 + self.opening(i) + 6) as f32;
        // A ratio is never negative, so its bits sort like it; the newest of equal lines comes first.
        Some(u64::from(ratio.to_bits()) << 32 | i as u64)
    }
}

/// What comes next is what is largest.
#[derive(Default)]
struct Queue {
    /// Most are there from the beginning, and most of these are as they were when their turn comes: in order, the largest last.
    first: Vec<u64>,
    /// Those that came since.
    later: BinaryHeap<u64>,
}

impl Queue {
    fn of(mut keys: Vec<u64>) -> Queue {
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

/// About what a handle costs in a view.
pub(crate) const HANDLE: usize = 4;
/// About what the name of a source costs.
const SOURCE: usize = 3;

/// What adds less than this is left out even where there is room.
const LEAST: f32 = 0.0004;
/// After so many lines that did not fit, the room is full.
const MOST_MISSES: usize = 40;

/// What lines are worth as a whole; a line that comes again counts once, at its newest place.
fn whole_worth(lines: &[Line<'_>]) -> Vec<f32> {
    let mut worth = vec![0.0; lines.len()];
    let mut said = LineSet::default();
    said.reserve(lines.iter().filter(|line| line.worth > 0.0).count());
    for (i, line) in lines.iter().enumerate().rev() {
        let hash = || if line.hash == 0 { hash_of(line.text) } else { line.hash };
        if line.worth > 0.0 && said.insert(hash()) {
            worth[i] = line.worth;
        }
    }
    worth
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokens::Words;

    proptest! {
        /// Whatever comes when, what comes out is always the largest that is there.
        #[test]
        fn the_largest_comes_first(keys in prop::collection::vec(0..50_u64, 0..40), later in prop::collection::vec(0..50_u64, 0..40)) {
            let mut queue = Queue::of(keys.clone());
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
    fn an_atom_counts_once() {
        let line = |at, text, atoms| Line {
            entry: EntryId(0),
            at,
            text,
            atoms,
            source: "",
            is: LineOf::Rest,
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
