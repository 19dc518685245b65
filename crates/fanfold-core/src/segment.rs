//! Folded entries as a few lines: what was done, the lines worth most, and a handle for each stretch of them.
//!
//! A segment covers entries; its parts stand in the view where runs of them stood, between what people said.
//! Segments are only added behind one another, and merged by tiers when they pile up.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::condense::signs::{Sign, sign_of};
use crate::deed::{has_failed, line_of};
use crate::draft::{Draft, slices};
use crate::handle::{Handle, Hash};
use crate::ledger::Original;
use crate::recall::write_script;
use crate::tokens::Tokens;
use crate::transcript::{Entry, EntryId};
use crate::value::{AtomMap, AtomSet, Scorer, atoms};
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

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineOf {
    /// What was done, in our words.
    Deed,
    /// What went wrong.
    Failure,
    /// Anything else.
    Rest,
}

impl LineOf {
    /// What such a line is worth whatever stands in it.
    fn worth(self) -> f32 {
        match self {
            LineOf::Deed => 0.8,
            LineOf::Failure => 2.0,
            LineOf::Rest => 0.0,
        }
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
    let lines = lines_of(draft, &entries);
    compose(draft, Material { entries, leaves, lines, tier: 0 }, budget, &worth.scorer())
}

/// Merges neighbouring segments into one of at most about `budget` tokens.
pub(crate) fn merge(draft: &mut Draft<'_>, ids: &[u32], budget: Tokens) -> Segment {
    let worth = draft.worth();
    let mut material = Material { entries: Vec::new(), leaves: Vec::new(), lines: Vec::new(), tier: 0 };
    for &id in ids {
        let segment = &draft.ledger.segments[id as usize];
        material.entries.extend(&segment.entries);
        material.leaves.extend(segment.leaves.iter().cloned());
        material.lines.extend(segment.kept.iter().cloned());
        material.tier = material.tier.max(segment.tier + 1);
    }
    material.entries.sort();
    material.leaves.sort_by_key(|leaf| (leaf.first, leaf.from));
    material.lines.sort_by_key(|line| (line.entry, line.at));
    compose(draft, material, budget, &worth.merging())
}

struct Material {
    entries: Vec<EntryId>,
    leaves: Vec<Leaf>,
    lines: Vec<Kept>,
    tier: u32,
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

/// The lines of entries that could stand in a segment.
fn lines_of(draft: &Draft<'_>, entries: &[EntryId]) -> Vec<Kept> {
    let mut out = Vec::new();
    let mut script = String::new();
    for &id in entries {
        let entry = draft.transcript.entry(id);
        let mut has_failures = false;
        if let Entry::Step(step) = entry {
            for call in &step.calls {
                out.push(Kept { entry: id, at: 0, text: Arc::from(line_of(call)), is: LineOf::Deed });
                has_failures |= has_failed(call);
            }
        }
        script.clear();
        write_script(entry, &mut script);
        each_line(&script, &mut |at, line| {
            let is_failure = has_failures && sign_of(line) == Sign::Alarm;
            let is = if is_failure { LineOf::Failure } else { LineOf::Rest };
            out.push(Kept { entry: id, at, text: Arc::from(line), is });
        });
    }
    out
}

/// Calls back with each line of a text worth keeping, trimmed; long ones in pieces.
pub(crate) fn each_line(text: &str, found: &mut dyn FnMut(usize, &str)) {
    const LONGEST: usize = 280;
    const PIECE: usize = 220;
    let start = text.as_ptr() as usize;
    let mut add = |line: &str| {
        let mut rest = line.trim();
        while rest.len() > LONGEST {
            let mut cut = rest.floor_char_boundary(PIECE);
            if let Some(space) = rest[..cut].rfind([' ', ',']).filter(|at| *at > PIECE / 2) {
                cut = space + 1;
            }
            found(rest.as_ptr() as usize - start, rest[..cut].trim());
            rest = rest[cut..].trim_start();
        }
        if rest.len() >= 4 {
            found(rest.as_ptr() as usize - start, rest);
        }
    };
    for line in text.split('\n') {
        // One long line with its line ends escaped: a JSON dump of a file or an output.
        if line.len() > LONGEST && line.contains("\\n") {
            line.split("\\n").for_each(&mut add);
        } else {
            add(line);
        }
    }
}

/// Chooses lines under the budget and writes the parts.
fn compose(draft: &mut Draft<'_>, material: Material, budget: Tokens, scorer: &Scorer<'_>) -> Segment {
    let Material { entries, leaves, lines, tier } = material;
    let runs = runs(&entries);
    let handles_cost = 7 * leaves.len() + 24 * runs.len();
    let mut room = (budget.0 as usize).saturating_sub(handles_cost);
    let ranked = rank(&lines, scorer);
    let is_first = draft
        .ledger
        .live
        .first()
        .is_none_or(|&live| draft.ledger.segments[live as usize].span().0 >= entries[0]);
    // Lines are chosen by an estimate of their cost; a few corrections bring the sum under the budget.
    let (mut chosen, mut parts) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        chosen = choose(&lines, &ranked, room);
        parts = write_parts(draft, &runs, &leaves, &lines, &chosen, is_first);
        let cost: Tokens = parts.iter().map(|part| part.tokens).sum();
        if cost <= budget || chosen.is_empty() {
            break;
        }
        room = room.saturating_sub((cost - budget).0 as usize + room / 20);
    }
    let handle = draft.ledger.name_entries(draft.transcript, &entries);
    let kept = chosen.into_iter().map(|i| lines[i].clone()).collect();
    let handles = leaves.iter().map(|leaf| leaf.handle).collect();
    Segment { entries, tier, handle, parts, voice: Voice::Fanfold, handles, leaves, kept }
}

/// Runs of entries with nothing that stays between them.
pub(crate) fn runs(entries: &[EntryId]) -> Vec<&[EntryId]> {
    entries.chunk_by(|before, after| before.0 + 1 == after.0).collect()
}

/// The worth of each line, every atom counted at one line only: a short and recent one.
fn rank(lines: &[Kept], scorer: &Scorer<'_>) -> Vec<f32> {
    const NEWEST: usize = 4;
    let mut seen: AtomMap<usize> = AtomMap::default();
    let mut places: Vec<(u64, [u32; NEWEST], usize)> = Vec::new();
    let mut worth = vec![0.0; lines.len()];
    let mut said = AtomSet::default();
    for (i, line) in lines.iter().enumerate().rev() {
        let is_news = said.insert(xxh3_64(without_number(&line.text).as_bytes()));
        if is_news {
            worth[i] = line.is.worth() + scorer.about_focus(&line.text);
        }
    }
    for (i, line) in lines.iter().enumerate() {
        atoms(&line.text, &mut |hash| {
            if scorer.is_seen(hash) {
                return;
            }
            let at = *seen.entry(hash).or_insert_with(|| {
                places.push((hash, [0; NEWEST], 0));
                places.len() - 1
            });
            let (_, newest, n) = &mut places[at];
            newest[*n % NEWEST] = i as u32;
            *n += 1;
        });
    }
    for (hash, newest, n) in places {
        let best = newest[..n.min(NEWEST)].iter().min_by_key(|&&i| lines[i as usize].text.len());
        if let Some(&best) = best {
            worth[best as usize] += scorer.lexicon.value(hash);
        }
    }
    worth
}

/// A line without the number that a reading tool put before it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['→', '|', ':', '\t']).unwrap_or(line).trim_start()
}

/// The lines with the most worth per token that fit, in order.
fn choose(lines: &[Kept], worth: &[f32], room: usize) -> Vec<usize> {
    let cost = |i: usize| lines[i].text.len() / 3 + 2;
    let mut order: Vec<usize> = (0..lines.len()).filter(|&i| worth[i] > 0.0).collect();
    let per_token = |i: usize| worth[i] / (cost(i) + 4) as f32;
    order.sort_by(|&a, &b| per_token(b).total_cmp(&per_token(a)).then(b.cmp(&a)));
    let mut left = room;
    let mut chosen = Vec::new();
    for i in order {
        if cost(i) <= left {
            left -= cost(i);
            chosen.push(i);
        }
    }
    chosen.sort_unstable();
    chosen
}

fn write_parts(
    draft: &Draft<'_>,
    runs: &[&[EntryId]],
    leaves: &[Leaf],
    lines: &[Kept],
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
                text.push_str(&lines[i].text);
            }
            for i in rest {
                text.push_str("\n ");
                text.push_str(&lines[i].text);
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
