//! Recalls that a model made beside calls of its client's. The client was not shown them, so they are noted, and each
//! later body gets them back where they were made: with the same bytes, also after a restart and in a fork.

use std::cmp::Reverse;

use fanfold_store::{Op, SessionId, SessionRow, StoreError};
use fanfold_wire::Format;
use fanfold_wire::reply::{self, RECALL_TOOL, ToolCall, insert_hidden_recalls};

use crate::engine::{Engine, OpError};
use crate::log::notes::{Beside, Note};
use crate::log::session_log::Past;

/// Of sessions that begin alike, so many are asked: those that were written to last.
const MOST_ASKED: usize = 32;

impl Engine {
    /// Takes note of recalls that a model made beside calls of its client's.
    pub fn recalled_beside(&self, session: &SessionId, beside: Beside) -> Result<(), OpError> {
        self.write(vec![Op::AddEvent(session.clone(), Note::Beside(beside).event())])
    }

    /// A body of a session with the recalls in it that its client was not shown, if there are any.
    pub fn with_recalls_of(
        &self,
        session: &SessionId,
        body: &str,
        format: Format,
    ) -> Result<Option<String>, StoreError> {
        Ok(insert_hidden_recalls(body, format, &self.besides_in(session)?))
    }

    /// The recalls that some sessions have.
    pub(crate) fn besides_of(&self, rows: &[SessionRow]) -> Result<Vec<reply::HiddenRecalls>, StoreError> {
        let mut rows: Vec<&SessionRow> = rows.iter().collect();
        rows.sort_by_key(|row| Reverse(row.updated_at));
        let mut besides: Vec<reply::HiddenRecalls> = Vec::new();
        for row in rows.into_iter().take(MOST_ASKED) {
            for beside in self.besides_in(&row.id)? {
                // A fork has those of the session that it came from.
                if !besides.contains(&beside) {
                    besides.push(beside);
                }
            }
        }
        Ok(besides)
    }

    fn besides_in(&self, session: &SessionId) -> Result<Vec<reply::HiddenRecalls>, StoreError> {
        // What another program wrote since comes with the next request; an answer of ours is noted before its end.
        let held = self.cache.peek(session, |cached| (cached.log.besides(), cached.log.n_own));
        let (mut besides, n_read) = held.unwrap_or_default();
        if n_read == 0 {
            return Ok(Past::read(&*self.store, session)?.besides());
        }
        for event in self.store.events(session, n_read)? {
            if let Some(Note::Beside(beside)) = crate::log::notes::Noted::read(&event).map(|noted| noted.note)
            {
                besides.push(read(&beside));
            }
        }
        Ok(besides)
    }
}

impl Past {
    fn besides(&self) -> Vec<reply::HiddenRecalls> {
        if self.n_besides == 0 {
            return Vec::new();
        }
        let besides = self.notes.iter().filter_map(|noted| match &noted.note {
            Note::Beside(beside) => Some(read(beside)),
            _ => None,
        });
        besides.collect()
    }
}

fn read(beside: &Beside) -> reply::HiddenRecalls {
    let ours = beside.ours.iter().map(|opened| {
        let (id, arguments) = (opened.call.clone(), opened.arguments.clone());
        (ToolCall { id, name: RECALL_TOOL.to_owned(), arguments }, opened.result.clone())
    });
    reply::HiddenRecalls { client_calls: beside.theirs.clone(), recalls: ours.collect() }
}
