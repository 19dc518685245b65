//! Sends each operation to memory if its session is held, and else to the database.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::doctor::{CheckMode, Finding};
use crate::model::{Batch, BlobId, CommitSummary, EventRow, Millis, Node, NodeId, Op, SessionId, SessionRow};
use crate::search::{SearchHits, SearchSpec};
use crate::store::{LockOutcome, SessionFilter, Store, StoreError, StoreSize};

use super::FallbackStore;

type Result<T> = std::result::Result<T, StoreError>;

impl FallbackStore {
    /// Uses the database. While it cannot be read, fails at once, because a server may take long to fail.
    fn in_database<T>(&self, run: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        let state = self.state();
        if let Some(outage) = state.outage.as_ref().filter(|_| state.is_unreadable) {
            return Err(StoreError::Unavailable(outage.error.clone()));
        }
        drop(state);
        run(&*self.database()?)
    }

    /// Reads something that does not belong to one session: from memory if it is there, else from the database.
    /// Without a database it is missing.
    fn look_up<T>(
        &self,
        in_memory: impl FnOnce(&dyn Store) -> Result<Option<T>>,
        in_database: impl FnOnce(&dyn Store) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let (has_sessions, is_unreadable) = {
            let state = self.state();
            (!state.sessions.is_empty(), state.is_unreadable)
        };
        let found = if has_sessions { in_memory(&self.memory)? } else { None };
        if found.is_some() || is_unreadable { Ok(found) } else { in_database(&*self.database()?) }
    }

    fn look_up_chain(
        &self,
        tip: NodeId,
        read: impl Fn(&dyn Store) -> Result<Vec<Node>>,
    ) -> Result<Vec<Node>> {
        let chain = |store: &dyn Store| match read(store) {
            Err(StoreError::NoNode(_)) => Ok(None),
            chain => chain.map(Some),
        };
        self.look_up(chain, chain)?.ok_or(StoreError::NoNode(tip))
    }

    /// Releases the locks of a session in the database that could not be released when they should have been.
    fn release_locks(&self, session: &SessionId) {
        let locks = self.state().locks.clone();
        for ((id, holder), _) in locks.iter().filter(|((id, _), is_over)| id == session && **is_over) {
            // If this fails, so does the next lock.
            let _ = self.unlock(id, holder);
        }
    }

    /// The store that has a session.
    fn in_store_of<T>(&self, session: &SessionId, run: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        let state = self.state();
        // The session is not released from memory in between.
        if state.sessions.contains_key(session) {
            return run(&self.memory);
        }
        drop(state);
        self.in_database(run)
    }
}

impl Store for FallbackStore {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary> {
        let sessions = sessions_of(batch);
        let mut state = self.state();
        if sessions.iter().any(|session| state.sessions.contains_key(session)) {
            return self.commit_to_memory(&mut state, batch, &sessions);
        }
        drop(state);
        let summary = self.in_database(|database| database.commit(batch))?;
        self.state().recent.add(batch, &summary);
        Ok(summary)
    }

    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        self.in_store_of(id, |store| store.session(id))
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>> {
        let state = self.state();
        if state.sessions.is_empty() {
            drop(state);
            return self.in_database(|database| database.sessions(filter));
        }
        let all = SessionFilter { limit: None, offset: 0, ..filter.clone() };
        let held: BTreeSet<SessionId> = state.sessions.keys().cloned().collect();
        let in_memory = self.memory.sessions(&all)?;
        drop(state);
        let mut rows = self.in_database(|database| database.sessions(&all))?;
        rows.retain(|row| !held.contains(&row.id));
        rows.extend(in_memory);
        rows.sort_by_key(|row| Reverse((row.updated_at, row.id.clone())));
        Ok(rows.into_iter().skip(filter.offset).take(filter.limit.unwrap_or(usize::MAX)).collect())
    }

    fn chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>> {
        self.look_up_chain(tip, |store| store.chain(tip, depths.clone()))
    }

