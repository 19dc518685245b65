//! How likely an atom is to be used again: a small fixed scorer over what the conversation has shown of it.
//!
//! Most weights were fitted to recorded conversations, some set by hand; `docs/decisions/8-which-lines-stay.md` tells which.
//! All arithmetic is the same on every machine: no function here depends on a mathematics library.

use crate::atoms::{Atom, Look, each_atom};
use crate::numbers::Numbers;
use crate::scan::{Piece, Scan};
use crate::tokens::Tokens;
use crate::transcript::{Entry, EntryId, Speaker, Transcript};

/// An atom of the session, by the order in which they first came.
pub(crate) type AtomId = u32;

/// What the conversation has shown of its atoms, learnt entry by entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    /// The numbers by the atoms; what they are numbers of stands in `known`.
    ids: Numbers,
    known: Vec<Known>,
    /// Where each entry that was learnt ends, in tokens from the beginning.
    ends: Vec<u32>,
    n_pieces: u32,
}

/// What is known of an atom.
#[derive(Debug, Clone, Copy)]
struct Known {
    atom: Atom,
    /// Where it stood last, in tokens from the beginning.
    at: u32,
    /// The piece in which it was seen last.
    piece: u32,
    n_pieces: u16,
    /// How often the agent used it.
    n_uses: u16,
    /// How many atoms stood beside it, where they were fewest and where it stood last.
    fewest_beside: u16,
    beside: u16,
    /// The size of the piece in which it stood last.
    size: u16,
    is_coined: bool,
    /// It stands in system text or people's words, which stay in view.
    is_said: bool,
    is_from_result: bool,
}

/// A piece of an entry that counts for itself.
struct PieceSeen {
    is_used: bool,
    is_said: bool,
    is_from_result: bool,
    size: u16,
    at: u32,
}

impl Lexicon {
    /// The number of an atom; a new one is taken in.
    pub(crate) fn id_of(&mut self, atom: Atom) -> AtomId {
        let next = self.known.len() as AtomId;
        let known = &self.known;
        let id = self.ids.find_or_take(atom, next, |id| known[id as usize].atom == atom);
        if id == next {
            self.known.push(Known {
                atom,
                at: self.now(),
                piece: 0,
                n_pieces: 0,
                n_uses: 0,
                fewest_beside: u16::MAX,
                beside: 0,
                size: 0,
                is_coined: false,
                is_said: false,
                is_from_result: false,
            });
        }
        id
    }

    /// The numbers of atoms; new ones are taken in.
    pub(crate) fn ids_of(&mut self, atoms: &[Atom]) -> Vec<AtomId> {
        let mut ids = self.ids.guesses(atoms);
        for (id, atom) in ids.iter_mut().zip(atoms) {
            let is_right = self.known.get(*id as usize).is_some_and(|known| known.atom == *atom);
            *id = if is_right { *id } else { AtomId::MAX };
        }
        for (id, atom) in ids.iter_mut().zip(atoms) {
            if *id == AtomId::MAX {
                *id = self.id_of(*atom);
            }
        }
        ids
    }

    /// How many atoms are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many entries were learnt.
    pub(crate) fn learnt(&self) -> usize {
        self.ends.len()
    }

    /// Learns the next entry.
    pub(crate) fn learn(&mut self, transcript: &Transcript, scan: &Scan) {
        let id = EntryId::from(self.ends.len());
        let end = self.now().saturating_add(transcript.tokens(id).0.min(u64::from(u32::MAX)) as u32);
        let entry = transcript.entry(id);
        let mut ids: Vec<AtomId> = Vec::new();
        for (piece, atoms) in scan.pieces() {
            let seen = PieceSeen::of(entry, piece, end);
            self.n_pieces += 1;
            ids.clear();
            for &atom in atoms {
                let known = &mut self.known[atom as usize];
                if known.piece != self.n_pieces {
                    known.piece = self.n_pieces;
                    ids.push(atom);
                }
            }
            let beside = ids.len().min(usize::from(u16::MAX)) as u16;
            for &atom in &ids {
                self.known[atom as usize].see(&seen, beside);
            }
        }
        self.ends.push(end);
    }

    /// How many tokens ago an entry ended.
    pub(crate) fn age(&self, entry: EntryId) -> u32 {
        self.now() - self.ends.get(entry.index()).copied().unwrap_or(self.now())
    }

