//! How likely an atom is to be used again: a small fixed scorer over what the conversation has shown of it.
//!
//! The weights are fitted to recorded conversations by `cargo xtask weights`; `docs/decisions/8-which-lines-stay.md` tells how.
//! All arithmetic is the same on every machine: no function here depends on a mathematics library.

mod feature; // what it looks at
mod weights; // how much each of that counts
pub mod study; // its own eyes, for the command that makes the weights

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crate::atoms::{Atom, AtomKind, each_atom};
use crate::copies::{Copies, Hashed, LineHash, LineSet, hash_of};
use crate::policy::{Choice, Scorer};
use crate::scan::{OwnAtom, Piece, Scan};
use crate::transcript::{Entry, EntryId, Prompt, Speaker, Transcript};
use crate::words::{Word, WordSet, each_word};

use feature::Feature;
use weights::WEIGHTS;

/// An atom of the session, by the order in which they first came.
pub(crate) type AtomId = u32;

/// Ids by atom.
pub(crate) type AtomIds = HashMap<Atom, AtomId, BuildHasherDefault<Hashed>>;

/// What the conversation has shown of its atoms, learnt entry by entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    /// The numbers by the atoms; what they are numbers of stands in `known`.
    ids: AtomIds,
    known: Vec<Known>,
    /// Where each entry that was learnt ends, in tokens from the beginning.
    ends: Vec<u32>,
    /// The pieces of all entries that were learnt; the first is the second here, behind none.
    pieces: Vec<PieceKnown>,
    /// The words that people used.
    asked: WordSet,
    /// The lines that may be copied.
    pub(crate) copies: Copies,
}

/// What is known of an atom.
#[derive(Debug, Clone, Copy)]
struct Known {
    atom: Atom,
    /// Where the agent used it last, in tokens from the beginning.
    used_at: u32,
    /// The piece in which it was seen last; zero is none.
    piece: u32,
    /// In how many lines of that piece it stands.
    n_lines: u16,
    /// How often the agent used it.
    n_uses: u16,
    /// How many atoms stood beside it, where they were fewest.
    fewest_beside: u16,
    is_coined: bool,
    /// It stands in system text or people's words, which stay in view.
    is_said: bool,
    /// Its last words.
    words: [Word; 3],
}

/// A piece of an entry that was learnt.
#[derive(Debug, Clone, Copy, Default)]
struct PieceKnown {
    /// Where it ends, in tokens from the beginning.
    at: u32,
    /// What it is the result of.
    from: Option<Feature>,
    /// Where the agent last used something that stood here last; zero is nowhere.
    used_at: u32,
    /// What the call asked for that it belongs to: its path, or what else comes first.
    subject: Option<AtomId>,
}

impl Lexicon {
    /// The number of an atom; a new one is taken in, with its words.
    pub(crate) fn id_of(&mut self, atom: Atom, words: [Word; 3]) -> AtomId {
        let next = self.known.len() as AtomId;
        let id = *self.ids.entry(atom).or_insert(next);
        if id == next {
            self.known.push(Known {
                atom,
                used_at: 0,
                piece: 0,
                n_lines: 0,
                n_uses: 0,
                fewest_beside: u16::MAX,
                is_coined: false,
                is_said: false,
                words,
            });
        }
        id
    }

