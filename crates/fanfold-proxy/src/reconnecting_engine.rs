//! The engine, on a store that is reopened when its file is deleted, replaced or emptied.
//!
//! A deleted file stays alive for processes that have it open, and what they write is lost. So the file is checked
//! before each use, and the store is opened again if it is not the same.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_engine::{SessionEngine, store_message};
use fanfold_store::{Batch, Millis, Op, StoreError};

use crate::config::Host;

/// Pause after a failed attempt to open the store.
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
    open: Option<(Arc<SessionEngine>, Option<FileId>)>,
    /// When the store could not be opened, and why.
    failed: Option<(Instant, String)>,
    /// The error of the last operation, if it failed.
    last_error: Option<String>,
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

    /// Returns the engine, or an error message. This checks the file and may open the store.
    pub(crate) fn get(&self) -> Result<Arc<SessionEngine>, String> {
        let file = self.host.file();
        let file_id = file.as_deref().and_then(FileId::of_path);
        let state = self.state();
        // One thread opens the store. The others wait only briefly, because a store may hang.
        let waited = self.opened.wait_timeout_while(state, OPEN_TIMEOUT, |state| state.is_opening);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_opening {
            return Err("the store is being opened and does not answer".to_owned());
        }
        if let Some((engine, known)) = &state.open {
            let is_same = file.is_none() || file_id == *known;
            if is_same {
                return Ok(Arc::clone(engine));
            }
            tracing::warn!("the store was deleted, replaced or emptied; opening it again");
            state.open = None;
        }
        if let Some((at, why)) = &state.failed
            && at.elapsed() < RETRY_PAUSE
        {
            return Err(why.clone());
        }
        state.is_opening = true;
        drop(state);
        self.open(file.as_deref())
    }

    fn open(&self, file: Option<&Path>) -> Result<Arc<SessionEngine>, String> {
        let guard = OpeningGuard { owner: self };
        let opened = guard.owner.host.open();
        // The state is locked until the end of the function, and released before the guard is dropped.
        let mut state = self.state();
        match opened {
            Ok(engine) => {
                let engine = Arc::new(engine);
                let file_id = file.and_then(FileId::of_path);
                *state = OpenState { open: Some((Arc::clone(&engine), file_id)), ..OpenState::default() };
                Ok(engine)
            }
            Err(error) => {
                let why = store_message(&error);
                state.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    /// Reports whether an operation of the store succeeded.
    pub(crate) fn report(&self, error: Option<&StoreError>) {
        self.state().last_error = error.map(store_message);
    }

    /// Returns whether the store works, or returns an error message. After an error this is tested with a write.
    pub(crate) fn is_ready(&self) -> Result<(), String> {
        let engine = self.get()?;
        if self.state().last_error.is_none() {
            return Ok(());
        }
        let batch =
            Batch { at: Millis(0), expected_tips: Vec::new(), ops: vec![Op::PutBlob(b"ready".to_vec())] };
        let written = engine.store().commit(&batch);
        self.report(written.as_ref().err());
        written.map(drop).map_err(|error| store_message(&error))
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