    /// How many tokens there are so far.
    fn now(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How likely an atom is to be what the agent writes before it comes up by itself.
    pub(crate) fn chance(&self, atom: AtomId) -> f32 {
        let known = &self.known[atom as usize];
        if known.is_said {
            return 0.0;
        }
        chance(known.score(self.now()))
    }

    /// The chance of an atom that is known, by its text.
    fn chance_of(&self, atom: Atom) -> Option<(AtomId, f32)> {
        let id = self.ids.find(atom, |id| self.known[id as usize].atom == atom)?;
        Some((id, self.chance(id)))
    }
}

impl PieceSeen {
    fn of(entry: &Entry, piece: Piece, at: u32) -> PieceSeen {
        let (is_used, is_said) = match entry {
            Entry::Step(_) => (!matches!(piece, Piece::Result(_)), false),
            Entry::Prompt(prompt) => (false, prompt.speaker != Speaker::Harness),
        };
        let tokens = match (entry, piece) {
            (Entry::Step(step), Piece::Result(call)) => step.calls[usize::from(call)]
                .result
                .as_ref()
                .map_or(Tokens::ZERO, |result| result.body.tokens()),
            (Entry::Step(step), Piece::Asked(call)) => step.calls[usize::from(call)].arguments.tokens(),
            (Entry::Step(step), Piece::Said) => step.text.tokens(),
            (Entry::Prompt(prompt), _) => prompt.body.tokens(),
        };
        let size = tokens.0.min(u64::from(u16::MAX)) as u16;
        PieceSeen { is_used, is_said, is_from_result: matches!(piece, Piece::Result(_)), size, at }
    }
}

impl Known {
    fn see(&mut self, seen: &PieceSeen, beside: u16) {
        self.is_coined |= self.n_pieces == 0 && seen.is_used;
        self.n_pieces = self.n_pieces.saturating_add(1);
        self.n_uses = self.n_uses.saturating_add(u16::from(seen.is_used));
        self.is_said |= seen.is_said;
        self.fewest_beside = self.fewest_beside.min(beside);
        self.beside = beside;
        self.size = seen.size;
        self.at = seen.at;
        self.is_from_result = seen.is_from_result;
    }

    /// The logarithm of the odds that it is used next.
    fn score(&self, now: u32) -> f32 {
        let weights = &WEIGHTS;
        let thousands = |n: u32| log2(n.saturating_add(1000)) - LOG2_1000;
        let is_path = self.atom.look() == Look::Path;
        let mut score =
            weights.base + weights.looks[self.atom.look() as usize] + weights.sizes[self.atom.size()];
        if self.is_coined {
            score += if is_path { weights.coined_path } else { weights.coined };
        }
        if self.n_uses > 0 {
            score += weights.used;
        }
        if self.is_from_result {
            score += weights.from_result;
        }
        score += weights.age * thousands(now - self.at);
        score += weights.size * thousands(u32::from(self.size));
        score += weights.uses * log2(1 + u32::from(self.n_uses));
        score += weights.idle * log2(1 + u32::from(self.n_pieces.saturating_sub(self.n_uses)));
        score += weights.beside * log2(1 + u32::from(self.beside));
        score + weights.fewest_beside * log2(1 + u32::from(self.fewest_beside.min(2_000)))
    }
}

/// What each thing adds to the logarithm of the odds.
struct Weights {
    base: f32,
    coined: f32,
    coined_path: f32,
    used: f32,
    from_result: f32,
    /// By the logarithm (to base 2) of thousands of tokens since it stood there last, and of the size of that piece.
    age: f32,
    size: f32,
    /// By the logarithm of the agent's uses, of the other sightings, and of the atoms beside it.
    uses: f32,
    idle: f32,
    beside: f32,
    fewest_beside: f32,
    /// By `Look`.
    looks: [f32; 4],
    /// By `Atom::size`.
    sizes: [f32; 4],
}

const WEIGHTS: Weights = Weights {
    base: -0.9,
    coined: -1.9,
    coined_path: 1.4,
    used: 0.73,
    from_result: -0.31,
    age: -0.56,
    size: 0.62,
    uses: 0.42,
    idle: 0.02,
    beside: -0.13,
    fewest_beside: -0.21,
    looks: [0.0, -0.44, -0.82, -0.13],
    sizes: [-0.6, 0.0, -0.13, -0.4],
};

const LOG2_1000: f32 = 9.953;

/// The logarithm to base 2, exact at powers of two and on a straight line between them: the exponent of a number and
/// its digits, read as one.
fn log2(n: u32) -> f32 {
    const ONE: u32 = 1.0_f32.to_bits();
    (((n.max(1) as f32).to_bits() - ONE) as f32) * (1.0 / 8_388_608.0)
}

/// The chance that belongs to the logarithm of some odds, from a table.
pub(crate) fn chance(score: f32) -> f32 {
    /// From odds of e^-8 to e^4, in halves.
    const TABLE: [f32; 25] = [
        0.000335, 0.000553, 0.000911, 0.001501, 0.002473, 0.00407, 0.006693, 0.010987, 0.017986, 0.029312,
        0.047426, 0.075858, 0.119203, 0.182426, 0.268941, 0.377541, 0.5, 0.622459, 0.731059, 0.817574,
        0.880797, 0.924142, 0.952574, 0.970688, 0.982014,
    ];
    let place = ((score + 8.0) * 2.0).clamp(0.0, 23.99);
    let below = place as usize;
    TABLE[below] + (TABLE[below + 1] - TABLE[below]) * (place - below as f32)
}

/// What atoms are worth at the moment of a fold, given what stays in view.
pub(crate) struct Worth {
    /// Nothing where an atom stays in view; the others are worked out by who wants to know.
    values: Vec<f32>,
    /// The words of the topic that a person wants to keep.
    pub(crate) focus: Vec<String>,
}

impl Worth {
    pub(crate) fn new(lexicon: &Lexicon, focus: &str) -> Worth {
        Worth { values: vec![UNKNOWN; lexicon.len()], focus: focus_words(focus) }
    }

