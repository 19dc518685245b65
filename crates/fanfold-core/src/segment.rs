//! Folded entries as a few lines: what was done, the lines worth most, and a handle for each stretch of them.
//!
//! A segment covers entries; its parts stand in the view where runs of them stood, between what people said.
//! Segments are only added behind one another, and merged now and then.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::atoms::each_atom_in;
use crate::choice::{Chooser, Chosen, HANDLE, Line, LineOf, without_number};
use crate::condense::signs::{Sign, sign_of};
use crate::deed::{Deed, Verb};
use crate::draft::Draft;
use crate::handle::Handle;
use crate::marks::MarkedText;
use crate::scan::{Piece, Scan, words_of};
use crate::stretch::{Stretch, coarsened, join_bare, n_joined, stretches};
use crate::tokens::Tokens;
use crate::transcript::EntryId;
use crate::value::{AtomId, Lexicon, UNKNOWN, Worth};
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
    worth: f32,
    cost: Option<u32>,
    text_end: usize,
    atoms_end: usize,
    source_end: usize,
}

impl Kept {
    fn of<'a>(lines: impl Iterator<Item = Line<'a>>) -> Kept {
        let mut kept = Kept::default();
        for Line { entry, at, text, atoms, source, is, worth, cost } in lines {
            kept.text.push_str(text);
            kept.atoms.extend_from_slice(atoms);
            kept.sources.push_str(source);
            let (text_end, atoms_end, source_end) = (kept.text.len(), kept.atoms.len(), kept.sources.len());
            kept.lines.push(KeptLine { entry, at, is, worth, cost, text_end, atoms_end, source_end });
        }
        kept
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let (mut text_from, mut atoms_from, mut source_from) = (0, 0, 0);
        self.lines.iter().map(
            move |&KeptLine { entry, at, is, worth, cost, text_end, atoms_end, source_end }| {
                let (text, atoms) = (&self.text[text_from..text_end], &self.atoms[atoms_from..atoms_end]);
                let source = &self.sources[source_from..source_end];
                (text_from, atoms_from, source_from) = (text_end, atoms_end, source_end);
                Line { entry, at, text, atoms, source, is, worth, cost }
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
    if !kept.is_empty() {
        lines.extend(kept.iter().flat_map(|kept| kept.lines()));
        lines.sort_by_key(|line| (line.entry, line.at));
    }
    let stays = draft.ledger.live.iter().filter(|id| !ids.contains(id));
    let stays: Vec<_> = stays.map(|&id| Arc::clone(&draft.ledger.segments[id as usize].kept)).collect();
    compose(draft, material, &lines, budget, &worth, &stays)
}

/// What a segment is made of, beside its lines.
struct Material {
    entries: Vec<EntryId>,
    stretches: Vec<Stretch>,
    tier: u32,
}

/// What the lines of an entry are taken from.
struct Source {
    entry: EntryId,
    scan: Arc<Scan>,
    calls: Vec<SourceCall>,
    has_failures: bool,
    is_user: bool,
}

/// A call of an entry.
struct SourceCall {
    /// The atoms of what it did, in our words.
    atoms: Vec<AtomId>,
    /// How likely a line of its result is to be copied.
    copied: f32,
}

fn sources(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::with_capacity(entries.len());
    let mut marked = MarkedText::default();
    for &id in entries {
        let scan = draft.scan(id);
        let lexicon = Arc::make_mut(&mut draft.ledger.lexicon);
        let age = lexicon.age(id);
        let step = draft.transcript.entry(id).step();
        let calls = scan.calls.iter().enumerate().map(|(i, call)| {
            let mut atoms = Vec::new();
            marked.read(&call.line);
            each_atom_in(&call.line, &marked, 0..call.line.len(), |atom, place| {
                atoms.push(lexicon.id_of(atom, words_of(atom, call.line.as_bytes(), &marked, place)));
            });
            let result = step.and_then(|step| step.calls[i].result.as_ref());
            let size = result.map_or(Tokens::ZERO, |result| result.body.tokens());
            SourceCall { atoms, copied: chance_of_copy(&call.deed, age, size) }
        });
        let calls = calls.collect();
        let has_failures = scan.calls.iter().any(|call| call.has_failed);
        let is_user = draft.transcript.entry(id).is_user();
        found.push(Source { entry: id, scan, calls, has_failures, is_user });
    }
    found
}

/// How likely a line of a result is to be copied word for word: the text of a file that was looked at is, most of all
/// soon after and where little was looked at; what a search or a command printed is not.
fn chance_of_copy(deed: &Deed, age: u32, size: Tokens) -> f32 {
    if deed.verb != Verb::Read || deed.reads.is_empty() {
        return 0.0;
    }
    let thousands = |n: f32| n / 1000.0;
    0.12 / ((1.0 + 0.3 * thousands(age as f32)) * (1.0 + thousands(size.0 as f32)))
}

/// The lines of entries that could stand in a segment, in their order.
fn lines_of<'a>(sources: &'a [Source], worth: &Worth) -> Vec<Line<'a>> {
    let n_lines = |source: &Source| source.calls.len() + source.scan.n_lines();
    let mut out = Vec::with_capacity(sources.iter().map(n_lines).sum());
    let choice = worth.choice;
    let own = |is: LineOf| if choice.has_tellings { is.worth() } else { 0.0 };
    for source in sources {
        let entry = source.entry;
        for (call, SourceCall { atoms, .. }) in source.scan.calls.iter().zip(&source.calls) {
            let is = LineOf::Deed;
            let (text, source) = (&call.line, &call.source);
            out.push(Line { entry, at: 0, text, atoms, source, is, worth: own(is), cost: None });
        }
        let mut is_first = true;
        for line in source.scan.lines() {
            let is_failure = source.has_failures && sign_of(line.text) == Sign::Alarm;
            let is = match (source.is_user, is_first, is_failure) {
                (true, true, _) => LineOf::User,
                (_, _, true) => LineOf::Failure,
                _ => LineOf::Rest,
            };
            is_first = false;
            let (copied, from) = match line.piece {
                Piece::Result(call) => (
                    source.calls[usize::from(call)].copied,
                    source.scan.calls[usize::from(call)].source.as_str(),
                ),
                Piece::Asked(call) => (0.0, source.scan.calls[usize::from(call)].source.as_str()),
                Piece::Said => (0.0, ""),
            };
            // Code is copied with its indentation.
            let text = if copied > 0.0 { without_number(source.scan.indented(&line)) } else { line.text };
            let mut worth = own(is) + worth.about_focus(text) as f32 * 0.1;
            if copied > 0.0 && choice.has_copies && is_copyable(text) {
                worth += copied;
            }
            // A line that nothing speaks for is never chosen.
            let is_worthless = worth == 0.0 && line.atoms.is_empty();
            if !is_worthless {
                let (at, atoms) = (line.at, line.atoms);
                out.push(Line { entry, at, text, atoms, source: from, is, worth, cost: None });
            }
        }
    }
    out
}

