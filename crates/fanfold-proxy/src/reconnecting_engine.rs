//! The engine, on a store that is reopened when its file is deleted, replaced or emptied, and that may be missing.
//!
//! A deleted file stays alive for processes that have it open, and what they write is lost. So the file is checked
//! before each use, and the store is opened again if it is not the same. Without a store, the engine works in
//! memory; what waits there is stored when the store is back.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_engine::{MachineClock, SessionEngine, store_hint, store_message};
use fanfold_store::{Batch, Millis, Op, Outage, StoreError};

use crate::config::Host;

/// Pause after a failed attempt to open the store, and between attempts to store what waits.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Timeout for another thread that is opening the store.
const OPEN_TIMEOUT: Duration = Duration::from_millis(300);

pub(crate) struct ReconnectingEngine {
    host: Arc<dyn Host>,
    /// Guards the engine; not held while the store is being opened.
    state: Mutex<OpenState>,
    /// Notified when the store is no longer being opened.
    opened: Condvar,
}

#[derive(Default)]
struct OpenState {
    is_opening: bool,
    /// Present after the first use, with or without a store.
    engine: Option<Arc<SessionEngine>>,
    /// The file of the open store; `None` if no store is open.
    open: Option<Option<FileId>>,
    /// When the store could not be opened, and why.
    failed: Option<(Instant, String)>,
    /// The error of the last operation, if it failed.
    last_error: Option<String>,
    /// The outage that was logged last.
    logged: Option<Outage>,
}

impl ReconnectingEngine {
    pub(crate) fn new(host: Arc<dyn Host>) -> ReconnectingEngine {
        ReconnectingEngine { host, state: Mutex::default(), opened: Condvar::new() }
    }

    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    fn state(&self) -> MutexGuard<'_, OpenState> {
        // Only complete values are stored, so the state is consistent after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the engine. This checks the file and may open the store.
    pub(crate) fn get(&self) -> Arc<SessionEngine> {
        let file = self.host.file();
        let file_id = file.as_deref().and_then(FileId::of_path);
        let state = self.state();
        // One thread opens the store. The others wait only briefly, because a store may hang.
        let waited = self.opened.wait_timeout_while(state, OPEN_TIMEOUT, |state| state.is_opening);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_opening {
            return state.engine_without("the store is being opened and does not answer");
        }
        if let Some(known) = state.open
            && let Some(engine) = &state.engine
        {
            let is_same = file.is_none() || file_id == known;
            if is_same {
                return Arc::clone(engine);
            }
            tracing::warn!("the store was deleted, replaced or emptied; opening it again");
            state.open = None;
            state.engine_without("the store was deleted or replaced");
        }
        if let Some((at, why)) = &state.failed
            && at.elapsed() < RETRY_PAUSE
        {
            let why = why.clone();
            return state.engine_without(&why);
        }
        state.is_opening = true;
        drop(state);
        self.open(file.as_deref())
    }

