//! Stores the messages of a request, and the settings that changed with it, before anything replaces them.

use fanfold_store::{Batch, BlobId, NewMessage, Op, StoreError};
use fanfold_wire::{Conversation, Incoming, same_system};

use crate::engine::SessionEngine;
use crate::follow::session_state::{CachedSession, SessionState, read_frame};
use crate::follow::terms::Terms;
use crate::log::body_edits::BodyEdits;
use crate::log::body_frame::BodyFrame;
use crate::log::events::{MoveReason, SentRequest, SessionEvent, TipMove};
use crate::log::message_styles::MessageStyles;
use crate::log::session_log::{EffectiveEvent, SessionLog};
use crate::request::append_batch::{AppendBatch, new_message};
use crate::request::pipeline::{RequestError, RequestInput};
use crate::request::receive::{ReceivedBody, decode_whole, format_of, frame_of, ids_of, open_body, receive};

/// Maximum number of attempts while other processes write to the same session.
pub(crate) const MAX_ATTEMPTS: usize = 8;

/// A request whose messages are in the store, or in a batch that is written with the next events.
pub(crate) struct AppendOutcome {
    pub(crate) session: LoadedSession,
    /// The events that are in force for the body, in order.
    pub(crate) effective: Vec<EffectiveEvent>,
    /// The batch with the messages, unless it is written.
    pub(crate) unwritten: Option<Batch>,
    pub(crate) counts: MessageCounts,
}

/// A decoded body and the log of its session.
pub(crate) struct LoadedSession {
    pub(crate) body: ReceivedBody,
    pub(crate) log: SessionLog,
    pub(crate) frame: (BlobId, BodyFrame),
}

/// Numbers of messages that only the body or only the stored session has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageCounts {
    /// The number of messages that were written.
    pub(crate) n_new: usize,
    /// The number of messages of the session that the body does not have.
    pub(crate) n_dropped: usize,
}

/// The relation of a body to its stored session.
struct SessionRelation {
    /// The event with the terms that the body continues, if its terms are the same.
    terms: Option<usize>,
    /// The number of messages of the session that the body does not have, if the tip moves back.
    n_dropped: Option<usize>,
    /// The events that are in force for the body, if its terms are the same.
    effective: Vec<EffectiveEvent>,
}

/// Selects when messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTiming {
    /// With the events of the request, unless an event has to be read back before them.
    WithRequest,
    /// At once, with the styles of the messages: the body is sent unchanged and nothing else is recorded.
    Unchanged,
    /// Like `Unchanged`, after an overflow.
    Overflow,
}

impl SessionEngine {
    /// Stores the messages of a body and the settings that changed with it, in one batch. One attempt: the caller
    /// repeats it if another process has written to the session. Takes the cached session before changing it.
    pub(crate) fn append(
        &self,
        input: &RequestInput<'_>,
        parsed: Option<Incoming>,
        cached: &mut Option<CachedSession>,
        timing: WriteTiming,
    ) -> Result<AppendOutcome, RequestError> {
        let row = self.store.session(input.session)?;
        let mut session = self.load(input, row.is_some(), parsed, cached)?;
        let mut batch = AppendBatch::new(input, row.as_ref(), self.clock.now());
        batch.open_session(session.body.conversation());
        if !session.log.frames.contains(&session.frame.0.to_string()) {
            batch.ops.push(Op::PutBlob(session.frame.1.blob().1));
        }
        if session.body.conversation().is_continued() {
            return self.append_continued(batch, session.body.conversation(), session.frame.0);
        }
        let mut relation = self.fill_batch(&mut batch, &session, timing)?;
        let mut counts = MessageCounts { n_new: 0, n_dropped: relation.n_dropped.unwrap_or_default() };
        let mut unwritten = None;
        if batch.has_events {
            counts.n_new = self.write_batch(Some(batch.finish()))?;
            // Decisions depend only on events that were read from the store.
            let LoadedSession { body, log, .. } = &mut session;
            log.read_new(&*self.store, input.session)?;
            let terms = log.terms_event(log.events.len()).unwrap_or_default();
            relation.effective = log.effective_events(&body.messages().positions, terms, log.events.len());
        } else {
            unwritten = Some(batch.finish());
        }
        // Other processes may have recorded events in the meantime.
        let can_advance = session.body.state().is_none_or(|state| relation.can_advance(state, &session.log));
        if !can_advance {
            let incoming = Incoming::open(input.body, input.terms.format)?;
            session.body = ReceivedBody::Whole(Box::new(decode_whole(incoming)));
        }
        Ok(AppendOutcome { session, effective: relation.effective, unwritten, counts })
    }

    /// Decodes the body and reads the log, both from the cached session where possible.
    fn load(
        &self,
        input: &RequestInput<'_>,
        is_stored: bool,
        parsed: Option<Incoming>,
        cached: &mut Option<CachedSession>,
    ) -> Result<LoadedSession, RequestError> {
        let format = format_of(input, cached.as_ref());
        let incoming = open_body(input, parsed, format)?;
        let (state, mut log) = match cached.take() {
            Some(CachedSession { state, log }) => (Some(Box::new(state)), log),
            None => (None, SessionLog::default()),
        };
        if is_stored {
            log.read_new(&*self.store, input.session)?;
        }
        // Nothing is added to a state that the events since then do not continue.
        let state = state.filter(|state| {
            let positions = &state.messages.positions;
            state.can_advance(&log, &log.effective_events(positions, state.terms_event, log.events.len()))
        });
        let body = receive(input, incoming, format, state)?;
        let frame = frame_of(input, &body);
        Ok(LoadedSession { body, log, frame })
    }

