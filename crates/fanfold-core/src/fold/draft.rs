//! A draft: a view under construction, with the only functions that fold.
//!
//! Passes propose folds; only `Draft::fold` and `Draft::absorb` execute them, after a check. So no pass can fold
//! protected user text, a running call, a pinned entry or the newest steps.

use std::rc::Rc;
use std::sync::Arc;

use crate::actions::{Action, describe_with_failure};
use crate::fold::ledger::{EntryState, Fold, Ledger};
use crate::fold::passes::AGAIN;
use crate::fold::policy::{LateSystemReach, Policy, Stage, UserTextReach};
use crate::fold::protected_ranges::{head_end, middle_start, tail_start};
use crate::fold::receipt::{FoldTarget, FoldedItem};
use crate::fold::segment::Segment;
use crate::model::handle::Handle;
use crate::model::location::{Place, places_of};
use crate::model::parallel::ParallelMap;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Body, Call, CallId, Entry, EntryId, Speaker, Transcript};
use crate::select::analysis::Analysis;
use crate::select::edited_lines::EditedLines;
use crate::select::scan::{Scan, scan_entry};
use crate::select::scorer::Relevance;

/// A view under construction.
pub(crate) struct Draft<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) analysis: &'a mut Analysis,
    pub(crate) counter: &'a dyn Count,
    pub(crate) parallel: &'a dyn ParallelMap,
    pub(crate) policy: &'a Policy,
    pub(crate) stage: &'a Stage,
    pub(crate) room: Tokens,
    pass: &'static str,
    head: usize,
    tail: usize,
    /// The first entry of the middle zone, which ends where the tail begins.
    middle: usize,
    range: Option<(EntryId, EntryId)>,
    anchor: Option<EntryId>,
    last_user: Option<EntryId>,
    /// The entries that are in no segment, in order.
    in_view: Vec<EntryId>,
    relevance: Option<Rc<Relevance>>,
    folded: Vec<FoldedItem>,
    first_changed: usize,
    user_text: Vec<EntryId>,
}

