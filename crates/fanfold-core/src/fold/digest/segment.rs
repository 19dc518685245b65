//! Writes folded entries as a few lines: descriptions of calls, the most valuable lines, and a handle for each stretch.
//!
//! A segment covers entries; each run of them has a part in the view, between the user messages that stay. New segments
//! are added at the end and merged from time to time.

use std::sync::Arc;

use crate::fold::digest::stretch::{Stretch, coarsen, join_bare, n_joined, stretches};
use crate::fold::draft::Draft;
use crate::model::handle::Handle;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;
use crate::model::view::Voice;
use crate::select::analysis::Analysis;
use crate::select::candidates::{lines_of, sources, weigh};
use crate::select::chooser::{CandidateKind, CandidateLine, Chooser, ChosenLine, HANDLE};
use crate::select::scan::LocalAtom;
use crate::select::scorer::{AtomId, Lexicon, Relevance};
use crate::text::copied_lines::{LineHash, LineSet};
use crate::text::counted_text::CountedText;

/// Folded entries and the text sent instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The entries, in order.
    pub entries: Vec<EntryId>,
    /// The number of merges; zero for a new segment.
    pub tier: u32,
    /// The handle of all entries.
    pub handle: Handle,
    /// The texts in the view, one for each run of entries.
    pub parts: Vec<SegmentPart>,
    /// The role of the texts.
    pub voice: Voice,
    /// The handles printed in the texts.
    pub handles: Vec<Handle>,
    /// The budget it was written for. Mandatory content may exceed it.
    pub(crate) allowed: Option<Tokens>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) kept: Arc<KeptLines>,
}

/// The text for a run of a segment's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPart {
    /// The first entry of the run.
    pub at: EntryId,
    /// The text.
    pub text: Arc<str>,
    /// Its cost, including the message frame.
    pub tokens: Tokens,
}

/// The original lines in a segment, stored one after another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KeptLines {
    lines: Vec<KeptLine>,
    text: String,
    /// Atoms, because their ids are not valid in another lexicon.
    atoms: Vec<LocalAtom>,
    sources: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct KeptLine {
    entry: EntryId,
    at: usize,
    kind: CandidateKind,
    copied: f32,
    hash: LineHash,
    cost: Option<u32>,
    text_end: usize,
    atoms_end: usize,
    source_end: usize,
}

impl KeptLines {
    fn new<'a>(lines: impl Iterator<Item = CandidateLine<'a>> + Clone, lexicon: &Lexicon) -> KeptLines {
        let mut sizes = [0; 4];
        for CandidateLine { text, atoms, source, .. } in lines.clone() {
            let more = [1, text.len(), atoms.len(), source.len()];
            sizes.iter_mut().zip(more).for_each(|(size, more)| *size += more);
        }
        let [n_lines, n_text, n_atoms, n_sources] = sizes;
        let mut kept = KeptLines {
            lines: Vec::with_capacity(n_lines),
            text: String::with_capacity(n_text),
            atoms: Vec::with_capacity(n_atoms),
            sources: String::with_capacity(n_sources),
        };
        for CandidateLine { entry, at, text, atoms, source, kind, copied, hash, cost, .. } in lines {
            kept.text.push_str(text);
            kept.atoms.extend(atoms.iter().map(|atom| lexicon.atom(*atom)));
            kept.sources.push_str(source);
            let (text_end, atoms_end, source_end) = (kept.text.len(), kept.atoms.len(), kept.sources.len());
            kept.lines.push(KeptLine {
                entry,
                at,
                kind,
                copied,
                hash,
                cost,
                text_end,
                atoms_end,
                source_end,
            });
        }
        kept
    }

    /// The hashes of lines that may be copied.
    fn copyable(&self) -> impl Iterator<Item = LineHash> {
        self.lines.iter().filter(|line| line.copied > 0.0).map(|line| line.hash)
    }

    /// The lines with the ids of their atoms and a worth of zero.
    fn lines<'a>(&'a self, atoms: &'a [AtomId]) -> impl Iterator<Item = CandidateLine<'a>> {
        let (mut text_from, mut atoms_from, mut source_from) = (0, 0, 0);
        self.lines.iter().map(
            move |&KeptLine { entry, at, kind, copied, hash, cost, text_end, atoms_end, source_end }| {
                let (text, atoms) = (&self.text[text_from..text_end], &atoms[atoms_from..atoms_end]);
                let source = &self.sources[source_from..source_end];
                (text_from, atoms_from, source_from) = (text_end, atoms_end, source_end);
                CandidateLine { entry, at, text, atoms, source, kind, worth: 0.0, copied, hash, cost }
            },
        )
    }
}

