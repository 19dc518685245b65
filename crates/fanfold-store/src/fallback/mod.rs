//! A store that continues in memory while its database fails, and writes what it holds once the database works again.
//!
//! ```text
//! the database works   commits and reads go to the database
//! it fails             hold:    the session is copied to memory, and its commits and reads go there
//! it works again       restore: what was added in memory is appended to the session in the database
//! ```
//!
//! Nothing is held unless the caller asks for it after an error, so a caller that does not gets every error.

mod session_copy; //  a session with its messages and events, copied between stores
mod recent_writes; // what a copy from the caller lacks: events and blobs that were written last
mod restore; //       writes held sessions back
mod routes; //        sends each operation to memory or to the database

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::model::{Batch, BlobId, CommitSummary, Millis, NodeId, Op, SessionId};
use crate::sqlite::SqliteStore;
use crate::store::{Store, StoreError};
use recent_writes::RecentWrites;
pub use restore::Restored;
pub use session_copy::SessionCopy;

/// Maximum total size of what sessions in memory contain, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// A store that continues in memory while its database fails.
pub struct FallbackStore {
    /// Guards the database, or the error of the attempt to open it. Replaced when it is opened again.
    database: RwLock<Result<Arc<dyn Store>, String>>,
    memory: SqliteStore,
    /// Guards the list of held sessions. Also held while memory is written to, so that a restore misses no commit.
    state: Mutex<State>,
    /// Held while sessions are written back, by one thread at a time.
    restoring: Mutex<()>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, HeldSession>,
    outage: Option<Outage>,
    /// False while the database cannot be read either.
    is_unreadable: bool,
    n_commits: u64,
    /// Locks in the database by session and holder. True if a lock is over but could not be released.
    locks: BTreeMap<(SessionId, String), bool>,
    recent: RecentWrites,
    /// Sessions that were dropped from memory without having been stored, and their number during this outage.
    dropped: Vec<SessionId>,
    n_dropped: usize,
}

/// A session in memory.
#[derive(Debug, Clone, Default)]
struct HeldSession {
    /// The number of its events that the database has.
    n_stored_events: u32,
    /// The newest message that the database has.
    stored_tip: Option<NodeId>,
    /// The blobs that its commits have put into memory.
    blobs: BTreeSet<BlobId>,
    n_new_messages: usize,
    n_bytes: usize,
    /// The number of the last commit to it, from 1; 0 before the first.
    last_commit: u64,
}

/// Why sessions are in memory, and how much waits there to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The error of the database, with its hint.
    pub error: String,
    /// When it was first seen.
    pub since: Millis,
    /// The sessions in memory.
    pub n_sessions: usize,
    /// The messages that the database does not have.
    pub n_messages: usize,
    /// The sessions that were dropped from memory, because too much waited there.
    pub n_dropped: usize,
}

impl FallbackStore {
    /// A store on a database, or without one because of an error.
    pub fn new(database: Result<Arc<dyn Store>, &StoreError>) -> FallbackStore {
        FallbackStore {
            database: RwLock::new(database.map_err(ToString::to_string)),
            memory: SqliteStore::in_memory(),
            state: Mutex::default(),
            restoring: Mutex::new(()),
        }
    }