/// The parameters of a draft.
pub(crate) struct DraftOptions<'a> {
    pub(crate) counter: &'a dyn Count,
    pub(crate) parallel: &'a dyn ParallelMap,
    pub(crate) policy: &'a Policy,
    pub(crate) stage: &'a Stage,
    pub(crate) room: Tokens,
    /// The only entries that may be folded, first and last, if the fold is limited to a range.
    pub(crate) range: Option<(EntryId, EntryId)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        transcript: &'a Transcript,
        ledger: &'a mut Ledger,
        analysis: &'a mut Analysis,
        options: &DraftOptions<'a>,
    ) -> Draft<'a> {
        let DraftOptions { counter, parallel, policy, stage, room, range } = *options;
        let is_in_view = |id: &EntryId| !ledger.is_in_segment(*id);
        let in_view = (0..transcript.len()).map(EntryId::from).filter(is_in_view).collect();
        let tail = tail_start(transcript, ledger, options);
        Draft {
            counter,
            parallel,
            policy,
            stage,
            room,
            range,
            pass: "",
            head: head_end(transcript, ledger, options),
            tail,
            middle: middle_start(transcript, ledger, options, tail),
            anchor: if policy.keeps_anchor { transcript.last_text_step() } else { None },
            last_user: transcript.last_user(),
            in_view,
            relevance: None,
            folded: Vec::new(),
            first_changed: transcript.len(),
            user_text: Vec::new(),
            transcript,
            ledger,
            analysis,
        }
    }

    /// The cost of the view with the folds so far.
    pub(crate) fn total(&self) -> Tokens {
        self.ledger.total_without_summary(self.transcript)
    }

    /// The unfolded results that may be folded, oldest first.
    pub(crate) fn results(&self) -> Vec<(Place, &'a str)> {
        let mut found = Vec::new();
        for (id, call) in self.calls() {
            let place = Place::Result(id);
            if let Some(outcome) = call.result.as_ref().filter(|_| self.may_fold_first(place)) {
                found.push((place, outcome.body.as_str()));
            }
        }
        found
    }

    /// The entries that are in no segment, oldest first.
    pub(crate) fn in_view(&self) -> impl Iterator<Item = (EntryId, &'a Entry)> {
        let transcript = self.transcript;
        self.in_view.iter().map(move |&id| (id, transcript.entry(id)))
    }

    /// All calls of steps that are in no segment, oldest first.
    pub(crate) fn calls(&self) -> Vec<(CallId, &'a Call)> {
        let transcript = self.transcript;
        let mut found = Vec::new();
        for &id in &self.in_view {
            let Some(step) = transcript.entry(id).step() else { continue };
            let call_id = |call: usize| CallId { step: id, call: call as u16 };
            found.extend(step.calls.iter().enumerate().map(|(n, call)| (call_id(n), call)));
        }
        found
    }

    /// The locations that may be folded, including folded ones that may become shorter, oldest first.
    pub(crate) fn places(&self, wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        let places = self.in_view.iter().flat_map(|&id| places_of(self.transcript.entry(id), id));
        places.filter(|place| wanted(*place) && self.may_fold(*place)).collect()
    }

    /// The unfolded locations that may be folded, oldest first.
    pub(crate) fn unfolded_places(&self, wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        let mut places = self.places(wanted);
        places.retain(|place| self.ledger.fold_at(*place).is_none());
        places
    }

    fn may_fold_first(&self, place: Place) -> bool {
        self.may_fold(place) && self.ledger.fold_at(place).is_none()
    }

    /// Folds a text to a few words and the handle: `[words, #12.1]`. Returns whether it was folded.
    pub(crate) fn fold(&mut self, place: Place, words: &str) -> bool {
        self.fold_to(place, |tag| format!("[{words}, {tag}]"))
    }

    /// Folds a text to a stub. The callback receives a tag that the stub must contain: the handle.
    pub(crate) fn fold_to(&mut self, place: Place, stub: impl FnOnce(&str) -> String) -> bool {
        self.may_shorten(place) && {
            let handle = self.ledger.name_place(self.transcript, place);
            self.replace(place, handle, stub)
        }
    }

    /// Returns whether a text may be folded and is longer than the shortest stub.
    fn may_shorten(&self, place: Place) -> bool {
        self.may_fold(place) && self.place_cost(place) > self.counter.count("[folded, #10.1]")
    }

    /// Replaces a text or its stub by a new stub, if that is shorter.
    fn replace(&mut self, place: Place, handle: Handle, stub: impl FnOnce(&str) -> String) -> bool {
        let before = self.place_cost(place);
        let tag = handle.to_string();
        let stub = stub(&tag);
        debug_assert!(stub.contains(&tag), "a stub contains its handle");
        let tokens = self.counter.count(&stub);
        if tokens >= before {
            return false;
        }
        self.record(Fold { place, stub: Arc::from(stub), tokens, handle, pass: self.pass }, before);
        true
    }

    /// The cost of a location in the view.
    pub(crate) fn place_cost(&self, place: Place) -> Tokens {
        match self.ledger.fold_at(place) {
            Some(fold) => fold.tokens,
            None => self.ledger.original_cost(self.transcript, place) - self.saved_by_media(place),
        }
    }

    fn record(&mut self, fold: Fold, before: Tokens) {
        let entry = fold.place.entry();
        self.ledger.saved_tokens += before.0 as i64 - fold.tokens.0 as i64;
        self.first_changed = self.first_changed.min(entry.index());
        if matches!(fold.place, Place::Text(_)) && self.transcript.entry(entry).is_user() {
            self.user_text.push(entry);
        }
        let target = FoldTarget::Place(fold.place);
        self.folded.push(FoldedItem {
            pass: self.pass,
            target,
            handle: fold.handle,
            before,
            after: fold.tokens,
        });
        let id = self.ledger.folds.len() as u32;
        let place = fold.place;
        self.ledger.folds.push(fold);
        let mut folds: Vec<u32> = match std::mem::take(&mut self.ledger.entry_states[entry.index()]) {
            EntryState::Edited(folds) => folds,
            EntryState::Whole => Vec::new(),
            EntryState::Segment(_) => unreachable!("entries in a segment cannot be folded"),
        };
        folds.retain(|&other| !is_within(self.ledger.folds[other as usize].place, place));
        folds.push(id);
        self.ledger.entry_states[entry.index()] = EntryState::Edited(folds);
    }

    /// The tokens that folds of a result's media have already saved.
    fn saved_by_media(&self, place: Place) -> Tokens {
        let Place::Result(call) = place else { return Tokens::ZERO };
        let EntryState::Edited(folds) = &self.ledger.entry_states[call.step.index()] else {
            return Tokens::ZERO;
        };
        let folds = folds.iter().map(|&i| &self.ledger.folds[i as usize]);
        let media = folds.filter(|fold| matches!(fold.place, Place::ResultMedia(id, _) if id == call));
        media.map(|fold| self.ledger.media_tokens - fold.tokens).sum()
    }

    /// Returns whether the stage may fold a location.
    pub(crate) fn may_fold(&self, place: Place) -> bool {
        let id = place.entry();
        let entry = self.transcript.entry(id);
        let reach = self.stage.reach;
        let is_absent = self.ledger.is_in_segment(id)
            || matches!(place, Place::ResultMedia(call, _) if self.ledger.fold_at(Place::Result(call)).is_some());
        if is_absent || self.is_excluded(id) {
            return false;
        }
        let is_protected = id.index() < self.head || id.index() >= self.tail;
        match entry {
            Entry::Prompt(prompt) => {
                let is_text = matches!(place, Place::Text(_));
                match prompt.speaker {
                    Speaker::User if is_text => self.may_fold_user(id),
                    Speaker::User => reach.images || !self.has_newest_images(id),
                    Speaker::System => {
                        is_text && reach.late_system == LateSystemReach::Fold && self.is_late(id)
                    }
                    Speaker::Harness => reach.tail || !is_protected,
                    Speaker::Provider => false,
                }
            }
            Entry::Step(step) => {
                // Signed or encrypted reasoning must not be changed.
                let is_sealed = matches!(place, Place::Reasoning(_)) && !step.reasoning.is_plain();
                let is_anchor = matches!(place, Place::Text(_)) && self.anchor == Some(id);
                let has_never_rule = self.has_never_rule(place);
                !is_sealed && (reach.tail || !(is_protected || is_anchor || has_never_rule))
            }
        }
    }

    fn may_fold_user(&self, id: EntryId) -> bool {
        let is_newest = self.last_user == Some(id);
        match self.stage.reach.user_text {
            UserTextReach::Never => false,
            UserTextReach::PastedBlocks | UserTextReach::Oldest | UserTextReach::Older => !is_newest,
            UserTextReach::Newest | UserTextReach::Unrestricted => true,
        }
    }

    /// Returns whether a user message has the newest images of the user.
    fn has_newest_images(&self, id: EntryId) -> bool {
        let later = &self.transcript.entries()[id.index() + 1..];
        !later.iter().any(|entry| entry.is_user() && entry.has_media())
    }

    /// Returns whether a location is a result that a tool rule protects.
    pub(crate) fn has_never_rule(&self, place: Place) -> bool {
        let Place::Result(call) = place else { return false };
        self.policy.never_folds(&self.transcript.call(call).tool)
    }

    /// Returns whether no stage may fold an entry.
    fn is_excluded(&self, id: EntryId) -> bool {
        let is_outside = self.range.is_some_and(|(from, to)| id < from || id > to);
        is_outside || self.ledger.pinned.contains(&id) || self.transcript.is_running(id)
    }

    /// Returns whether system text comes after the first turns.
    fn is_late(&self, id: EntryId) -> bool {
        let before = &self.transcript.entries()[..id.index()];
        let n_turns = before.iter().filter(|entry| entry.is_user()).count();
        n_turns >= self.policy.n_system_turns && before.iter().any(|entry| entry.step().is_some())
    }

    /// The verdict of a call, with a comma; empty without a verdict.
    pub(crate) fn outcome(&mut self, call: CallId) -> String {
        let facts = self.analysis.facts(self.transcript, &self.policy.tools, call.step);
        let verdict = facts.and_then(|facts| Some(facts.calls.get(usize::from(call.call))?.verdict.clone()));
        verdict.filter(|verdict| !verdict.is_empty()).map(|verdict| verdict + ", ").unwrap_or_default()
    }

    /// Returns whether a location is not folded yet.
    pub(crate) fn has_whole(&self, place: Place) -> bool {
        self.ledger.fold_at(place).is_none()
    }

    /// Returns whether an entry is in the middle zone.
    pub(crate) fn is_in_middle(&self, id: EntryId) -> bool {
        (self.middle..self.tail).contains(&id.index())
    }

    /// Returns whether an entry may be absorbed by a segment.
    pub(crate) fn may_absorb(&self, id: EntryId) -> bool {
        let i = id.index();
        let is_protected =
            i < self.head || i >= self.middle || self.anchor == Some(id) && !self.stage.reach.tail;
        let is_absent = matches!(self.ledger.entry_states[i], EntryState::Segment(_));
        if is_protected || is_absent || self.is_excluded(id) {
            return false;
        }
        let absorbs_users = match self.stage.reach.user_text {
            UserTextReach::Unrestricted => true,
            UserTextReach::Oldest | UserTextReach::Older => self.last_user != Some(id),
            UserTextReach::Never | UserTextReach::PastedBlocks | UserTextReach::Newest => false,
        };
        match self.transcript.entry(id) {
            Entry::Step(step) => {
                self.stage.reach.tail || !step.calls.iter().any(|call| self.policy.never_folds(&call.tool))
            }
            Entry::Prompt(prompt) => match prompt.speaker {
                Speaker::Harness => true,
                Speaker::Provider => false,
                Speaker::User => absorbs_users,
                Speaker::System => {
                    self.stage.reach.late_system == LateSystemReach::Absorb && self.is_late(id)
                }
            },
        }
    }

    /// The entries that may be absorbed by a segment, oldest first.
    pub(crate) fn absorbable(&self) -> Vec<EntryId> {
        self.in_view.iter().copied().filter(|id| self.may_absorb(*id)).collect()
    }

    /// The scan of an entry, which is cached until the entry is absorbed.
    pub(crate) fn scan(&mut self, id: EntryId) -> Arc<Scan> {
        self.analysis.scan(self.transcript, &self.policy.tools, id)
    }

    /// The scan of an entry without the lines that the pass `again` removed, because the lines that they repeated may
    /// be folded by now.
    fn scan_in_view(&mut self, id: EntryId) -> Arc<Scan> {
        let EntryState::Edited(folds) = &self.ledger.entry_states[id.index()] else { return self.scan(id) };
        if !folds.iter().any(|&i| self.ledger.folds[i as usize].pass == AGAIN.name) {
            return self.scan(id);
        }
        let folds = folds.iter().map(|&i| &self.ledger.folds[i as usize]);
        let mut entry = self.transcript.entry(id).clone();
        folds.for_each(|fold| apply_fold(&mut entry, fold));
        let parts = scan_entry(&entry, &self.policy.tools);
        Arc::new(parts.into_scan(Arc::make_mut(&mut self.analysis.lexicon)))
    }

    /// The action of a call.
    pub(crate) fn action(&mut self, id: CallId) -> Arc<Action> {
        self.analysis.action(self.transcript, &self.policy.tools, id)
    }

    /// The lines of a file that the newest edits touched.
    pub(crate) fn edited_lines(&mut self, file: &str) -> EditedLines {
        EditedLines::find(self.analysis, self.transcript, &self.policy.tools, file)
    }

    /// The handle of entries.
    pub(crate) fn name_entries(&mut self, entries: &[EntryId]) -> Handle {
        let Draft { ledger, analysis, transcript, .. } = self;
        ledger.name_entries(
            transcript,
            entries,
            entries.iter().map(|entry| analysis.hash(transcript, *entry)),
        )
    }

    /// Describes a call and its result in one line, and returns whether the call failed.
    pub(crate) fn describe_with_failure(&mut self, id: CallId) -> (String, bool) {
        let action = self.action(id);
        describe_with_failure(self.transcript.call(id), &action)
    }

    /// The step with the newest text of the agent, if it is before the tail.
    pub(crate) fn anchor(&self) -> Option<EntryId> {
        self.anchor.filter(|anchor| anchor.index() < self.tail)
    }

    /// The cost of the tail.
    pub(crate) fn tail_cost(&self) -> Tokens {
        (self.tail..self.transcript.len()).map(|i| self.cost(EntryId::from(i))).sum()
    }

    /// The cost of an entry in the view.
    pub(crate) fn cost(&self, id: EntryId) -> Tokens {
        self.ledger.cost(self.transcript, id)
    }

    /// Adds a segment, which replaces its entries and the segments that were merged into it.
    pub(crate) fn absorb(&mut self, segment: Segment, merged: &[u32]) {
        let id = self.ledger.segments.len() as u32;
        let old_state = self.ledger.state_note().map(|state| (state.at, state.tokens));
        let mut before = Tokens::ZERO;
        for &old in merged {
            before += self.ledger.segments[old as usize].tokens();
        }
        for &entry in &segment.entries {
            let is_new = !self.ledger.is_in_segment(entry);
            if is_new && self.transcript.entry(entry).is_user() {
                self.user_text.push(entry);
            }
            if is_new {
                before += self.ledger.cost(self.transcript, entry);
                self.analysis.drop_scan(entry);
                self.ledger.cut_limits.remove(&entry);
            }
            self.ledger.entry_states[entry.index()] = EntryState::Segment(id);
        }
        self.in_view.retain(|id| !self.ledger.is_in_segment(*id));
        let mut after = segment.tokens();
        self.ledger.saved_tokens += before.0 as i64 - after.0 as i64;
        let (first, last) = segment.span();
        self.first_changed = self.first_changed.min(first.index());
        let handle = segment.handle;
        self.ledger.live_segments.retain(|live| !merged.contains(live));
        let at = self
            .ledger
            .live_segments
            .partition_point(|&live| self.ledger.segments[live as usize].span().0 < first);
        self.ledger.live_segments.insert(at, id);
        self.ledger.segments.push(segment);
        let new_state = self.ledger.state_note().map(|state| (state.at, state.tokens));
        if let Some((at, tokens)) = old_state.filter(|_| new_state != old_state) {
            before += tokens;
            self.first_changed = self.first_changed.min(at.index());
        }
        if let Some((_, tokens)) = new_state.filter(|_| new_state != old_state) {
            after += tokens;
        }
        let target = FoldTarget::Entries(first, last);
        self.folded.push(FoldedItem { pass: self.pass, target, handle, before, after });
    }

    /// Adds a segment if that saves more than `least` tokens.
    pub(crate) fn absorb_if_shorter(&mut self, segment: Segment, merged: &[u32], least: Tokens) {
        let (added, removed) = self.change_by(&segment, merged);
        if added + least < removed {
            self.absorb(segment, merged);
        }
    }

    /// The tokens that a segment adds and removes, with those of the state.
    fn change_by(&self, segment: &Segment, merged: &[u32]) -> (Tokens, Tokens) {
        let of_entries: Tokens = segment.entries.iter().map(|&id| self.cost(id)).sum();
        let of_merged: Tokens = merged.iter().map(|&id| self.ledger.segments[id as usize].tokens()).sum();
        let (_, last) = segment.span();
        let is_newest = self.ledger.live_segments().all(|other| other.span().1 <= last);
        let new_state =
            segment.state.as_ref().filter(|_| is_newest).map_or(Tokens::ZERO, |state| state.tokens);
        let old_state = if is_newest { self.ledger.state_tokens() } else { Tokens::ZERO };
        (segment.tokens() + new_state, of_entries + of_merged + old_state)
    }

    /// Scores lines by their relevance to the tail.
    pub(crate) fn relevance(&mut self) -> Rc<Relevance> {
        if let Some(relevance) = &self.relevance {
            return Rc::clone(relevance);
        }
        self.analysis.index(self.transcript, &self.policy.tools, self.parallel, self.transcript.len());
        let relevance = Rc::new(self.relevance_to(|_| true));
        self.relevance = Some(Rc::clone(&relevance));
        relevance
    }

    /// Scores the lines of an entry by their relevance to the other entries of the tail.
    pub(crate) fn relevance_without(&mut self, entry: EntryId) -> Rc<Relevance> {
        let relevance = self.relevance();
        if entry.index() < self.tail { relevance } else { Rc::new(self.relevance_to(|other| other != entry)) }
    }

    fn relevance_to(&mut self, is_included: impl Fn(EntryId) -> bool) -> Relevance {
        // The tail may contain entries that are inside a segment by now.
        let is_visible = |id: &EntryId| is_included(*id) && !self.ledger.is_in_segment(*id);
        let tail: Vec<_> = (self.tail..self.transcript.len()).map(EntryId::from).filter(is_visible).collect();
        let tail: Vec<_> = tail.into_iter().map(|id| self.scan_in_view(id)).collect();
        let user = self.last_user.and_then(|id| self.transcript.entry(id).prompt());
        Relevance::new(&tail, &self.ledger.focus, user.map_or("", |prompt| prompt.body.as_str()))
    }

    /// Runs the passes of the stage until the view costs at most the target.
    pub(crate) fn run(&mut self, target: Tokens) {
        for pass in self.stage.passes.clone() {
            if self.total() <= target {
                break;
            }
            self.pass = pass.name;
            (pass.run)(self, target);
        }
    }

    /// Finishes the draft. Returns the folded parts, the first changed entry, and the shortened user messages.
    pub(crate) fn finish(self) -> (Vec<FoldedItem>, usize, Vec<EntryId>) {
        (self.folded, self.first_changed, self.user_text)
    }
}

/// Replaces the folded text of an entry by its stub.
fn apply_fold(entry: &mut Entry, fold: &Fold) {
    let stub = Body::text(Arc::clone(&fold.stub));
    match (entry, fold.place) {
        (Entry::Prompt(prompt), Place::Text(_)) => prompt.body = stub,
        (Entry::Step(step), Place::Text(_)) => step.text = stub,
        (Entry::Step(step), Place::Arguments(id)) => step.calls[usize::from(id.call)].arguments = stub,
        (Entry::Step(step), Place::Result(id)) => {
            if let Some(outcome) = &mut step.calls[usize::from(id.call)].result {
                outcome.body = stub;
            }
        }
        _ => {}
    }
}

/// Returns whether a fold of `outer` replaces a fold of `inner`.
fn is_within(inner: Place, outer: Place) -> bool {
    match (inner, outer) {
        (Place::ResultMedia(call, _), Place::Result(other)) => call == other,
        (inner, outer) => inner == outer,
    }
}
