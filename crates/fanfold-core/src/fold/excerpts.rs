//! Recall at the moment of need: a few lines of something folded, behind the entry that mentions it.
//!
//! What is needed is often announced one message ahead: a reply or a result names a path or a symbol whose source is
//! folded. Then the lines around it that are worth most stand behind that entry, at the end of the view, until the next
//! fold. An entry that mentions many folded things is a listing and asks for none of them.
//!
//! ```text
//! call    read src/server.rs       (folded long ago: "retry_limit = 5  # see ticket-4711")
//! result  error: retry_limit reached
//!   ->    <fanfold> ... [123456] src/server.rs
//!          retry_limit = 5  # see ticket-4711 </fanfold>
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::fold::digest::segment::Segment;
use crate::fold::ledger::{Ledger, Standing};
use crate::fold::receipt::{Left, What};
use crate::fold::step::Moment;
use crate::model::handle::Handle;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker};
use crate::select::chooser::{CandidateKind, CandidateLine, Chooser};
use crate::select::scan::{EntryPart, Scan};
use crate::select::scorer::AtomId;

/// What may be recalled when a new entry mentions something folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// What one excerpt may take, in per mille of the room.
    pub share: u32,
    /// What one excerpt may take at most.
    pub most: Tokens,
    /// What all excerpts between two folds may take, in per mille of the room.
    pub sum: u32,
    /// An entry that mentions more folded things than this is a listing.
    pub mentions: usize,
    /// What an excerpt must promise: so many uses of what it holds, in per mille of one.
    pub promise: u32,
}

impl Default for Need {
    fn default() -> Need {
        Need { share: 20, most: Tokens(200), sum: 60, mentions: 8, promise: 100 }
    }
}

/// Some lines of folded entries, as they stand behind an entry that mentions what is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The words.
    pub text: Arc<str>,
    /// What they cost, with their frame.
    pub tokens: Tokens,
    /// What opens to the originals; the names stand in the words.
    pub handles: Vec<Handle>,
    /// The atoms in the lines.
    pub(crate) atoms: Vec<AtomId>,
}

/// How excerpts are called in receipts.
pub(crate) const NAME: &str = "need";

/// Lines so far from a mention belong to it.
const AROUND: usize = 3;
/// What a line with a mention is worth beside what else stands in it: it tells what the others are about.
const MENTION: f32 = 0.02;
/// About what the fence, the frame and the first line of an excerpt cost.
const FENCES: usize = 22;
const OPENING: &str = "<fanfold>\nFrom earlier steps, as just mentioned:";
const END: &str = "\n</fanfold>";

impl Need {
    /// Looks whether the newest entry needs something folded, once, and puts that behind it. Says whether it did.
    pub(crate) fn look(&self, ledger: &mut Ledger, now: &Moment<'_>) -> bool {
        let n_entries = now.transcript.len();
        let is_done = ledger.looked == n_entries || ledger.live.is_empty() || now.event.is_some();
        let Some(newest) = now.transcript.entries().last().filter(|_| !is_done) else { return false };
        let id = EntryId::from(n_entries - 1);
        let is_news = match newest {
            Entry::Step(_) => !now.transcript.is_running(id),
            Entry::Prompt(prompt) => matches!(prompt.speaker, Speaker::User | Speaker::Harness),
        };
        if !is_news {
            return false;
        }
        ledger.looked = n_entries;
        let Some(excerpt) = self.excerpt(ledger, now, id) else { return false };
        ledger.saved -= excerpt.tokens.0 as i64;
        ledger.excerpts.insert(id, excerpt);
        ledger.account.lengthen();
        true
    }

    /// What there is room for without a fold.
    fn room(&self, ledger: &Ledger, now: &Moment<'_>) -> Tokens {
        let Some(trigger) = now.policy.strategy.trigger(now.budget) else { return Tokens::ZERO };
        let room = now.budget.room();
        let told: Tokens = ledger.excerpts.values().map(|excerpt| excerpt.tokens).sum();
        let free = trigger - ledger.bare_total(now.transcript);
        room.permille(self.share).min(self.most).min(room.permille(self.sum) - told).min(free)
    }

