//! Estimates how likely an atom is to be used again, with a small logistic model over the history of the conversation.
//!
//! `cargo xtask weights` fits the weights to recorded conversations; see `docs/decisions/8-which-lines-stay.md`.
//! The result is the same on every machine: no function here depends on a mathematics library.

mod feature; // the inputs of the model
mod weights; // its coefficients

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crate::model::script::EntryPart;
use crate::model::transcript::{Entry, EntryId, Prompt, Speaker, Transcript};
use crate::select::scan::{LocalAtom, Scan};
use crate::text::atoms::{Atom, AtomKind, each_atom};
use crate::text::line_hash::IdentityHasher;
use crate::text::words::{Word, WordSet, each_word};

use feature::Feature;
use weights::WEIGHTS;

/// The number of an atom in a session, in order of first appearance.
pub(crate) type AtomId = u32;

/// Atom ids by atom.
pub(crate) type AtomIds = HashMap<Atom, AtomId, BuildHasherDefault<IdentityHasher>>;

/// Statistics of the atoms of a conversation, updated entry by entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    ids: AtomIds,
    atoms: Vec<AtomStats>,
    /// The cumulative token count at the end of each indexed entry.
    ends: Vec<u32>,
    /// The parts of all indexed entries, after one empty part for atoms that were not seen yet.
    parts: Vec<PartStats>,
    /// The words that users wrote.
    user_words: WordSet,
}

/// Statistics of an atom.
#[derive(Debug, Clone, Copy)]
struct AtomStats {
    atom: Atom,
    /// The token position of the last use by the agent.
    used_at: u32,
    /// The part that contained the atom last; zero if none did.
    part: u32,
    /// The number of lines of that part with the atom.
    n_lines: u16,
    /// The number of times that the agent used it.
    n_uses: u16,
    /// The smallest number of atoms in a part with this atom.
    fewest_in_part: u16,
    /// The agent wrote it before it appeared anywhere else.
    is_coined: bool,
    /// It appears in a system prompt or a user message, which stay visible.
    is_in_prompt: bool,
    words: [Word; 3],
}

/// A part of an indexed entry.
#[derive(Debug, Clone, Copy, Default)]
struct PartStats {
    /// The token position of its end.
    at: u32,
    /// The kind of call whose result this is.
    from: Option<Feature>,
    /// The token position of the last use of an atom that was last seen here; zero if never used.
    used_at: u32,
    /// The target of the call: its first path, or else its first atom.
    subject: Option<AtomId>,
}

impl Lexicon {
    /// The id of an atom, adding it if it is new.
    pub(crate) fn id_of(&mut self, atom: Atom, words: [Word; 3]) -> AtomId {
        let next = self.atoms.len() as AtomId;
        let id = *self.ids.entry(atom).or_insert(next);
        if id == next {
            self.atoms.push(AtomStats {
                atom,
                used_at: 0,
                part: 0,
                n_lines: 0,
                n_uses: 0,
                fewest_in_part: u16::MAX,
                is_coined: false,
                is_in_prompt: false,
                words,
            });
        }
        id
    }

    /// The id of a known atom.
    pub(crate) fn find(&self, atom: Atom) -> Option<AtomId> {
        self.ids.get(&atom).copied()
    }

    /// The ids of atoms, adding new ones.
    pub(crate) fn ids_of(&mut self, atoms: &[LocalAtom]) -> Vec<AtomId> {
        atoms.iter().map(|(atom, words)| self.id_of(*atom, *words)).collect()
    }

    /// The number of atoms.
    pub(crate) fn len(&self) -> usize {
        self.atoms.len()
    }

    /// The number of indexed entries.
    pub(crate) fn n_indexed(&self) -> usize {
        self.ends.len()
    }

