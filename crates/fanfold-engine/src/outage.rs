//! Sessions continue in memory while the store fails, so that requests are folded all the same.
//!
//! The messages and events of a request wait in memory, where originals can be recalled, and are stored when the store
//! works again. A session that the store or the cache has continues with the same view. Any other is folded as new.

use std::sync::Arc;

use fanfold_store::{
    EventRow, FallbackStore, Node, NodeId, Outage, Restored, Role, SessionCopy, SessionId, SessionRow,
    StoreError,
};
use fanfold_wire::Incoming;

use crate::clock::Clock;
use crate::engine::SessionEngine;
use crate::follow::session_state::CachedSession;
use crate::log::events::{InheritedEvent, LoggedEvent, SessionEvent};

impl SessionEngine {
    /// The engine, which folds requests in memory while the store fails. Its host calls
    /// [`store_waiting`](Self::store_waiting) from time to time.
    pub fn continuing_in_memory(self) -> SessionEngine {
        SessionEngine { continues_in_memory: true, ..self }
    }

    /// An engine that works in memory because its store could not be opened.
    pub fn without_store(error: &StoreError, clock: Arc<dyn Clock>) -> SessionEngine {
        SessionEngine::on(FallbackStore::new(Err(error)), clock).continuing_in_memory()
    }

    /// The engine on a store that is only read, because it could not be opened for writing. Requests are folded in memory.
    pub fn without_writing(self, error: &StoreError) -> SessionEngine {
        self.fallback.expect_outage(error, self.clock.now());
        self.continuing_in_memory()
    }

    /// Takes over the store of another engine, after it was opened again, or notes why it could not be opened.
    pub fn replace_store(&self, opened: Result<&SessionEngine, &StoreError>) -> Result<(), StoreError> {
        match opened {
            Ok(opened) => {
                self.fallback.replace_database(Ok(opened.fallback.database()?));
                // It may be another store, with other events.
                self.cache.clear();
            }
            Err(error) => self.fallback.replace_database(Err(error)),
        }
        Ok(())
    }

    /// Why sessions are in memory, and how much waits there; none while the store works.
    pub fn outage(&self) -> Option<Outage> {
        self.fallback.outage()
    }

    /// Tries to store what waits in memory. Returns nothing if nothing waits.
    pub fn store_waiting(&self) -> Option<Restored> {
        let restored = self.fallback.restore()?;
        for (session, _) in &restored.renamed {
            self.cache.take(session);
        }
        Some(restored)
    }

    /// True if no session has an id. While the store cannot be read, only sessions in memory are known.
    pub fn is_new(&self, session: &SessionId) -> Result<bool, StoreError> {
        let found = match self.store.session(session) {
            Err(error) if self.hold_cached(session, &error) => self.store.session(session),
            found => found,
        };
        Ok(found?.is_none())
    }

    /// Continues a session in memory after an error of the store. Returns false if that does not help.
    pub(crate) fn hold(
        &self,
        session: &SessionId,
        error: &StoreError,
        known: impl FnOnce() -> Option<SessionCopy>,
    ) -> bool {
        if !self.continues_in_memory {
            return false;
        }
        let is_held = self.fallback.hold(session, error, self.clock.now(), known);
        for dropped in self.fallback.take_dropped() {
            self.cache.take(&dropped);
        }
        is_held
    }

    /// The same for a session that may be cached.
    pub(crate) fn hold_cached(&self, session: &SessionId, error: &StoreError) -> bool {
        self.hold(session, error, || self.cache.peek(session, |cached| copy_of(session, cached)))
    }

    /// During an outage, continues a session in memory before it is used, so that no time is lost with the store.
    pub(crate) fn hold_during_outage(&self, session: &SessionId, cached: Option<&CachedSession>) {
        if let Some(outage) = self.fallback.outage()
            && !self.fallback.is_held(session)
        {
            let error = StoreError::Unavailable(outage.error);
            self.hold(session, &error, || cached.map(|cached| copy_of(session, cached)));
        }
    }

    /// While the store cannot be read, continues the cached session that is most similar to a body in memory, so that
    /// the body is recognised there.
    pub(crate) fn hold_similar(&self, incoming: &Incoming, error: &StoreError) {
        let Some(first) = incoming.plain(0) else { return };
        let first = NodeId::new(None, &first);
        if let Some(session) = self.cache.most_similar(incoming, first)
            && !self.fallback.is_held(&session)
        {
            self.hold_cached(&session, error);
        }
    }
}

/// A copy of a session as its last request left it.
pub(crate) fn copy_of(session: &SessionId, cached: &CachedSession) -> SessionCopy {
    let CachedSession { state, log } = cached;
    let conversation = &state.followed.conversation;
    let ids = &state.messages.ids;
    let nodes = conversation.plain_messages(0).zip(ids).enumerate().map(|(i, (json, id))| Node {
        id: *id,
        parent: i.checked_sub(1).map(|before| ids[before]),
        number: 0,
        depth: i as u32,
        role: Role::from_message(&json),
        at: log.events.last().map(|last| last.at).unwrap_or_default(),
        json: json.into(),
    });
    let updated_at = log.events.last().map(|last| last.at).unwrap_or_default();
    let row = SessionRow {
        id: session.clone(),
        source: String::new(),
        format: conversation.format().to_string(),
        model: conversation.model().map(str::to_owned),
        title: None,
        goal: None,
        parent: None,
        root: session.clone(),
        tip: ids.last().copied(),
        n_messages: ids.len() as u32,
        n_events: log.n_read,
        started_at: log.events.first().map(|first| first.at).unwrap_or_default(),
        updated_at,
        ended: None,
    };
    let blobs = state.frame.iter().map(|(_, frame)| frame.blob().1).collect();
    SessionCopy { row, nodes: nodes.collect(), events: own_events(cached), blobs }
}

/// The events of a session. Those that a fork has inherited become one event, because its parent may be missing.
fn own_events(cached: &CachedSession) -> Vec<EventRow> {
    let (inherited, own) = cached.log.events.split_at(cached.log.n_inherited);
    let origin = inherited.split_last().map(|(origin, inherited)| {
        let events = inherited.iter().map(InheritedEvent::new).collect();
        LoggedEvent { event: SessionEvent::Inherited { events }, ..origin.clone() }
    });
    origin.iter().chain(own).map(row_of).collect()
}

fn row_of(logged: &LoggedEvent) -> EventRow {
    let event = logged.event.encode();
    EventRow { seq: logged.seq, at: logged.at, tip: logged.tip, kind: event.kind, body: event.body }
}