    /// The numbers of atoms; new ones are taken in, with their words.
    pub(crate) fn ids_of(&mut self, atoms: &[OwnAtom]) -> Vec<AtomId> {
        atoms.iter().map(|(atom, words)| self.id_of(*atom, *words)).collect()
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
        if let Entry::Prompt(Prompt { speaker: Speaker::User, body, .. }) = entry {
            each_word(body.original().as_bytes(), |word| self.asked.insert(word));
        }
        let asked = scan.lines().filter(|line| matches!(line.piece(), Piece::Asked(_)));
        asked.for_each(|line| self.copies.write(line.text()));
        let mut ids: Vec<AtomId> = Vec::with_capacity(scan.atoms.len());
        let mut subject = None;
        self.pieces.resize(self.pieces.len().max(1), PieceKnown::default());
        for (piece, atoms) in scan.pieces() {
            let (is_used, is_said) = match entry {
                Entry::Step(_) => (!matches!(piece, Piece::Result(_)), false),
                Entry::Prompt(prompt) => (false, prompt.speaker != Speaker::Harness),
            };
            let number = self.pieces.len() as u32;
            ids.clear();
            for &atom in atoms {
                let known = &mut self.known[atom as usize];
                if known.piece == number {
                    known.n_lines = known.n_lines.saturating_add(1);
                    continue;
                }
                if is_used {
                    known.is_coined |= known.piece == 0;
                    known.n_uses = known.n_uses.saturating_add(1);
                    known.used_at = end;
                    self.pieces[known.piece as usize].used_at = end;
                }
                known.is_said |= is_said;
                (known.piece, known.n_lines) = (number, 1);
                ids.push(atom);
            }
            let beside = ids.len().min(usize::from(u16::MAX)) as u16;
            for &atom in &ids {
                let fewest = &mut self.known[atom as usize].fewest_beside;
                *fewest = beside.min(*fewest);
            }
            subject = match piece {
                Piece::Said => None,
                Piece::Asked(_) => self.subject(&ids),
                Piece::Result(_) => subject,
            };
            let from = match piece {
                Piece::Result(call) => Feature::of_result(scan.calls[usize::from(call)].deed.verb),
                Piece::Said | Piece::Asked(_) => None,
            };
            self.pieces.push(PieceKnown { at: end, from, used_at: 0, subject });
        }
        self.ends.push(end);
    }

    /// What a call asked for: the first path among its atoms, or what else comes first.
    fn subject(&self, asked: &[AtomId]) -> Option<AtomId> {
        let is_path = |atom: &&AtomId| self.known[**atom as usize].atom.kind() == AtomKind::Path;
        asked.iter().find(is_path).or(asked.first()).copied()
    }

    /// The entry in which an atom stood last.
    pub(crate) fn last_seen(&self, atom: AtomId) -> Option<EntryId> {
        let known = &self.known[atom as usize];
        let at = self.piece_of(known).at;
        (known.piece > 0).then(|| EntryId::from(self.ends.partition_point(|end| *end < at)))
    }

    /// Whether an atom stands in system text or people's words, which stay in view.
    pub(crate) fn is_said(&self, atom: AtomId) -> bool {
        self.known[atom as usize].is_said
    }

    /// What an atom is.
    pub(crate) fn kind(&self, atom: AtomId) -> AtomKind {
        self.known[atom as usize].atom.kind()
    }

    /// How many tokens ago an entry ended.
    pub(crate) fn age(&self, entry: EntryId) -> u32 {
        self.now() - self.ends.get(entry.index()).copied().unwrap_or(self.now())
    }

    /// How many tokens there are so far.
    fn now(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How likely atoms are to be what the agent writes before they come up by themselves, with what a piece says
    /// worked out once.
    pub(crate) fn chances(&self, scorer: Scorer) -> Chances<'_> {
        Chances { scorer, lexicon: self, pieces: vec![None; self.pieces.len()] }
    }

    /// The chance of one atom, given what its piece adds to the logarithm of the odds.
    fn chance(&self, known: &Known, of_piece: f32) -> f32 {
        if known.is_said {
            return 0.0;
        }
        let mut score = of_piece;
        self.each_feature(known, |feature, value| score += WEIGHTS[feature as usize] * value);
        chance(score)
    }

    /// What an atom is worth by a rule of thumb, about as much on the whole.
    fn simple_chance(&self, known: &Known, scorer: Scorer) -> f32 {
        const USUAL: f32 = 0.02;
        let thousands = (self.now() - self.piece_of(known).at) as f32 / 1000.0;
        match scorer {
            _ if known.is_said => 0.0,
            Scorer::ByUses => USUAL * (0.5 + f32::from(known.n_uses)),
            Scorer::ByAge => USUAL * 8.0 / (1.0 + thousands),
            Scorer::Learnt | Scorer::Even => USUAL,
        }
    }

    fn score_of_piece(&self, piece: &PieceKnown) -> f32 {
        let mut score = 0.0;
        self.each_feature_of_piece(piece, |feature, value| score += WEIGHTS[feature as usize] * value);
        score
    }

