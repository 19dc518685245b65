//! Training data for `cargo xtask weights`: the features of old atoms in a finished conversation, and which of them the
//! agent used next. Not part of the public interface.

use std::collections::HashMap;

use crate::model::parallel::Sequential;
use crate::model::transcript::{EntryId, Transcript};
use crate::select::scan::{EntryPart, Scan, scan_entries};
use crate::select::scorer::feature::{FEATURES, Feature};
use crate::select::scorer::{AtomId, Lexicon, weights};
use crate::text::atoms::AtomKind;
use crate::text::copied_lines::{self, LineHash, hash_of, is_copyable, values_in, without_number};

/// The number of features.
pub const N_FEATURES: usize = Feature::COUNT;
/// The names of the features, in the order of the weights.
pub const NAMES: [&str; N_FEATURES] = FEATURES;
/// The present weights.
pub const WEIGHTS: [f32; N_FEATURES] = weights::WEIGHTS;

/// How much more likely a line is to be copied, by how often it was shown.
pub const SHOWN: [f32; 5] = copied_lines::SHOWN_WEIGHTS;
/// How much more likely a line is to be copied if the agent wrote it before.
pub const WRITTEN: f32 = copied_lines::WRITTEN_WEIGHT;

/// A line of a file that is no longer visible.
#[derive(Debug, Clone, Copy)]
pub struct LineCase {
    /// The number of results that contained it.
    pub n_shown: usize,
    /// Whether the agent wrote it in a call before.
    pub is_written: bool,
    /// Whether the agent writes it before it appears in a result again.
    pub is_copied: bool,
}

/// An atom that is no longer visible.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The values by feature.
    pub features: [f32; N_FEATURES],
    /// Whether the agent writes it before it appears again in a prompt or a result.
    pub is_used: bool,
    /// Whether the agent wrote it first, and it is not a path.
    pub is_coined: bool,
}

/// A finished conversation, indexed again entry by entry.
pub struct Study<'t> {
    transcript: &'t Transcript,
    scans: Vec<Scan>,
    lexicon: Lexicon,
    /// By atom: each entry that contains it, and whether the agent wrote it there first.
    occurrences: Vec<Vec<(usize, bool)>>,
    /// By line of a file: each entry that contains it, and whether the agent wrote it there.
    lines: HashMap<LineHash, Vec<(usize, bool)>>,
}

