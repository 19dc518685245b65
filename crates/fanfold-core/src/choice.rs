//! Chooses the lines of folded entries that are worth their tokens.
//!
//! Line by line, always the one that adds most for what it costs: an atom that stands in a chosen line adds nothing
//! more in the next.

use std::collections::{BinaryHeap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

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
    pub(crate) is: LineOf,
    /// What the line is worth as a whole, whatever its atoms.
    pub(crate) worth: f32,
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

/// What to choose from, and how much.
pub(crate) struct Task<'a> {
    pub(crate) lines: &'a [Line<'a>],
    /// The stretch in which each line stands, in order.
    pub(crate) of_stretch: &'a [u32],
    pub(crate) n_atoms: usize,
    /// How many tokens there are.
    pub(crate) room: usize,
    /// What the first line of a stretch costs in addition.
    pub(crate) opening: usize,
}

/// The lines worth most within about so many tokens, the best first.
pub(crate) fn choose(task: &Task<'_>, value: impl Fn(AtomId) -> f32, counter: &dyn Count) -> Vec<usize> {
    let Task { lines, of_stretch, n_atoms, room, opening } = *task;
    let whole = whole_worth(lines);
    let mut is_covered = vec![false; n_atoms];
    let mut is_open = vec![false; of_stretch.last().map_or(0, |last| *last as usize + 1)];
    let mut is_chosen = vec![false; lines.len()];
    let gain = |i: usize, is_covered: &[bool]| -> f32 {
        let fresh = lines[i].atoms.iter().filter(|atom| !is_covered[**atom as usize]);
        whole[i] + fresh.map(|atom| value(*atom)).sum::<f32>()
    };
    // A ratio is never negative, so its bits sort like it; the newest of equal lines comes first.
    let key = |i: usize, gain: f32, is_open: &[bool]| {
        let opening = if is_open[of_stretch[i] as usize] { 0 } else { opening };
        let ratio = gain / (lines[i].text.len() / 3 + opening + 6) as f32;
        u64::from(ratio.to_bits()) << 32 | i as u64
    };
    let all = (0..lines.len()).map(|i| (i, gain(i, &is_covered))).filter(|(_, gain)| *gain > LEAST);
    let mut heap: BinaryHeap<u64> = all.map(|(i, gain)| key(i, gain, &is_open)).collect();
    let mut left = room;
    let mut misses = 0;
    let mut chosen = Vec::new();
    while let Some(top) = heap.pop() {
        let i = (top & 0xffff_ffff) as usize;
        let now = gain(i, &is_covered);
        if is_chosen[i] || now <= LEAST {
            continue;
        }
        let again = key(i, now, &is_open);
        if again < top && heap.peek().is_some_and(|next| again < *next) {
            heap.push(again);
            continue;
        }
        let stretch = of_stretch[i];
        let opening = if is_open[stretch as usize] { 0 } else { opening };
        let cost = counter.count(lines[i].text).0 as usize + 1 + opening;
        if cost > left {
            misses += 1;
            if misses > MOST_MISSES {
                break;
            }
            continue;
        }
        left -= cost;
        is_chosen[i] = true;
        chosen.push(i);
        for &atom in lines[i].atoms {
            is_covered[atom as usize] = true;
        }
        if !is_open[stretch as usize] {
            is_open[stretch as usize] = true;
            // Its other lines have become cheaper.
            let first = of_stretch.partition_point(|other| *other < stretch);
            let others = (first..lines.len()).take_while(|&i| of_stretch[i] == stretch);
            let others = others.filter(|&i| !is_chosen[i]).map(|i| (i, gain(i, &is_covered)));
            heap.extend(others.filter(|(_, gain)| *gain > LEAST).map(|(i, gain)| key(i, gain, &is_open)));
        }
    }
    chosen
}

/// What adds less than this is left out even where there is room.
const LEAST: f32 = 0.0004;
/// After so many lines that did not fit, the room is full.
const MOST_MISSES: usize = 40;

/// What lines are worth as a whole; a line that comes again counts once, at its newest place.
fn whole_worth(lines: &[Line<'_>]) -> Vec<f32> {
    let mut worth = vec![0.0; lines.len()];
    let mut said = HashSet::new();
    for (i, line) in lines.iter().enumerate().rev() {
        if line.worth > 0.0 && said.insert(xxh3_64(without_number(line.text).as_bytes())) {
            worth[i] = line.worth;
        }
    }
    worth
}

/// A line without the number that a reading tool put before it.
pub(crate) fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['→', '|', ':', '\t']).unwrap_or(line).trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Words;

    #[test]
    fn a_numbered_line_is_known_by_its_text() {
        assert_eq!(without_number("  12→\tlet x = 1;".trim()), "let x = 1;");
        assert_eq!(without_number("1 apple"), "1 apple");
    }

    #[test]
    fn an_atom_counts_once() {
        let line =
            |at, text, atoms| Line { entry: EntryId(0), at, text, atoms, is: LineOf::Rest, worth: 0.0 };
        let lines = [line(0, "one two", &[0, 1]), line(1, "two", &[1]), line(2, "three", &[2])];
        let task = Task { lines: &lines, of_stretch: &[0, 0, 0], n_atoms: 3, room: 100, opening: 1 };
        let chosen = choose(&task, |_| 0.1, &Words);
        assert_eq!(chosen, [0, 2]);
    }
}
