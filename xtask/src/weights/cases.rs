//! What recorded conversations show of the atoms, and of the lines of files, that are no longer in view.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use fanfold_core::Transcript;
use fanfold_core::study::{Case, LineCase, N_FEATURES, SHOWN, Study};
use fanfold_replay::{Record, read};
use fanfold_tokens::o200k;
use fanfold_wire::{Conversation, Format};
use flate2::read::MultiGzDecoder;

/// The windows for which it would be folded, in tokens.
const WINDOWS: [u32; 4] = [8_000, 16_000, 32_000, 64_000];
/// From one fold to the next, and what stays as it is, in per cent of the window.
const STRIDE: u32 = 45;
const NEWEST: u32 = 5;
/// What the use of an atom counts that the agent coined: what it coined it can coin again.
pub(super) const COINED: f64 = 0.05;

/// Cases in the order in which they came.
#[derive(Default)]
pub(super) struct Cases(Vec<([f32; N_FEATURES], f32)>);

/// How many lines of files were copied, of how many: by whether the agent wrote them before, and by how often they were shown.
#[derive(Default)]
pub(super) struct Lines([[(u64, u64); SHOWN.len()]; 2]);

/// The cases of the conversations to fit to, and of those that are kept aside.
#[derive(Default)]
pub(super) struct Found {
    pub(super) fitted: Cases,
    pub(super) aside: Cases,
    pub(super) lines: Lines,
    pub(super) lines_aside: Lines,
}

impl Lines {
    /// The share of lines that were copied, and how many lines there are.
    pub(super) fn copied(&self, is_written: bool, n_shown: usize) -> (f64, u64) {
        let (copied, all) = self.0[usize::from(is_written)][n_shown];
        (copied as f64 / all.max(1) as f64, all)
    }

    fn add(&mut self, case: &LineCase) {
        let (copied, all) = &mut self.0[usize::from(case.is_written)][case.n_shown.min(SHOWN.len() - 1)];
        *copied += u64::from(case.is_copied);
        *all += 1;
    }
}

impl Cases {
    /// Each with what it counts as positive.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([f64; N_FEATURES], f64)> {
        self.0.iter().map(|(features, used)| (features.map(f64::from), f64::from(*used)))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What all positive ones count.
    pub(super) fn positive(&self) -> f64 {
        self.0.iter().map(|(_, used)| f64::from(*used)).sum()
    }

    fn add(&mut self, case: &Case) {
        let used = if case.is_coined { COINED as f32 } else { 1.0 };
        self.0.push((case.features, if case.is_used { used } else { 0.0 }));
    }
}

/// Walks every recorded conversation.
pub(super) fn gather(files: &[PathBuf]) -> anyhow::Result<Found> {
    let mut found = Found::default();
    for path in files {
        let mut text = String::new();
        let file = File::open(path).with_context(|| path.display().to_string())?;
        MultiGzDecoder::new(file).read_to_string(&mut text).with_context(|| path.display().to_string())?;
        for record in read(&text, "") {
            match record.is_aside() {
                true => walk(&record, &mut found.aside, &mut found.lines_aside),
                false => walk(&record, &mut found.fitted, &mut found.lines),
            }
        }
    }
    Ok(found)
}

/// Takes the cases of one conversation, at each moment at which some window would be full.
fn walk(record: &Record, cases: &mut Cases, lines: &mut Lines) {
    let messages: Vec<_> = record.messages.iter().map(|message| &**message).collect();
    let mut transcript = Transcript::new();
    for change in Conversation::of_messages(Format::Chat).append(&messages) {
        change.apply(&mut transcript, o200k());
    }
    for window in WINDOWS {
        let mut study = Study::new(&transcript);
        let mut full = window;
        while let Some(now) = study.learn() {
            if now >= full {
                let newest = window / 100 * NEWEST;
                study.cases(newest).iter().for_each(|case| cases.add(case));
                study.lines(newest).iter().for_each(|case| lines.add(case));
                full = now + window / 100 * STRIDE;
            }
        }
    }
}
