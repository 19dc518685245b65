//! The folding decisions of a session: an append-only list of folds, and the resulting state of each entry.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::fold::economy::account::Account;
use crate::fold::originals::{
    Original, Originals, address_of_entries, address_of_place, content_of, find_original, original_at_address,
};
use crate::fold::policy::Policy;
use crate::fold::receipt::Receipt;
use crate::fold::segment::{Segment, SegmentPart};
use crate::fold::summary_placement::{PlacedSummary, PlacementChange, SummaryHistory};
use crate::model::budget::Pressure;
use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, body_at, original_at};
use crate::model::summary::Summary;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Body, Call, EntryId, Transcript};
use crate::select::analysis::hash_of_entry;
use crate::select::visible_lines::{RepeatedRun, VisibleLines};

/// A stub that is sent instead of an original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The location of the original.
    pub place: Place,
    /// The text that is sent.
    pub stub: Arc<str>,
    /// The cost of the stub.
    pub tokens: Tokens,
    /// The handle of the original. The stub contains it.
    pub handle: Handle,
    /// The name of the pass that created it.
    pub pass: &'static str,
}

/// How an entry appears in the view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum EntryState {
    /// Unchanged.
    #[default]
    Whole,
    /// With these folds, as indices of `Ledger::folds`.
    Edited(Vec<u32>),
    /// Inside a segment, as an index of `Ledger::segments`.
    Segment(u32),
}

/// The folding decisions of a session and their consequences.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub(crate) folds: Vec<Fold>,
    pub(crate) segments: Vec<Segment>,
    /// The indices of the segments in the view, in transcript order.
    pub(crate) live_segments: Vec<u32>,
    pub(crate) entry_states: Vec<EntryState>,
    pub(crate) originals: Originals,
    /// An index of the lines that are visible in the view.
    pub(crate) visible_lines: Arc<VisibleLines>,
    /// The number of entries when the newest results were last checked for repeated lines.
    pub(crate) n_checked_for_repeats: usize,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) pinned: BTreeSet<EntryId>,
    pub(crate) focus: String,
    /// The summaries written by a model. No folding decision depends on them.
    pub(crate) summary_history: SummaryHistory,
    /// The cost of the transcript minus the cost of the view without the summary.
    pub(crate) saved_tokens: i64,
    /// The length that the last cut of a text aimed for, including failed attempts.
    pub(crate) cut_limits: BTreeMap<EntryId, BTreeMap<Place, Tokens>>,
    /// The user messages that a receipt reports as shortened.
    pub(crate) shortened_messages: BTreeSet<EntryId>,
    /// The cost of an image or a file.
    pub(crate) media_tokens: Tokens,
    /// The number of entries and the cost of the transcript when the stages of the policy last ran.
    pub(crate) last_fold: Option<(usize, Tokens)>,
    /// The cost of all requests, if prices are known.
    pub(crate) account: Account,
    /// The number of consecutive folds that saved less than a tenth.
    pub(crate) n_weak_folds: u32,
    /// True if a notice has reported that folding rests.
    pub(crate) is_rest_reported: bool,
    /// The highest level of pressure that was reported since the last fold.
    pub(crate) reported_pressure: Pressure,
    /// Our count and the provider's count of the last view with a usage report, if there was one since the last fold.
    pub(crate) last_usage: Option<(Tokens, Tokens)>,
}

impl Ledger {
    /// All folds, including those that were replaced or undone, oldest first.
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// All segments, including merged ones, oldest first.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segments in the view, in transcript order.
    pub fn live_segments(&self) -> impl Iterator<Item = &Segment> {
        self.live_segments.iter().map(|&i| &self.segments[i as usize])
    }

    /// The state after the last folded step, a message behind the newest segment.
    pub fn state_note(&self) -> Option<&SegmentPart> {
        self.live_segments().max_by_key(|segment| segment.span().1)?.state.as_ref()
    }

    /// The cost of the state in the view.
    pub(crate) fn state_tokens(&self) -> Tokens {
        self.state_note().map_or(Tokens::ZERO, |state| state.tokens)
    }

    /// The receipts of all folds, oldest first.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// The handles that folds have given out, with the originals that they name.
    pub fn originals(&self) -> impl Iterator<Item = (Handle, &Original)> {
        self.originals.iter().map(|(handle, (original, _))| (*handle, original))
    }