/// Whether a line says enough to be copied: a few words, not a bracket.
fn is_copyable(line: &str) -> bool {
    const SHORTEST: usize = 30;
    const WORDS: usize = 3;
    let (mut n_words, mut n_letters) = (0, 0);
    for byte in line.bytes() {
        n_letters = if byte.is_ascii_alphabetic() { n_letters + 1 } else { 0 };
        n_words += usize::from(n_letters == 2);
        if n_words == WORDS {
            return line.len() >= SHORTEST;
        }
    }
    false
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
    let Material { entries, stretches, tier } = material;
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
    let values = values(&draft.ledger.lexicon, lines, worth, stays);
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
    let line = |chosen: Chosen| Line { cost: Some(chosen.text), ..lines[chosen.line] };
    let kept = Arc::new(Kept::of(chosen.into_iter().map(line)));
    Segment { entries, tier, handle, parts, voice: Voice::Fanfold, handles, stretches, kept }
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

/// What each atom of the lines is worth: nothing where it stands in a segment that stays.
fn values(lexicon: &Lexicon, lines: &[Line<'_>], worth: &Worth, stays: &[Arc<Kept>]) -> Vec<f32> {
    let mut values = worth.values(lexicon.len());
    for &atom in stays.iter().flat_map(|kept| &kept.atoms) {
        values[atom as usize] = 0.0;
    }
    let mut chances = lexicon.chances(worth.choice.scorer);
    for &atom in lines.iter().flat_map(|line| line.atoms) {
        let value = &mut values[atom as usize];
        if *value == UNKNOWN {
            *value = chances.of(atom);
        }
    }
    values
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
    let mut chosen = written.chosen.iter().map(|chosen| &lines[chosen.line]).peekable();
    for (n, run) in runs.iter().enumerate() {
        let last = run[run.len() - 1];
        let mut text = String::from(FENCE);
        if is_first && n == 0 {
            text.push_str(TOLD);
            let recall = &draft.policy.recall;
            if !recall.is_empty() {
                text.push(' ');
                text.push_str(recall);
            }
        }
        let mut is_bare = false;
        let mut source = "";
        while let Some((_, handle)) = stretches.next_if(|(stretch, _)| stretch.first <= last) {
            let end = stretches.peek().map_or((EntryId(u32::MAX), 0), |(next, _)| next.start());
            let is_here = |line: &&Line<'_>| (line.entry, line.at) < end;
            let has_lines = chosen.peek().is_some_and(is_here);
            text.push_str(if is_bare && !has_lines { " " } else { "\n" });
            is_bare = !has_lines;
            write!(text, "[{handle}]").expect("a string takes everything");
            let mut before = Before::Handle;
            while let Some(line) = chosen.next_if(is_here) {
                let is_deed = line.is == LineOf::Deed;
                if line.source != source && !is_deed && !line.source.is_empty() {
                    text.push_str(if matches!(before, Before::Handle) { " " } else { "\n" });
                    text.push_str(line.source);
                }
                source = line.source;
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
    Segment { entries, tier: 0, handle, parts, voice, handles, stretches: Vec::new(), kept: Arc::default() }
}