impl Segment {
    /// Its cost in the view.
    pub fn tokens(&self) -> Tokens {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// The first and the last entry.
    pub fn span(&self) -> (EntryId, EntryId) {
        let first = self.entries.first().expect("a segment covers something");
        let last = self.entries.last().expect("a segment covers something");
        (*first, *last)
    }
}

impl Draft<'_> {
    /// The ids of the atoms of kept lines.
    fn atom_ids(&mut self, kept: &KeptLines) -> Vec<AtomId> {
        Arc::make_mut(&mut self.analysis.lexicon).ids_of(&kept.atoms)
    }
}

/// Writes new entries and the segments to merge as one segment of about `budget` tokens.
pub(crate) fn write(
    draft: &mut Draft<'_>,
    merged: &[u32],
    new_entries: &[EntryId],
    budget: Tokens,
) -> Segment {
    let relevance = draft.relevance();
    let mut material =
        Material { entries: new_entries.to_vec(), stretches: stretches(draft, new_entries), tier: 0 };
    let mut kept: Vec<Arc<KeptLines>> = Vec::new();
    for &id in merged {
        let segment = &draft.ledger.segments[id as usize];
        material.entries.extend(&segment.entries);
        material.stretches.extend(segment.stretches.iter().cloned());
        material.tier = material.tier.max(segment.tier + 1);
        kept.push(Arc::clone(&segment.kept));
    }
    material.entries.sort();
    material.stretches.sort_by_key(Stretch::start);
    let sources = sources(draft.analysis, draft.transcript, &draft.policy.tools, new_entries);
    let mut lines = lines_of(&sources, &relevance);
    let folded = Arc::make_mut(&mut draft.ledger.folded_lines);
    lines.iter().filter(|line| line.copied > 0.0).for_each(|line| folded.record(line.hash));
    let kept_atoms: Vec<Vec<AtomId>> = kept.iter().map(|kept| draft.atom_ids(kept)).collect();
    if !kept.is_empty() {
        lines.extend(kept.iter().zip(&kept_atoms).flat_map(|(kept, atoms)| kept.lines(atoms)));
        lines.sort_by_key(|line| (line.entry, line.at));
    }
    let stays = draft.ledger.live_segments.iter().filter(|id| !merged.contains(id));
    let stays: Vec<_> = stays.map(|&id| Arc::clone(&draft.ledger.segments[id as usize].kept)).collect();
    let visible: LineSet = stays.iter().flat_map(|kept| kept.copyable()).collect();
    let is_visible = |line| visible.contains(&line) || relevance.has_line(line);
    weigh(&mut lines, &relevance, &draft.analysis.lexicon, &draft.ledger.folded_lines, is_visible);
    compose(draft, material, &lines, budget, &relevance, &stays)
}

/// The contents of a segment except for its lines.
struct Material {
    entries: Vec<EntryId>,
    stretches: Vec<Stretch>,
    tier: u32,
}