    /// Indexes the next entry.
    pub(crate) fn index(&mut self, transcript: &Transcript, scan: &Scan) {
        let id = EntryId::from(self.ends.len());
        let end = self.now().saturating_add(transcript.tokens(id).0.min(u64::from(u32::MAX)) as u32);
        let entry = transcript.entry(id);
        if let Entry::Prompt(Prompt { speaker: Speaker::User, body, .. }) = entry {
            each_word(body.original().as_bytes(), |word| self.user_words.insert(word));
        }
        let mut ids: Vec<AtomId> = Vec::with_capacity(scan.atoms.len());
        let mut subject = None;
        self.parts.resize(self.parts.len().max(1), PartStats::default());
        for (part, atoms) in scan.parts() {
            let (is_used, is_in_prompt) = match entry {
                Entry::Step(_) => (!matches!(part, EntryPart::Result(_)), false),
                Entry::Prompt(prompt) => (false, prompt.speaker != Speaker::Harness),
            };
            let number = self.parts.len() as u32;
            ids.clear();
            for &atom in atoms {
                let stats = &mut self.atoms[atom as usize];
                if stats.part == number {
                    stats.n_lines = stats.n_lines.saturating_add(1);
                    continue;
                }
                if is_used {
                    stats.is_coined |= stats.part == 0;
                    stats.n_uses = stats.n_uses.saturating_add(1);
                    stats.used_at = end;
                    self.parts[stats.part as usize].used_at = end;
                }
                stats.is_in_prompt |= is_in_prompt;
                (stats.part, stats.n_lines) = (number, 1);
                ids.push(atom);
            }
            let n_atoms = ids.len().min(usize::from(u16::MAX)) as u16;
            for &atom in &ids {
                let fewest = &mut self.atoms[atom as usize].fewest_in_part;
                *fewest = n_atoms.min(*fewest);
            }
            subject = match part {
                EntryPart::Text => None,
                EntryPart::Arguments(_) => self.subject(&ids),
                EntryPart::Result(_) => subject,
            };
            let from = match part {
                EntryPart::Result(call) => Feature::of_result(scan.calls[usize::from(call)].deed.verb),
                EntryPart::Text | EntryPart::Arguments(_) => None,
            };
            self.parts.push(PartStats { at: end, from, used_at: 0, subject });
        }
        self.ends.push(end);
    }

    /// The target of a call: the first path among its atoms, or else the first atom.
    fn subject(&self, atoms: &[AtomId]) -> Option<AtomId> {
        let is_path = |atom: &&AtomId| self.atoms[**atom as usize].atom.kind() == AtomKind::Path;
        atoms.iter().find(is_path).or(atoms.first()).copied()
    }

    /// The kind of an atom.
    pub(crate) fn kind(&self, atom: AtomId) -> AtomKind {
        self.atoms[atom as usize].atom.kind()
    }

    /// The number of indexed tokens.
    fn now(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Computes the probability that the agent writes an atom before it appears again in a prompt or a result. Caches
    /// the share that each part contributes.
    pub(crate) fn chances(&self) -> UseChances<'_> {
        UseChances { lexicon: self, parts: vec![None; self.parts.len()] }
    }

    /// The probability for one atom, given the score of its part.
    fn chance(&self, stats: &AtomStats, part_score: f32) -> f32 {
        if stats.is_in_prompt {
            return 0.0;
        }
        let mut score = part_score;
        self.each_feature(stats, |feature, value| score += WEIGHTS[feature as usize] * value);
        chance(score)
    }

    fn score_of_part(&self, part: &PartStats) -> f32 {
        let mut score = 0.0;
        self.each_part_feature(part, |feature, value| score += WEIGHTS[feature as usize] * value);
        score
    }

    /// Calls back with the features of an atom.
    fn each_feature(&self, stats: &AtomStats, mut found: impl FnMut(Feature, f32)) {
        let kind = stats.atom.kind();
        found(Feature::Base, 1.0);
        match kind {
            AtomKind::Name => {}
            AtomKind::Path => found(Feature::Path, 1.0),
            AtomKind::Number => found(Feature::Number, 1.0),
            AtomKind::Quoted => found(Feature::Quoted, 1.0),
        }
        if stats.is_coined {
            found(if kind == AtomKind::Path { Feature::CoinedPath } else { Feature::Coined }, 1.0);
        }
        if stats.n_uses > 0 {
            found(Feature::Used, 1.0);
            found(Feature::Uses, log2(1 + u32::from(stats.n_uses)));
        } else {
            found(Feature::UserWords, self.user_words.share(&stats.words));
        }
        found(Feature::FewestInPart, log2(1 + u32::from(stats.fewest_in_part.min(2_000))));
        found(Feature::Lines, log2(1 + u32::from(stats.n_lines)));
    }

    /// Calls back with the features of the part that contained an atom last.
    fn each_part_feature(&self, part: &PartStats, mut found: impl FnMut(Feature, f32)) {
        let since = |at: u32| log2((self.now() - at).saturating_add(1000)) - LOG2_1000;
        if let Some(from) = part.from {
            found(from, 1.0);
        }
        found(Feature::Age, since(part.at));
        if part.used_at > 0 {
            found(Feature::PartUsed, since(part.used_at));
        }
        if let Some(subject) = part.subject {
            let subject = &self.atoms[subject as usize];
            found(Feature::Subject, 1.0);
            found(Feature::SubjectUses, log2(1 + u32::from(subject.n_uses)));
            found(Feature::SubjectUsed, since(subject.used_at));
        }
    }

    /// The part that contained an atom last.
    fn part_of(&self, stats: &AtomStats) -> PartStats {
        self.parts.get(stats.part as usize).copied().unwrap_or_default()
    }

