//! Folded entries as a few lines: what was done, the lines worth most, and a handle for each stretch of them.
//!
//! A segment covers entries; its parts stand in the view where runs of them stood, between what people said.
//! Segments are only added behind one another, and merged by tiers when they pile up.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::choice::{Line, LineOf, choose, each_line, order, rank};
use crate::condense::signs::{Sign, sign_of};
use crate::deed::line_and_failure;
use crate::draft::{Draft, slices};
use crate::handle::{Handle, Hash};
use crate::ledger::Original;
use crate::recall::write_script;
use crate::tokens::Tokens;
use crate::transcript::EntryId;
use crate::value::Scorer;
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
    pub(crate) kept: Vec<Kept>,
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

/// A line of an original that stands in the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    entry: EntryId,
    at: usize,
    text: Arc<str>,
    is: LineOf,
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
    let lines = lines_of(&sources);
    compose(draft, Material { entries, leaves, tier: 0 }, &lines, budget, &worth.scorer())
}

/// Merges segments, and entries that stand between them, into one of at most about `budget` tokens.
pub(crate) fn merge(draft: &mut Draft<'_>, ids: &[u32], between: &[EntryId], budget: Tokens) -> Segment {
    let worth = draft.worth();
    let mut material = Material { entries: between.to_vec(), leaves: leaves(draft, between), tier: 0 };
    let mut kept: Vec<Kept> = Vec::new();
    for &id in ids {
        let segment = &draft.ledger.segments[id as usize];
        material.entries.extend(&segment.entries);
        material.leaves.extend(segment.leaves.iter().cloned());
        material.tier = material.tier.max(segment.tier + 1);
        kept.extend(segment.kept.iter().cloned());
    }
    material.entries.sort();
    material.leaves.sort_by_key(|leaf| (leaf.first, leaf.from));
    let sources = sources(draft, between);
    let mut lines = lines_of(&sources);
    lines.extend(kept.iter().map(|kept| Line { entry: kept.entry, at: kept.at, text: &kept.text, is: kept.is }));
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
    script: String,
    /// What each call did, in our words.
    deeds: Vec<String>,
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
    let mut script = String::new();
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
        script.clear();
        write_script(transcript.entry(entry), &mut script);
        for bytes in slices(&script, tokens, most) {
            let original = Original::EntrySlice(entry, bytes.clone());
            let handle = draft.ledger.name(original, Hash::of(script[bytes.clone()].as_bytes()));
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

fn sources(draft: &Draft<'_>, entries: &[EntryId]) -> Vec<Source> {
    let source = |&id: &EntryId| {
        let entry = draft.transcript.entry(id);
        let mut script = String::new();
        write_script(entry, &mut script);
        let (mut deeds, mut has_failures) = (Vec::new(), false);
        for call in entry.step().map_or(&[][..], |step| &step.calls) {
            let (line, has_failed) = line_and_failure(call);
            deeds.push(line);
            has_failures |= has_failed;
        }
        Source { entry: id, script, deeds, has_failures, is_user: entry.is_user() }
    };
    entries.iter().map(source).collect()
}

/// The lines of entries that could stand in a segment, in their order.
fn lines_of(sources: &[Source]) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    for source in sources {
        let entry = source.entry;
        out.extend(source.deeds.iter().map(|text| Line { entry, at: 0, text, is: LineOf::Deed }));
        let mut is_first = true;
        each_line(&source.script, |at, text| {
            let is_failure = source.has_failures && sign_of(text) == Sign::Alarm;
            let is = match (source.is_user, is_first, is_failure) {
                (true, true, _) => LineOf::User,
                (_, _, true) => LineOf::Failure,
                _ => LineOf::Rest,
            };
            is_first = false;
            out.push(Line { entry, at, text, is });
        });
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
    let keep = |i: usize| {
        let Line { entry, at, text, is } = lines[i];
        Kept { entry, at, text: Arc::from(text), is }
    };
    let kept = chosen.into_iter().map(keep).collect();
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
    // Which lines stand under which leaf.
    let mut under: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &i in chosen {
        let line = &lines[i];
        let leaf = leaves.partition_point(|leaf| (leaf.first, leaf.from) <= (line.entry, line.at));
        under.entry(leaf.saturating_sub(1)).or_default().push(i);
    }
    let mut parts = Vec::with_capacity(runs.len());
    let mut next = 0;
    for (n, run) in runs.iter().enumerate() {
        let last = *run.last().expect("a run holds entries");
        let mut text = String::from(if is_first && n == 0 { FENCE_TOLD } else { FENCE });
        let mut is_bare = false;
        while next < leaves.len() && leaves[next].first <= last {
            let leaf = &leaves[next];
            let lines_here = under.get(&next).map_or(&[][..], Vec::as_slice);
            text.push_str(if is_bare && lines_here.is_empty() { " " } else { "\n" });
            text.push_str(&format!("[{}]", leaf.handle));
            is_bare = lines_here.is_empty();
            let (deeds, rest): (Vec<usize>, Vec<usize>) =
                lines_here.iter().partition(|&&i| lines[i].is == LineOf::Deed);
            for (k, &i) in deeds.iter().enumerate() {
                text.push_str(if k == 0 { " " } else { "; " });
                text.push_str(lines[i].text);
            }
            for i in rest {
                text.push_str("\n ");
                text.push_str(lines[i].text);
            }
            next += 1;
        }
        text.push_str(FENCE_END);
        let tokens = draft.counter.count(&text) + draft.counter.frame().message;
        parts.push(Part { at: run[0], text: Arc::from(text), tokens });
    }
    parts
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
    Segment { entries, tier: 0, handle, parts, voice, handles, leaves: Vec::new(), kept: Vec::new() }
}