    /// The original that a handle names: one that a fold has recorded, or any at an address in the transcript.
    pub fn original(&self, transcript: &Transcript, handle: Handle) -> Option<Original> {
        find_original(transcript, &self.originals, handle)
    }

    /// The entries that are protected from folding.
    pub fn pinned(&self) -> &BTreeSet<EntryId> {
        &self.pinned
    }

    /// The cost of the present view.
    pub fn total(&self, transcript: &Transcript) -> Tokens {
        self.total_without_summary(transcript) + self.summary_history.tokens()
    }

    /// The cost of the present view without the summary. Folding decisions use this total.
    pub(crate) fn total_without_summary(&self, transcript: &Transcript) -> Tokens {
        Tokens(transcript.total().0.saturating_add_signed(-self.saved_tokens)) + self.state_tokens()
    }

    /// The expected cost by the provider's count: its last reported usage plus the growth since then.
    pub(crate) fn estimated_total(&self, transcript: &Transcript) -> Tokens {
        let total = self.total_without_summary(transcript);
        self.last_usage.map_or(total, |(counted, reported)| reported + (total - counted))
    }

    /// Counts a fold as weak if it saved less than a tenth. Any other fold resets the count.
    pub(crate) fn count_gain(&mut self, before: Tokens, after: Tokens) {
        let is_weak = (before - after).0 * 10 < before.0;
        self.n_weak_folds = if is_weak { self.n_weak_folds + 1 } else { 0 };
    }

    /// Returns whether folding rests because the last folds saved little.
    pub(crate) fn is_resting(&self, policy: &Policy) -> bool {
        policy.rests && self.n_weak_folds >= 2
    }

    /// All summaries written by a model, oldest first.
    pub fn summaries(&self) -> impl DoubleEndedIterator<Item = &Summary> {
        self.summary_history.summaries().iter().map(|summary| &**summary)
    }

    /// The summary in the view.
    pub fn summary_in_view(&self) -> Option<&PlacedSummary> {
        self.summary_history.in_view()
    }

    /// The changes of the summary in the view, oldest first.
    pub fn summary_changes(&self) -> &[PlacementChange] {
        self.summary_history.changes()
    }

    /// The handles that are printed in the view.
    pub(crate) fn handles_in_view(&self) -> Vec<Handle> {
        let mut handles = Vec::new();
        for state in &self.entry_states {
            if let EntryState::Edited(folds) = state {
                handles.extend(folds.iter().map(|&i| self.folds[i as usize].handle));
            }
        }
        handles.extend(self.live_segments().flat_map(|segment| &segment.handles));
        handles.extend(self.summary_history.in_view().iter().flat_map(|placed| &placed.handles));
        handles
    }

    /// Returns whether no part of an entry is folded.
    pub fn is_whole(&self, entry: EntryId) -> bool {
        self.entry_states.get(entry.index()).is_none_or(|state| *state == EntryState::Whole)
    }

    /// Returns whether an entry is inside a segment.
    pub(crate) fn is_in_segment(&self, entry: EntryId) -> bool {
        matches!(self.entry_states.get(entry.index()), Some(EntryState::Segment(_)))
    }

    /// Returns whether a location is sent unchanged.
    pub(crate) fn is_unfolded(&self, place: Place) -> bool {
        !self.is_in_segment(place.entry()) && self.fold_at(place).is_none()
    }

    /// The runs of lines in the result of a new call that are already visible in the view. Empty if the call recalls an
    /// original.
    pub(crate) fn repeated_lines(&self, transcript: &Transcript, call: &Call) -> Vec<RepeatedRun> {
        if self.is_recall(transcript, call) {
            return Vec::new();
        }
        self.visible_lines
            .repeated_runs(call, |text| self.is_unfolded(text.place()).then(|| transcript.call(text.call)))
    }