    fn open(&self, file: Option<&Path>) -> Arc<SessionEngine> {
        let guard = OpeningGuard { owner: self };
        let opened = guard.owner.host.open().map(SessionEngine::continuing_in_memory);
        // The state is locked until the end of the function, and released before the guard is dropped.
        let mut state = self.state();
        let engine = match &opened {
            Ok(opened) => {
                state.open = Some(file.and_then(FileId::of_path));
                (state.failed, state.last_error) = (None, None);
                state.engine.clone().filter(|engine| engine.replace_store(Ok(opened)).is_ok())
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.to_string()));
                return state.engine_without(&error.to_string());
            }
        };
        let engine = engine.or_else(|| opened.ok().map(Arc::new));
        let engine = engine.expect("the store was opened");
        state.engine = Some(Arc::clone(&engine));
        engine
    }

    /// Reports whether an operation of the store succeeded.
    pub(crate) fn report(&self, error: Option<&StoreError>) {
        self.state().last_error = error.map(store_message);
    }

    /// Why the store cannot be used, and how much waits in memory.
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.state().engine.as_ref()?.outage()
    }

    /// Stores what waits in memory as soon as the store works again, until the engine is dropped.
    pub(crate) fn keep_storing(engine: &Arc<ReconnectingEngine>) -> impl Future<Output = ()> + use<> {
        let engine = Arc::downgrade(engine);
        async move {
            loop {
                tokio::time::sleep(RETRY_PAUSE).await;
                let Some(engine) = engine.upgrade() else { return };
                // A store that hangs delays only the next attempt.
                let _ = tokio::task::spawn_blocking(move || engine.store_waiting()).await;
            }
        }
    }

    /// Stores what waits in memory, if the store works again.
    pub(crate) fn store_waiting(&self) {
        let is_waiting = {
            let state = self.state();
            state.open.is_none() && state.failed.is_some()
                || state.engine.as_ref().is_some_and(|engine| engine.outage().is_some())
        };
        if !is_waiting {
            return;
        }
        let engine = self.get();
        self.log_outage(&engine);
        let Some(restored) = engine.store_waiting() else { return };
        for (session, stored_as) in &restored.renamed {
            tracing::warn!(%session, %stored_as, "the session was changed elsewhere: what waited is stored beside it");
        }
        if restored.error.is_none() {
            let (sessions, messages) = (restored.sessions.len(), restored.n_messages);
            tracing::info!(sessions, messages, "the store works again: what waited is stored");
        }
        self.log_outage(&engine);
    }

    /// Logs when an outage begins and when sessions are dropped from memory.
    pub(crate) fn log_outage(&self, engine: &SessionEngine) {
        let outage = engine.outage();
        let logged = std::mem::replace(&mut self.state().logged, outage.clone());
        let Some(outage) = outage else { return };
        let error = StoreError::Unavailable(outage.error);
        let (store, hint) = (store_message(&error), store_hint(&error));
        if logged.is_none() {
            tracing::warn!(store, hint, "the store is unavailable: requests are folded in memory");
        }
        if outage.n_dropped > logged.map_or(0, |logged| logged.n_dropped) {
            let (dropped, waiting) = (outage.n_dropped, outage.n_sessions);
            tracing::warn!(dropped, waiting, "sessions were dropped from memory before they could be stored");
        }
    }

    /// Returns whether the store works, or returns an error message. After an error this is tested with a write.
    pub(crate) fn is_ready(&self) -> Result<(), String> {
        let engine = self.get();
        self.store_waiting();
        let last_error = {
            let state = self.state();
            if state.open.is_none() {
                let why = state.failed.as_ref().map_or("it is being opened", |(_, why)| why);
                return Err(store_message(&StoreError::Unavailable(why.to_owned())));
            }
            state.last_error.clone()
        };
        if let Some(outage) = engine.outage() {
            let (n, error) = (outage.n_messages, StoreError::Unavailable(outage.error));
            return Err(format!("{}; {n} messages wait in memory", store_message(&error)));
        }
        if last_error.is_none() {
            return Ok(());
        }
        let batch =
            Batch { at: Millis(0), expected_tips: Vec::new(), ops: vec![Op::PutBlob(b"ready".to_vec())] };
        let written = engine.store().commit(&batch);
        self.report(written.as_ref().err());
        written.map(drop).map_err(|error| store_message(&error))
    }
}

impl OpenState {
    /// The engine, without a store for a reason.
    fn engine_without(&mut self, why: &str) -> Arc<SessionEngine> {
        let error = StoreError::Unavailable(why.to_owned());
        match &self.engine {
            // While the store is being opened, the engine may still have it.
            Some(engine) if self.open.is_none() => {
                // Only an opened store can fail to be taken over.
                let _ = engine.replace_store(Err(&error));
                Arc::clone(engine)
            }
            Some(engine) => Arc::clone(engine),
            None => {
                let engine = Arc::new(SessionEngine::without_store(&error, Arc::new(MachineClock)));
                Arc::clone(self.engine.insert(engine))
            }
        }
    }
}

/// Marks the store as no longer being opened when it is dropped.
struct OpeningGuard<'e> {
    owner: &'e ReconnectingEngine,
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        self.owner.state().is_opening = false;
        self.owner.opened.notify_all();
    }
}

/// Identifies a file, to detect another one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The id of a file; none if it is missing or was emptied.
    #[cfg(unix)]
    fn of_path(path: &Path) -> Option<FileId> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.len() > 0)?;
        Some(FileId { device: metadata.dev(), inode: metadata.ino() })
    }

    // Elsewhere an open file cannot be deleted.
    #[cfg(not(unix))]
    fn of_path(path: &Path) -> Option<FileId> {
        path.exists().then_some(FileId { device: 0, inode: 0 })
    }
}
