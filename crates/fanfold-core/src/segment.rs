//! Folded entries as a few lines: what was done, the lines worth most, and a handle for each stretch of them.
//!
//! A segment covers entries; its parts stand in the view where runs of them stood, between what people said.
//! Segments are only added behind one another, and merged by tiers when they pile up.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::choice::{Line, LineOf, choose, order, rank};
use crate::condense::signs::{Sign, sign_of};
use crate::deed::line_and_failure;
use crate::draft::{Draft, slices};
use crate::handle::{Handle, Hash};
use crate::ledger::Original;
use crate::scan::Scan;
use crate::tokens::Tokens;
use crate::transcript::{CallId, EntryId};
use crate::value::{Scorer, atoms};
use crate::view::Voice;

/// Folded entries and what stands for them.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub(crate) leaves: Vec<Leaf>,
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

/// A stretch of originals that one handle opens: some entries, or a slice of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) handle: Handle,
    pub(crate) first: EntryId,
    pub(crate) last: EntryId,
    /// The bytes of the entry's script, for a slice.
    from: usize,
}

/// The lines of originals that stand in a segment, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    lines: Vec<KeptLine>,
    text: String,
    atoms: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeptLine {
    entry: EntryId,
    at: usize,
    is: LineOf,
    text_end: usize,
    atoms_end: usize,
}

impl Kept {
    fn of<'a>(lines: impl Iterator<Item = Line<'a>>) -> Kept {
        let mut kept = Kept::default();
        for Line { entry, at, text, atoms, is } in lines {
            kept.text.push_str(text);
            kept.atoms.extend_from_slice(atoms);
            let (text_end, atoms_end) = (kept.text.len(), kept.atoms.len());
            kept.lines.push(KeptLine { entry, at, is, text_end, atoms_end });
        }
        kept
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let (mut text_from, mut atoms_from) = (0, 0);
        self.lines.iter().map(move |&KeptLine { entry, at, is, text_end, atoms_end }| {
            let (text, atoms) = (&self.text[text_from..text_end], &self.atoms[atoms_from..atoms_end]);
            (text_from, atoms_from) = (text_end, atoms_end);
            Line { entry, at, text, atoms, is }
        })
    }
}

