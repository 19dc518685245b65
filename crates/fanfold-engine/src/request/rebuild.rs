//! Sent requests and current views, rebuilt from the store byte for byte.

use fanfold_core::{Budget, Tokens};
use fanfold_store::{BlobId, NodeId, SessionId, StoreError};

use crate::engine::{OpError, SessionEngine};
use crate::follow::folded_conversation::FoldedConversation;
use crate::follow::session_state::{
    DecodedConversation, MessageList, SessionState, WalkError, decode_as, read_frame,
};
use crate::follow::terms::Terms;
use crate::log::body_frame::BodyFrame;
use crate::log::events::{LoggedEvent, SentRequest, SessionEvent};
use crate::log::message_styles::MessageStyles;
use crate::log::session_log::SessionLog;
use crate::recall::handles::{StoredBody, stored_body};

/// Restores terms from their stored description and a budget.
pub type RestoreTerms<'a> = dyn Fn(&str, Budget) -> Result<Terms, String> + 'a;

/// A rebuilt request.
pub struct RebuiltRequest {
    /// Its bytes.
    pub body: String,
    /// Its record.
    pub sent: SentRequest,
    /// True if the bytes have the recorded hash.
    pub is_same: bool,
}

impl SessionEngine {
    /// The requests of a session, oldest first.
    pub fn requests(&self, session: &SessionId) -> Result<Vec<LoggedEvent>, StoreError> {
        let log = SessionLog::read(&*self.store, session)?;
        let own = log.events.into_iter().skip(log.n_inherited);
        Ok(own.filter(|logged| matches!(logged.event, SessionEvent::Request(_))).collect())
    }

    /// Rebuilds a request of a session. Requests are numbered from 1.
    pub fn rebuild(
        &self,
        session: &SessionId,
        number: usize,
        restore_terms: &RestoreTerms<'_>,
    ) -> Result<RebuiltRequest, OpError> {
        let requests = self.requests(session)?;
        let n_requests = requests.len();
        let logged = number.checked_sub(1).and_then(|i| requests.into_iter().nth(i));
        let Some(LoggedEvent { tip, event: SessionEvent::Request(sent), .. }) = logged else {
            return Err(OpError::invalid(
                format!("session {session} has no request {number}"),
                format!("its requests are counted from 1 to {n_requests}"),
            ));
        };
        let frame = read_frame(&*self.store, &sent.frame)?;
        let body = stored_body(&*self.store, tip, sent.from, &frame, &sent.styles)?;
        let body = match &sent.bypass_reason {
            Some(_) => body.text,
            None => self.rebuild_view(session, &sent, &frame, body, restore_terms)?,
        };
        let is_same = blake3::hash(body.as_bytes()).to_string() == sent.hash;
        Ok(RebuiltRequest { body, sent, is_same })
    }

    /// Returns true if a session has a view: a request with all messages was sent, and its terms are in force.
    pub fn has_view(&self, session: &SessionId) -> Result<bool, StoreError> {
        let log = SessionLog::read(&*self.store, session)?;
        Ok(log.terms_event(log.events.len()).is_some() && log.last_whole_request().is_some())
    }

    /// The newest view of a session, from the store alone.
    pub fn reopen(
        &self,
        session: &SessionId,
        restore_terms: &RestoreTerms<'_>,
    ) -> Result<FoldedConversation, OpError> {
        let log = SessionLog::read(&*self.store, session)?;
        let has_terms = log.terms_event(log.events.len()).is_some();
        let Some(sent) = log.last_whole_request().filter(|_| has_terms).cloned() else {
            return Err(OpError::invalid(
                format!("session {session} has no view: it was never folded, or its folds were undone"),
                format!("fold it first: fanfold fold --session {session}"),
            ));
        };
        let row = self.row(session)?;
        let frame = read_frame(&*self.store, &sent.frame)?;
        let body = stored_body(&*self.store, row.tip, 0, &frame, &sent.styles_at(row.tip))?;
        let n_events = log.events.len();
        Ok(self.replay_log(&log, n_events, &sent, &frame, body, restore_terms)?.followed)
    }