    fn excerpt(&self, ledger: &mut Ledger, now: &Moment<'_>, newest: EntryId) -> Option<Excerpt> {
        let room = self.room(ledger, now);
        let for_lines = (room.0 as usize).checked_sub(FENCES).filter(|left| *left > 0)?;
        // Where atoms stood before the newest entry is what is known before that is learnt.
        ledger.learn(now.transcript, &now.policy.tools, now.parallel, newest.index());
        let news = ledger.scan(now.transcript, &now.policy.tools, newest);
        let folded = |atom: &AtomId| {
            let last = ledger.lexicon.last_seen(*atom).filter(|last| ledger.is_in_segment(*last))?;
            (!ledger.lexicon.is_in_prompt(*atom)).then_some((*atom, last))
        };
        let mut mentioned: Vec<(AtomId, EntryId)> = news.atoms.iter().filter_map(folded).collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        if mentioned.is_empty() {
            return None;
        }
        let mut is_shown = shown(ledger, now, newest);
        mentioned.retain(|(atom, _)| !is_shown[*atom as usize]);
        if mentioned.is_empty() || mentioned.len() > self.mentions {
            return None;
        }
        news.atoms.iter().for_each(|atom| is_shown[*atom as usize] = true);
        let atoms: BTreeSet<AtomId> = mentioned.iter().map(|(atom, _)| *atom).collect();
        let sources: BTreeSet<EntryId> = mentioned.iter().map(|(_, source)| *source).collect();
        let scans: Vec<(EntryId, Arc<Scan>)> =
            sources.into_iter().map(|id| (id, scan_of(ledger, now, id))).collect();
        let lines: Vec<CandidateLine<'_>> =
            scans.iter().flat_map(|(id, scan)| lines_around(*id, scan, &atoms)).collect();
        let names: Vec<Handle> = lines.iter().map(|line| name_at(ledger, line)).collect::<Option<_>>()?;
        let mut values = vec![0.0; ledger.lexicon.len()];
        let mut chances = ledger.lexicon.chances(now.policy.choice.scorer);
        for &atom in lines.iter().flat_map(|line| line.atoms) {
            let is_new = !is_shown.get(atom as usize).is_some_and(|is_shown| *is_shown);
            values[atom as usize] = if is_new { chances.get(atom) } else { 0.0 };
        }
        let of_stretch = numbered(&names);
        let mut left = values.clone();
        let mut chooser = Chooser::new(&lines, &of_stretch, &mut left, now.counter);
        chooser.choose(for_lines);
        let mut chosen: Vec<usize> = chooser.chosen.iter().map(|chosen| chosen.line).collect();
        while !chosen.is_empty() {
            let excerpt = written(&lines, &names, &chosen, now);
            if excerpt.tokens <= room {
                let promised: f32 = excerpt.atoms.iter().map(|atom| values[*atom as usize]).sum();
                return (promised * 1000.0 >= self.promise as f32).then_some(excerpt);
            }
            chosen.pop();
        }
        None
    }
}

/// Takes the excerpts behind an entry and all later ones out of the view.
pub(crate) fn drop_excerpts(ledger: &mut Ledger, from: usize) -> Vec<Left> {
    let gone = ledger.excerpts.split_off(&EntryId::from(from));
    let left = gone.into_iter().map(|(behind, excerpt)| {
        ledger.saved += excerpt.tokens.0 as i64;
        let handle = *excerpt.handles.first().expect("an excerpt is of something");
        Left { pass: NAME, what: What::Excerpt(behind), handle, before: excerpt.tokens, after: Tokens::ZERO }
    });
    left.collect()
}