impl Segment {
    /// What it costs in the view.
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

/// Writes fresh entries into a segment of at most about `budget` tokens.
pub(crate) fn write(draft: &mut Draft<'_>, entries: Vec<EntryId>, budget: Tokens) -> Segment {
    let worth = draft.worth();
    let leaves = leaves(draft, &entries);
    let sources = sources(draft, &entries);
    let lines = lines_of(&sources, &worth.scorer());
    compose(draft, Material { entries, leaves, tier: 0 }, &lines, budget, &worth.scorer())
}

/// Merges segments, and entries that stand between them, into one of at most about `budget` tokens.
pub(crate) fn merge(draft: &mut Draft<'_>, ids: &[u32], between: &[EntryId], budget: Tokens) -> Segment {
    let worth = draft.worth();
    let mut material = Material { entries: between.to_vec(), leaves: leaves(draft, between), tier: 0 };
    let mut kept: Vec<Arc<Kept>> = Vec::new();
    for &id in ids {
        let segment = &draft.ledger.segments[id as usize];
        material.entries.extend(&segment.entries);
        material.leaves.extend(segment.leaves.iter().cloned());
        material.tier = material.tier.max(segment.tier + 1);
        kept.push(Arc::clone(&segment.kept));
    }
    material.entries.sort();
    material.leaves.sort_by_key(|leaf| (leaf.first, leaf.from));
    let sources = sources(draft, between);
    let mut lines = lines_of(&sources, &worth.merging());
    lines.extend(kept.iter().flat_map(|kept| kept.lines()));
    lines.sort_by_key(|line| (line.entry, line.at));
    compose(draft, material, &lines, budget, &worth.merging())
}

/// What a segment is made of, beside its lines.
struct Material {
    entries: Vec<EntryId>,
    leaves: Vec<Leaf>,
    tier: u32,
}

/// What the lines of an entry are taken from.
struct Source {
    entry: EntryId,
    scan: Arc<Scan>,
    /// What each call did, in our words, and the atoms of that.
    deeds: Vec<(String, Vec<u64>)>,
    has_failures: bool,
    is_user: bool,
}

/// Groups entries into stretches that a recall can open without filling the window.
fn leaves(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Leaf> {
    let most = draft.slice();
    let transcript = draft.transcript;
    let mut out = Vec::new();
    let mut group: Vec<EntryId> = Vec::new();
    let mut group_tokens = Tokens::ZERO;
    for &entry in entries {
        let tokens = transcript.tokens(entry);
        let is_new_run = group.last().is_some_and(|last| last.0 + 1 != entry.0);
        if !group.is_empty() && (is_new_run || group_tokens + tokens > most) {
            out.push(group_leaf(draft, &group));
            group.clear();
            group_tokens = Tokens::ZERO;
        }
        if tokens <= most {
            group.push(entry);
            group_tokens += tokens;
            continue;
        }
        let scan = draft.scan(entry);
        for bytes in slices(&scan.script, tokens, most) {
            let original = Original::EntrySlice(entry, bytes.clone());
            let handle = draft.ledger.name(original, Hash::of(scan.script[bytes.clone()].as_bytes()));
            out.push(Leaf { handle, first: entry, last: entry, from: bytes.start });
        }
    }
    if !group.is_empty() {
        out.push(group_leaf(draft, &group));
    }
    out
}

fn group_leaf(draft: &mut Draft<'_>, group: &[EntryId]) -> Leaf {
    let (first, last) = (group[0], group[group.len() - 1]);
    let handle = draft.ledger.name_entries(draft.transcript, group);
    Leaf { handle, first, last, from: 0 }
}

fn sources(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Source> {
    let mut source = |&id: &EntryId| {
        let entry = draft.transcript.entry(id);
        let (mut deeds, mut has_failures) = (Vec::new(), false);
        for (i, call) in entry.step().map_or(&[][..], |step| &step.calls).iter().enumerate() {
            let deed = draft.deed(CallId { step: id, call: i as u16 });
            let (line, has_failed) = line_and_failure(call, &deed);
            let mut found = Vec::new();
            atoms(&line, |hash| found.push(hash));
            deeds.push((line, found));
            has_failures |= has_failed;
        }
        Source { entry: id, scan: draft.scan(id), deeds, has_failures, is_user: entry.is_user() }
    };
    entries.iter().map(&mut source).collect()
}

/// The lines of entries that could stand in a segment, in their order.
fn lines_of<'a>(sources: &'a [Source], scorer: &Scorer<'_>) -> Vec<Line<'a>> {
    let mut out = Vec::new();
    for source in sources {
        let entry = source.entry;
        let deeds = source.deeds.iter();
        out.extend(deeds.map(|(text, atoms)| Line { entry, at: 0, text, atoms, is: LineOf::Deed }));
        let mut is_first = true;
        for (at, text, atoms) in source.scan.lines() {
            let is_failure = source.has_failures && sign_of(text) == Sign::Alarm;
            let is = match (source.is_user, is_first, is_failure) {
                (true, true, _) => LineOf::User,
                (_, _, true) => LineOf::Failure,
                _ => LineOf::Rest,
            };
            is_first = false;
            // A line that nothing speaks for is never chosen.
            let is_worthless = is == LineOf::Rest && atoms.is_empty() && scorer.focus.is_empty();
            if !is_worthless {
                out.push(Line { entry, at, text, atoms, is });
            }
        }
    }
    out
}

/// Chooses lines under the budget and writes the parts.
fn compose(
    draft: &mut Draft<'_>,
    material: Material,
    lines: &[Line<'_>],
    budget: Tokens,
    scorer: &Scorer<'_>,
) -> Segment {
    let Material { entries, leaves, tier } = material;
    let leaves = coarsened(draft, leaves, budget);
    let runs = runs(&entries);
    let fixed_cost = HANDLE * leaves.len() + 24 * runs.len();
    let mut room = (budget.0 as usize).saturating_sub(fixed_cost);
    let order = order(lines, &rank(lines, scorer));
    let first_live = draft.ledger.live.first().map(|&live| draft.ledger.segments[live as usize].span().0);
    let is_first = first_live.is_none_or(|first| first >= entries[0]);
    // Lines are chosen by an estimate of their cost; a few corrections bring the sum under the budget.
    let (mut chosen, mut parts) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        chosen = choose(lines, &order, room);
        parts = write_parts(draft, &runs, &leaves, lines, &chosen, is_first);
        let cost: Tokens = parts.iter().map(|part| part.tokens).sum();
        if cost <= budget || chosen.is_empty() {
            break;
        }
        room = room.saturating_sub((cost - budget).0 as usize + room / 20);
    }
    let handle = draft.ledger.name_entries(draft.transcript, &entries);
    let kept = Arc::new(Kept::of(chosen.into_iter().map(|i| lines[i])));
    let handles = leaves.iter().map(|leaf| leaf.handle).collect();
    Segment { entries, tier, handle, parts, voice: Voice::Fanfold, handles, leaves, kept }
}

/// About what a handle costs in a view.
const HANDLE: usize = 7;

/// Leaves joined with their neighbours until their handles take no more than half of the budget: a handle then
/// opens all that theirs did.
fn coarsened(draft: &mut Draft<'_>, leaves: Vec<Leaf>, budget: Tokens) -> Vec<Leaf> {
    let most = (budget.0 as usize / 2 / HANDLE).max(4);
    if leaves.len() <= most {
        return leaves;
    }
    let n_joined = leaves.len().div_ceil(most);
    let mut out: Vec<Leaf> = Vec::new();
    for run in leaves.chunk_by(|before, after| after.first.0 <= before.last.0 + 1) {
        for joined in run.chunks(n_joined) {
            let (first, last) = (joined[0].first, joined[joined.len() - 1].last);
            // A leaf that begins in the middle of an entry goes with the one before, which opens the whole entry.
            let is_covered = out.last().is_some_and(|leaf| leaf.last >= last);
            if is_covered {
                continue;
            }
            let first = out.last().map_or(first, |leaf| first.max(EntryId(leaf.last.0 + 1)));
            let entries: Vec<EntryId> = (first.0..=last.0).map(EntryId).collect();
            out.push(group_leaf(draft, &entries));
        }
    }
    out
}

/// Runs of entries with nothing that stays between them.
pub(crate) fn runs(entries: &[EntryId]) -> Vec<&[EntryId]> {
    entries.chunk_by(|before, after| before.0 + 1 == after.0).collect()
}

fn write_parts(
    draft: &Draft<'_>,
    runs: &[&[EntryId]],
    leaves: &[Leaf],
    lines: &[Line<'_>],
    chosen: &[usize],
    is_first: bool,
) -> Vec<Part> {
    let mut parts = Vec::with_capacity(runs.len());
    let mut leaves = leaves.iter().peekable();
    let mut chosen = chosen.iter().map(|&i| &lines[i]).peekable();
    for (n, run) in runs.iter().enumerate() {
        let last = run[run.len() - 1];
        let mut text = String::from(if is_first && n == 0 { FENCE_TOLD } else { FENCE });
        let mut is_bare = false;
        while let Some(leaf) = leaves.next_if(|leaf| leaf.first <= last) {
            let end = leaves.peek().map_or((EntryId(u32::MAX), 0), |next| (next.first, next.from));
            let is_here = |line: &&Line<'_>| (line.entry, line.at) < end;
            let has_lines = chosen.peek().is_some_and(is_here);
            text.push_str(if is_bare && !has_lines { " " } else { "\n" });
            is_bare = !has_lines;
            write!(text, "[{}]", leaf.handle).expect("a string takes everything");
            let mut before = Before::Handle;
            while let Some(line) = chosen.next_if(is_here) {
                let is_deed = line.is == LineOf::Deed;
                text.push_str(match (is_deed, before) {
                    (true, Before::Handle) => " ",
                    (true, Before::Deed) => "; ",
                    (true, Before::Line) => "\n",
                    (false, _) => "\n ",
                });
                before = if is_deed { Before::Deed } else { Before::Line };
                text.push_str(line.text);
            }
        }
        text.push_str(FENCE_END);
        parts.push(part(draft, run[0], text));
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

const FENCE_TOLD: &str =
    "<fanfold>\nEarlier steps, folded by fanfold (not the user's words). Recall a [handle] for the original.";
const FENCE: &str = "<fanfold>";
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
    Segment { entries, tier: 0, handle, parts, voice, handles, leaves: Vec::new(), kept: Arc::default() }
}
