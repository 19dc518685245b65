//! The scorer's own eyes, for `cargo xtask weights`: what it sees of the old atoms of a conversation that is over, and
//! which of them the agent used next. No part of what this crate promises.

use std::collections::HashMap;

use super::feature::{FEATURES, Feature};
use super::{AtomId, Lexicon, weights};
use crate::atoms::AtomKind;
use crate::copies::{self, LineHash, hash_of, is_copyable, values_in, without_number};
use crate::parallel::Sequential;
use crate::scan::{Piece, Scan, take_apart};
use crate::transcript::{EntryId, Transcript};

/// How many features there are.
pub const N_FEATURES: usize = Feature::COUNT;
/// The features' names, in the order of their weights.
pub const NAMES: [&str; N_FEATURES] = FEATURES;
/// The weights as they are.
pub const WEIGHTS: [f32; N_FEATURES] = weights::WEIGHTS;

/// How much more likely a line is to be copied by how often it was shown, and if the agent wrote it before, as it is.
pub const SHOWN: [f32; 5] = copies::SHOWN;
/// See there.
pub const WRITTEN: f32 = copies::WRITTEN;

/// A line of a file that was looked at and is no longer in view.
#[derive(Debug, Clone, Copy)]
pub struct LineCase {
    /// In how many results it stood.
    pub n_shown: usize,
    /// Whether the agent has written it in a call.
    pub is_written: bool,
    /// Whether the agent writes it before it is shown again.
    pub is_copied: bool,
}

/// An atom that is no longer in view, as the scorer sees it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// By feature.
    pub features: [f32; N_FEATURES],
    /// Whether the agent writes it before it comes up by itself.
    pub is_used: bool,
    /// Whether the agent wrote it first, and it is no path.
    pub is_coined: bool,
}

/// A conversation that is over, learnt once more entry by entry.
pub struct Study<'t> {
    transcript: &'t Transcript,
    scans: Vec<Scan>,
    lexicon: Lexicon,
    /// By atom: each entry in which it stands, and whether the agent wrote it there before it came from elsewhere.
    stands: Vec<Vec<(usize, bool)>>,
    /// By line of a file: each entry in which it stands, and whether the agent wrote it there.
    lines: HashMap<LineHash, Vec<(usize, bool)>>,
}