/// Which atoms stand in the view before the newest entry.
fn shown(ledger: &mut Ledger, now: &Moment<'_>, newest: EntryId) -> Vec<bool> {
    let before = (0..newest.index()).map(EntryId::from);
    let in_view: Vec<EntryId> = before.filter(|id| !ledger.is_in_segment(*id)).collect();
    let scans: Vec<_> =
        in_view.iter().map(|id| ledger.scan(now.transcript, &now.policy.tools, *id)).collect();
    let mut is_shown = vec![false; ledger.lexicon.len()];
    let segments = ledger.live_segments().flat_map(Segment::atoms);
    let excerpts = ledger.excerpts.values().flat_map(|excerpt| &excerpt.atoms);
    let entries = scans.iter().flat_map(|scan| &scan.atoms);
    for &atom in segments.chain(excerpts).chain(entries) {
        is_shown[atom as usize] = true;
    }
    is_shown
}

/// A folded entry taken apart, and not kept.
fn scan_of(ledger: &mut Ledger, now: &Moment<'_>, id: EntryId) -> Arc<Scan> {
    let scan = ledger.scan(now.transcript, &now.policy.tools, id);
    ledger.scans.remove(&id);
    scan
}

/// The lines of an entry that are no further than a few from a mention.
fn lines_around<'a>(entry: EntryId, scan: &'a Scan, mentioned: &BTreeSet<AtomId>) -> Vec<CandidateLine<'a>> {
    let lines: Vec<_> = scan.lines().collect();
    let is_mention: Vec<bool> =
        lines.iter().map(|line| line.atoms.iter().any(|atom| mentioned.contains(atom))).collect();
    let is_near = |i: usize| {
        is_mention[i.saturating_sub(AROUND)..(i + AROUND + 1).min(lines.len())].iter().any(|is| *is)
    };
    let near = (0..lines.len()).filter(|i| is_near(*i)).map(|i| {
        let line = &lines[i];
        let source = match line.part() {
            EntryPart::Result(call) | EntryPart::Arguments(call) => {
                scan.calls[usize::from(call)].source.as_str()
            }
            EntryPart::Text => "",
        };
        let worth = if is_mention[i] { MENTION } else { 0.0 };
        CandidateLine {
            entry,
            at: line.at(),
            text: line.text(),
            atoms: line.atoms,
            source,
            kind: CandidateKind::Other,
            worth,
            copied: 0.0,
            hash: 0,
            cost: None,
        }
    });
    near.collect()
}

/// What opens to the original around a line of a folded entry.
fn name_at(ledger: &Ledger, line: &CandidateLine<'_>) -> Option<Handle> {
    let Standing::Segment(segment) = ledger.standing[line.entry.index()] else { return None };
    let segment = &ledger.segments[segment as usize];
    let n_before = segment.stretches.partition_point(|stretch| stretch.start() <= (line.entry, line.at));
    let stretch = n_before.checked_sub(1).and_then(|i| segment.stretches[i].handle());
    Some(stretch.unwrap_or(segment.handle))
}

/// The number of each name in a row of names: the same for neighbours that are the same.
fn numbered(names: &[Handle]) -> Vec<u32> {
    let mut number = 0;
    let mut before = None;
    let of_name = |name: &Handle| {
        number += u32::from(before.is_some_and(|before| before != *name));
        before = Some(*name);
        number
    };
    names.iter().map(of_name).collect()
}

/// The chosen lines as they stand in the view.
fn written(lines: &[CandidateLine<'_>], names: &[Handle], chosen: &[usize], now: &Moment<'_>) -> Excerpt {
    let mut chosen = chosen.to_vec();
    chosen.sort_unstable();
    let mut text = String::from(OPENING);
    let (mut handles, mut atoms, mut source) = (Vec::new(), BTreeSet::new(), "");
    for i in chosen {
        let line = &lines[i];
        if handles.last() != Some(&names[i]) {
            handles.push(names[i]);
            write!(text, "\n[{}]", names[i]).expect("a string takes everything");
            source = "";
        }
        if line.source != source && !line.source.is_empty() {
            write!(text, " {}", line.source).expect("a string takes everything");
        }
        source = line.source;
        write!(text, "\n {}", line.text).expect("a string takes everything");
        atoms.extend(line.atoms);
    }
    text.push_str(END);
    let tokens = now.counter.count(&text) + now.counter.frame().message;
    Excerpt { text: Arc::from(text), tokens, handles, atoms: atoms.into_iter().collect() }
}