    /// Takes note of atoms that stay in view: they need no second place.
    pub(crate) fn see(&mut self, atoms: &[AtomId]) {
        for &atom in atoms {
            self.values[atom as usize] = 0.0;
        }
    }

    /// Whether an atom stays in view.
    pub(crate) fn is_seen(&self, atom: AtomId) -> bool {
        self.values.get(atom as usize).is_some_and(|value| *value == 0.0)
    }

    /// What so many atoms are worth: nothing if they stay in view, else it is not yet known.
    pub(crate) fn values(&self, n: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(n);
        values.extend_from_slice(&self.values);
        values.resize(n, UNKNOWN);
        values
    }

    /// What a line is worth by itself: 1 for a name that is likely in use.
    pub(crate) fn of_line(&self, lexicon: &Lexicon, line: &str) -> f32 {
        const LIKELY: f32 = 0.04;
        let mut worth = 0.0;
        each_atom(line, |atom| {
            if let Some((_, chance)) = lexicon.chance_of(atom).filter(|(id, _)| !self.is_seen(*id)) {
                worth += chance / LIKELY;
            }
        });
        worth + 3.0 * self.about_focus(line) as f32
    }

    /// How many words of the focus stand in a line.
    pub(crate) fn about_focus(&self, line: &str) -> usize {
        if self.focus.is_empty() {
            return 0;
        }
        let lower = line.to_lowercase();
        self.focus.iter().filter(|word| lower.contains(word.as_str())).count()
    }
}

/// What is not yet worked out.
pub(crate) const UNKNOWN: f32 = -1.0;

/// The words of a topic that are worth looking for.
fn focus_words(topic: &str) -> Vec<String> {
    let words =
        topic.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_grow() {
        assert_eq!((log2(1), log2(2), log2(1024)), (0.0, 1.0, 10.0));
        assert!((1..5000).all(|n| log2(n) < log2(n + 1)));
        assert!((log2(1000) - LOG2_1000).abs() < 0.001);
    }

    #[test]
    fn chances_grow_between_none_and_all() {
        let chances: Vec<f32> = (-100..100).map(|i| chance(i as f32 / 10.0)).collect();
        assert!(chances.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!((chance(0.0) - 0.5).abs() < 1e-6);
        assert!(chances[0] > 0.0 && chances[199] < 1.0);
    }
}
