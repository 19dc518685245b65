//! Folded entries as a few lines: what was done, the lines worth most, and a handle for each stretch of them.
//!
//! A segment covers entries; its parts stand in the view where runs of them stood, between what people said.
//! Segments are only added behind one another, and merged now and then.

use std::sync::Arc;

use crate::candidates::{lines_of, sources, weigh};
use crate::choice::{Chooser, Chosen, HANDLE, Line, LineOf};
use crate::copies::{LineHash, LineSet};
use crate::counted::Lines;
use crate::draft::Draft;
use crate::handle::Handle;
use crate::stretch::{Stretch, coarsened, join_bare, n_joined, stretches};
use crate::tokens::Tokens;
use crate::transcript::EntryId;
use crate::value::{AtomId, Worth};
use crate::view::Voice;

/// Folded entries and what stands for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The entries, in order.
    pub entries: Vec<EntryId>,
    /// How often it was merged: zero is fresh.
    pub tier: u32,
    /// What opens to all of it.
    pub handle: Handle,
    /// What stands in the view.
    pub parts: Vec<Part>,
    /// In whose role it stands there.
    pub voice: Voice,
    /// The handles that stand in the parts.
    pub handles: Vec<Handle>,
    /// What it was allowed to cost, where it was; what has to stand in it may cost more.
    pub(crate) allowed: Option<Tokens>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) kept: Arc<Kept>,
}

/// A run of a segment's entries, as it stands in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The first entry of the run.
    pub at: EntryId,
    /// The words.
    pub text: Arc<str>,
    /// What they cost, with their frame.
    pub tokens: Tokens,
}

/// The lines of originals that stand in a segment, one after another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Kept {
    lines: Vec<KeptLine>,
    text: String,
    atoms: Vec<AtomId>,
    sources: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct KeptLine {
    entry: EntryId,
    at: usize,
    is: LineOf,
    copied: f32,
    hash: LineHash,
    cost: Option<u32>,
    text_end: usize,
    atoms_end: usize,
    source_end: usize,
}

impl Kept {
    fn of<'a>(lines: impl Iterator<Item = Line<'a>> + Clone) -> Kept {
        let mut sizes = [0; 4];
        for Line { text, atoms, source, .. } in lines.clone() {
            let more = [1, text.len(), atoms.len(), source.len()];
            sizes.iter_mut().zip(more).for_each(|(size, more)| *size += more);
        }
        let [n_lines, n_text, n_atoms, n_sources] = sizes;
        let mut kept = Kept {
            lines: Vec::with_capacity(n_lines),
            text: String::with_capacity(n_text),
            atoms: Vec::with_capacity(n_atoms),
            sources: String::with_capacity(n_sources),
        };
        for Line { entry, at, text, atoms, source, is, copied, hash, cost, .. } in lines {
            kept.text.push_str(text);
            kept.atoms.extend_from_slice(atoms);
            kept.sources.push_str(source);
            let (text_end, atoms_end, source_end) = (kept.text.len(), kept.atoms.len(), kept.sources.len());
            kept.lines.push(KeptLine { entry, at, is, copied, hash, cost, text_end, atoms_end, source_end });
        }
        kept
    }

    /// Those that may be copied.
    fn copyable(&self) -> impl Iterator<Item = LineHash> {
        self.lines.iter().filter(|line| line.copied > 0.0).map(|line| line.hash)
    }

    /// The lines; what they are worth by now is not yet known.
    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let (mut text_from, mut atoms_from, mut source_from) = (0, 0, 0);
        self.lines.iter().map(
            move |&KeptLine { entry, at, is, copied, hash, cost, text_end, atoms_end, source_end }| {
                let (text, atoms) = (&self.text[text_from..text_end], &self.atoms[atoms_from..atoms_end]);
                let source = &self.sources[source_from..source_end];
                (text_from, atoms_from, source_from) = (text_end, atoms_end, source_end);
                Line { entry, at, text, atoms, source, is, worth: 0.0, copied, hash, cost }
            },
        )
    }
}

