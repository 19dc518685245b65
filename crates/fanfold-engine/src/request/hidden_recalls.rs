//! Hidden recalls: recalls in replies that also call tools of the client. They are removed from the reply and
//! recorded, and inserted into each later body in the same place, with the same bytes, also after a restart and in a
//! fork.

use std::cmp::Reverse;

use fanfold_store::{Op, SessionId, SessionRow, StoreError};
use fanfold_wire::Format;
use fanfold_wire::reply::{self, HiddenRecalls, RECALL_TOOL, ToolCall};

use crate::engine::{OpError, SessionEngine};
use crate::log::events::{HiddenRecallRecord, LoggedEvent, SessionEvent};
use crate::log::session_log::SessionLog;

/// Maximum number of sessions with the same beginning whose hidden recalls are read, the last used first.
const MAX_SESSIONS: usize = 32;

impl SessionEngine {
    /// Records the hidden recalls of a reply.
    pub fn record_hidden_recalls(
        &self,
        session: &SessionId,
        recalls: HiddenRecallRecord,
    ) -> Result<(), OpError> {
        self.write(vec![Op::AddEvent(session.clone(), SessionEvent::HiddenRecalls(recalls).encode())])
    }

    /// Inserts the hidden recalls of a session into a body. Returns `None` if the body has no place for any.
    pub fn insert_hidden_recalls(
        &self,
        session: &SessionId,
        body: &str,
        format: Format,
    ) -> Result<Option<String>, StoreError> {
        Ok(reply::insert_hidden_recalls(body, format, &self.hidden_recalls_of(session)?))
    }

    /// The hidden recalls of some sessions.
    pub(crate) fn hidden_recalls_of_all(
        &self,
        rows: &[SessionRow],
    ) -> Result<Vec<HiddenRecalls>, StoreError> {
        let mut rows: Vec<&SessionRow> = rows.iter().collect();
        rows.sort_by_key(|row| Reverse(row.updated_at));
        let mut all: Vec<HiddenRecalls> = Vec::new();
        for row in rows.into_iter().take(MAX_SESSIONS) {
            for recalls in self.hidden_recalls_of(&row.id)? {
                // A fork inherits those of its parent session.
                if !all.contains(&recalls) {
                    all.push(recalls);
                }
            }
        }
        Ok(all)
    }

    fn hidden_recalls_of(&self, session: &SessionId) -> Result<Vec<HiddenRecalls>, StoreError> {
        // The cached log is as old as the last request, so later events are read from the store.
        let cached = self.cache.peek(session, |cached| (cached.log.hidden_recalls(), cached.log.n_read));
        let (mut all, n_read) = cached.unwrap_or_default();
        if n_read == 0 {
            return Ok(SessionLog::read(&*self.store, session)?.hidden_recalls());
        }
        for row in self.store.events(session, n_read)? {
            if let Some(LoggedEvent { event: SessionEvent::HiddenRecalls(record), .. }) =
                LoggedEvent::decode(&row)
            {
                all.push(to_wire(&record));
            }
        }
        Ok(all)
    }
}

impl SessionLog {
    fn hidden_recalls(&self) -> Vec<HiddenRecalls> {
        if self.n_hidden_recalls == 0 {
            return Vec::new();
        }
        let all = self.events.iter().filter_map(|logged| match &logged.event {
            SessionEvent::HiddenRecalls(record) => Some(to_wire(record)),
            _ => None,
        });
        all.collect()
    }
}

fn to_wire(record: &HiddenRecallRecord) -> HiddenRecalls {
    let recalls = record.recalls.iter().map(|recall| {
        let (id, arguments) = (recall.call.clone(), recall.arguments.clone());
        (ToolCall { id, name: RECALL_TOOL.to_owned(), arguments }, recall.result.clone())
    });
    HiddenRecalls { client_calls: record.client_calls.clone(), recalls: recalls.collect() }
}
