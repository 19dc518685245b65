//! Segments: parts of the record that replace folded entries.
//!
//! A segment covers entries; each run of them has a part in the view, between the user messages that stay. New segments
//! are added at the end and merged from time to time. A merged segment is written from the originals again.

use std::sync::Arc;

use crate::fold::draft::Draft;
use crate::model::handle::Handle;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;
use crate::model::view::Voice;
use crate::record::standing::numbered_steps;
use crate::record::write::{FENCE, FENCE_END, RecordInput, write_record};
use crate::select::analysis::Analysis;

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
    /// The state after its last step. It is in the view while this is the newest segment.
    pub state: Option<SegmentPart>,
    /// The role of the texts.
    pub voice: Voice,
    /// The handles printed in the texts.
    pub handles: Vec<Handle>,
    /// The budget it was written for. Mandatory content may exceed it.
    pub(crate) allowed: Option<Tokens>,
    /// The number of later uses of content that it leaves out, as the scorer expects them.
    pub(crate) expected_uses: f32,
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

impl Segment {
    /// Its cost in the view, without the state.
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

/// A segment whose handles were not given out yet.
pub(crate) struct UnnamedSegment {
    entries: Vec<EntryId>,
    tier: u32,
    parts: Vec<SegmentPart>,
    state: Option<SegmentPart>,
    /// The steps that each handle in the texts names, first and last.
    named: Vec<(EntryId, EntryId)>,
    budget: Tokens,
    /// As in `Segment`.
    pub(crate) expected_uses: f32,
}

impl UnnamedSegment {
    /// Its cost in the view, without the state.
    pub(crate) fn tokens(&self) -> Tokens {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// Gives out the handles.
    pub(crate) fn name(self, draft: &mut Draft<'_>) -> Segment {
        let UnnamedSegment { entries, tier, parts, state, named, budget, expected_uses } = self;
        let handles = named.into_iter().map(|(first, last)| {
            if draft.transcript.entry(first).prompt().is_some() {
                return draft.ledger.name_place(draft.transcript, Place::Text(first));
            }
            let range: Vec<EntryId> = (first.0..=last.0).map(EntryId).collect();
            draft.name_entries(&range)
        });
        let handles = handles.collect();
        let handle = draft.name_entries(&entries);
        let (voice, allowed) = (Voice::Fanfold, Some(budget));
        Segment { entries, tier, handle, parts, state, voice, handles, allowed, expected_uses }
    }
}

/// Writes new entries and the segments to merge as one segment of about `budget` tokens.
pub(crate) fn write(
    draft: &mut Draft<'_>,
    merged: &[u32],
    new_entries: &[EntryId],
    budget: Tokens,
) -> UnnamedSegment {
    let relevance = draft.relevance();
    let old = merged.iter().map(|&id| &draft.ledger.segments[id as usize]);
    let tier = old.clone().map(|segment| segment.tier + 1).max().unwrap_or(0);
    let mut entries: Vec<EntryId> = old.flat_map(|segment| segment.entries.iter().copied()).collect();
    entries.extend(new_entries);
    entries.sort_unstable();
    let stays = draft.ledger.live_segments.iter().filter(|id| !merged.contains(id));
    let stays: Vec<&Segment> = stays.map(|&id| &draft.ledger.segments[id as usize]).collect();
    let visible = stays.iter().flat_map(|segment| segment.parts.iter().map(|part| Arc::clone(&part.text)));
    let visible: Vec<Arc<str>> = visible.collect();
    let is_first = stays.first().is_none_or(|segment| segment.span().0 > entries[0]);
    let last = *entries.last().expect("a segment covers something");
    let is_newest = stays.iter().all(|segment| segment.span().1 < last);
    let steps = numbered_steps(draft.analysis, draft.transcript, &draft.policy.tools, last.index() + 1);
    let Analysis { lexicon, values, .. } = &mut *draft.analysis;
    let input = RecordInput {
        transcript: draft.transcript,
        counter: draft.counter,
        lexicon,
        relevance: &relevance,
        visible,
        entries: &entries,
        steps: &steps,
        recall: &draft.policy.recall,
        is_first,
        is_newest,
    };
    let written = write_record(&input, values, budget.0 as usize);
    let expected_uses = values.remaining();
    let parts = written.parts.into_iter().map(|(at, text)| part(draft, at, text)).collect();
    let state = written.state.map(|text| part(draft, last, text));
    UnnamedSegment { entries, tier, parts, state, named: written.handles, budget, expected_uses }
}

/// Runs of consecutive entries.
pub(crate) fn runs(entries: &[EntryId]) -> Vec<&[EntryId]> {
    entries.chunk_by(|before, after| before.0 + 1 == after.0).collect()
}

/// Writes a segment that only reports how many messages were left out.
pub(crate) fn write_marker(draft: &mut Draft<'_>, entries: Vec<EntryId>) -> Segment {
    let handle = draft.name_entries(&entries);
    let mut parts = Vec::new();
    for run in runs(&entries) {
        let text = format!("{FENCE}\n[{} earlier messages left out, {handle}]\n{FENCE_END}", run.len());
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
    Segment {
        entries,
        tier: 0,
        handle,
        parts,
        state: None,
        voice,
        handles,
        allowed: None,
        expected_uses: 0.0,
    }
}
