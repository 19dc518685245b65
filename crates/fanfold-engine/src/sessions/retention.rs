//! Sessions that go, and what of them stays with those that came from them.

use fanfold_store::{Batch, Millis, Op, SessionFilter, SessionId, SessionRow, readable_sessions};

use crate::engine::{Engine, OpError};
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::log::session_log::SessionLog;

/// Which sessions may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Those last written to before this moment.
    pub before: Millis,
    /// Only of this source.
    pub source: Option<String>,
    /// Only those that have ended.
    pub only_ended: bool,
}

/// What went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// How many messages no other session had.
    pub n_messages: u64,
}

impl Engine {
    /// Forgets a session. Messages that others share stay, and those that came from it keep what happened before.
    pub fn delete(&self, session: &SessionId) -> Result<Pruned, OpError> {
        self.row(session)?;
        self.delete_all(std::slice::from_ref(session))
    }

    /// The sessions that a retention would let go.
    pub fn outdated(&self, retention: &Retention) -> Result<Vec<SessionRow>, OpError> {
        let filter = SessionFilter {
            before: Some(retention.before),
            source: retention.source.clone(),
            ..SessionFilter::default()
        };
        // One that can't be read stays, and does not keep the others here.
        let mut rows = readable_sessions(&*self.store, &filter).rows;
        rows.retain(|row| row.ended.is_some() || !retention.only_ended);
        Ok(rows)
    }

    /// Lets outdated sessions go.
    pub fn prune(&self, retention: &Retention) -> Result<Pruned, OpError> {
        let mut rows = self.outdated(retention)?;
        // Those that came from others go before them, so that an end in the middle leaves nobody without their past.
        rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id.clone())));
        self.delete_all(&rows.into_iter().map(|row| row.id).collect::<Vec<_>>())
    }

    fn delete_all(&self, sessions: &[SessionId]) -> Result<Pruned, OpError> {
        for session in sessions {
            let mut ops = Vec::new();
            let children = self
                .store
                .sessions(&SessionFilter { parent: Some(session.clone()), ..SessionFilter::default() })?;
            for child in children.iter().filter(|child| !sessions.contains(&child.id)) {
                ops.extend(self.inherit(session, child)?);
            }
            ops.push(Op::Delete(session.clone()));
            self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        }
        self.cache.clear();
        let n_messages = if sessions.is_empty() { 0 } else { self.store.collect_garbage()? };
        Ok(Pruned { sessions: sessions.to_vec(), n_messages })
    }

    /// What a session must be told so that the one it came from is not missed.
    fn inherit(&self, parent: &SessionId, child: &SessionRow) -> Result<Option<Op>, OpError> {
        let events = self.store.events(&child.id, 0)?;
        let Some(forked) = events.iter().find(|event| event.kind == "forked") else { return Ok(None) };
        let note = LoggedEvent::decode(forked).map(|noted| noted.event);
        if !matches!(note, Some(SessionEvent::Forked { from, .. }) if from == parent.0) {
            return Ok(None);
        }
        let kept = SessionLog::inheritance(&*self.store, forked)?;
        Ok(Some(Op::AddEvent(child.id.clone(), SessionEvent::Inherited { events: kept }.encode())))
    }
}
