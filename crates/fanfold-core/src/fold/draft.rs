//! A view in the making: which parts are being folded away, and the one door through which they go.
//!
//! Passes propose; `Draft::fold` and `Draft::absorb` alone decide what may be folded. So no pass can touch what a
//! person said, a running call, a pinned entry or the newest steps.

use std::rc::Rc;
use std::sync::Arc;

use crate::actions::tool_rule::ToolFold;
use crate::actions::{Deed, describe_with_failure};
use crate::fold::digest::segment::Segment;
use crate::fold::ledger::{Fold, Ledger, Standing};
use crate::fold::originals::Original;
use crate::fold::passes::AGAIN;
use crate::fold::policy::{LateSystem, Policy, Stage, Users};
use crate::fold::protected_ranges::{head_end, tail_start};
use crate::fold::receipt::{Left, What};
use crate::model::handle::{Handle, Hash};
use crate::model::location::{Place, original_at, places_of};
use crate::model::parallel::ParallelMap;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{Body, Call, CallId, Entry, EntryId, Speaker, Transcript};
use crate::select::analysis::Analysis;
use crate::select::edited_lines::EditedLines;
use crate::select::scan::{Scan, scan_entry};
use crate::select::scorer::Relevance;
use crate::text::slices::{SLICE, slices};

/// A stub names no more parts of its original than this.
const MOST_PARTS: u64 = 48;

/// A view in the making.
pub struct Draft<'a> {
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
    range: Option<(EntryId, EntryId)>,
    anchor: Option<EntryId>,
    last_user: Option<EntryId>,
    /// The entries that are in no segment, in order.
    in_view: Vec<EntryId>,
    worth: Option<Rc<Relevance>>,
    pub(crate) left: Vec<Left>,
    pub(crate) first_changed: usize,
    pub(crate) user_text: Vec<EntryId>,
}

