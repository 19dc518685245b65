//! The folds of a session, append-only, and how each entry stands because of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fold::digest::segment::Segment;
use crate::fold::economy::account::Account;
use crate::fold::originals::{Original, Originals, content_of};
use crate::fold::policy::Policy;
use crate::fold::receipt::Receipt;
use crate::fold::summary_placement::{PlacedSummary, PlacementChange, SummaryBoard};
use crate::model::budget::Pressure;
use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, body_at};
use crate::model::summary::Summary;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Body, Call, EntryId, Transcript};
use crate::select::analysis::hash_of_entry;
use crate::select::visible_lines::{RepeatedRun, VisibleLines};
use crate::text::copied_lines::FoldedLines;

/// A stub standing for an original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// What it replaces.
    pub place: Place,
    /// What is sent instead.
    pub stub: Arc<str>,
    /// What the stub costs.
    pub tokens: Tokens,
    /// The name of the original, and those of its slices if it is large; they stand in the stub.
    pub handles: Vec<Handle>,
    /// The pass that made it.
    pub pass: &'static str,
}

/// How an entry appears in the view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Standing {
    /// As it came.
    #[default]
    Whole,
    /// With these folds, by their position in the ledger.
    Edited(Vec<u32>),
    /// Inside a segment, by its position in the ledger.
    Segment(u32),
}

/// The folds of a session and all that follows from them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub(crate) folds: Vec<Fold>,
    pub(crate) segments: Vec<Segment>,
    /// The segments that stand in the view, in the order of what they cover.
    pub(crate) live: Vec<u32>,
    pub(crate) standing: Vec<Standing>,
    pub(crate) originals: Originals,
    /// Lines of results that stand in view.
    pub(crate) shown: Arc<VisibleLines>,
    /// How many entries there were when the newest results were last looked at for lines that stand above.
    pub(crate) n_shown: usize,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) pinned: BTreeSet<EntryId>,
    pub(crate) focus: String,
    /// What a model wrote about what is folded. Nothing that is folded depends on it.
    pub(crate) board: SummaryBoard,
    /// What the view costs less than the transcript.
    pub(crate) saved: i64,
    /// How often lines of files were folded. Not recomputable: folds that were tried in vain count, too.
    pub(crate) folded_lines: Arc<FoldedLines>,
    /// The length to which places were last cut, or were tried to be.
    pub(crate) cuts: BTreeMap<EntryId, BTreeMap<Place, Tokens>>,
    /// The user messages of which a receipt tells that they were shortened.
    pub(crate) shortened: BTreeSet<EntryId>,
    /// What one image or file costs.
    pub(crate) media: Tokens,
    /// How long the transcript was at the last fold, and what it cost.
    pub(crate) folded: Option<(usize, Tokens)>,
    /// What requests have cost, where prices are known.
    pub(crate) account: Account,
    /// How many folds in a row won less than a tenth.
    pub(crate) weak: u32,
    /// Whether it was told that folding rests.
    pub(crate) is_rest_told: bool,
    /// The highest level of pressure told since the last fold.
    pub(crate) told: Pressure,
    /// What was counted here and by the provider for the last view that it told of, since the last fold.
    pub(crate) proven: Option<(Tokens, Tokens)>,
}

impl Ledger {
    /// Every fold ever made, oldest first.
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Every segment ever written, oldest first.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segments that stand in the view now.
    pub fn live_segments(&self) -> impl Iterator<Item = &Segment> {
        self.live.iter().map(|&i| &self.segments[i as usize])
    }

    /// A receipt for each fold, oldest first.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Every handle ever given, with what it opens.
    pub fn originals(&self) -> impl Iterator<Item = (Handle, &Original)> {
        self.originals.iter().map(|(handle, (original, _))| (*handle, original))
    }

    /// What a handle opens.
    pub fn original(&self, handle: Handle) -> Option<&Original> {
        self.originals.get(&handle).map(|(original, _)| original)
    }

