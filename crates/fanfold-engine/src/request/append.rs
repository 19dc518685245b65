//! Keeps what a client says before anything stands for it.

use std::borrow::Cow;

use fanfold_core::Budget;
use fanfold_store::{
    Batch, BlobId, Millis, NewMessage, NewSession, NodeId, Op, Relation, SessionChange as Alter, SessionRow,
    StoreError,
};
use fanfold_wire::{Conversation, Format, Incoming, same_system};

use crate::engine::Engine;
use crate::follow::recall_offer::Offer;
use crate::follow::terms::Terms;
use crate::log::body_frame::Skeleton;
use crate::log::message_styles::Dresses;
use crate::log::notes::{Began, Moved, Note, Sent, Why};
use crate::log::session_log::Past;
use crate::request::body_edits::BodyEdits;
use crate::request::pipeline::{Ask, Trouble};
use crate::request::receive::{frame_of, ids_of, whole};
use crate::sessions::state::{Arrived, State, places_of, read_frame};

/// So often a session is looked at again when somebody else wrote to it in between.
pub(crate) const MOST_TRIES: usize = 8;

/// A conversation whose messages are in the store, or go there with what is noted next.
pub(crate) struct Kept {
    pub(crate) arrived: Arrived,
    /// The session as it was left, if the conversation goes on from there; the changes are then those since.
    pub(crate) held: Option<Box<State>>,
    /// What holds for it, in order, where it goes on.
    pub(crate) holding: Vec<(u32, usize)>,
    pub(crate) past: Past,
    pub(crate) frame: (BlobId, Skeleton),
    /// What is still to be written, with what is noted next or alone.
    pub(crate) deferred: Option<Batch>,
    pub(crate) n_new: usize,
    /// How many messages of the session the body does not have.
    pub(crate) n_left: usize,
}

/// When messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// With what is noted next, where nothing has happened that must be read back before.
    WithTheNext,
    /// At once, and how they were written: nothing else will be noted.
    AsItCame,
    /// So, too, because nothing fits.
    NothingFits,
}

impl Engine {
    /// Keeps the messages of a body, and what changed beside them, in one batch.
    pub(crate) fn keep(&self, ask: &Ask<'_>, when: When) -> Result<Kept, Trouble> {
        let mut held = self.cache.take(ask.session).map(Box::new);
        for _ in 0..MOST_TRIES {
            let row = self.store.session(ask.session)?;
            match self.keep_once(ask, row.as_ref(), held.take(), when) {
                // Somebody else wrote in between: look again.
                Err(Trouble::Store(StoreError::Moved(_) | StoreError::SessionExists(_))) => {}
                kept => return kept,
            }
        }
        Err(StoreError::Moved(ask.session.clone()).into())
    }

    fn keep_once(
        &self,
        ask: &Ask<'_>,
        row: Option<&SessionRow>,
        held: Option<Box<State>>,
        when: When,
    ) -> Result<Kept, Trouble> {
        let (mut arrived, mut held) = self.receive(ask, held)?;
        let mut past = held.as_mut().map(|state| std::mem::take(&mut state.past)).unwrap_or_default();
        if row.is_some() {
            past.read_on(&*self.store, ask.session)?;
        }
        let mut writing = Writing { ask, row, now: self.clock.now(), ops: Vec::new(), is_news: false };
        writing.session(&arrived.conversation);
        let frame = frame_of(ask, &arrived, held.as_deref());
        if !past.frames.contains(&frame.0.to_string()) {
            writing.ops.push(Op::PutBlob(frame.1.blob().1));
        }
        if arrived.conversation.is_continued() {
            return self.keep_continued(writing, &arrived.conversation, frame.0);
        }
        if !past.has_sent() && past.offer().is_none() {
            writing.offer(&arrived.conversation);
        }
        let era = match past.era(past.notes.len()) {
            Some(era) if self.is_of_era(&past, era, ask.terms, &arrived, held.as_deref())? => Some(era),
            _ => None,
        };
        if era.is_none() {
            writing.begin(arrived.conversation.format(), frame.0);
        }
        let n_left = self.append(&mut writing, &arrived)?;
        let mut holding = Vec::new();
        let places = match &mut held {
            Some(state) => state.places_with(&arrived.ids),
            None => &places_of(&arrived.ids),
        };
        if let Some(era) = era {
            holding = past.holding(places, era, past.notes.len());
            writing.since_last(&past, era, &holding);
        } else if past.has_sent() && writing.is_other_model(&arrived.conversation) {
            // What one model's cache holds is nothing to another.
            writing.note(&Note::Cooled { later: false });
        }
        for &message in ask.pins {
            writing.note(&Note::Pinned { message });
        }
        if ask.is_by_hand && when == When::WithTheNext {
            writing.note(&Note::FoldAsked { from: None, to: None });
        }
        if when != When::WithTheNext {
            let (frame, overflow) = (frame.0.to_string(), when == When::NothingFits);
            let dress = Dresses::of(arrived.conversation.styles());
            writing.note(&Note::Came { frame, dress, overflow });
        }
        let is_news = writing.is_news;
        let mut n_new = 0;
        let mut deferred = Some(writing.batch());
        if is_news {
            n_new = self.write_kept(deferred.take())?;
        }
        if is_news {
            // What was written is read back: the store is trusted, and not the memory of what was meant.
            past.read_on(&*self.store, ask.session)?;
            let era = past.era(past.notes.len()).unwrap_or_default();
            holding = past.holding(places, era, past.notes.len());
        }
        if let Some(state) = &mut held {
            state.past = past;
            past = Past::default();
            let goes_on = era.is_some() && n_left.is_none() && state.can_go_on(&arrived.ids, &holding);
            if !goes_on {
                past = std::mem::take(&mut state.past);
                held = None;
                arrived = whole(Incoming::open(ask.body, ask.terms.format)?);
            }
        }
        let n_left = n_left.unwrap_or_default();
        Ok(Kept { arrived, held, holding, past, frame, deferred, n_new, n_left })
    }

