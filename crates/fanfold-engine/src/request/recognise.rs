//! Finds the session that a body belongs to, by its messages.
//!
//! The id of a message is a hash of all messages up to it, so the last message of the body that is stored identifies
//! the session.
//!
//! ```text
//! session     a - b - c - d
//! continues   a - b - c - d - e      has all messages of the session
//! forks       a - b - c - x          differs after a reply of the model
//! new         a - y                  differs before the first reply of the model
//! ```

use std::cmp::Reverse;

use fanfold_store::{NodeId, Role, SessionId, SessionRow, StoreError};
use fanfold_wire::reply::{HiddenRecalls, insert_hidden_recalls};
use fanfold_wire::{DecodeError, Format, Incoming, same_system};

use crate::engine::{OpError, SessionEngine};
use crate::follow::session_state::read_frame;
use crate::log::events::SessionEvent;
use crate::log::session_log::SessionLog;
use crate::request::common_messages::bisect;
use crate::request::pipeline::RequestError;
use crate::request::receive::ids_of;

/// The relation of a body to the stored sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionMatch {
    /// The body begins with all messages of a session.
    Continues(SessionId),
    /// The body begins with some messages of a session, and then differs or ends.
    Forks {
        /// The session.
        from: SessionId,
        /// The number of messages that they have in common.
        n_messages: u32,
    },
    /// No session has the first messages of the body.
    New,
}

/// A parsed body and the session that it belongs to.
pub struct RecognisedBody {
    /// The session.
    pub session_match: SessionMatch,
    /// The parsed body, for [`SessionEngine::request_parsed`].
    pub incoming: Incoming,
    /// The text of the body if hidden recalls were inserted into it.
    pub with_recalls: Option<String>,
}

impl SessionEngine {
    /// Finds the session that a body belongs to.
    pub fn recognise(&self, body: &str, format: Format) -> Result<SessionMatch, RequestError> {
        Ok(self.recognise_in(&self.open(body, format)?)?.0)
    }

    /// Parses a body. If the body continues a cached session, only its new messages are parsed.
    pub fn open(&self, body: &str, format: Format) -> Result<Incoming, DecodeError> {
        match self.cache.resume(body, format) {
            Some(incoming) => Ok(incoming),
            None => Incoming::open(body, Some(format)),
        }
    }

    /// Finds the session that a body belongs to after its hidden recalls are inserted.
    pub fn recognise_with_recalls(&self, incoming: Incoming) -> Result<RecognisedBody, RequestError> {
        let (session_match, recalls) = self.recognise_in(&incoming)?;
        let Some(whole) = insert_hidden_recalls(incoming.text(), incoming.format(), &recalls) else {
            return Ok(RecognisedBody { session_match, incoming, with_recalls: None });
        };
        let incoming = self.open(&whole, incoming.format())?;
        let session_match = self.recognise_in(&incoming)?.0;
        Ok(RecognisedBody { session_match, incoming, with_recalls: Some(whole) })
    }

    /// The session for a body: the matching one, a new fork of it, or the id of a new session.
    pub fn session_for(&self, session_match: &SessionMatch) -> Result<SessionId, RequestError> {
        match session_match {
            SessionMatch::Continues(session) => Ok(session.clone()),
            SessionMatch::New => Ok(self.new_id()),
            SessionMatch::Forks { from, n_messages } => {
                let fork = || self.fork(from, Some(*n_messages), None);
                let forked = match fork() {
                    Err(OpError::Store(error)) if self.hold_cached(from, &error) => fork(),
                    forked => forked,
                };
                match forked {
                    Ok(session) => Ok(session),
                    Err(OpError::Store(StoreError::NoSession(_)) | OpError::Invalid { .. }) => {
                        Ok(self.new_id())
                    }
                    Err(OpError::Store(error)) if error.is_outage() && self.continues_in_memory => {
                        Ok(self.new_id())
                    }
                    Err(OpError::Store(error)) => Err(error.into()),
                }
            }
        }
    }

    /// The matching session, with hidden recalls. While the store fails, a session in memory, or none.
    fn recognise_in(&self, incoming: &Incoming) -> Result<(SessionMatch, Vec<HiddenRecalls>), StoreError> {
        if let Some(outage) = self.outage().filter(|_| self.fallback.is_unreadable()) {
            self.hold_similar(incoming, &StoreError::Unavailable(outage.error));
        }
        match self.recognise_stored(incoming) {
            Err(error) if error.is_outage() && self.continues_in_memory => {
                self.hold_similar(incoming, &error);
                Ok(self.recognise_stored(incoming).unwrap_or((SessionMatch::New, Vec::new())))
            }
            found => found,
        }
    }

