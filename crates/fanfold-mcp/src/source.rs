//! Opens the store for each call. A client may start its servers before the store exists, and a store may be deleted
//! while they run.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fanfold_engine::{MachineClock, SessionEngine, store_hint, store_message};
use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{OpenMode, StoreError, open, store_file};

/// Provides the engine for each tool call.
pub(crate) trait EngineSource: Send + Sync {
    /// The engine on the sessions.
    fn engine(&self) -> Result<Arc<SessionEngine>, SourceError>;

    /// The engine to search with. If the store is writable, this one keeps the search index up to date; the engine for
    /// reading would index new messages again for each search.
    fn engine_to_search(&self) -> Result<Arc<SessionEngine>, SourceError> {
        self.engine()
    }
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct SourceError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A store by its address. Sessions are only read; other processes may write to them.
pub(crate) struct StoreSource {
    address: String,
    /// The open store. Guards against two calls opening it at the same time.
    current: Mutex<Option<OpenStore>>,
}

struct OpenStore {
    engine: Arc<SessionEngine>,
    /// Started by the first search, and set when the index is up to date.
    to_search: Option<Arc<OnceLock<Arc<SessionEngine>>>>,
    file: Option<StoreFileId>,
}

/// Identifies a file, so that a deleted and recreated store is opened again.
type StoreFileId = (u64, u64);

impl StoreSource {
    /// The store at an address. It need not exist yet.
    pub(crate) fn new(address: impl Into<String>) -> StoreSource {
        StoreSource { address: address.into(), current: Mutex::new(None) }
    }

    /// Calls `use_store` with the open store, opening it first if necessary or if its file was replaced.
    fn with<T>(&self, use_store: impl FnOnce(&mut OpenStore) -> T) -> Result<T, SourceError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match store_file(&self.address).map(|path| file_id(&path)) {
            // Close it: a deleted file stays readable while it is open.
            Some(None) => {
                *current = None;
                return Err(SourceError {
                    message: format!("there is no store at {}", self.address),
                    hint: "it is created with the first session (`fanfold serve`, or `fanfold fold --session new`); \
                           --store selects another one"
                        .to_owned(),
                });
            }
            file => file.flatten(),
        };
        if let Some(open) = current.as_mut().filter(|open| open.file == file) {
            return Ok(use_store(open));
        }
        let engine = open_engine(&self.address, OpenMode::Read).map_err(|error| SourceError {
            message: format!("cannot open the store {}: {}", self.address, store_message(&error)),
            hint: store_hint(&error),
        })?;
        Ok(use_store(current.insert(OpenStore { engine, to_search: None, file })))
    }
}

impl EngineSource for StoreSource {
    fn engine(&self) -> Result<Arc<SessionEngine>, SourceError> {
        self.with(|open| Arc::clone(&open.engine))
    }

    fn engine_to_search(&self) -> Result<Arc<SessionEngine>, SourceError> {
        self.with(|open| {
            let ready = open.to_search.get_or_insert_with(|| start_indexing(self.address.clone()));
            Arc::clone(ready.get().unwrap_or(&open.engine))
        })
    }
}

fn open_engine(address: &str, purpose: OpenMode) -> Result<Arc<SessionEngine>, StoreError> {
    let store = open(address, purpose)?;
    Ok(Arc::new(SessionEngine::new(Arc::from(store), Arc::new(MachineClock))))
}

/// Brings the index up to date on its own thread, because after many new messages that takes longer than a call may.
/// Sets the engine when it is done; never, if the store is read-only.
fn start_indexing(address: String) -> Arc<OnceLock<Arc<SessionEngine>>> {
    let ready = Arc::new(OnceLock::new());
    let result = Arc::clone(&ready);
    std::thread::spawn(move || {
        // Opening a store for writing would create it again if it was just deleted.
        let exists = store_file(&address).is_none_or(|path| path.exists());
        let Some(engine) = exists.then(|| open_engine(&address, OpenMode::Write).ok()).flatten() else {
            return;
        };
        // Any search updates the index first.
        let find = SearchSpec { query: Query::parse("fanfold"), limit: 1, ..SearchSpec::default() };
        if engine.store().search(&find).is_ok() {
            drop(result.set(engine));
        }
    });
    ready
}

impl Drop for StoreSource {
    fn drop(&mut self) {
        let current = self.current.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A PostgreSQL store has a runtime of its own, which cannot be dropped inside another one.
        if current.is_some() && tokio::runtime::Handle::try_current().is_ok() {
            drop(std::thread::spawn(move || drop(current)));
        }
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<StoreFileId> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<StoreFileId> {
    // An open file cannot be deleted on this system.
    std::fs::metadata(path).ok().map(|_| (0, 0))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use fanfold_store::SqliteStore;

    use super::*;

    #[test]
    fn a_store_may_be_created_deleted_and_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let source = StoreSource::new(path.display().to_string());
        let Err(error) = source.engine() else { panic!("there is no store yet") };
        assert!(error.message.starts_with("there is no store at "), "{error}");
        drop(SqliteStore::open(&path).unwrap());
        let first = source.engine().unwrap();
        assert!(Arc::ptr_eq(&first, &source.engine().unwrap()), "the store is opened once");
        // Until the index is up to date, searches use the first engine.
        let began = Instant::now();
        while Arc::ptr_eq(&first, &source.engine_to_search().unwrap()) {
            assert!(began.elapsed() < Duration::from_secs(20), "the index is never up to date");
            std::thread::sleep(Duration::from_millis(5));
        }
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        assert!(
            source.engine().is_err() && source.engine_to_search().is_err(),
            "a deleted store is not read any more"
        );
        assert!(!path.exists(), "a search does not create a store");
        drop(SqliteStore::open(&path).unwrap());
        assert!(!Arc::ptr_eq(&first, &source.engine().unwrap()), "the new file is opened");
    }

    #[test]
    fn a_file_that_is_not_a_store_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "buy milk").unwrap();
        let Err(error) = StoreSource::new(path.display().to_string()).engine() else {
            panic!("notes.txt is not a store")
        };
        assert!(error.message.contains("notes.txt") && !error.hint.is_empty(), "{error}");
    }
}