    /// Writes what was kept back. Gives how many messages were new.
    pub(crate) fn write_kept(&self, batch: Option<Batch>) -> Result<usize, StoreError> {
        match batch.filter(|batch| !batch.ops.is_empty()) {
            Some(batch) => Ok(self.store.commit(&batch)?.n_new_messages),
            None => Ok(0),
        }
    }

    /// Keeps messages that only go on with what the provider holds. They leave as they came.
    fn keep_continued(
        &self,
        mut writing: Writing<'_>,
        conversation: &Conversation,
        frame: BlobId,
    ) -> Result<Kept, Trouble> {
        let ask = writing.ask;
        let (tip, from) = writing.row.map_or((None, 0), |row| (row.tip, row.n_messages));
        let ids = ids_of(tip, conversation.plain_messages(0));
        let messages = conversation.plain_messages(0).map(new_message).collect();
        writing.ops.push(Op::Append(ask.session.clone(), messages));
        writing.note(&Note::Request(Sent {
            tip: ids.last().copied().or(tip).map(|tip| tip.to_string()),
            from,
            seen: 0,
            frame: frame.to_string(),
            format: conversation.format().to_string(),
            policy: ask.terms.policy.name.to_owned(),
            counter: ask.terms.counter.name().to_owned(),
            tokens: None,
            dress: Dresses::of(conversation.styles()),
            hash: blake3::hash(ask.body.as_bytes()).to_string(),
            n_bytes: ask.body.len() as u64,
            original: Some(Trouble::Continued.to_string()),
            edits: BodyEdits::default(),
        }));
        self.write_kept(Some(writing.batch()))?;
        Err(Trouble::Continued)
    }

    /// Whether a conversation goes on by the terms it was begun with.
    fn is_of_era(
        &self,
        past: &Past,
        era: usize,
        terms: &Terms,
        arrived: &Arrived,
        held: Option<&State>,
    ) -> Result<bool, StoreError> {
        let conversation = &arrived.conversation;
        let Note::Began(began) = &past.notes[era].note else { return Ok(false) };
        let is_same = began.terms == BlobId::new(terms.described.as_bytes()).to_string()
            && began.format == conversation.format().to_string();
        // One that goes on with what is held has its instructions, and what is held has those of its era.
        let is_known = held.is_some_and(|state| state.era == era);
        if !is_same || is_known {
            return Ok(is_same);
        }
        // What stands beside the list as instructions is the transcript's first entry, so another one begins it anew.
        let frame = read_frame(&*self.store, &began.frame)?;
        Ok(same_system(frame.system(), conversation.system()))
    }

    /// Puts messages behind the session's, after moving it back to where they part. If it moved, says how many
    /// messages it left behind.
    fn append(&self, writing: &mut Writing<'_>, arrived: &Arrived) -> Result<Option<usize>, StoreError> {
        let session = writing.ask.session;
        let tip = writing.row.and_then(|row| row.tip);
        let n_held = writing.row.map_or(0, |row| row.n_messages as usize);
        let is_grown = tip.is_none_or(|tip| n_held > 0 && arrived.ids.get(n_held - 1) == Some(&tip));
        let mut n_there = if is_grown { n_held } else { 0 };
        let mut n_left = None;
        if !is_grown {
            n_left = Some(n_held - self.n_common(tip, n_held, &arrived.ids)?);
            n_there = self.n_there(&arrived.ids, 0)?;
            let to = n_there.checked_sub(1).map(|last| arrived.ids[last]);
            // Noted before the move, so that what is left behind is what the note comes after.
            writing.note(&Note::Moved(Moved {
                why: Why::Edited,
                from: tip.map(|tip| tip.to_string()),
                to: arrived.ids.last().map(ToString::to_string),
                mark: None,
            }));
            writing.ops.push(Op::MoveTip(session.clone(), to));
        }
        let new: Vec<NewMessage> = arrived.conversation.plain_messages(n_there).map(new_message).collect();
        if !new.is_empty() {
            writing.ops.push(Op::Append(session.clone(), new));
        }
        Ok(n_left)
    }