    /// The matching session. If the body differs from all stored sessions at some message, also the hidden recalls of
    /// the sessions with the same messages before it.
    fn recognise_stored(
        &self,
        incoming: &Incoming,
    ) -> Result<(SessionMatch, Vec<HiddenRecalls>), StoreError> {
        // The messages before the list are not known, so no session can be found.
        if incoming.is_continued() {
            return Ok((SessionMatch::New, Vec::new()));
        }
        let (ids, n_likely) = self.ids_in(incoming);
        let (n_common, rows) = self.sessions_with(&ids, n_likely, incoming.format())?;
        let has_more = n_common < incoming.n_messages();
        let recalls = if has_more { self.hidden_recalls_of_all(&rows)? } else { Vec::new() };
        let is_reply =
            |i: usize| incoming.message(i).is_some_and(|raw| Role::from_message(raw) == Role::Assistant);
        let has_reply = (0..n_common).any(is_reply);
        let ends_there = |row: &&SessionRow| row.n_messages as usize == n_common;
        // If several sessions end at that message, open sessions come first, and of those the last used.
        let mut ending: Vec<&SessionRow> = rows.iter().filter(ends_there).collect();
        ending.sort_by_key(|row| (row.ended.is_some(), Reverse((row.updated_at, row.started_at)), &row.id));
        for row in ending {
            // Before the first reply of the model, a conversation is identified by its instructions too.
            if has_reply || self.has_system(row, incoming)? {
                return Ok((SessionMatch::Continues(row.id.clone()), recalls));
            }
        }
        let session_match = match rows.first() {
            Some(row) if has_reply => {
                SessionMatch::Forks { from: row.id.clone(), n_messages: n_common as u32 }
            }
            _ => SessionMatch::New,
        };
        Ok((session_match, recalls))
    }

    /// The number of messages at the beginning of a body that a session has, and the sessions of the format that have
    /// them.
    fn sessions_with(
        &self,
        ids: &[NodeId],
        n_likely: usize,
        format: Format,
    ) -> Result<(usize, Vec<SessionRow>), StoreError> {
        let format = format.to_string();
        let (mut n_common, mut owners) = self.longest_match(ids, n_likely)?;
        loop {
            let mut rows = Vec::new();
            for owner in owners {
                rows.extend(self.store.session(&owner)?.filter(|row| row.format == format));
            }
            let have_more = n_common < ids.len() && rows.iter().any(|row| row.n_messages as usize > n_common);
            if !have_more {
                return Ok((n_common, rows));
            }
            // An equal request may have stored the other messages in the meantime.
            let again = self.longest_match(ids, n_common + 1)?;
            if again.0 <= n_common {
                return Ok((n_common, rows));
            }
            (n_common, owners) = again;
        }
    }

    /// The ids of the messages of a body, and the number of those that a cached session has, which are not hashed
    /// again.
    fn ids_in(&self, incoming: &Incoming) -> (Vec<NodeId>, usize) {
        let Some(first) = incoming.plain(0) else { return (Vec::new(), 0) };
        let mut ids = self.cache.common(incoming, NodeId::new(None, &first));
        let n_common = ids.len();
        let new = (n_common..incoming.n_messages()).filter_map(|i| incoming.plain(i));
        ids.extend(ids_of(ids.last().copied(), new));
        (ids, n_common)
    }

    /// The number of messages at the beginning of a body that a session has, and the sessions that have them.
    fn longest_match(&self, ids: &[NodeId], n_likely: usize) -> Result<(usize, Vec<SessionId>), StoreError> {
        let mut n_common = self.n_stored(ids, n_likely)?;
        let owners = |n: usize| match n.checked_sub(1) {
            Some(last) => self.store.owners(ids[last]),
            None => Ok(Vec::new()),
        };
        let mut found = owners(n_common)?;
        // Messages after a rewind are stored but belong to no session. Find the last message before them.
        if found.is_empty() {
            n_common = bisect(n_common.saturating_sub(1), &[], |n| Ok(!owners(n)?.is_empty()))?;
            found = owners(n_common)?;
        }
        Ok((n_common, found))
    }

    /// Returns true if the last request of a session had the system text of a body.
    fn has_system(&self, row: &SessionRow, incoming: &Incoming) -> Result<bool, StoreError> {
        let log = SessionLog::read(&*self.store, &row.id)?;
        let frame = log.events.iter().rev().find_map(|logged| match &logged.event {
            SessionEvent::Request(sent) => Some(&sent.frame),
            SessionEvent::NewTerms(terms) => Some(&terms.frame),
            _ => None,
        });
        match frame {
            Some(frame) => Ok(same_system(read_frame(&*self.store, frame)?.system(), incoming.system())),
            None => Ok(true),
        }
    }
}