impl<'t> Study<'t> {
    /// Takes a conversation apart; nothing of it is learnt yet.
    pub fn new(transcript: &'t Transcript) -> Study<'t> {
        let mut lexicon = Lexicon::default();
        let ids = (0..transcript.len()).map(EntryId::from);
        let entries: Vec<_> = ids.map(|id| (transcript.entry(id), transcript.tokens(id))).collect();
        let parts = take_apart(&entries, &[], &Sequential);
        let scans: Vec<Scan> = parts.into_iter().map(|parts| parts.known_by(&mut lexicon)).collect();
        let mut stands: Vec<Vec<(usize, bool)>> = vec![Vec::new(); lexicon.len()];
        for (i, scan) in scans.iter().enumerate() {
            let is_step = entries[i].0.step().is_some();
            // What a reply says and asks for stands before all its results.
            let (results, words): (Vec<_>, Vec<_>) =
                scan.pieces().into_iter().partition(|(piece, _)| matches!(piece, Piece::Result(_)));
            let pieces = words.iter().map(|words| (words, is_step)).chain(results.iter().map(|r| (r, false)));
            for ((_, atoms), is_use) in pieces {
                for &atom in *atoms {
                    let stands = &mut stands[atom as usize];
                    if stands.last().is_none_or(|(entry, _)| *entry != i) {
                        stands.push((i, is_use));
                    }
                }
            }
        }
        let lines = lines_in(&scans);
        Study { transcript, scans, lexicon, stands, lines }
    }

    /// Learns the next entry. Gives how many tokens there are by then; nothing at the end.
    pub fn learn(&mut self) -> Option<u32> {
        let scan = self.scans.get(self.lexicon.learnt())?;
        self.lexicon.learn(self.transcript, scan);
        Some(self.lexicon.now())
    }

    /// The atoms known so far that stand neither in the newest so many tokens nor in what people said.
    pub fn cases(&self, newest: u32) -> Vec<Case> {
        let (learnt, tail) = (self.lexicon.learnt(), self.tail(newest));
        let atoms = self.stands.iter().enumerate();
        atoms.filter_map(|(atom, stands)| self.case(atom as AtomId, stands, learnt, tail)).collect()
    }

    /// The lines of files known so far that do not stand in the newest so many tokens.
    pub fn lines(&self, newest: u32) -> Vec<LineCase> {
        let tail = self.tail(newest);
        self.lines.values().filter_map(|stands| self.line(stands, tail)).collect()
    }

    fn line(&self, stands: &[(usize, bool)], tail: usize) -> Option<LineCase> {
        let learnt = self.lexicon.learnt();
        let (before, after) = stands.split_at(stands.partition_point(|(entry, _)| *entry < learnt));
        let n_shown = before.iter().filter(|(_, is_written)| !is_written).count();
        let is_old = before.last().is_some_and(|(entry, _)| *entry < tail);
        let is_copied = after.first().is_some_and(|(_, is_written)| *is_written);
        let is_written = before.iter().any(|(_, is_written)| *is_written);
        (is_old && n_shown > 0).then_some(LineCase { n_shown, is_written, is_copied })
    }

    /// The first of the newest entries with so many tokens.
    fn tail(&self, newest: u32) -> usize {
        let learnt = self.lexicon.learnt();
        let is_new = |entry: &usize| self.lexicon.age(EntryId::from(*entry)) < newest;
        learnt - (0..learnt).rev().take_while(is_new).count()
    }

    fn case(&self, atom: AtomId, stands: &[(usize, bool)], learnt: usize, tail: usize) -> Option<Case> {
        let (before, after) = stands.split_at(stands.partition_point(|(entry, _)| *entry < learnt));
        let known = &self.lexicon.known[atom as usize];
        let is_old = before.last().is_some_and(|(entry, _)| *entry < tail);
        if !is_old || known.is_said {
            return None;
        }
        let mut features = [0.0; N_FEATURES];
        let mut see = |feature: Feature, value: f32| features[feature as usize] = value;
        self.lexicon.each_feature(known, &mut see);
        self.lexicon.each_feature_of_piece(&self.lexicon.piece_of(known), &mut see);
        let is_used = after.first().is_some_and(|(_, is_use)| *is_use);
        Some(Case { features, is_used, is_coined: known.is_coined && known.atom.kind() != AtomKind::Path })
    }
}

/// Where lines of files stand: in results that show a file, and in what the agent wrote in calls.
fn lines_in(scans: &[Scan]) -> HashMap<LineHash, Vec<(usize, bool)>> {
    let mut lines: HashMap<LineHash, Vec<(usize, bool)>> = HashMap::new();
    for (i, scan) in scans.iter().enumerate() {
        let mut stands_here = |text: &str, is_written: bool| {
            if is_copyable(text) {
                let stands = lines.entry(hash_of(text)).or_default();
                if stands.last().is_none_or(|(entry, _)| *entry != i) {
                    stands.push((i, is_written));
                }
            }
        };
        // What a reply asks for stands before its results.
        let (results, asked): (Vec<_>, Vec<_>) = scan
            .lines()
            .filter(|line| line.piece() != Piece::Said)
            .partition(|line| matches!(line.piece(), Piece::Result(_)));
        asked.iter().flat_map(|line| values_in(line.text())).for_each(|value| stands_here(value, true));
        for line in results {
            let Piece::Result(call) = line.piece() else { continue };
            if scan.calls[usize::from(call)].deed.shows_file() {
                stands_here(without_number(line.text()), false);
            }
        }
    }
    lines
}