    /// Calls back with what the scorer sees of an atom.
    fn each_feature(&self, known: &Known, mut see: impl FnMut(Feature, f32)) {
        let kind = known.atom.kind();
        see(Feature::Base, 1.0);
        match kind {
            AtomKind::Name => {}
            AtomKind::Path => see(Feature::Path, 1.0),
            AtomKind::Number => see(Feature::Number, 1.0),
            AtomKind::Quoted => see(Feature::Quoted, 1.0),
        }
        if known.is_coined {
            see(if kind == AtomKind::Path { Feature::CoinedPath } else { Feature::Coined }, 1.0);
        }
        if known.n_uses > 0 {
            see(Feature::Used, 1.0);
            see(Feature::Uses, log2(1 + u32::from(known.n_uses)));
        } else {
            see(Feature::Asked, self.asked.share(&known.words));
        }
        see(Feature::FewestBeside, log2(1 + u32::from(known.fewest_beside.min(2_000))));
        see(Feature::Lines, log2(1 + u32::from(known.n_lines)));
    }

    /// Calls back with what the scorer sees of the piece in which an atom stood last.
    fn each_feature_of_piece(&self, piece: &PieceKnown, mut see: impl FnMut(Feature, f32)) {
        let since = |at: u32| log2((self.now() - at).saturating_add(1000)) - LOG2_1000;
        if let Some(from) = piece.from {
            see(from, 1.0);
        }
        see(Feature::Age, since(piece.at));
        if piece.used_at > 0 {
            see(Feature::PieceUsed, since(piece.used_at));
        }
        if let Some(subject) = piece.subject {
            let subject = &self.known[subject as usize];
            see(Feature::Subject, 1.0);
            see(Feature::SubjectUses, log2(1 + u32::from(subject.n_uses)));
            see(Feature::SubjectUsed, since(subject.used_at));
        }
    }

    /// The piece in which an atom stood last.
    fn piece_of(&self, known: &Known) -> PieceKnown {
        self.pieces.get(known.piece as usize).copied().unwrap_or_default()
    }

    /// The chance of an atom that is known.
    pub(crate) fn chance_of(&self, atom: Atom) -> Option<(AtomId, f32)> {
        let id = *self.ids.get(&atom)?;
        let known = &self.known[id as usize];
        Some((id, self.chance(known, self.score_of_piece(&self.piece_of(known)))))
    }
}

/// How likely atoms are to be used, with what their pieces say worked out.
pub(crate) struct Chances<'a> {
    lexicon: &'a Lexicon,
    scorer: Scorer,
    /// What each piece adds to the logarithm of the odds, once it was needed.
    pieces: Vec<Option<f32>>,
}

impl Chances<'_> {
    /// How likely an atom is to be what the agent writes before it comes up by itself.
    pub(crate) fn of(&mut self, atom: AtomId) -> f32 {
        let Chances { lexicon, scorer, pieces } = self;
        let known = &lexicon.known[atom as usize];
        if *scorer != Scorer::Learnt {
            return lexicon.simple_chance(known, *scorer);
        }
        let of_piece = pieces.get_mut(known.piece as usize).map_or(0.0, |piece| {
            *piece.get_or_insert_with(|| lexicon.score_of_piece(&lexicon.pieces[known.piece as usize]))
        });
        lexicon.chance(known, of_piece)
    }
}

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
    /// Atoms that stay in view, in order.
    seen: Vec<AtomId>,
    /// Lines that stay in view.
    lines: LineSet,
    /// The words of the topic that a person wants to keep.
    pub(crate) focus: Vec<String>,
    pub(crate) choice: Choice,
}

impl Worth {
    /// What stands in entries that stay in view needs no second place.
    pub(crate) fn given(stays: &[Arc<Scan>], focus: &str, choice: Choice) -> Worth {
        let mut seen: Vec<AtomId> = stays.iter().flat_map(|scan| scan.atoms.iter().copied()).collect();
        seen.sort_unstable();
        seen.dedup();
        let of_results = stays
            .iter()
            .flat_map(|scan| scan.lines())
            .filter(|line| matches!(line.piece(), Piece::Result(_)));
        let lines = of_results.map(|line| hash_of(line.text())).collect();
        Worth { seen, lines, focus: focus_words(focus), choice }
    }