impl<'t> Study<'t> {
    /// Scans a conversation; nothing is indexed yet.
    pub fn new(transcript: &'t Transcript) -> Study<'t> {
        let mut lexicon = Lexicon::default();
        let ids = (0..transcript.len()).map(EntryId::from);
        let entries: Vec<_> = ids.map(|id| (transcript.entry(id), transcript.tokens(id))).collect();
        let local = scan_entries(&entries, &[], &Sequential);
        let scans: Vec<Scan> = local.into_iter().map(|scan| scan.into_scan(&mut lexicon)).collect();
        let mut occurrences: Vec<Vec<(usize, bool)>> = vec![Vec::new(); lexicon.len()];
        for (i, scan) in scans.iter().enumerate() {
            let is_step = entries[i].0.step().is_some();
            // The text and the arguments of a reply come before all its results.
            let (results, words): (Vec<_>, Vec<_>) =
                scan.parts().into_iter().partition(|(part, _)| matches!(part, EntryPart::Result(_)));
            let parts = words.iter().map(|words| (words, is_step)).chain(results.iter().map(|r| (r, false)));
            for ((_, atoms), is_use) in parts {
                for &atom in *atoms {
                    let occurrences = &mut occurrences[atom as usize];
                    if occurrences.last().is_none_or(|(entry, _)| *entry != i) {
                        occurrences.push((i, is_use));
                    }
                }
            }
        }
        let lines = lines_in(&scans);
        Study { transcript, scans, lexicon, occurrences, lines }
    }

    /// Indexes the next entry. Returns the number of tokens so far, or `None` at the end.
    pub fn learn(&mut self) -> Option<u32> {
        let scan = self.scans.get(self.lexicon.n_indexed())?;
        self.lexicon.index(self.transcript, scan);
        Some(self.lexicon.now())
    }

    /// The indexed atoms that appear neither in the newest tokens nor in user messages.
    pub fn cases(&self, newest: u32) -> Vec<Case> {
        let (n_indexed, tail) = (self.lexicon.n_indexed(), self.tail(newest));
        let atoms = self.occurrences.iter().enumerate();
        atoms
            .filter_map(|(atom, occurrences)| self.case(atom as AtomId, occurrences, n_indexed, tail))
            .collect()
    }

    /// The indexed lines of files that do not appear in the newest tokens.
    pub fn lines(&self, newest: u32) -> Vec<LineCase> {
        let tail = self.tail(newest);
        self.lines.values().filter_map(|occurrences| self.line(occurrences, tail)).collect()
    }

    fn line(&self, occurrences: &[(usize, bool)], tail: usize) -> Option<LineCase> {
        let n_indexed = self.lexicon.n_indexed();
        let (before, after) =
            occurrences.split_at(occurrences.partition_point(|(entry, _)| *entry < n_indexed));
        let n_shown = before.iter().filter(|(_, is_written)| !is_written).count();
        let is_old = before.last().is_some_and(|(entry, _)| *entry < tail);
        let is_copied = after.first().is_some_and(|(_, is_written)| *is_written);
        let is_written = before.iter().any(|(_, is_written)| *is_written);
        (is_old && n_shown > 0).then_some(LineCase { n_shown, is_written, is_copied })
    }

    /// The first entry within the newest tokens.
    fn tail(&self, newest: u32) -> usize {
        let n_indexed = self.lexicon.n_indexed();
        let is_new = |entry: &usize| self.lexicon.age(EntryId::from(*entry)) < newest;
        n_indexed - (0..n_indexed).rev().take_while(is_new).count()
    }

    fn case(
        &self,
        atom: AtomId,
        occurrences: &[(usize, bool)],
        n_indexed: usize,
        tail: usize,
    ) -> Option<Case> {
        let (before, after) =
            occurrences.split_at(occurrences.partition_point(|(entry, _)| *entry < n_indexed));
        let stats = &self.lexicon.atoms[atom as usize];
        let is_old = before.last().is_some_and(|(entry, _)| *entry < tail);
        if !is_old || stats.is_in_prompt {
            return None;
        }
        let mut features = [0.0; N_FEATURES];
        let mut see = |feature: Feature, value: f32| features[feature as usize] = value;
        self.lexicon.each_feature(stats, &mut see);
        self.lexicon.each_part_feature(&self.lexicon.part_of(stats), &mut see);
        let is_used = after.first().is_some_and(|(_, is_use)| *is_use);
        Some(Case { features, is_used, is_coined: stats.is_coined && stats.atom.kind() != AtomKind::Path })
    }
}

/// Finds lines of files: in results that show a file, and in arguments.
fn lines_in(scans: &[Scan]) -> HashMap<LineHash, Vec<(usize, bool)>> {
    let mut lines: HashMap<LineHash, Vec<(usize, bool)>> = HashMap::new();
    for (i, scan) in scans.iter().enumerate() {
        let mut add = |text: &str, is_written: bool| {
            if is_copyable(text) {
                let occurrences = lines.entry(hash_of(text)).or_default();
                if occurrences.last().is_none_or(|(entry, _)| *entry != i) {
                    occurrences.push((i, is_written));
                }
            }
        };
        // The arguments of a reply come before its results.
        let (results, arguments): (Vec<_>, Vec<_>) = scan
            .lines()
            .filter(|line| line.part() != EntryPart::Text)
            .partition(|line| matches!(line.part(), EntryPart::Result(_)));
        arguments.iter().flat_map(|line| values_in(line.text())).for_each(|value| add(value, true));
        for line in results {
            let EntryPart::Result(call) = line.part() else { continue };
            if scan.calls[usize::from(call)].deed.shows_file() {
                add(without_number(line.text()), false);
            }
        }
    }
    lines
}