/// Chooses lines within the budget and writes the parts.
fn compose(
    draft: &mut Draft<'_>,
    material: Material,
    lines: &[CandidateLine<'_>],
    budget: Tokens,
    relevance: &Relevance,
    stays: &[Arc<KeptLines>],
) -> Segment {
    let (Material { entries, stretches, tier }, allowed) = (material, Some(budget));
    let budget = budget.0 as usize;
    // Limit handles to half of the budget.
    let stretches = coarsen(stretches, (budget / 2 / HANDLE).max(4));
    let runs = runs(&entries);
    let of_stretch = stretch_of(&stretches, lines);
    let with_lines = |chosen: &[ChosenLine]| {
        let mut has_lines = vec![false; stretches.len()];
        chosen.iter().for_each(|chosen| has_lines[of_stretch[chosen.line] as usize] = true);
        has_lines
    };
    let atoms = lines.iter().map(|line| line.atoms);
    let visible_atoms: Vec<Vec<AtomId>> = stays.iter().map(|kept| draft.atom_ids(kept)).collect();
    let Analysis { lexicon, values, .. } = &mut *draft.analysis;
    let values = values.compute(lexicon, atoms, relevance, visible_atoms.iter().map(|atoms| &atoms[..]));
    let mut chooser = Chooser::new(lines, &of_stretch, values, draft.counter);
    // The number of handles depends on the chosen lines, so choose again with the remaining budget.
    for _ in 0..3 {
        let n_handles = n_joined(&stretches, &with_lines(&chooser.chosen));
        let of_lines: usize = chooser.chosen.iter().map(|chosen| chosen.cost).sum();
        let openings = HANDLE * chooser.n_open();
        let cost = of_lines - openings + HANDLE * n_handles + FENCES * runs.len();
        let left = budget.saturating_sub(cost);
        if left * 40 < budget {
            break;
        }
        chooser.choose(left);
    }
    let mut order = chooser.chosen;
    let first_live =
        draft.ledger.live_segments.first().map(|&live| draft.ledger.segments[live as usize].span().0);
    let is_first = first_live.is_none_or(|first| first >= entries[0]);
    let mut rendered = SegmentText::default();
    for _ in 0..4 {
        rendered.stretches = join_bare(&stretches, &with_lines(&order));
        rendered.handles = rendered.stretches.iter_mut().map(|stretch| stretch.name(draft)).collect();
        rendered.chosen = order.clone();
        rendered.chosen.sort_unstable_by_key(|chosen| chosen.line);
        rendered.parts = write_parts(draft, &runs, &rendered, lines, is_first);
        let cost: Tokens = rendered.parts.iter().map(|part| part.tokens).sum();
        let mut over = (cost.0 as usize).saturating_sub(budget);
        if over == 0 || order.is_empty() {
            break;
        }
        while let Some(chosen) = order.pop_if(|_| over > 0) {
            over = over.saturating_sub(chosen.cost);
        }
    }
    let SegmentText { stretches, handles, chosen, parts } = rendered;
    let handle = draft.ledger.name_several(entries.clone(), handles.clone());
    let line = |chosen: ChosenLine| CandidateLine { cost: Some(chosen.own), ..lines[chosen.line] };
    let kept = Arc::new(KeptLines::new(chosen.into_iter().map(line), &draft.analysis.lexicon));
    Segment { entries, tier, handle, parts, voice: Voice::Fanfold, handles, allowed, stretches, kept }
}

/// The approximate cost of the fence and the frame of a part.
const FENCES: usize = 14;

/// The chosen lines and the rendered parts.
#[derive(Default)]
struct SegmentText {
    stretches: Vec<Stretch>,
    handles: Vec<Handle>,
    chosen: Vec<ChosenLine>,
    parts: Vec<SegmentPart>,
}

/// The stretch of each line. Both are in order.
fn stretch_of(stretches: &[Stretch], lines: &[CandidateLine<'_>]) -> Vec<u32> {
    let mut at = 0;
    let place = |line: &CandidateLine<'_>| {
        while stretches.get(at + 1).is_some_and(|next| next.start() <= (line.entry, line.at)) {
            at += 1;
        }
        at as u32
    };
    lines.iter().map(place).collect()
}

/// Runs of consecutive entries.
pub(crate) fn runs(entries: &[EntryId]) -> Vec<&[EntryId]> {
    entries.chunk_by(|before, after| before.0 + 1 == after.0).collect()
}

fn write_parts(
    draft: &Draft<'_>,
    runs: &[&[EntryId]],
    rendered: &SegmentText,
    lines: &[CandidateLine<'_>],
    is_first: bool,
) -> Vec<SegmentPart> {
    let mut parts = Vec::with_capacity(runs.len());
    let mut stretches = rendered.stretches.iter().zip(&rendered.handles).peekable();
    let chosen = rendered.chosen.iter().map(|chosen| (&lines[chosen.line], chosen.own));
    let n_bytes = chosen.clone().map(|(line, _)| line.text.len() + 2).sum::<usize>();
    let mut text = CountedText::with_room(n_bytes + 32 * rendered.stretches.len(), draft.counter);
    let mut chosen = chosen.peekable();
    let mut tag = String::new();
    for (n, run) in runs.iter().enumerate() {
        let last = run[run.len() - 1];
        text.push(FENCE);
        if is_first && n == 0 {
            text.push(INTRODUCTION);
            let recall = &draft.policy.recall;
            if !recall.is_empty() {
                text.push(" ");
                text.push(recall);
            }
        }
        let mut is_bare = false;
        let mut source = "";
        while let Some((_, handle)) = stretches.next_if(|(stretch, _)| stretch.first <= last) {
            let end = stretches.peek().map_or((EntryId(u32::MAX), 0), |(next, _)| next.start());
            let is_here = |(line, _): &(&CandidateLine<'_>, u32)| (line.entry, line.at) < end;
            let has_lines = chosen.peek().is_some_and(is_here);
            text.push(if is_bare && !has_lines { " " } else { "\n" });
            is_bare = !has_lines;
            tag.clear();
            tag.push('[');
            handle.push_to(&mut tag);
            tag.push(']');
            text.push(&tag);
            let mut before = Before::Handle;
            while let Some((line, own)) = chosen.next_if(is_here) {
                let is_action = line.kind == CandidateKind::Action;
                if line.source != source && !is_action && !line.source.is_empty() {
                    text.push(if matches!(before, Before::Handle) { " " } else { "\n" });
                    text.push(line.source);
                }
                source = line.source;
                if is_action {
                    text.push(match before {
                        Before::Handle => " ",
                        Before::Action => "; ",
                        Before::Line => "\n",
                    });
                    text.push(line.text);
                    before = Before::Action;
                } else {
                    text.push_counted(line.text, own);
                    before = Before::Line;
                }
            }
        }
        text.push(FENCE_END);
        let (text, tokens) = text.take();
        parts.push(SegmentPart { at: run[0], text, tokens: tokens + draft.counter.frame().message });
    }
    parts
}

/// The element before a line.
#[derive(Clone, Copy)]
enum Before {
    Handle,
    Action,
    Line,
}

const FENCE: &str = "<fanfold>";
const INTRODUCTION: &str = "\nEarlier steps, folded by fanfold (not the user's words).";
const FENCE_END: &str = "\n</fanfold>";

/// Writes a segment that only reports how many messages were left out.
pub(crate) fn write_marker(draft: &mut Draft<'_>, entries: Vec<EntryId>) -> Segment {
    let handle = draft.name_entries(&entries);
    let mut parts = Vec::new();
    for run in runs(&entries) {
        let text = format!("{FENCE}\n[{} earlier messages left out, {handle}]{FENCE_END}", run.len());
        parts.push(part(draft, run[0], text));
    }
    seal(draft, entries, parts, Voice::Fanfold, vec![handle])
}

/// Creates a part from a text.
pub(crate) fn part(draft: &Draft<'_>, at: EntryId, text: String) -> SegmentPart {
    let tokens = draft.counter.count(&text) + draft.counter.frame().message;
    SegmentPart { at, text: Arc::from(text), tokens }
}

/// Creates a segment from parts that were written by other rules.
pub(crate) fn seal(
    draft: &mut Draft<'_>,
    entries: Vec<EntryId>,
    parts: Vec<SegmentPart>,
    voice: Voice,
    handles: Vec<Handle>,
) -> Segment {
    let handle = draft.name_entries(&entries);
    let (allowed, stretches, kept) = (None, Vec::new(), Arc::default());
    Segment { entries, tier: 0, handle, parts, voice, handles, allowed, stretches, kept }
}