    /// The entries that must not be folded.
    pub fn pinned(&self) -> &BTreeSet<EntryId> {
        &self.pinned
    }

    /// What the view of a transcript costs as things stand.
    pub fn total(&self, transcript: &Transcript) -> Tokens {
        self.bare_total(transcript) + self.board.tokens()
    }

    /// What it costs without a model's summary: what is folded is decided by this.
    pub(crate) fn bare_total(&self, transcript: &Transcript) -> Tokens {
        Tokens(transcript.total().0.saturating_add_signed(-self.saved))
    }

    /// What the view likely costs: what the provider counted for the last one it told of, and what came since.
    pub(crate) fn likely(&self, transcript: &Transcript) -> Tokens {
        let total = self.bare_total(transcript);
        self.proven.map_or(total, |(counted, reported)| reported + (total - counted))
    }

    /// Whether folding rests because it won little.
    pub(crate) fn is_resting(&self, policy: &Policy) -> bool {
        policy.rests && self.weak >= 2
    }

    /// Every summary that a model wrote, oldest first, as it may stand in a view.
    pub fn summaries(&self) -> impl DoubleEndedIterator<Item = &Summary> {
        self.board.summaries().iter().map(|summary| &**summary)
    }

    /// The summary that stands in the view now.
    pub fn summary_in_view(&self) -> Option<&PlacedSummary> {
        self.board.in_view()
    }

    /// When summaries came into the view and left it, oldest first.
    pub fn summary_changes(&self) -> &[PlacementChange] {
        self.board.changes()
    }

    /// The handles that stand in the view.
    pub fn handles_in_view(&self) -> Vec<Handle> {
        let mut handles = Vec::new();
        for standing in &self.standing {
            if let Standing::Edited(folds) = standing {
                // Who looks for something opens what is small first.
                for &i in folds {
                    if let [whole, parts @ ..] = &self.folds[i as usize].handles[..] {
                        handles.extend(parts);
                        handles.push(*whole);
                    }
                }
            }
        }
        handles.extend(self.live_segments().flat_map(|segment| &segment.handles));
        handles.extend(self.board.in_view().iter().flat_map(|placed| &placed.handles));
        handles
    }

    /// Whether an entry is sent as it came.
    pub fn is_whole(&self, entry: EntryId) -> bool {
        self.standing.get(entry.index()).is_none_or(|standing| *standing == Standing::Whole)
    }

    /// Whether an entry is inside a segment.
    pub(crate) fn is_in_segment(&self, entry: EntryId) -> bool {
        matches!(self.standing.get(entry.index()), Some(Standing::Segment(_)))
    }

    /// Whether a place stands in the view as it came.
    pub(crate) fn is_as_it_came(&self, place: Place) -> bool {
        !self.is_in_segment(place.entry()) && self.fold_at(place).is_none()
    }

    /// The lines of the result of a newest call that stand in view already; none where it opens a fold.
    pub(crate) fn lines_above(&self, transcript: &Transcript, call: &Call) -> Vec<RepeatedRun> {
        let mut words = call.arguments.as_str().split(|c: char| !c.is_ascii_digit());
        let is_handle = |word: &str| word.parse().is_ok_and(|handle| self.originals.contains_key(&handle));
        if words.any(is_handle) {
            return Vec::new();
        }
        self.shown
            .repeated_runs(call, |text| self.is_as_it_came(text.place()).then(|| transcript.call(text.call)))
    }

    /// Whether a place was cut to that length before, or further.
    pub(crate) fn was_cut_to(&self, place: Place, most: Tokens) -> bool {
        let cut = self.cuts.get(&place.entry()).and_then(|places| places.get(&place));
        cut.is_some_and(|cut| *cut <= most)
    }

    /// The fold that stands at a place now.
    pub fn fold_at(&self, place: Place) -> Option<&Fold> {
        match self.standing.get(place.entry().index())? {
            Standing::Edited(folds) => {
                folds.iter().map(|&i| &self.folds[i as usize]).find(|fold| fold.place == place)
            }
            Standing::Whole | Standing::Segment(_) => None,
        }
    }

