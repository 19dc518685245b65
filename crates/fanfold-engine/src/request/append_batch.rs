//! The batch that stores the messages of a request.

use std::borrow::Cow;

use fanfold_core::Budget;
use fanfold_store::{Batch, BlobId, Millis, NewMessage, NewSession, Op, Relation, SessionRow, SessionUpdate};
use fanfold_wire::{Conversation, Format};

use crate::follow::session_state::SessionState;
use crate::log::events::{NewTerms, SessionEvent};
use crate::log::message_styles::MessageStyles;
use crate::log::recall_offer::RecallOffer;
use crate::log::session_log::{EffectiveEvent, SessionLog};
use crate::request::append::WriteTiming;
use crate::request::pipeline::RequestInput;

/// A batch under construction.
pub(crate) struct AppendBatch<'a> {
    pub(crate) input: &'a RequestInput<'a>,
    pub(crate) row: Option<&'a SessionRow>,
    now: Millis,
    pub(crate) ops: Vec<Op>,
    /// True if the batch has events, which have to be read back.
    pub(crate) has_events: bool,
}

impl<'a> AppendBatch<'a> {
    pub(crate) fn new(
        input: &'a RequestInput<'a>,
        row: Option<&'a SessionRow>,
        now: Millis,
    ) -> AppendBatch<'a> {
        AppendBatch { input, row, now, ops: Vec::new(), has_events: false }
    }

    pub(crate) fn finish(self) -> Batch {
        let expect = self.row.map(|row| (row.id.clone(), row.tip)).into_iter().collect();
        Batch { at: self.now, expected_tips: expect, ops: self.ops }
    }

    pub(crate) fn record(&mut self, event: &SessionEvent) {
        self.has_events = true;
        self.ops.push(Op::AddEvent(self.input.session.clone(), event.encode()));
    }

    /// Creates the session, or reopens it.
    pub(crate) fn open_session(&mut self, conversation: &Conversation) {
        let session = self.input.session;
        match self.row {
            None => self.ops.push(Op::Create(NewSession {
                id: session.clone(),
                source: self.input.source.to_owned(),
                format: conversation.format().to_string(),
                parent: self.input.parent.map(|parent| (parent.clone(), Relation::Subagent)),
                tip: None,
            })),
            Some(row) if row.ended.is_some() => {
                self.ops.push(Op::Update(session.clone(), SessionUpdate::Reopen));
            }
            Some(_) => {}
        }
        let current = self.row.and_then(|row| row.model.as_deref());
        if let Some(model) = conversation.model().filter(|model| Some(*model) != current) {
            self.ops.push(Op::Update(session.clone(), SessionUpdate::Model(model.to_owned())));
        }
    }

    /// Returns true if the body names another model than the session.
    pub(crate) fn has_new_model(&self, conversation: &Conversation) -> bool {
        let current = self.row.and_then(|row| row.model.as_deref());
        current.zip(conversation.model()).is_some_and(|(current, model)| current != model)
    }

    /// Records the recall offer; the tool only if the body has a place for it.
    pub(crate) fn record_offer(&mut self, conversation: &Conversation) {
        let Some(offer) = self.input.offer else { return };
        let mut conversation = conversation.clone();
        conversation.add_tool(offer.tool.as_deref());
        let tool = offer.tool.clone().filter(|_| conversation.has_added_tool());
        self.record(&SessionEvent::RecallOffered(RecallOffer { tool, hint: offer.hint.clone() }));
    }

    /// Records new terms.
    pub(crate) fn record_terms(&mut self, format: Format, frame: BlobId) {
        let (budget, described) = (self.input.terms.budget, self.input.terms.described.as_bytes());
        self.ops.push(Op::PutBlob(described.to_vec()));
        self.record(&SessionEvent::NewTerms(NewTerms {
            terms: BlobId::new(described).to_string(),
            window: budget.window().0,
            reserve: budget.reserve().0,
            format: format.to_string(),
            frame: frame.to_string(),
        }));
    }

    /// Records a changed budget, and that the provider's cache has expired.
    pub(crate) fn record_changes(
        &mut self,
        log: &SessionLog,
        terms_event: usize,
        effective: &[EffectiveEvent],
    ) {
        let budget: Budget = self.input.terms.budget;
        if SessionState::recorded_budget(log, effective, terms_event) != Some(budget) {
            let (window, reserve) = (budget.window().0, budget.reserve().0);
            self.record(&SessionEvent::Budget { window, reserve });
        }
        let lifetime = self.input.terms.prices.as_ref().and_then(|prices| prices.lifetime);
        let idle_ms = log.last_request().map(|last| self.now.0 - last.0);
        let is_cold = idle_ms.zip(lifetime).is_some_and(|(idle, lifetime)| idle / 1000 > lifetime as i64);
        if is_cold {
            self.record(&SessionEvent::CacheExpired { later: false });
        }
    }

    /// Records requested pins and folds. Also records the styles of the messages if the body is sent unchanged.
    pub(crate) fn record_settings(
        &mut self,
        timing: WriteTiming,
        frame: BlobId,
        conversation: &Conversation,
    ) {
        for &message in self.input.pins {
            self.record(&SessionEvent::Pinned { message });
        }
        if timing == WriteTiming::WithRequest {
            if self.input.is_by_hand {
                self.record(&SessionEvent::FoldRequested { from: None, to: None });
            }
            return;
        }
        let (frame, overflow) = (frame.to_string(), timing == WriteTiming::Overflow);
        let styles = MessageStyles::new(conversation.styles());
        self.record(&SessionEvent::SentUnchanged { frame, styles, overflow });
    }
}

pub(crate) fn new_message(json: Cow<'_, str>) -> NewMessage {
    NewMessage { json: json.into_owned(), at: None }
}
