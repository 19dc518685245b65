//! Deletes sessions. Forks of a deleted session keep the events that they inherited from it.

use fanfold_store::{Batch, Millis, Op, SessionFilter, SessionId, SessionRow, readable_sessions};

use crate::engine::{OpError, SessionEngine};
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::log::session_log::{FORKED, SessionLog};

/// Selects old sessions for deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Only sessions last updated before this time.
    pub before: Millis,
    /// Only sessions with this source.
    pub source: Option<String>,
    /// Only sessions that have ended.
    pub only_ended: bool,
}

/// The result of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// The deleted sessions.
    pub sessions: Vec<SessionId>,
    /// The number of deleted messages. Messages that other sessions share are kept.
    pub n_messages: u64,
}

impl SessionEngine {
    /// Deletes a session. Messages shared with other sessions are kept, and its forks get a copy of its events.
    pub fn delete(&self, session: &SessionId) -> Result<PruneReport, OpError> {
        self.row(session)?;
        self.delete_all(std::slice::from_ref(session))
    }

    /// The sessions that [`prune`](Self::prune) would delete.
    pub fn outdated_sessions(&self, retention: &Retention) -> Result<Vec<SessionRow>, OpError> {
        let filter = SessionFilter {
            before: Some(retention.before),
            source: retention.source.clone(),
            ..SessionFilter::default()
        };
        // Unreadable sessions are kept, and do not prevent the deletion of others.
        let mut rows = readable_sessions(&*self.store, &filter).rows;
        rows.retain(|row| row.ended.is_some() || !retention.only_ended);
        Ok(rows)
    }

    /// Deletes outdated sessions.
    pub fn prune(&self, retention: &Retention) -> Result<PruneReport, OpError> {
        let mut rows = self.outdated_sessions(retention)?;
        // Delete children before their parents, so that no child lacks inherited events if this fails halfway.
        rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id.clone())));
        self.delete_all(&rows.into_iter().map(|row| row.id).collect::<Vec<_>>())
    }

    fn delete_all(&self, sessions: &[SessionId]) -> Result<PruneReport, OpError> {
        for session in sessions {
            let mut ops = Vec::new();
            let children = self
                .store
                .sessions(&SessionFilter { parent: Some(session.clone()), ..SessionFilter::default() })?;
            for child in children.iter().filter(|child| !sessions.contains(&child.id)) {
                ops.extend(self.copy_inherited_events(session, child)?);
            }
            ops.push(Op::Delete(session.clone()));
            self.store.commit(&Batch { at: self.clock.now(), expected_tips: Vec::new(), ops })?;
        }
        self.cache.clear();
        let n_messages = if sessions.is_empty() { 0 } else { self.store.collect_garbage()? };
        Ok(PruneReport { sessions: sessions.to_vec(), n_messages })
    }

    /// The operation that copies the events of a deleted parent to its fork.
    fn copy_inherited_events(&self, parent: &SessionId, child: &SessionRow) -> Result<Option<Op>, OpError> {
        let events = self.store.events(&child.id, 0)?;
        let Some(forked) = events.iter().find(|event| event.kind == FORKED) else { return Ok(None) };
        let note = LoggedEvent::decode(forked).map(|noted| noted.event);
        if !matches!(note, Some(SessionEvent::Forked { from, .. }) if from == parent.0) {
            return Ok(None);
        }
        let events = SessionLog::inheritance(&*self.store, forked)?;
        Ok(Some(Op::AddEvent(child.id.clone(), SessionEvent::Inherited { events }.encode())))
    }
}