    /// The id and the probability of a known atom.
    pub(crate) fn chance_of(&self, atom: Atom) -> Option<(AtomId, f32)> {
        let id = *self.ids.get(&atom)?;
        let stats = &self.atoms[id as usize];
        // Atoms of text that fanfold wrote itself have an id but appear in no entry.
        let is_indexed = stats.part > 0;
        is_indexed.then(|| (id, self.chance(stats, self.score_of_part(&self.part_of(stats)))))
    }
}

/// Probabilities of atoms, with a cache of part scores.
pub(crate) struct UseChances<'a> {
    lexicon: &'a Lexicon,
    /// The score of each part, computed on demand.
    parts: Vec<Option<f32>>,
}

impl UseChances<'_> {
    /// The probability that the agent writes an atom before it appears again in a prompt or a result.
    pub(crate) fn get(&mut self, atom: AtomId) -> f32 {
        let UseChances { lexicon, parts } = self;
        let stats = &lexicon.atoms[atom as usize];
        let part_score = parts.get_mut(stats.part as usize).map_or(0.0, |part| {
            *part.get_or_insert_with(|| lexicon.score_of_part(&lexicon.parts[stats.part as usize]))
        });
        lexicon.chance(stats, part_score)
    }
}

const LOG2_1000: f32 = 9.953;

/// The base-2 logarithm, interpolated linearly between powers of two by reading the bits of a float as a number.
fn log2(n: u32) -> f32 {
    const ONE: u32 = 1.0_f32.to_bits();
    (((n.max(1) as f32).to_bits() - ONE) as f32) * (1.0 / 8_388_608.0)
}

/// The logistic function, interpolated from a table.
pub(crate) fn chance(score: f32) -> f32 {
    /// The values at -8.0 to 4.0 in steps of 0.5.
    const TABLE: [f32; 25] = [
        0.000335, 0.000553, 0.000911, 0.001501, 0.002473, 0.00407, 0.006693, 0.010987, 0.017986, 0.029312,
        0.047426, 0.075858, 0.119203, 0.182426, 0.268941, 0.377541, 0.5, 0.622459, 0.731059, 0.817574,
        0.880797, 0.924142, 0.952574, 0.970688, 0.982014,
    ];
    let place = ((score + 8.0) * 2.0).clamp(0.0, 23.99);
    let below = place as usize;
    TABLE[below] + (TABLE[below + 1] - TABLE[below]) * (place - below as f32)
}

/// The visible atoms and lines after a fold, and the topic that the user wants to keep. Scores lines by them.
pub(crate) struct Relevance {
    /// The visible atoms, sorted.
    atoms: Vec<AtomId>,
    /// The words of the topic that the user wants to keep.
    pub(crate) focus: Vec<String>,
    /// The names in the newest message of the user, such as `requeue_all` or `retry.py`.
    named: Vec<String>,
}

impl Relevance {
    /// Collects the atoms and result lines of the visible entries.
    pub(crate) fn new(stays: &[Arc<Scan>], focus: &str, newest_user_text: &str) -> Relevance {
        let mut atoms: Vec<AtomId> = stays.iter().flat_map(|scan| scan.atoms.iter().copied()).collect();
        atoms.sort_unstable();
        atoms.dedup();
        Relevance { atoms, focus: focus_words(focus), named: names_in(newest_user_text) }
    }

    /// Returns whether a line contains a name that the user mentioned last.
    pub(crate) fn is_named(&self, line: &str) -> bool {
        self.named.iter().any(|name| line.contains(name.as_str()))
    }

    /// Returns whether an atom is visible.
    pub(crate) fn is_visible(&self, atom: AtomId) -> bool {
        self.atoms.binary_search(&atom).is_ok()
    }

    /// The score of a line: 1 for each invisible atom that is likely in use, 3 for each word of the focus and for a name
    /// that the user mentioned last.
    pub(crate) fn line_score(&self, lexicon: &Lexicon, line: &str) -> f32 {
        const LIKELY: f32 = 0.04;
        let mut worth = 0.0;
        each_atom(line, |atom, _| {
            if let Some((_, chance)) = lexicon.chance_of(atom).filter(|(id, _)| !self.is_visible(*id)) {
                worth += chance / LIKELY;
            }
        });
        worth + 3.0 * (self.n_focus_words(line) + usize::from(self.is_named(line))) as f32
    }

    /// The number of focus words in a line.
    pub(crate) fn n_focus_words(&self, line: &str) -> usize {
        if self.focus.is_empty() {
            return 0;
        }
        let lower = line.to_lowercase();
        self.focus.iter().filter(|word| lower.contains(word.as_str())).count()
    }
}