    /// What an entry costs as it stands; nothing if it is inside a segment.
    pub(crate) fn cost(&self, transcript: &Transcript, entry: EntryId) -> Tokens {
        match &self.standing[entry.index()] {
            Standing::Whole => transcript.tokens(entry),
            Standing::Segment(_) => Tokens::ZERO,
            Standing::Edited(folds) => {
                let mut cost = transcript.tokens(entry);
                for &i in folds {
                    let fold = &self.folds[i as usize];
                    cost = cost + fold.tokens - self.whole_cost(transcript, fold.place);
                }
                cost
            }
        }
    }

    /// What a place costs when it is not folded. A result's media belong to it.
    pub(crate) fn whole_cost(&self, transcript: &Transcript, place: Place) -> Tokens {
        let body = body_at(transcript, place).map_or(Tokens::ZERO, Body::tokens);
        let n_media = match place {
            Place::PromptMedia(..) | Place::ResultMedia(..) => 1,
            Place::Result(call) => {
                transcript.call(call).result.as_ref().map_or(0, |outcome| outcome.media.len())
            }
            Place::Text(_) | Place::Reasoning(_) | Place::Arguments(_) => 0,
        };
        body + Tokens(self.media.0 * n_media as u64)
    }

    /// Forgets what was derived from a step that is about to change; what handles name stays as it was.
    pub(crate) fn forget(&mut self, transcript: &Transcript, step: EntryId) {
        self.cuts.remove(&step);
        // The newest step is never behind a handle while a call of it is running.
        let is_newest = transcript.last_step() == Some(step);
        if is_newest {
            return;
        }
        for (original, _) in self.originals.values_mut() {
            let is_script = matches!(original, Original::Entries(_) | Original::EntrySlice(..));
            if is_script && original.entries().contains(&step) {
                let words = Arc::from(content_of(transcript, &Originals::new(), original));
                *original = Original::Words(original.entries(), words);
            }
        }
    }

    /// Takes over the names that another ledger of the same transcript gave.
    pub(crate) fn learn_names(&mut self, other: &Ledger) {
        for (handle, known) in &other.originals {
            self.originals.entry(*handle).or_insert_with(|| known.clone());
        }
    }

    /// Whether a handle is the name of this content.
    pub(crate) fn is_content(&self, transcript: &Transcript, handle: Handle, content: &str) -> bool {
        let Some((original, hash)) = self.originals.get(&handle) else { return false };
        match original {
            Original::Entries(entries) => {
                let hashes = entries.iter().map(|&entry| hash_of_entry(transcript, entry));
                *hash == Hash::combine(hashes) && handle.matches(*hash)
            }
            Original::Several(_, handles) => *hash == self.hash_of_all(handles) && handle.matches(*hash),
            Original::Words(..) => handle.matches(*hash),
            Original::Place(_) | Original::PlaceSlice(..) | Original::EntrySlice(..) => {
                *hash == Hash::new(content.as_bytes()) && handle.matches(*hash)
            }
        }
    }

    /// Names an original. Two different originals never share a name.
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

    /// Names entries that stand one after another. The name is made of the entries' own hashes, so that naming
    /// many entries again and again costs little.
    pub(crate) fn name_entries(&mut self, entries: &[EntryId], hashes: impl Iterator<Item = Hash>) -> Handle {
        self.name(Original::Entries(entries.to_vec()), Hash::combine(hashes))
    }

    /// Names what several handles open, one after another.
    pub(crate) fn name_several(&mut self, entries: Vec<EntryId>, handles: Vec<Handle>) -> Handle {
        let hash = self.hash_of_all(&handles);
        self.name(Original::Several(entries, handles), hash)
    }

    fn hash_of_all(&self, handles: &[Handle]) -> Hash {
        Hash::combine(handles.iter().filter_map(|handle| self.originals.get(handle).map(|(_, hash)| *hash)))
    }
}