    fn readable_chain(&self, tip: NodeId, depths: Range<u32>) -> Result<Vec<Node>> {
        self.look_up_chain(tip, |store| store.readable_chain(tip, depths.clone()))
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>> {
        self.look_up(|store| store.node(id), |store| store.node(id))
    }

    fn node_by_number(&self, number: u64) -> Result<Option<Node>> {
        // Numbers in memory are others than those in the database.
        self.in_database(|database| database.node_by_number(number))
    }

    fn owners(&self, node: NodeId) -> Result<Vec<SessionId>> {
        let owners = |store: &dyn Store| match store.owners(node) {
            Err(StoreError::NoNode(_)) => Ok(Vec::new()),
            owners => owners,
        };
        let state = self.state();
        if state.sessions.is_empty() {
            drop(state);
            return self.in_database(|database| database.owners(node));
        }
        let held: BTreeSet<SessionId> = state.sessions.keys().cloned().collect();
        let (in_memory, is_unreadable) = (owners(&self.memory)?, state.is_unreadable);
        drop(state);
        let mut found = if is_unreadable { Vec::new() } else { owners(&*self.database()?)? };
        found.retain(|session| !held.contains(session));
        found.extend(in_memory);
        Ok(found)
    }

    fn search(&self, spec: &SearchSpec) -> Result<SearchHits> {
        self.in_database(|database| database.search(spec))
    }

    fn events(&self, session: &SessionId, from: u32) -> Result<Vec<EventRow>> {
        let events = self.in_store_of(session, |store| store.events(session, from))?;
        self.state().recent.add_read(session, from, &events);
        Ok(events)
    }

    fn blob(&self, id: BlobId) -> Result<Option<Vec<u8>>> {
        let found = self.look_up(|store| store.blob(id), |store| store.blob(id))?;
        let mut state = self.state();
        match found {
            Some(bytes) => {
                state.recent.add_blob(id, &bytes);
                Ok(Some(bytes))
            }
            // A held session may come from another database.
            None if state.outage.is_some() => Ok(state.recent.blob(id).map(<[u8]>::to_vec)),
            None => Ok(None),
        }
    }

    fn named_value(&self, name: &str) -> Result<Option<i64>> {
        self.in_database(|database| database.named_value(name))
    }

    fn lock(&self, session: &SessionId, holder: &str, lease_ms: i64, now: Millis) -> Result<LockOutcome> {
        self.release_locks(session);
        let is_in_database = !self.is_held(session);
        let outcome = self.in_store_of(session, |store| store.lock(session, holder, lease_ms, now));
        // A lock that failed may have been taken.
        if is_in_database && !matches!(outcome, Ok(LockOutcome::HeldByOther(_))) {
            self.state().locks.insert((session.clone(), holder.to_owned()), false);
        }
        outcome
    }

    fn unlock(&self, session: &SessionId, holder: &str) -> Result<()> {
        // The session may have been taken into memory, or stored, since it was locked.
        let key = (session.clone(), holder.to_owned());
        if !self.state().locks.contains_key(&key) {
            return self.in_store_of(session, |store| store.unlock(session, holder));
        }
        let unlocked = self.in_database(|database| database.unlock(session, holder));
        let mut state = self.state();
        match unlocked {
            Ok(()) => drop(state.locks.remove(&key)),
            Err(_) => drop(state.locks.insert(key, true)),
        }
        unlocked
    }

    fn collect_garbage(&self) -> Result<u64> {
        self.in_database(|database| database.collect_garbage())
    }

    fn check(&self, mode: CheckMode) -> Result<Vec<Finding>> {
        self.in_database(|database| database.check(mode))
    }

    fn size(&self) -> Result<StoreSize> {
        self.in_database(|database| database.size())
    }
}

/// The sessions of a batch, and the parents of those that it creates.
fn sessions_of(batch: &Batch) -> BTreeSet<SessionId> {
    let of_ops = batch.ops.iter().flat_map(|op| match op {
        Op::Create(new) => [Some(&new.id), new.parent.as_ref().map(|(parent, _)| parent)],
        Op::Append(id, _) | Op::MoveTip(id, _) | Op::AddEvent(id, _) | Op::Update(id, _) | Op::Delete(id) => {
            [Some(id), None]
        }
        Op::PutBlob(_) | Op::SetNamedValue(..) => [None, None],
    });
    let expected = batch.expected_tips.iter().map(|(id, _)| id);
    of_ops.flatten().chain(expected).cloned().collect()
}