/// What a draft is made from, beside the transcript and the ledger.
pub(crate) struct Terms<'a> {
    pub(crate) counter: &'a dyn Count,
    pub(crate) parallel: &'a dyn ParallelMap,
    pub(crate) policy: &'a Policy,
    pub(crate) stage: &'a Stage,
    pub(crate) room: Tokens,
    /// Only these entries, when a person asked for them.
    pub(crate) range: Option<(EntryId, EntryId)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        transcript: &'a Transcript,
        ledger: &'a mut Ledger,
        analysis: &'a mut Analysis,
        terms: &Terms<'a>,
    ) -> Draft<'a> {
        let Terms { counter, parallel, policy, stage, room, range } = *terms;
        let is_there = |id: &EntryId| !ledger.is_in_segment(*id);
        let in_view = (0..transcript.len()).map(EntryId::from).filter(is_there).collect();
        Draft {
            counter,
            parallel,
            policy,
            stage,
            room,
            range,
            pass: "",
            head: head_end(transcript, ledger, terms),
            tail: tail_start(transcript, ledger, terms),
            anchor: if policy.anchors { transcript.last_text_step() } else { None },
            last_user: transcript.last_user(),
            in_view,
            worth: None,
            left: Vec::new(),
            first_changed: transcript.len(),
            user_text: Vec::new(),
            transcript,
            ledger,
            analysis,
        }
    }

    /// What the view would cost now.
    pub fn total(&self) -> Tokens {
        self.ledger.bare_total(self.transcript)
    }

    /// The results that may be folded and are not yet, oldest first.
    pub fn results(&self) -> Vec<(Place, &'a str)> {
        let mut found = Vec::new();
        for (id, call) in self.calls() {
            let place = Place::Result(id);
            if let Some(outcome) = call.result.as_ref().filter(|_| self.is_open(place)) {
                found.push((place, outcome.body.as_str()));
            }
        }
        found
    }

    /// The entries that are in no segment, oldest first.
    pub fn in_view(&self) -> impl Iterator<Item = (EntryId, &'a Entry)> {
        let transcript = self.transcript;
        self.in_view.iter().map(move |&id| (id, transcript.entry(id)))
    }

    /// All calls of steps that are in no segment, oldest first.
    pub fn calls(&self) -> Vec<(CallId, &'a Call)> {
        let transcript = self.transcript;
        let mut found = Vec::new();
        for &id in &self.in_view {
            let Some(step) = transcript.entry(id).step() else { continue };
            let call_id = |call: usize| CallId { step: id, call: call as u16 };
            found.extend(step.calls.iter().enumerate().map(|(n, call)| (call_id(n), call)));
        }
        found
    }

    /// Places that may be folded, or folded deeper, oldest first.
    pub fn places(&self, wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        let places = self.in_view.iter().flat_map(|&id| places_of(self.transcript.entry(id), id));
        places.filter(|place| wanted(*place) && self.may_fold(*place)).collect()
    }

    /// Places that may be folded and are not yet, oldest first.
    pub fn open_places(&self, wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        let mut places = self.places(wanted);
        places.retain(|place| self.ledger.fold_at(*place).is_none());
        places
    }

    fn is_open(&self, place: Place) -> bool {
        self.may_fold(place) && self.ledger.fold_at(place).is_none()
    }

    /// Folds a place to a few words and the handle: `[words, 2243bf1f]`. Says whether it did.
    pub fn fold(&mut self, place: Place, words: &str) -> bool {
        self.fold_to(place, |tag| format!("[{words}, {tag}]"))
    }

    /// Folds a place to a text that must hold the tag it is given: the handle, or the handles of its parts.
    pub fn fold_to(&mut self, place: Place, stub: impl FnOnce(&str) -> String) -> bool {
        self.may_get_shorter(place) && {
            let (handles, tag) = self.tag(place);
            self.put(place, handles, &tag, stub)
        }
    }

    /// Folds a place to a text that names the original as a whole, however long that is.
    pub(crate) fn fold_bare(&mut self, place: Place, stub: impl FnOnce(&str) -> String) -> bool {
        self.may_get_shorter(place) && {
            let original = original_at(self.transcript, place).expect("a place holds something");
            let handle = self.ledger.name(Original::Place(place), Hash::new(original.as_bytes()));
            self.put(place, vec![handle], &handle.to_string(), stub)
        }
    }

    /// Whether a place may be folded and is not too short for a stub: a handle and some words.
    fn may_get_shorter(&self, place: Place) -> bool {
        self.may_fold(place) && self.place_cost(place) > self.counter.count("[folded, 000000]")
    }

    /// Puts a stub where it stands, if that is shorter than what stands there.
    fn put(
        &mut self,
        place: Place,
        handles: Vec<Handle>,
        tag: &str,
        stub: impl FnOnce(&str) -> String,
    ) -> bool {
        let before = self.place_cost(place);
        let stub = stub(tag);
        debug_assert!(stub.contains(tag), "a stub holds its handles");
        let tokens = self.counter.count(&stub);
        if tokens >= before {
            return false;
        }
        self.record(Fold { place, stub: Arc::from(stub), tokens, handles, pass: self.pass }, before);
        true
    }

    /// What a place costs as it stands.
    pub(crate) fn place_cost(&self, place: Place) -> Tokens {
        match self.ledger.fold_at(place) {
            Some(fold) => fold.tokens,
            None => self.ledger.whole_cost(self.transcript, place) - self.folded_media(place),
        }
    }

    /// The handle of a place and the words that name it in a stub: large originals open in slices.
    fn tag(&mut self, place: Place) -> (Vec<Handle>, String) {
        let original = original_at(self.transcript, place).expect("a place holds something");
        let handle = self.ledger.name(Original::Place(place), Hash::new(original.as_bytes()));
        let tokens = self.ledger.whole_cost(self.transcript, place);
        let slices = slices(&original, tokens, SLICE.max(Tokens(tokens.0 / MOST_PARTS)));
        if slices.len() < 2 {
            return (vec![handle], handle.to_string());
        }
        let mut handles = vec![handle];
        let mut tag = format!("{handle} in parts");
        for bytes in slices {
            let part = Original::PlaceSlice(place, bytes.clone());
            let name = self.ledger.name(part, Hash::new(original[bytes].as_bytes()));
            tag.push(' ');
            tag.push_str(&name.to_string());
            handles.push(name);
        }
        (handles, tag)
    }

    fn record(&mut self, fold: Fold, before: Tokens) {
        let entry = fold.place.entry();
        self.ledger.saved += before.0 as i64 - fold.tokens.0 as i64;
        self.first_changed = self.first_changed.min(entry.index());
        if matches!(fold.place, Place::Text(_)) && self.transcript.entry(entry).is_user() {
            self.user_text.push(entry);
        }
        let what = What::Place(fold.place);
        self.left.push(Left { pass: self.pass, what, handle: fold.handles[0], before, after: fold.tokens });
        let id = self.ledger.folds.len() as u32;
        let place = fold.place;
        self.ledger.folds.push(fold);
        let mut standing: Vec<u32> = match std::mem::take(&mut self.ledger.standing[entry.index()]) {
            Standing::Edited(folds) => folds,
            Standing::Whole => Vec::new(),
            Standing::Segment(_) => unreachable!("a place in a segment is not foldable"),
        };
        standing.retain(|&other| !is_within(self.ledger.folds[other as usize].place, place));
        standing.push(id);
        self.ledger.standing[entry.index()] = Standing::Edited(standing);
    }

    /// What the already folded media of a result no longer cost.
    fn folded_media(&self, place: Place) -> Tokens {
        let Place::Result(call) = place else { return Tokens::ZERO };
        let Standing::Edited(folds) = &self.ledger.standing[call.step.index()] else { return Tokens::ZERO };
        let folds = folds.iter().map(|&i| &self.ledger.folds[i as usize]);
        let media = folds.filter(|fold| matches!(fold.place, Place::ResultMedia(id, _) if id == call));
        media.map(|fold| self.ledger.media - fold.tokens).sum()
    }

    /// Whether a place may be folded at all in this stage.
    pub fn may_fold(&self, place: Place) -> bool {
        let id = place.entry();
        let entry = self.transcript.entry(id);
        let reach = self.stage.reach;
        let is_gone = self.ledger.is_in_segment(id)
            || matches!(place, Place::ResultMedia(call, _) if self.ledger.fold_at(Place::Result(call)).is_some());
        if is_gone || self.is_kept(id) {
            return false;
        }
        let is_protected = id.index() < self.head || id.index() >= self.tail;
        match entry {
            Entry::Prompt(prompt) => {
                let is_text = matches!(place, Place::Text(_));
                match prompt.speaker {
                    Speaker::User if is_text => self.may_fold_user(id),
                    Speaker::User => reach.images || !self.has_newest_images(id),
                    Speaker::System => is_text && reach.late_system == LateSystem::Folds && self.is_late(id),
                    Speaker::Harness => reach.tail || !is_protected,
                    Speaker::Provider => false,
                }
            }
            Entry::Step(step) => {
                // What a provider signed or sealed can't be reworded.
                let is_sealed = matches!(place, Place::Reasoning(_)) && !step.reasoning.is_plain();
                let is_anchor = matches!(place, Place::Text(_)) && self.anchor == Some(id);
                let is_guarded = self.is_guarded_tool(place);
                !is_sealed && (reach.tail || !(is_protected || is_anchor || is_guarded))
            }
        }
    }

    fn may_fold_user(&self, id: EntryId) -> bool {
        let is_newest = self.last_user == Some(id);
        match self.stage.reach.users {
            Users::Never => false,
            Users::Pastes | Users::Oldest | Users::Older => !is_newest,
            Users::Newest | Users::Freely => true,
        }
    }

    /// Whether these are the newest images of people's.
    fn has_newest_images(&self, id: EntryId) -> bool {
        let later = &self.transcript.entries()[id.index() + 1..];
        !later.iter().any(|entry| entry.is_user() && entry.has_media())
    }

    pub(crate) fn is_guarded_tool(&self, place: Place) -> bool {
        let Place::Result(call) = place else { return false };
        let rule = self.policy.tool(&self.transcript.call(call).tool);
        rule.is_some_and(|rule| rule.fold == ToolFold::Never)
    }

    /// Whether nothing may fold the entry, whatever the stage.
    fn is_kept(&self, id: EntryId) -> bool {
        let is_outside = self.range.is_some_and(|(from, to)| id < from || id > to);
        is_outside || self.ledger.pinned.contains(&id) || self.transcript.is_running(id)
    }

    /// Whether system text stands behind the turns that may have some.
    fn is_late(&self, id: EntryId) -> bool {
        let before = &self.transcript.entries()[..id.index()];
        let n_turns = before.iter().filter(|entry| entry.is_user()).count();
        n_turns >= self.policy.system_turns && before.iter().any(|entry| entry.step().is_some())
    }

    /// Whether an entry may go into a segment.
    pub fn may_absorb(&self, id: EntryId) -> bool {
        let i = id.index();
        let is_protected =
            i < self.head || i >= self.tail || self.anchor == Some(id) && !self.stage.reach.tail;
        let is_gone = matches!(self.ledger.standing[i], Standing::Segment(_));
        if is_protected || is_gone || self.is_kept(id) {
            return false;
        }
        let takes_users = match self.stage.reach.users {
            Users::Freely => true,
            Users::Oldest | Users::Older => self.last_user != Some(id),
            Users::Never | Users::Pastes | Users::Newest => false,
        };
        match self.transcript.entry(id) {
            Entry::Step(step) => self.stage.reach.tail || !step.calls.iter().any(|call| self.is_never(call)),
            Entry::Prompt(prompt) => match prompt.speaker {
                Speaker::Harness => true,
                Speaker::Provider => false,
                Speaker::User => takes_users,
                Speaker::System => self.stage.reach.late_system == LateSystem::Goes && self.is_late(id),
            },
        }
    }

    fn is_never(&self, call: &Call) -> bool {
        self.policy.tool(&call.tool).is_some_and(|rule| rule.fold == ToolFold::Never)
    }

    /// The entries that may go into a segment, oldest first.
    pub fn absorbable(&self) -> Vec<EntryId> {
        self.in_view.iter().copied().filter(|id| self.may_absorb(*id)).collect()
    }

    /// An entry taken apart. What is gone into a segment is not kept.
    pub(crate) fn scan(&mut self, id: EntryId) -> Arc<Scan> {
        self.analysis.scan(self.transcript, &self.policy.tools, id)
    }

    /// An entry taken apart as it stands in the view, if lines were left out of it that stood above when it came: they may go.
    fn scan_as_it_stands(&mut self, id: EntryId) -> Arc<Scan> {
        let Standing::Edited(folds) = &self.ledger.standing[id.index()] else { return self.scan(id) };
        if !folds.iter().any(|&i| self.ledger.folds[i as usize].pass == AGAIN.name) {
            return self.scan(id);
        }
        let folds = folds.iter().map(|&i| &self.ledger.folds[i as usize]);
        let mut entry = self.transcript.entry(id).clone();
        folds.for_each(|fold| stand_for(&mut entry, fold));
        let parts = scan_entry((&entry, Tokens::ZERO), &self.policy.tools);
        Arc::new(parts.into_scan(Arc::make_mut(&mut self.analysis.lexicon)))
    }

    /// What a call did.
    pub(crate) fn deed(&mut self, id: CallId) -> Arc<Deed> {
        self.analysis.action(self.transcript, &self.policy.tools, id)
    }

    /// The lines of a file that the newest edits touched.
    pub(crate) fn edited_lines(&mut self, file: &str) -> EditedLines {
        EditedLines::find(self.analysis, self.transcript, &self.policy.tools, file)
    }

    /// Names consecutive entries.
    pub(crate) fn name_entries(&mut self, entries: &[EntryId]) -> Handle {
        let Draft { ledger, analysis, transcript, .. } = self;
        ledger.name_entries(entries, entries.iter().map(|entry| analysis.hash(transcript, *entry)))
    }

    /// One line that says what a call did and how it ended, and whether it failed.
    pub(crate) fn describe_with_failure(&mut self, id: CallId) -> (String, bool) {
        let deed = self.deed(id);
        describe_with_failure(self.transcript.call(id), &deed)
    }

    /// The step with the newest words of the agent's, where it is not among the newest steps anyway.
    pub(crate) fn anchor(&self) -> Option<EntryId> {
        self.anchor.filter(|anchor| anchor.index() < self.tail)
    }

    /// What the newest steps cost.
    pub(crate) fn tail_cost(&self) -> Tokens {
        (self.tail..self.transcript.len()).map(|i| self.cost(EntryId::from(i))).sum()
    }

    /// What an entry costs as it stands.
    pub fn cost(&self, id: EntryId) -> Tokens {
        self.ledger.cost(self.transcript, id)
    }

    /// Puts entries into a segment, and takes the segments out that it was merged from.
    pub(crate) fn absorb(&mut self, segment: Segment, merged: &[u32]) {
        let id = self.ledger.segments.len() as u32;
        let mut before = Tokens::ZERO;
        for &old in merged {
            before += self.ledger.segments[old as usize].tokens();
        }
        for &entry in &segment.entries {
            let is_fresh = !self.ledger.is_in_segment(entry);
            if is_fresh && self.transcript.entry(entry).is_user() {
                self.user_text.push(entry);
            }
            if is_fresh {
                before += self.ledger.cost(self.transcript, entry);
                self.analysis.drop_scan(entry);
                self.ledger.cuts.remove(&entry);
            }
            self.ledger.standing[entry.index()] = Standing::Segment(id);
        }
        self.in_view.retain(|id| !self.ledger.is_in_segment(*id));
        let after = segment.tokens();
        self.ledger.saved += before.0 as i64 - after.0 as i64;
        let (first, last) = segment.span();
        self.first_changed = self.first_changed.min(first.index());
        let what = What::Entries(first, last);
        self.left.push(Left { pass: self.pass, what, handle: segment.handle, before, after });
        self.ledger.live.retain(|live| !merged.contains(live));
        let at =
            self.ledger.live.partition_point(|&live| self.ledger.segments[live as usize].span().0 < first);
        self.ledger.live.insert(at, id);
        self.ledger.segments.push(segment);
    }

    /// Puts entries into a segment unless that would cost more than they do.
    pub(crate) fn absorb_if_shorter(&mut self, segment: Segment, merged: &[u32]) {
        let of_entries: Tokens = segment.entries.iter().map(|&id| self.cost(id)).sum();
        let of_merged: Tokens = merged.iter().map(|&id| self.ledger.segments[id as usize].tokens()).sum();
        if segment.tokens() < of_entries + of_merged {
            self.absorb(segment, merged);
        }
    }

    /// What lines are worth, given what stays in view.
    pub(crate) fn worth(&mut self) -> Rc<Relevance> {
        if let Some(worth) = &self.worth {
            return Rc::clone(worth);
        }
        self.analysis.index(self.transcript, &self.policy.tools, self.parallel, self.transcript.len());
        let worth = Rc::new(self.worth_given(|_| true));
        self.worth = Some(Rc::clone(&worth));
        worth
    }

    /// What lines of an entry are worth, given what else stays in view: one of the newest may not stay as it is.
    pub(crate) fn worth_beside(&mut self, entry: EntryId) -> Rc<Relevance> {
        let worth = self.worth();
        if entry.index() < self.tail { worth } else { Rc::new(self.worth_given(|other| other != entry)) }
    }

    /// What lines are worth if these of the newest entries stay in view.
    fn worth_given(&mut self, stays: impl Fn(EntryId) -> bool) -> Relevance {
        // The tail may reach back over what is folded by now.
        let is_there = |id: &EntryId| stays(*id) && !self.ledger.is_in_segment(*id);
        let tail: Vec<_> = (self.tail..self.transcript.len()).map(EntryId::from).filter(is_there).collect();
        let tail: Vec<_> = tail.into_iter().map(|id| self.scan_as_it_stands(id)).collect();
        Relevance::new(&tail, &self.ledger.focus)
    }

    /// Runs the stage's passes until the view costs no more than the target.
    pub(crate) fn run(&mut self, target: Tokens) {
        for pass in self.stage.passes.clone() {
            if self.total() <= target {
                break;
            }
            self.pass = pass.name;
            (pass.run)(self, target);
        }
    }

    /// Ends the draft.
    pub(crate) fn finish(self) -> (Vec<Left>, usize, Vec<EntryId>) {
        (self.left, self.first_changed, self.user_text)
    }
}

/// Puts a stub where it stands.
fn stand_for(entry: &mut Entry, fold: &Fold) {
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

/// Whether a fold of `outer` swallows one of `inner`.
fn is_within(inner: Place, outer: Place) -> bool {
    match (inner, outer) {
        (Place::ResultMedia(call, _), Place::Result(other)) => call == other,
        (inner, outer) => inner == outer,
    }
}
