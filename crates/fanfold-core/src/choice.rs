//! Chooses the lines of folded entries that are worth their tokens.

use xxhash_rust::xxh3::xxh3_64;

use crate::transcript::EntryId;
use crate::value::{AtomMap, AtomSet, Scorer};

/// A line that could stand in a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The entry it is from.
    pub(crate) entry: EntryId,
    /// Where it begins in the entry's script.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    pub(crate) atoms: &'a [u64],
    pub(crate) is: LineOf,
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
    fn worth(self) -> f32 {
        match self {
            LineOf::Deed => 0.8,
            LineOf::Failure => 2.0,
            LineOf::User => 6.0,
            LineOf::Rest => 0.0,
        }
    }
}

/// Calls back with each line of a text worth keeping and where it begins, trimmed; long ones in pieces.
pub(crate) fn each_line<'a>(text: &'a str, mut found: impl FnMut(usize, &'a str)) {
    const LONGEST: usize = 280;
    const PIECE: usize = 220;
    const SHORTEST: usize = 4;
    let start = text.as_ptr() as usize;
    let mut add = |line: &'a str| {
        let mut rest = line.trim();
        while rest.len() > LONGEST {
            let mut cut = rest.floor_char_boundary(PIECE);
            if let Some(space) = rest[..cut].rfind([' ', ',']).filter(|at| *at > PIECE / 2) {
                cut = space + 1;
            }
            found(rest.as_ptr() as usize - start, rest[..cut].trim());
            rest = rest[cut..].trim_start();
        }
        if rest.len() >= SHORTEST {
            found(rest.as_ptr() as usize - start, rest);
        }
    };
    for line in text.split('\n') {
        // One long line with its line ends escaped: a JSON dump of a file or an output.
        if line.len() > LONGEST && line.contains("\\n") {
            line.split("\\n").for_each(&mut add);
        } else {
            add(line);
        }
    }
}

/// Where an atom stands among the lines.
struct Found {
    hash: u64,
    /// The newest lines that hold it.
    newest: [u32; NEWEST],
    n_lines: usize,
    n_entries: u32,
    last: EntryId,
}

const NEWEST: usize = 4;

/// The worth of each line, every atom counted at one line only: a short and recent one.
pub(crate) fn rank(lines: &[Line<'_>], scorer: &Scorer<'_>) -> Vec<f32> {
    let mut worth = flat_worth(lines, scorer);
    let n_atoms: usize = lines.iter().map(|line| line.atoms.len()).sum();
    let mut known: AtomMap<u32> = AtomMap::with_capacity_and_hasher(n_atoms / 3, Default::default());
    let mut all: Vec<Found> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        for &hash in line.atoms {
            let at = *known.entry(hash).or_insert_with(|| {
                if scorer.is_seen(hash) {
                    return u32::MAX;
                }
                all.push(Found {
                    hash,
                    newest: [0; NEWEST],
                    n_lines: 0,
                    n_entries: 0,
                    last: EntryId(u32::MAX),
                });
                all.len() as u32 - 1
            });
            let Some(found) = all.get_mut(at as usize) else { continue };
            found.newest[found.n_lines % NEWEST] = i as u32;
            found.n_lines += 1;
            found.n_entries += u32::from(found.last != line.entry);
            found.last = line.entry;
        }
    }
    for found in all {
        let newest = &found.newest[..found.n_lines.min(NEWEST)];
        let best = newest.iter().min_by_key(|&&i| lines[i as usize].text.len());
        if let Some(&best) = best {
            worth[best as usize] += scorer.lexicon.value(found.hash, found.last, found.n_entries);
        }
    }
    worth
}

/// What lines are worth apart from their atoms; a line that comes again counts once, at its newest place.
fn flat_worth(lines: &[Line<'_>], scorer: &Scorer<'_>) -> Vec<f32> {
    let mut worth = vec![0.0; lines.len()];
    let mut said = AtomSet::default();
    for (i, line) in lines.iter().enumerate().rev() {
        let flat = line.is.worth() + scorer.about_focus(line.text);
        if flat > 0.0 && said.insert(xxh3_64(without_number(line.text).as_bytes())) {
            worth[i] = flat;
        }
    }
    worth
}

/// A line without the number that a reading tool put before it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['→', '|', ':', '\t']).unwrap_or(line).trim_start()
}

/// The lines in the order of their worth per token.
pub(crate) fn order(lines: &[Line<'_>], worth: &[f32]) -> Vec<u32> {
    let key = |i: usize| (worth[i] / (cost(&lines[i]) + 4) as f32, i as u32);
    let mut order: Vec<(f32, u32)> = (0..lines.len()).filter(|&i| worth[i] > 0.0).map(key).collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    order.into_iter().map(|(_, i)| i).collect()
}

/// The first lines of the order that fit into about so many tokens, in the order of the conversation.
pub(crate) fn choose(lines: &[Line<'_>], order: &[u32], room: usize) -> Vec<usize> {
    let mut left = room;
    let mut chosen = Vec::new();
    for &i in order {
        let cost = cost(&lines[i as usize]);
        if cost <= left {
            left -= cost;
            chosen.push(i as usize);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// About what a line costs.
fn cost(line: &Line<'_>) -> usize {
    line.text.len() / 3 + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_where_they_begin() {
        let long = "word ".repeat(100);
        let dump = format!("{{\"output\": \"{}\\nsecond line of it\"}}", "x y ".repeat(90));
        for text in ["one line\n\n  another one \n", &long, &dump, "ünï\ncödé, and more of it"] {
            each_line(text, |at, line| assert!(text[at..].starts_with(line), "{line}"));
        }
    }

    #[test]
    fn a_numbered_line_is_known_by_its_text() {
        assert_eq!(without_number("  12→\tlet x = 1;".trim()), "let x = 1;");
        assert_eq!(without_number("1 apple"), "1 apple");
    }
}