/// The values of atoms while lines are chosen. A choice touches few of many atoms, so the buffer is kept between
/// choices and only touched values are reset.
#[derive(Debug, Default)]
pub(crate) struct AtomValues {
    by_atom: Vec<f32>,
    touched: Vec<AtomId>,
}

impl AtomValues {
    /// Not computed.
    const UNKNOWN: f32 = -1.0;

    /// Computes the value of each atom in the lines: zero if it is visible. Other atoms stay `UNKNOWN`.
    pub(crate) fn compute<'a>(
        &mut self,
        lexicon: &Lexicon,
        lines: impl Iterator<Item = &'a [AtomId]>,
        relevance: &'a Relevance,
        stays: impl Iterator<Item = &'a [AtomId]>,
    ) -> &mut [f32] {
        self.reset();
        self.by_atom.resize(lexicon.len().max(self.by_atom.len()), AtomValues::UNKNOWN);
        for &atom in stays.flatten().chain(&relevance.atoms) {
            self.set(atom, 0.0);
        }
        let mut chances = lexicon.chances();
        for &atom in lines.flatten() {
            if self.by_atom[atom as usize] == AtomValues::UNKNOWN {
                self.set(atom, chances.get(atom));
            }
        }
        &mut self.by_atom
    }

    /// The sum of the values of atoms that are not visible: how many of them the agent is expected to use.
    pub(crate) fn remaining(&self) -> f32 {
        self.touched.iter().map(|&atom| self.by_atom[atom as usize]).sum()
    }

    fn set(&mut self, atom: AtomId, value: f32) {
        let slot = &mut self.by_atom[atom as usize];
        if *slot == AtomValues::UNKNOWN {
            self.touched.push(atom);
        }
        *slot = value;
    }

    fn reset(&mut self) {
        for atom in self.touched.drain(..) {
            self.by_atom[atom as usize] = AtomValues::UNKNOWN;
        }
    }
}

impl Clone for AtomValues {
    /// The values of one choice are of no use to another.
    fn clone(&self) -> AtomValues {
        AtomValues::default()
    }
}

/// The identifiers and file names in a short message.
fn names_in(text: &str) -> Vec<String> {
    const MAX_BYTES: usize = 2_000;
    const MAX_NAMES: usize = 12;
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let words = text.split(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)));
    let words = words.map(|word| word.trim_matches(['.', '/', '-']));
    let is_name = |word: &&str| {
        let has_mark = word.contains(['_', '.', '/']) || word.contains(|c: char| c.is_ascii_digit());
        word.len() >= 4 && has_mark && word.contains(char::is_alphabetic)
    };
    words.filter(is_name).take(MAX_NAMES).map(str::to_owned).collect()
}

/// The words of a topic with at least three letters, in lower case.
pub(crate) fn focus_words(topic: &str) -> Vec<String> {
    let words =
        topic.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log2_is_monotonic() {
        assert_eq!((log2(1), log2(2), log2(1024)), (0.0, 1.0, 10.0));
        assert!((1..5000).all(|n| log2(n) < log2(n + 1)));
        assert!((log2(1000) - LOG2_1000).abs() < 0.001);
    }

    #[test]
    fn logistic_is_monotonic() {
        let chances: Vec<f32> = (-100..100).map(|i| chance(i as f32 / 10.0)).collect();
        assert!(chances.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!((chance(0.0) - 0.5).abs() < 1e-6);
        assert!(chances[0] > 0.0 && chances[199] < 1.0);
    }

    #[test]
    fn values_are_reset_between_choices() {
        let mut lexicon = Lexicon::default();
        let mut words: Vec<(Atom, [Word; 3])> = Vec::new();
        each_atom("src/one.rs src/two.rs src/three.rs", |atom, _| words.push((atom, Default::default())));
        let atoms: Vec<AtomId> = words.into_iter().map(|(atom, words)| lexicon.id_of(atom, words)).collect();
        let relevance =
            |atoms: &[AtomId]| Relevance { atoms: atoms.to_vec(), focus: Vec::new(), named: Vec::new() };
        let none = std::iter::empty::<&[AtomId]>;
        let lines = || [&atoms[..]].into_iter();
        let mut values = AtomValues::default();
        let first = values.compute(&lexicon, lines(), &relevance(&[]), none()).to_vec();
        assert!(first.iter().all(|value| *value > 0.0), "{first:?}");
        let stays =
            values.compute(&lexicon, lines(), &relevance(&atoms[..1]), [&atoms[1..2]].into_iter()).to_vec();
        assert_eq!((&stays[..2], &stays[2..]), (&[0.0, 0.0][..], &first[2..]));
        assert_eq!(values.compute(&lexicon, lines(), &relevance(&[]), none()), first);
        assert!(values.compute(&lexicon, none(), &relevance(&[]), none()).iter().all(|value| *value < 0.0));
    }
}