    /// The body of a session as its client would send it now. It is a bare list of messages if no client ever sent
    /// one.
    pub fn body(&self, session: &SessionId) -> Result<String, OpError> {
        let log = SessionLog::read(&*self.store, session)?;
        let tip = self.row(session)?.tip;
        let found = log.events.iter().rev().find_map(|logged| match &logged.event {
            SessionEvent::Request(sent) if sent.from == 0 => {
                Some((Some(sent.frame.clone()), sent.styles_at(tip)))
            }
            SessionEvent::SentUnchanged { frame, styles, .. } if logged.tip == tip => {
                Some((Some(frame.clone()), styles.clone()))
            }
            SessionEvent::NewTerms(terms) => Some((Some(terms.frame.clone()), MessageStyles::default())),
            SessionEvent::Imported { frame, styles, .. } => Some((frame.clone(), styles.clone())),
            _ => None,
        });
        let (frame, styles) = found.unwrap_or_default();
        let frame = match frame {
            Some(frame) => read_frame(&*self.store, &frame)?,
            None => BodyFrame::message_list(),
        };
        Ok(stored_body(&*self.store, tip, 0, &frame, &styles)?.text)
    }

    fn rebuild_view(
        &self,
        session: &SessionId,
        sent: &SentRequest,
        frame: &BodyFrame,
        body: StoredBody,
        restore_terms: &RestoreTerms<'_>,
    ) -> Result<String, OpError> {
        let log = SessionLog::read(&*self.store, session)?;
        let n_events = log.n_events_before(sent.n_seen_events);
        let mut folded = self.replay_log(&log, n_events, sent, frame, body, restore_terms)?.followed;
        let tools = folded.conversation.tools().map(str::to_owned);
        folded.set_tools(tools.as_deref());
        let view = folded.view().map_err(|refusal| {
            OpError::invalid(
                format!("the view of the request could not be rebuilt: {refusal}"),
                "it was sent by another version of fanfold or with other settings",
            )
        })?;
        let encoded = folded.encode(&view);
        Ok(sent.edits.apply(encoded, folded.conversation.format()))
    }

    /// Replays a conversation with the first `n_events` events of the log.
    fn replay_log(
        &self,
        log: &SessionLog,
        n_events: usize,
        sent: &SentRequest,
        frame: &BodyFrame,
        body: StoredBody,
        restore_terms: &RestoreTerms<'_>,
    ) -> Result<SessionState, OpError> {
        let broken = |why: String| OpError::Store(StoreError::Corrupt(why));
        let terms_event = log.terms_event(n_events).map(|event| &log.events[event].event);
        let Some(SessionEvent::NewTerms(recorded)) = terms_event else {
            return Err(broken("a request without recorded terms".to_owned()));
        };
        let id: BlobId = recorded.terms.parse().map_err(|error| broken(format!("{error}")))?;
        let description = self.store.blob(id)?.unwrap_or_default();
        let budget = Budget::with_reserve(Tokens(recorded.window), Tokens(recorded.reserve));
        let terms = restore_terms(&String::from_utf8_lossy(&description), budget).map_err(|why| {
            OpError::invalid(
                format!("the settings of the request could not be restored: {why}"),
                "check that the files that the settings name still exist",
            )
        })?;
        let (conversation, changes) =
            decode_as(&body.text, &sent.format, frame).map_err(|error| broken(error.to_string()))?;
        let body = DecodedConversation { conversation, changes, messages: MessageList::new(body.ids) };
        SessionState::replay(&*self.store, body, &terms, log, n_events, None).map_err(|error| match error {
            WalkError::Store(error) => OpError::Store(error),
            WalkError::Late => unreachable!("there is no deadline"),
        })
    }
}

impl SessionLog {
    /// The newest request that had all messages.
    fn last_whole_request(&self) -> Option<&SentRequest> {
        self.events.iter().rev().find_map(|logged| match &logged.event {
            SessionEvent::Request(sent) if sent.from == 0 => Some(sent),
            _ => None,
        })
    }
}

impl SentRequest {
    /// The styles of the messages up to a tip. Cache markers are left out unless the request had the same messages.
    fn styles_at(&self, tip: Option<NodeId>) -> MessageStyles {
        let is_same = self.tip == tip.map(|tip| tip.to_string());
        if is_same { self.styles.clone() } else { self.styles.clone().without_markers() }
    }
}