    /// Adds the new messages of a body and the changed settings to a batch.
    fn fill_batch(
        &self,
        batch: &mut AppendBatch<'_>,
        session: &LoadedSession,
        timing: WriteTiming,
    ) -> Result<SessionRelation, StoreError> {
        let LoadedSession { body, log, frame } = session;
        let conversation = body.conversation();
        if !log.has_requests() && log.offer().is_none() {
            batch.record_offer(conversation);
        }
        let terms = self.current_terms(log, batch.input.terms, body)?;
        if terms.is_none() {
            batch.record_terms(conversation.format(), frame.0);
        }
        let n_dropped = self.append_messages(batch, body)?;
        let mut effective = Vec::new();
        match terms {
            Some(terms) => {
                effective = log.effective_events(&body.messages().positions, terms, log.events.len());
                batch.record_changes(log, terms, &effective);
            }
            // The provider of the new model has not cached the session.
            None if log.has_requests() && batch.has_new_model(conversation) => {
                batch.record(&SessionEvent::CacheExpired { later: false });
            }
            None => {}
        }
        batch.record_settings(timing, frame.0, conversation);
        Ok(SessionRelation { terms, n_dropped, effective })
    }

    /// Writes a batch that is not empty. Returns the number of new messages.
    pub(crate) fn write_batch(&self, batch: Option<Batch>) -> Result<usize, StoreError> {
        match batch.filter(|batch| !batch.ops.is_empty()) {
            Some(batch) => Ok(self.store.commit(&batch)?.n_new_messages),
            None => Ok(0),
        }
    }

    /// Stores messages that follow messages which only the provider has. They are sent unchanged.
    fn append_continued(
        &self,
        mut batch: AppendBatch<'_>,
        conversation: &Conversation,
        frame: BlobId,
    ) -> Result<AppendOutcome, RequestError> {
        let input = batch.input;
        let (tip, from) = batch.row.map_or((None, 0), |row| (row.tip, row.n_messages));
        let ids = ids_of(tip, conversation.plain_messages(0));
        let messages = conversation.plain_messages(0).map(new_message).collect();
        batch.ops.push(Op::Append(input.session.clone(), messages));
        batch.record(&SessionEvent::Request(SentRequest {
            tip: ids.last().copied().or(tip).map(|tip| tip.to_string()),
            from,
            n_seen_events: 0,
            frame: frame.to_string(),
            format: conversation.format().to_string(),
            policy: input.terms.policy.name.to_owned(),
            counter: input.terms.counter.name().to_owned(),
            tokens: None,
            styles: MessageStyles::new(conversation.styles()),
            hash: blake3::hash(input.body.as_bytes()).to_string(),
            n_bytes: input.body.len() as u64,
            bypass_reason: Some(RequestError::Continued.to_string()),
            edits: BodyEdits::default(),
        }));
        self.write_batch(Some(batch.finish()))?;
        Err(RequestError::Continued)
    }

    /// The event with the terms that the body continues, if its terms are the same.
    fn current_terms(
        &self,
        log: &SessionLog,
        terms: &Terms,
        body: &ReceivedBody,
    ) -> Result<Option<usize>, StoreError> {
        let Some(event) = log.terms_event(log.events.len()) else { return Ok(None) };
        let SessionEvent::NewTerms(recorded) = &log.events[event].event else { return Ok(None) };
        let is_same = recorded.terms == BlobId::new(terms.described.as_bytes()).to_string()
            && recorded.format == body.conversation().format().to_string();
        if !is_same {
            return Ok(None);
        }
        // A body that continues the cached state has the same instructions, and the state has those of its terms.
        if body.state().is_some_and(|state| state.terms_event == event) {
            return Ok(Some(event));
        }
        // Instructions outside the message list are the first entry of the transcript, so different ones need new
        // terms.
        let frame = read_frame(&*self.store, &recorded.frame)?;
        Ok(same_system(frame.system(), body.conversation().system()).then_some(event))
    }

    /// Appends the messages that the session does not have. If the histories differ, the tip moves back to the last
    /// common message first. Returns the number of messages that such a move dropped.
    fn append_messages(
        &self,
        batch: &mut AppendBatch<'_>,
        body: &ReceivedBody,
    ) -> Result<Option<usize>, StoreError> {
        let (session, row, ids) = (batch.input.session, batch.row, &body.messages().ids);
        let tip = row.and_then(|row| row.tip);
        let n_stored = row.map_or(0, |row| row.n_messages as usize);
        let is_longer = tip.is_none_or(|tip| n_stored > 0 && ids.get(n_stored - 1) == Some(&tip));
        let (mut n_present, mut n_dropped) = (n_stored, None);
        if !is_longer {
            n_dropped = Some(n_stored - self.n_common(tip, n_stored, ids)?);
            n_present = self.n_stored(ids, 0)?;
            let to = n_present.checked_sub(1).map(|last| ids[last]);
            // Recorded before the move, so that the event belongs to the dropped messages.
            batch.record(&SessionEvent::Moved(TipMove {
                reason: MoveReason::Edited,
                from: tip.map(|tip| tip.to_string()),
                to: ids.last().map(ToString::to_string),
                checkpoint: None,
            }));
            batch.ops.push(Op::MoveTip(session.clone(), to));
        }
        let new: Vec<NewMessage> = body.conversation().plain_messages(n_present).map(new_message).collect();
        if !new.is_empty() {
            batch.ops.push(Op::Append(session.clone(), new));
        }
        Ok(n_dropped)
    }
}

impl SessionRelation {
    /// True if the body and the events in force continue a state.
    fn can_advance(&self, state: &SessionState, log: &SessionLog) -> bool {
        self.terms.is_some() && self.n_dropped.is_none() && state.can_advance(log, &self.effective)
    }
}
