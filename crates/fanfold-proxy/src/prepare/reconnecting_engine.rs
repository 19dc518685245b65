//! The engine on a store that may come and go.
//!
//! A file that was deleted goes on living for who has it open, and what is written to it is lost. So the file is looked
//! at before each request: if it is gone or another, the store is opened anew.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_engine::{Engine, store_words};
use fanfold_store::{Batch, Millis, Op, StoreError};

use crate::config::Host;

/// A store that could not be opened is left alone for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// So long one waits for another who opens it.
const PATIENCE: Duration = Duration::from_millis(300);

/// Hands the engine out.
pub(crate) struct Desk {
    host: Arc<dyn Host>,
    /// Guards the engine; held for a look, not while it is opened.
    state: Mutex<State>,
    /// Told when nobody is opening it any more.
    opened: Condvar,
}

#[derive(Default)]
struct State {
    is_opening: bool,
    open: Option<(Arc<Engine>, Option<Mark>)>,
    /// When it could not be opened, and why.
    failed: Option<(Instant, String)>,
    /// What the store last said when it did not do what it was asked.
    trouble: Option<String>,
}

impl Desk {
    pub(crate) fn new(host: Arc<dyn Host>) -> Desk {
        Desk { host, state: Mutex::default(), opened: Condvar::new() }
    }

    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole values go in and out, so a thread that died left them whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, or why there is none. It looks at a file, and may open one.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>, String> {
        let file = self.host.file();
        let mark = file.as_deref().and_then(Mark::of);
        let state = self.state();
        // Whoever is first opens it. The others wait shortly: a store that does not answer must not hold all of them.
        let waited = self.opened.wait_timeout_while(state, PATIENCE, |state| state.is_opening);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_opening {
            return Err("the store is being opened and does not answer".to_owned());
        }
        if let Some((engine, known)) = &state.open {
            let is_same = file.is_none() || mark == *known;
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
        state.is_opening = true;
        drop(state);
        let opening = Opening { desk: self };
        let opened = opening.desk.host.open();
        // It goes before `opening` does.
        let mut state = self.state();
        match opened {
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
        let batch =
            Batch { at: Millis(0), expected_tips: Vec::new(), ops: vec![Op::PutBlob(b"ready".to_vec())] };
        let written = engine.store().commit(&batch);
        self.told(written.as_ref().err());
        written.map(drop).map_err(|error| store_words(&error))
    }
}

/// Says that nobody is opening the store any more when it goes, however it goes.
struct Opening<'d> {
    desk: &'d Desk,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.desk.state().is_opening = false;
        self.desk.opened.notify_all();
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
