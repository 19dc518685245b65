//! The engine on a store that may come and go.
//!
//! A file that was deleted goes on living for who has it open, and what is written to it is lost. So the file is looked
//! at before each request: if it is gone or another, the store is opened anew.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_engine::{Engine, store_words};
use fanfold_store::{Batch, Millis, Op, StoreError};

use crate::config::Host;

/// A store that could not be opened is left alone for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Hands the engine out.
pub(crate) struct Desk {
    host: Arc<dyn Host>,
    /// Guards the engine while it is opened, so that one thread opens it and the others wait.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(Arc<Engine>, Option<Mark>)>,
    /// When it could not be opened, and why.
    failed: Option<(Instant, String)>,
    /// What the store last said when it did not do what it was asked.
    trouble: Option<String>,
}

impl Desk {
    pub(crate) fn new(host: Arc<dyn Host>) -> Desk {
        Desk { host, state: Mutex::default() }
    }

    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole values go in and out, so a thread that died left them whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, or why there is none. It reads a file, and may open one.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>, String> {
        let file = self.host.file();
        let mut state = self.state();
        if let Some((engine, mark)) = &state.open {
            let is_same = file.as_deref().is_none_or(|file| Mark::of(file) == *mark);
            if is_same {
                return Ok(Arc::clone(engine));
            }
            tracing::warn!("the store is gone or another; it is opened anew");
            state.open = None;
        }
        if let Some((at, why)) = &state.failed
            && at.elapsed() < PAUSE
        {
            return Err(why.clone());
        }
        match self.host.open() {
            Ok(engine) => {
                let engine = Arc::new(engine);
                let mark = file.as_deref().and_then(Mark::of);
                *state = State { open: Some((Arc::clone(&engine), mark)), ..State::default() };
                Ok(engine)
            }
            Err(error) => {
                let why = store_words(&error);
                state.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    /// Takes what the store said about a request.
    pub(crate) fn told(&self, trouble: Option<&StoreError>) {
        self.state().trouble = trouble.map(store_words);
    }

    /// Whether sessions can be kept now, or why not. After trouble, something is written to see.
    pub(crate) fn is_ready(&self) -> Result<(), String> {
        let engine = self.engine()?;
        if self.state().trouble.is_none() {
            return Ok(());
        }
        let batch = Batch { at: Millis(0), expect: Vec::new(), ops: vec![Op::Keep(b"ready".to_vec())] };
        let written = engine.store().commit(&batch);
        self.told(written.as_ref().err());
        written.map(drop).map_err(|error| store_words(&error))
    }
}

/// What tells a file from another one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    number: u64,
}

impl Mark {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Mark> {
        use std::os::unix::fs::MetadataExt as _;
        let seen = std::fs::metadata(path).ok()?;
        Some(Mark { device: seen.dev(), number: seen.ino() })
    }

    // Elsewhere a file that is open can't be deleted.
    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Mark> {
        path.exists().then_some(Mark { device: 0, number: 0 })
    }
}