    /// Returns whether a call recalls an original: by its tool, or by a handle in its arguments. A number without `#`
    /// is a handle only if it is a content hash.
    fn is_recall(&self, transcript: &Transcript, call: &Call) -> bool {
        let is_in_handle = |c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '.' | '-');
        let mut words = call.arguments.as_str().split(|c| !is_in_handle(c));
        let is_handle = |word: &str| {
            let is_content_hash = word.len() >= 6 && word.bytes().all(|b| b.is_ascii_digit());
            let may_be_handle = is_content_hash || word.starts_with('#');
            may_be_handle && word.parse().is_ok_and(|handle| self.original(transcript, handle).is_some())
        };
        call.tool.ends_with("recall") || words.any(is_handle)
    }

    /// Returns whether a cut of a location to at most `max_tokens` tokens was tried before.
    pub(crate) fn was_cut_to(&self, place: Place, max_tokens: Tokens) -> bool {
        let cut = self.cut_limits.get(&place.entry()).and_then(|places| places.get(&place));
        cut.is_some_and(|cut| *cut <= max_tokens)
    }

    /// The fold of a location, if it is folded and not inside a segment.
    pub fn fold_at(&self, place: Place) -> Option<&Fold> {
        match self.entry_states.get(place.entry().index())? {
            EntryState::Edited(folds) => {
                folds.iter().map(|&i| &self.folds[i as usize]).find(|fold| fold.place == place)
            }
            EntryState::Whole | EntryState::Segment(_) => None,
        }
    }

    /// The cost of an entry in the view; zero inside a segment.
    pub(crate) fn cost(&self, transcript: &Transcript, entry: EntryId) -> Tokens {
        match &self.entry_states[entry.index()] {
            EntryState::Whole => transcript.tokens(entry),
            EntryState::Segment(_) => Tokens::ZERO,
            EntryState::Edited(folds) => {
                let mut cost = transcript.tokens(entry);
                for &i in folds {
                    let fold = &self.folds[i as usize];
                    cost = cost + fold.tokens - self.original_cost(transcript, fold.place);
                }
                cost
            }
        }
    }

    /// The cost of the part of the view that stands for a range of entries.
    pub(crate) fn cost_in(&self, transcript: &Transcript, range: Range<usize>) -> Tokens {
        let end = range.end.min(transcript.len());
        let entries: Tokens = (range.start..end).map(|i| self.cost(transcript, EntryId::from(i))).sum();
        let parts = self.live_segments().flat_map(|segment| &segment.parts).chain(self.state_note());
        entries + parts.filter(|part| range.contains(&part.at.index())).map(|part| part.tokens).sum()
    }

    /// The cost of an unfolded location. The cost of a result includes its media.
    pub(crate) fn original_cost(&self, transcript: &Transcript, place: Place) -> Tokens {
        let body = body_at(transcript, place).map_or(Tokens::ZERO, Body::tokens);
        let n_media = match place {
            Place::PromptMedia(..) | Place::ResultMedia(..) => 1,
            Place::Result(call) => {
                transcript.call(call).result.as_ref().map_or(0, |outcome| outcome.media.len())
            }
            Place::Text(_) | Place::Reasoning(_) | Place::Arguments(_) => 0,
        };
        body + Tokens(self.media_tokens.0 * n_media as u64)
    }

    /// Prepares for a change of a step: copies the originals that refer to its script and are named by their content,
    /// so that their handles keep it. An address names the step with all its results.
    pub(crate) fn freeze_originals(&mut self, transcript: &Transcript, step: EntryId) {
        self.cut_limits.remove(&step);
        // No handle refers to the newest step while one of its calls is running.
        let is_newest = transcript.last_step() == Some(step);
        if is_newest {
            return;
        }
        let refers_to_step = |(handle, (original, _)): &(&Handle, &(Original, Hash))| {
            let is_script =
                matches!(original, Original::Entries(_) | Original::EntrySlice(..) | Original::Several(..));
            !handle.is_address() && is_script && original.entries().contains(&step)
        };
        let mut frozen = Vec::new();
        for (handle, (original, hash)) in self.originals.iter().filter(refers_to_step) {
            let text = Arc::from(content_of(transcript, &self.originals, original));
            frozen.push((*handle, (Original::Text(original.entries(), text), *hash)));
        }
        self.originals.extend(frozen);
    }

    /// Adds the handles that another ledger of the same transcript assigned.
    pub(crate) fn import_handles(&mut self, other: &Ledger) {
        for (handle, original) in &other.originals {
            self.originals.entry(*handle).or_insert_with(|| original.clone());
        }
    }

    /// Returns whether a handle is valid for this content.
    pub(crate) fn matches_content(&self, transcript: &Transcript, handle: Handle, content: &str) -> bool {
        if handle.is_address() {
            let original = original_at_address(transcript, handle);
            return original.is_some_and(|it| content_of(transcript, &self.originals, &it) == content);
        }
        let Some((original, hash)) = self.originals.get(&handle) else { return false };
        match original {
            Original::Entries(entries) => {
                let hashes = entries.iter().map(|&entry| hash_of_entry(transcript, entry));
                *hash == Hash::combine(hashes) && handle.matches(*hash)
            }
            Original::Several(_, handles) => *hash == self.hash_of_all(handles) && handle.matches(*hash),
            Original::Text(..) => handle.matches(*hash),
            Original::Place(_) | Original::PlaceSlice(..) | Original::EntrySlice(..) => {
                *hash == Hash::new(content.as_bytes()) && handle.matches(*hash)
            }
        }
    }

    /// The handle of a place: its address, or a content hash if one of its numbers is too large.
    pub(crate) fn name_place(&mut self, transcript: &Transcript, place: Place) -> Handle {
        let address = address_of_place(transcript, place);
        // The content of a place never changes.
        if let Some(handle) = address.filter(|handle| self.originals.contains_key(handle)) {
            return handle;
        }
        let original = original_at(transcript, place).expect("a place holds something");
        let hash = Hash::new(original.as_bytes());
        match address {
            Some(handle) => self.record_address(transcript, handle, hash),
            None => self.name(Original::Place(place), hash),
        }
    }

    /// Records the original at an address.
    fn record_address(&mut self, transcript: &Transcript, handle: Handle, hash: Hash) -> Handle {
        let original = original_at_address(transcript, handle).expect("an address names an existing text");
        self.originals.insert(handle, (original, hash));
        handle
    }

    /// Assigns a content hash to an original. Different originals have different handles.
    pub(crate) fn name(&mut self, original: Original, hash: Hash) -> Handle {
        let mut handle = Handle::from_hash(hash);
        loop {
            match self.originals.get(&handle) {
                None => {
                    self.originals.insert(handle, (original, hash));
                    return handle;
                }
                Some((_, known)) if *known == hash => return handle,
                Some(_) => {
                    let longer = handle.longer(hash);
                    assert!(longer != handle, "two originals share all digits of their hashes");
                    handle = longer;
                }
            }
        }
    }

    /// The handle of entries: their address, or a content hash if they are not consecutive or if they begin or end with
    /// one of several prompts. `hashes` are the hashes of the entries.
    pub(crate) fn name_entries(
        &mut self,
        transcript: &Transcript,
        entries: &[EntryId],
        hashes: impl Iterator<Item = Hash>,
    ) -> Handle {
        let hash = Hash::combine(hashes);
        match address_of_entries(transcript, entries) {
            Some(handle) => self.record_address(transcript, handle, hash),
            None => self.name(Original::Entries(entries.to_vec()), hash),
        }
    }

    fn hash_of_all(&self, handles: &[Handle]) -> Hash {
        Hash::combine(handles.iter().filter_map(|handle| self.originals.get(handle).map(|(_, hash)| *hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_rests_after_two_gains_below_a_tenth() {
        let mut ledger = Ledger::default();
        let mut check = |after: u64, is_resting: bool| {
            ledger.count_gain(Tokens(1_000), Tokens(after));
            assert_eq!(ledger.is_resting(&Policy::fanfold()), is_resting, "after {after}");
        };
        check(901, false);
        // A gain of a tenth resets the count.
        check(900, false);
        check(999, false);
        check(901, true);
        check(500, false);
    }

    /// Originals whose short hashes collide get different handles.
    #[test]
    fn originals_never_share_a_content_hash() {
        let mut seen: BTreeMap<Handle, Hash> = BTreeMap::new();
        let hash = |i: usize| Hash::new(format!("original number {i}").as_bytes());
        let colliding = |i: usize| Some((seen.insert(Handle::from_hash(hash(i)), hash(i))?, hash(i)));
        let (one, other) = (0..1_000_000).find_map(colliding).expect("two of a million share six digits");
        let slice = |end: usize| Original::EntrySlice(EntryId(0), 0..end);
        let mut ledger = Ledger::default();
        let (first, second) = (ledger.name(slice(1), one), ledger.name(slice(2), other));
        assert_eq!((first.to_string().len(), second.to_string().len()), (6, 9));
        let original = |handle| ledger.original(&Transcript::new(), handle);
        assert_eq!((original(first), original(second)), (Some(slice(1)), Some(slice(2))));
    }
}