    /// How many of the messages, from the first on, the store has: where one is, all before it are. A likely number
    /// is tried first.
    pub(crate) fn n_there(&self, ids: &[NodeId], n_likely: usize) -> Result<usize, StoreError> {
        let (mut there, mut missing) = (0, ids.len() + 1);
        let mut tries = [n_likely, n_likely + 1].into_iter();
        while missing - there > 1 {
            let next = tries.next().filter(|next| there < *next && *next < missing);
            let next = next.unwrap_or(usize::midpoint(there, missing));
            if self.store.node(ids[next - 1])?.is_some() { there = next } else { missing = next }
        }
        Ok(there)
    }
}

/// What is to be written at once.
struct Writing<'a> {
    ask: &'a Ask<'a>,
    row: Option<&'a SessionRow>,
    now: Millis,
    ops: Vec<Op>,
    /// Whether something is noted, so that it has to be read back.
    is_news: bool,
}

impl Writing<'_> {
    fn batch(self) -> Batch {
        let expect = self.row.map(|row| (row.id.clone(), row.tip)).into_iter().collect();
        Batch { at: self.now, expected_tips: expect, ops: self.ops }
    }

    fn note(&mut self, note: &Note) {
        self.is_news = true;
        self.ops.push(Op::AddEvent(self.ask.session.clone(), note.event()));
    }

    /// Makes the session, or takes it up again.
    fn session(&mut self, conversation: &Conversation) {
        let session = self.ask.session;
        match self.row {
            None => self.ops.push(Op::Create(NewSession {
                id: session.clone(),
                source: self.ask.source.to_owned(),
                format: conversation.format().to_string(),
                parent: self.ask.parent.map(|parent| (parent.clone(), Relation::Subagent)),
                tip: None,
            })),
            Some(row) if row.ended.is_some() => self.ops.push(Op::Update(session.clone(), Alter::Reopen)),
            Some(_) => {}
        }
        let known = self.row.and_then(|row| row.model.as_deref());
        if let Some(model) = conversation.model().filter(|model| Some(*model) != known) {
            self.ops.push(Op::Update(session.clone(), Alter::Model(model.to_owned())));
        }
    }

    /// Whether a conversation goes to another model than before.
    fn is_other_model(&self, conversation: &Conversation) -> bool {
        let known = self.row.and_then(|row| row.model.as_deref());
        known.zip(conversation.model()).is_some_and(|(known, model)| known != model)
    }

    /// Notes how the model may open folds, as far as a body has a place for a tool.
    fn offer(&mut self, conversation: &Conversation) {
        let Some(offer) = self.ask.offer else { return };
        let mut conversation = conversation.clone();
        conversation.add_tool(offer.tool.as_deref());
        let tool = offer.tool.clone().filter(|_| conversation.has_added_tool());
        self.note(&Note::Offered(Offer { tool, words: offer.words.clone() }));
    }

    /// Notes the terms that hold from here on.
    fn begin(&mut self, format: Format, frame: BlobId) {
        let (budget, described) = (self.ask.terms.budget, self.ask.terms.described.as_bytes());
        self.ops.push(Op::PutBlob(described.to_vec()));
        self.note(&Note::Began(Began {
            terms: BlobId::new(described).to_string(),
            window: budget.window().0,
            reserve: budget.reserve().0,
            format: format.to_string(),
            frame: frame.to_string(),
        }));
    }

    /// Notes what has changed since the last request: the budget, and whether the provider's cache is cold.
    fn since_last(&mut self, past: &Past, era: usize, holding: &[(u32, usize)]) {
        let budget: Budget = self.ask.terms.budget;
        if State::told_budget(past, holding, era) != Some(budget) {
            let (window, reserve) = (budget.window().0, budget.reserve().0);
            self.note(&Note::Budget { window, reserve });
        }
        let lifetime = self.ask.terms.prices.as_ref().and_then(|prices| prices.lifetime);
        let idle_ms = past.last_request().map(|last| self.now.0 - last.0);
        let is_cold = idle_ms.zip(lifetime).is_some_and(|(idle, lifetime)| idle / 1000 > lifetime as i64);
        if is_cold {
            self.note(&Note::Cooled { later: false });
        }
    }
}

fn new_message(json: Cow<'_, str>) -> NewMessage {
    NewMessage { json: json.into_owned(), at: None }
}