    /// Whether a line stays in view.
    pub(crate) fn has_line(&self, line: LineHash) -> bool {
        self.lines.contains(&line)
    }

    /// Whether an atom stays in view.
    pub(crate) fn is_seen(&self, atom: AtomId) -> bool {
        self.seen.binary_search(&atom).is_ok()
    }

    /// What a line is worth by itself: 1 for a name that is likely in use.
    pub(crate) fn of_line(&self, lexicon: &Lexicon, line: &str) -> f32 {
        const LIKELY: f32 = 0.04;
        let mut worth = 0.0;
        each_atom(line, |atom, _| {
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

/// What atoms are worth while lines are chosen. There are many atoms, of which a choice touches few: so one is used again and
/// again, and only what was touched is wiped.
#[derive(Debug, Default)]
pub(crate) struct Values {
    of_atoms: Vec<f32>,
    touched: Vec<AtomId>,
}

impl Values {
    /// What is not yet worked out.
    const UNKNOWN: f32 = -1.0;

    /// What each atom of the lines is worth: nothing where it stays in view. The others are not worked out.
    pub(crate) fn work_out<'a>(
        &mut self,
        lexicon: &Lexicon,
        lines: impl Iterator<Item = &'a [AtomId]>,
        worth: &'a Worth,
        stays: impl Iterator<Item = &'a [AtomId]>,
    ) -> &mut [f32] {
        self.wipe();
        self.of_atoms.resize(lexicon.len().max(self.of_atoms.len()), Values::UNKNOWN);
        for &atom in stays.flatten().chain(&worth.seen) {
            self.set(atom, 0.0);
        }
        let mut chances = lexicon.chances(worth.choice.scorer);
        for &atom in lines.flatten() {
            if self.of_atoms[atom as usize] == Values::UNKNOWN {
                self.set(atom, chances.of(atom));
            }
        }
        &mut self.of_atoms
    }

    fn set(&mut self, atom: AtomId, value: f32) {
        let of_atom = &mut self.of_atoms[atom as usize];
        if *of_atom == Values::UNKNOWN {
            self.touched.push(atom);
        }
        *of_atom = value;
    }

    fn wipe(&mut self) {
        for atom in self.touched.drain(..) {
            self.of_atoms[atom as usize] = Values::UNKNOWN;
        }
    }
}

impl Clone for Values {
    /// What was worked out for one choice is of no use to another.
    fn clone(&self) -> Values {
        Values::default()
    }
}

/// The words of a topic that are worth looking for.
pub(crate) fn focus_words(topic: &str) -> Vec<String> {
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

    #[test]
    fn one_choice_knows_nothing_of_the_one_before() {
        let mut lexicon = Lexicon::default();
        let mut words: Vec<(Atom, [Word; 3])> = Vec::new();
        each_atom("src/one.rs src/two.rs src/three.rs", |atom, _| words.push((atom, Default::default())));
        let atoms: Vec<AtomId> = words.into_iter().map(|(atom, words)| lexicon.id_of(atom, words)).collect();
        let worth = |seen: &[AtomId]| Worth {
            seen: seen.to_vec(),
            lines: LineSet::default(),
            focus: Vec::new(),
            choice: Choice::default(),
        };
        let none = std::iter::empty::<&[AtomId]>;
        let lines = || [&atoms[..]].into_iter();
        let mut values = Values::default();
        let first = values.work_out(&lexicon, lines(), &worth(&[]), none()).to_vec();
        assert!(first.iter().all(|value| *value > 0.0), "{first:?}");
        let stays =
            values.work_out(&lexicon, lines(), &worth(&atoms[..1]), [&atoms[1..2]].into_iter()).to_vec();
        assert_eq!((&stays[..2], &stays[2..]), (&[0.0, 0.0][..], &first[2..]));
        assert_eq!(values.work_out(&lexicon, lines(), &worth(&[]), none()), first);
        assert!(values.work_out(&lexicon, none(), &worth(&[]), none()).iter().all(|value| *value < 0.0));
    }
}