    /// The database.
    pub fn database(&self) -> Result<Arc<dyn Store>, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        database.as_ref().map(Arc::clone).map_err(|error| StoreError::Unavailable(error.clone()))
    }

    /// Replaces the database after it was opened again, or after that failed. Held sessions stay in memory until they
    /// are restored.
    pub fn replace_database(&self, database: Result<Arc<dyn Store>, &StoreError>) {
        let is_open = database.is_ok();
        *self.database.write().unwrap_or_else(PoisonError::into_inner) =
            database.map_err(ToString::to_string);
        self.state().is_unreadable &= !is_open;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete when a panic can occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current outage.
    pub fn outage(&self) -> Option<Outage> {
        let state = self.state();
        let n_messages = state.sessions.values().map(|held| held.n_new_messages).sum();
        let (n_sessions, n_dropped) = (state.sessions.len(), state.n_dropped);
        state.outage.clone().map(|outage| Outage { n_sessions, n_messages, n_dropped, ..outage })
    }

    /// Notes that writes will fail.
    pub fn expect_outage(&self, error: &StoreError, now: Millis) {
        self.state().outage.get_or_insert_with(|| Outage::new(error, now));
    }

    /// True if a session is in memory, so that its newest messages may not be stored.
    pub fn is_held(&self, session: &SessionId) -> bool {
        self.state().sessions.contains_key(session)
    }

    /// True if the database cannot be read.
    pub fn is_unreadable(&self) -> bool {
        self.state().is_unreadable
    }

    /// The sessions that were dropped from memory since the last call, because too much waited there.
    pub fn take_dropped(&self) -> Vec<SessionId> {
        std::mem::take(&mut self.state().dropped)
    }

    /// Continues a session in memory after an error of the database. It is copied from the database, or else from
    /// `known`; without either, it is new. Returns false if that does not help against the error.
    pub fn hold(
        &self,
        session: &SessionId,
        error: &StoreError,
        now: Millis,
        known: impl FnOnce() -> Option<SessionCopy>,
    ) -> bool {
        if !error.is_outage() {
            return false;
        }
        if let Some(held) = self.state().sessions.get_mut(session) {
            // A copy that fails before its first commit is incomplete, so it is replaced by a new session.
            let is_incomplete = held.last_commit == 0 && held.n_stored_events > 0;
            return is_incomplete
                && self.memory.delete(session).map(|()| *held = HeldSession::default()).is_ok();
        }
        let is_unreadable = self.is_unreadable() || self.is_failing();
        let stored = if is_unreadable { None } else { self.copy_stored(session).ok() };
        let mut state = self.state();
        state.is_unreadable = is_unreadable;
        let copy = stored.unwrap_or_else(|| known().map(|known| state.recent.complete(known)));
        let held = match copy.map(|copy| self.memory.insert_copy(&copy).map(|()| copy)) {
            Some(Ok(copy)) => HeldSession {
                n_stored_events: copy.row.n_events,
                stored_tip: copy.row.tip,
                n_bytes: copy.n_bytes(),
                ..HeldSession::default()
            },
            Some(Err(_)) | None => HeldSession::default(),
        };
        state.outage.get_or_insert_with(|| Outage::new(error, now)).error = error.to_string();
        state.sessions.insert(session.clone(), held);
        true
    }

    /// Reads from the database to find out whether it can be read at all.
    fn is_failing(&self) -> bool {
        self.database().and_then(|database| database.named_value("version")).is_err()
    }

    /// A copy of a session in the database.
    fn copy_stored(&self, session: &SessionId) -> Result<Option<SessionCopy>, StoreError> {
        SessionCopy::read(&*self.database()?, session)
    }

    /// Commits a batch to memory. Its sessions are held from now on.
    fn commit_to_memory(
        &self,
        state: &mut State,
        batch: &Batch,
        sessions: &BTreeSet<SessionId>,
    ) -> Result<CommitSummary, StoreError> {
        for session in sessions.iter().filter(|session| !state.sessions.contains_key(*session)) {
            let is_new = |op: &Op| matches!(op, Op::Create(new) if new.id == *session);
            if !state.is_unreadable
                && !batch.ops.iter().any(is_new)
                && let Some(copy) = self.copy_stored(session)?
            {
                self.memory.insert_copy(&copy)?;
            }
        }
        let summary = self.memory.commit(batch)?;
        state.recent.add(batch, &summary);
        state.n_commits += 1;
        let n_bytes: usize = batch.ops.iter().map(n_bytes_of).sum();
        for session in sessions {
            let held = state.sessions.entry(session.clone()).or_default();
            held.last_commit = state.n_commits;
            held.n_bytes += n_bytes;
            held.n_new_messages += summary.n_new_messages;
            held.blobs.extend(batch.ops.iter().filter_map(blob_of));
        }
        self.drop_excess(state);
        Ok(summary)
    }

    /// Drops the sessions that were written to least recently if there is too much in memory.
    fn drop_excess(&self, state: &mut State) {
        let mut total: usize = state.sessions.values().map(|held| held.n_bytes).sum();
        while total > MAX_BYTES && state.sessions.len() > 1 {
            let oldest = state.sessions.iter().min_by_key(|(_, held)| held.last_commit);
            let Some((oldest, n_bytes)) = oldest.map(|(id, held)| (id.clone(), held.n_bytes)) else { return };
            self.release(state, &oldest);
            state.dropped.push(oldest);
            state.n_dropped += 1;
            total -= n_bytes;
        }
    }

    /// Removes a session from memory.
    fn release(&self, state: &mut State, session: &SessionId) {
        state.sessions.remove(session);
        let is_full = state.sessions.values().map(|held| held.n_bytes).sum::<usize>() > MAX_BYTES;
        // A session that cannot be removed from memory is not used any more.
        let deleted = self.memory.delete(session);
        if deleted.is_ok() && (is_full || state.sessions.is_empty()) {
            let _ = self.memory.collect_garbage();
        }
    }
}

impl SqliteStore {
    /// Deletes a session if it exists.
    fn delete(&self, session: &SessionId) -> Result<(), StoreError> {
        match self.commit(&Batch { ops: vec![Op::Delete(session.clone())], ..Batch::default() }) {
            Ok(_) | Err(StoreError::NoSession(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Outage {
    fn new(error: &StoreError, since: Millis) -> Outage {
        Outage { error: error.to_string(), since, n_sessions: 0, n_messages: 0, n_dropped: 0 }
    }
}

fn blob_of(op: &Op) -> Option<BlobId> {
    match op {
        Op::PutBlob(bytes) => Some(BlobId::new(bytes)),
        _ => None,
    }
}

fn n_bytes_of(op: &Op) -> usize {
    match op {
        Op::Append(_, messages) => messages.iter().map(|message| message.json.len()).sum(),
        Op::AddEvent(_, event) => event.body.len(),
        Op::PutBlob(bytes) => bytes.len(),
        _ => 0,
    }
}