impl Segment {
    /// What it costs in the view.
    pub fn tokens(&self) -> Tokens {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// The atoms of the lines that stand in it.
    pub(crate) fn atoms(&self) -> &[AtomId] {
        &self.kept.atoms
    }

    /// The first and the last entry.
    pub fn span(&self) -> (EntryId, EntryId) {
        let first = self.entries.first().expect("a segment covers something");
        let last = self.entries.last().expect("a segment covers something");
        (*first, *last)
    }
}

/// Writes fresh entries, and segments that give way, into one of at most about `budget` tokens.
pub(crate) fn write(draft: &mut Draft<'_>, ids: &[u32], fresh: &[EntryId], budget: Tokens) -> Segment {
    let worth = draft.worth();
    let mut material = Material { entries: fresh.to_vec(), stretches: stretches(draft, fresh), tier: 0 };
    let mut kept: Vec<Arc<Kept>> = Vec::new();
    for &id in ids {
        let segment = &draft.ledger.segments[id as usize];
        material.entries.extend(&segment.entries);
        material.stretches.extend(segment.stretches.iter().cloned());
        material.tier = material.tier.max(segment.tier + 1);
        kept.push(Arc::clone(&segment.kept));
    }
    material.entries.sort();
    material.stretches.sort_by_key(Stretch::start);
    let sources = sources(draft, fresh);
    let mut lines = lines_of(&sources, &worth);
    let copies = &mut Arc::make_mut(&mut draft.ledger.lexicon).copies;
    lines.iter().filter(|line| line.copied > 0.0).for_each(|line| copies.show(line.hash));
    if !kept.is_empty() {
        lines.extend(kept.iter().flat_map(|kept| kept.lines()));
        lines.sort_by_key(|line| (line.entry, line.at));
    }
    let stays = draft.ledger.live.iter().filter(|id| !ids.contains(id));
    let stays: Vec<_> = stays.map(|&id| Arc::clone(&draft.ledger.segments[id as usize].kept)).collect();
    let said: LineSet = stays.iter().flat_map(|kept| kept.copyable()).collect();
    let is_there = |line| said.contains(&line) || worth.has_line(line);
    weigh(&mut lines, &worth, &draft.ledger.lexicon, is_there);
    compose(draft, material, &lines, budget, &worth, &stays)
}

/// What a segment is made of, beside its lines.
struct Material {
    entries: Vec<EntryId>,
    stretches: Vec<Stretch>,
    tier: u32,
}

/// Chooses lines under the budget and writes the parts.
fn compose(
    draft: &mut Draft<'_>,
    material: Material,
    lines: &[Line<'_>],
    budget: Tokens,
    worth: &Worth,
    stays: &[Arc<Kept>],
) -> Segment {
    let (Material { entries, stretches, tier }, allowed) = (material, Some(budget));
    let budget = budget.0 as usize;
    // Handles take no more than half of the budget.
    let stretches = coarsened(stretches, (budget / 2 / HANDLE).max(4));
    let runs = runs(&entries);
    let of_stretch = stretch_of(&stretches, lines);
    let told = |chosen: &[Chosen]| {
        let mut is_told = vec![false; stretches.len()];
        chosen.iter().for_each(|chosen| is_told[of_stretch[chosen.line] as usize] = true);
        is_told
    };
    let atoms = lines.iter().map(|line| line.atoms);
    let lexicon = &draft.ledger.lexicon;
    let values =
        draft.ledger.values.work_out(lexicon, atoms, worth, stays.iter().map(|kept| &kept.atoms[..]));
    let mut chooser = Chooser::new(lines, &of_stretch, values, draft.counter);
    chooser.is_once = worth.choice.is_once;
    // How many handles there will be shows when the lines are chosen: what that leaves is chosen again.
    for _ in 0..3 {
        let n_handles = n_joined(&stretches, &told(&chooser.chosen));
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
    let first_live = draft.ledger.live.first().map(|&live| draft.ledger.segments[live as usize].span().0);
    let is_first = first_live.is_none_or(|first| first >= entries[0]);
    let mut written = Written::default();
    for _ in 0..4 {
        written.stretches = join_bare(&stretches, &told(&order));
        written.handles = written.stretches.iter_mut().map(|stretch| stretch.name(draft)).collect();
        written.chosen = order.clone();
        written.chosen.sort_unstable_by_key(|chosen| chosen.line);
        written.parts = write_parts(draft, &runs, &written, lines, is_first);
        let cost: Tokens = written.parts.iter().map(|part| part.tokens).sum();
        let mut over = (cost.0 as usize).saturating_sub(budget);
        if over == 0 || order.is_empty() {
            break;
        }
        while let Some(chosen) = order.pop_if(|_| over > 0) {
            over = over.saturating_sub(chosen.cost);
        }
    }
    let Written { stretches, handles, chosen, parts } = written;
    let handle = draft.ledger.name_several(entries.clone(), handles.clone());
    let line = |chosen: Chosen| Line { cost: Some(chosen.own), ..lines[chosen.line] };
    let kept = Arc::new(Kept::of(chosen.into_iter().map(line)));
    Segment { entries, tier, handle, parts, voice: Voice::Fanfold, handles, allowed, stretches, kept }
}

/// About what the fence and the frame of a part cost.
const FENCES: usize = 14;

/// What was made of the lines.
#[derive(Default)]
struct Written {
    stretches: Vec<Stretch>,
    handles: Vec<Handle>,
    chosen: Vec<Chosen>,
    parts: Vec<Part>,
}

/// The stretch in which each line stands. Both are in order.
fn stretch_of(stretches: &[Stretch], lines: &[Line<'_>]) -> Vec<u32> {
    let mut at = 0;
    let place = |line: &Line<'_>| {
        while stretches.get(at + 1).is_some_and(|next| next.start() <= (line.entry, line.at)) {
            at += 1;
        }
        at as u32
    };
    lines.iter().map(place).collect()
}

/// Runs of entries with nothing that stays between them.
pub(crate) fn runs(entries: &[EntryId]) -> Vec<&[EntryId]> {
    entries.chunk_by(|before, after| before.0 + 1 == after.0).collect()
}

fn write_parts(
    draft: &Draft<'_>,
    runs: &[&[EntryId]],
    written: &Written,
    lines: &[Line<'_>],
    is_first: bool,
) -> Vec<Part> {
    let mut parts = Vec::with_capacity(runs.len());
    let mut stretches = written.stretches.iter().zip(&written.handles).peekable();
    let chosen = written.chosen.iter().map(|chosen| (&lines[chosen.line], chosen.own));
    let n_bytes = chosen.clone().map(|(line, _)| line.text.len() + 2).sum::<usize>();
    let mut text = Lines::with_room(n_bytes + 32 * written.stretches.len(), draft.counter);
    let mut chosen = chosen.peekable();
    let mut tag = String::new();
    for (n, run) in runs.iter().enumerate() {
        let last = run[run.len() - 1];
        text.push(FENCE);
        if is_first && n == 0 {
            text.push(TOLD);
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
            let is_here = |(line, _): &(&Line<'_>, u32)| (line.entry, line.at) < end;
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
                let is_deed = line.is == LineOf::Deed;
                if line.source != source && !is_deed && !line.source.is_empty() {
                    text.push(if matches!(before, Before::Handle) { " " } else { "\n" });
                    text.push(line.source);
                }
                source = line.source;
                if is_deed {
                    text.push(match before {
                        Before::Handle => " ",
                        Before::Deed => "; ",
                        Before::Line => "\n",
                    });
                    text.push(line.text);
                    before = Before::Deed;
                } else {
                    text.push_counted(line.text, own);
                    before = Before::Line;
                }
            }
        }
        text.push(FENCE_END);
        let (text, tokens) = text.take();
        parts.push(Part { at: run[0], text, tokens: tokens + draft.counter.frame().message });
    }
    parts
}

/// What a line is written behind.
#[derive(Clone, Copy)]
enum Before {
    Handle,
    Deed,
    Line,
}

const FENCE: &str = "<fanfold>";
const TOLD: &str = "\nEarlier steps, folded by fanfold (not the user's words).";
const FENCE_END: &str = "\n</fanfold>";

/// A segment that only says how much is gone.
pub(crate) fn write_marker(draft: &mut Draft<'_>, entries: Vec<EntryId>) -> Segment {
    let handle = draft.ledger.name_entries(draft.transcript, &entries);
    let mut parts = Vec::new();
    for run in runs(&entries) {
        let text = format!("{FENCE}\n[{} earlier messages left out, {handle}]{FENCE_END}", run.len());
        parts.push(part(draft, run[0], text));
    }
    seal(draft, entries, parts, Voice::Fanfold, vec![handle])
}

/// Makes a part of a text.
pub(crate) fn part(draft: &Draft<'_>, at: EntryId, text: String) -> Part {
    let tokens = draft.counter.count(&text) + draft.counter.frame().message;
    Part { at, text: Arc::from(text), tokens }
}

/// Makes a segment of what was written by other rules.
pub(crate) fn seal(
    draft: &mut Draft<'_>,
    entries: Vec<EntryId>,
    parts: Vec<Part>,
    voice: Voice,
    handles: Vec<Handle>,
) -> Segment {
    let handle = draft.ledger.name_entries(draft.transcript, &entries);
    let (allowed, stretches, kept) = (None, Vec::new(), Arc::default());
    Segment { entries, tier: 0, handle, parts, voice, handles, allowed, stretches, kept }
}
