//! The batch that stores the messages of a request.

use std::borrow::Cow;

use fanfold_core::Budget;
use fanfold_store::{
    Batch, BlobId, Millis, NewMessage, NewSession, Op, Relation, SessionRow, SessionUpdate as Alter,
};
use fanfold_wire::{Conversation, Format};

use crate::follow::recall_offer::Offer;
use crate::log::message_styles::Dresses;
use crate::log::notes::{Began, Note};
use crate::log::session_log::{EffectiveEvent, Past};
use crate::request::append::WriteTiming;
use crate::request::pipeline::Ask;
use crate::sessions::state::State;

/// A batch under construction.
pub(crate) struct AppendBatch<'a> {
    pub(crate) ask: &'a Ask<'a>,
    pub(crate) row: Option<&'a SessionRow>,
    now: Millis,
    pub(crate) ops: Vec<Op>,
    /// Whether it has events, which have to be read back.
    pub(crate) has_events: bool,
}

impl<'a> AppendBatch<'a> {
    pub(crate) fn new(ask: &'a Ask<'a>, row: Option<&'a SessionRow>, now: Millis) -> AppendBatch<'a> {
        AppendBatch { ask, row, now, ops: Vec::new(), has_events: false }
    }

    pub(crate) fn finish(self) -> Batch {
        let expect = self.row.map(|row| (row.id.clone(), row.tip)).into_iter().collect();
        Batch { at: self.now, expected_tips: expect, ops: self.ops }
    }

    pub(crate) fn record(&mut self, note: &Note) {
        self.has_events = true;
        self.ops.push(Op::AddEvent(self.ask.session.clone(), note.event()));
    }

    /// Creates the session, or reopens it.
    pub(crate) fn open_session(&mut self, conversation: &Conversation) {
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

    /// Whether the body names another model than the session.
    pub(crate) fn has_new_model(&self, conversation: &Conversation) -> bool {
        let known = self.row.and_then(|row| row.model.as_deref());
        known.zip(conversation.model()).is_some_and(|(known, model)| known != model)
    }

    /// Records how the model can recall folds; the tool only if the body has a place for it.
    pub(crate) fn record_offer(&mut self, conversation: &Conversation) {
        let Some(offer) = self.ask.offer else { return };
        let mut conversation = conversation.clone();
        conversation.add_tool(offer.tool.as_deref());
        let tool = offer.tool.clone().filter(|_| conversation.has_added_tool());
        self.record(&Note::Offered(Offer { tool, words: offer.words.clone() }));
    }

    /// Records new terms.
    pub(crate) fn record_terms(&mut self, format: Format, frame: BlobId) {
        let (budget, described) = (self.ask.terms.budget, self.ask.terms.described.as_bytes());
        self.ops.push(Op::PutBlob(described.to_vec()));
        self.record(&Note::Began(Began {
            terms: BlobId::new(described).to_string(),
            window: budget.window().0,
            reserve: budget.reserve().0,
            format: format.to_string(),
            frame: frame.to_string(),
        }));
    }

    /// Records a changed budget, and that the provider's cache has expired.
    pub(crate) fn record_changes(&mut self, log: &Past, terms_event: usize, effective: &[EffectiveEvent]) {
        let budget: Budget = self.ask.terms.budget;
        if State::recorded_budget(log, effective, terms_event) != Some(budget) {
            let (window, reserve) = (budget.window().0, budget.reserve().0);
            self.record(&Note::Budget { window, reserve });
        }
        let lifetime = self.ask.terms.prices.as_ref().and_then(|prices| prices.lifetime);
        let idle_ms = log.last_request().map(|last| self.now.0 - last.0);
        let is_cold = idle_ms.zip(lifetime).is_some_and(|(idle, lifetime)| idle / 1000 > lifetime as i64);
        if is_cold {
            self.record(&Note::Cooled { later: false });
        }
    }

    /// Records requested pins and folds; and the styles of the messages if nothing else will be recorded.
    pub(crate) fn record_wishes(&mut self, timing: WriteTiming, frame: BlobId, conversation: &Conversation) {
        for &message in self.ask.pins {
            self.record(&Note::Pinned { message });
        }
        if timing == WriteTiming::WithRequest {
            if self.ask.is_by_hand {
                self.record(&Note::FoldAsked { from: None, to: None });
            }
            return;
        }
        let (frame, overflow) = (frame.to_string(), timing == WriteTiming::Overflow);
        let dress = Dresses::of(conversation.styles());
        self.record(&Note::Came { frame, dress, overflow });
    }
}

pub(crate) fn new_message(json: Cow<'_, str>) -> NewMessage {
    NewMessage { json: json.into_owned(), at: None }
}
