//! Which session a body belongs to, by what it says.
//!
//! Every message is named by all that was said up to it, so the deepest message that is known tells whose it is.
//!
//! ```text
//! the session   a - b - c - d
//! goes on       a - b - c - d - e      its newest message, and more or nothing behind it
//! forks         a - b - c - x          parts before that, behind a reply of the model's
//! new           a - y                  nothing in common that the model has said
//! ```

use std::cmp::Reverse;

use fanfold_store::{NodeId, Role, SessionId, SessionRow, StoreError};
use fanfold_wire::reply::{HiddenRecalls, insert_hidden_recalls};
use fanfold_wire::{DecodeError, Format, Incoming, same_system};

use crate::engine::{Engine, OpError};
use crate::log::notes::Note;
use crate::log::session_log::Past;
use crate::request::pipeline::Trouble;
use crate::request::receive::ids_of;
use crate::sessions::state::read_frame;

/// Which session a body belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognised {
    /// It begins with all that the session has.
    GoesOn(SessionId),
    /// It begins with some of what a session has, and then parts from it or ends.
    Forks {
        /// The session.
        from: SessionId,
        /// How many messages they have in common.
        n_messages: u32,
    },
    /// No session has what it begins with.
    New,
}

/// A parsed body and the session that it belongs to.
pub struct RecognisedBody {
    /// The session.
    pub recognised: Recognised,
    /// The parsed body, for [`Engine::request_parsed`].
    pub incoming: Incoming,
    /// The text of the body if hidden recalls were put back into it.
    pub with_recalls: Option<String>,
}

impl Engine {
    /// Finds the session that a body belongs to.
    pub fn recognise(&self, body: &str, format: Format) -> Result<Recognised, Trouble> {
        Ok(self.recognise_in(&self.open(body, format)?)?.0)
    }

    /// Parses a body. Of a body that continues a cached session, only the new part is read.
    pub fn open(&self, body: &str, format: Format) -> Result<Incoming, DecodeError> {
        match self.cache.resume(body, format) {
            Some(incoming) => Ok(incoming),
            None => Incoming::open(body, Some(format)),
        }
    }

    /// Finds the session that a body belongs to after hidden recalls are put back into it.
    pub fn recognise_whole(&self, incoming: Incoming) -> Result<RecognisedBody, Trouble> {
        let (recognised, besides) = self.recognise_in(&incoming)?;
        let Some(whole) = insert_hidden_recalls(incoming.text(), incoming.format(), &besides) else {
            return Ok(RecognisedBody { recognised, incoming, with_recalls: None });
        };
        let incoming = self.open(&whole, incoming.format())?;
        let recognised = self.recognise_in(&incoming)?.0;
        Ok(RecognisedBody { recognised, incoming, with_recalls: Some(whole) })
    }

    /// The session that a body goes on with: the one it was recognised as, a fork of it, or the id of a new one.
    pub fn take_up(&self, recognised: &Recognised) -> Result<SessionId, Trouble> {
        match recognised {
            Recognised::GoesOn(session) => Ok(session.clone()),
            Recognised::New => Ok(self.new_id()),
            Recognised::Forks { from, n_messages } => match self.fork(from, Some(*n_messages), None) {
                Ok(session) => Ok(session),
                Err(OpError::Store(StoreError::NoSession(_)) | OpError::Wrong { .. }) => Ok(self.new_id()),
                Err(OpError::Store(error)) => Err(error.into()),
            },
        }
    }

    /// Also gives recalls that the sessions have which it could belong to, where it parts from all of them.
    fn recognise_in(&self, incoming: &Incoming) -> Result<(Recognised, Vec<HiddenRecalls>), StoreError> {
        // A list that only goes on with what the provider holds does not say what it goes on with.
        if incoming.is_continued() {
            return Ok((Recognised::New, Vec::new()));
        }
        let (ids, n_likely) = self.ids_in(incoming);
        let (n_common, owners) = self.deepest(&ids, n_likely)?;
        let format = incoming.format().to_string();
        let mut rows = Vec::new();
        for owner in owners {
            rows.extend(self.store.session(&owner)?.filter(|row| row.format == format));
        }
        let has_more = n_common < incoming.n_messages();
        let besides = if has_more { self.besides_of(&rows)? } else { Vec::new() };
        let is_reply =
            |i: usize| incoming.message(i).is_some_and(|raw| Role::from_message(raw) == Role::Assistant);
        let has_reply = (0..n_common).any(is_reply);
        let ends_there = |row: &&SessionRow| row.n_messages as usize == n_common;
        // Of several that end there, the one that was not ended and was last written to.
        let mut ending: Vec<&SessionRow> = rows.iter().filter(ends_there).collect();
        ending.sort_by_key(|row| (row.ended.is_some(), Reverse((row.updated_at, row.started_at)), &row.id));
        for row in ending {
            // Before the model has said anything, other instructions make it another conversation.
            if has_reply || self.has_system(row, incoming)? {
                return Ok((Recognised::GoesOn(row.id.clone()), besides));
            }
        }
        let recognised = match rows.first() {
            Some(row) if has_reply => Recognised::Forks { from: row.id.clone(), n_messages: n_common as u32 },
            _ => Recognised::New,
        };
        Ok((recognised, besides))
    }

    /// The ids of the messages of a body, and how many of them a session in memory has: those need not be hashed.
    fn ids_in(&self, incoming: &Incoming) -> (Vec<NodeId>, usize) {
        let Some(first) = incoming.plain(0) else { return (Vec::new(), 0) };
        let mut ids = self.cache.common(incoming, NodeId::new(None, &first));
        let n_common = ids.len();
        let new = (n_common..incoming.n_messages()).filter_map(|i| incoming.plain(i));
        ids.extend(ids_of(ids.last().copied(), new));
        (ids, n_common)
    }

    /// How many messages, from the first on, some session has, and which ones do.
    fn deepest(&self, ids: &[NodeId], n_likely: usize) -> Result<(usize, Vec<SessionId>), StoreError> {
        let mut n_there = self.n_stored(ids, n_likely)?;
        let owners = |n: usize| match n.checked_sub(1) {
            Some(last) => self.store.owners(ids[last]),
            None => Ok(Vec::new()),
        };
        let mut found = owners(n_there)?;
        // What was left behind by a rewind is there and belongs to nobody, up to where the session still is.
        if found.is_empty() {
            let (mut owned, mut loose) = (0, n_there);
            while loose - owned > 1 {
                let middle = usize::midpoint(owned, loose);
                if owners(middle)?.is_empty() { loose = middle } else { owned = middle }
            }
            n_there = owned;
            found = owners(n_there)?;
        }
        Ok((n_there, found))
    }

    /// Whether a session was last sent with the system text of a body.
    fn has_system(&self, row: &SessionRow, incoming: &Incoming) -> Result<bool, StoreError> {
        let past = Past::read(&*self.store, &row.id)?;
        let frame = past.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Request(sent) => Some(&sent.frame),
            Note::Began(began) => Some(&began.frame),
            _ => None,
        });
        match frame {
            Some(frame) => Ok(same_system(read_frame(&*self.store, frame)?.system(), incoming.system())),
            None => Ok(true),
        }
    }
}
