//! Where sessions are kept. A client may start its servers before anything is kept, and a store may go while they run, so
//! it is looked for with each call.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fanfold_engine::{Engine, MachineClock, store_hint, store_words};
use fanfold_store::search::{Find, Query};
use fanfold_store::{Purpose, StoreError, open, store_file};

/// Gives the engine whenever a tool is called.
pub trait Source: Send + Sync {
    /// The engine on the sessions, or why there is none now.
    fn engine(&self) -> Result<Arc<Engine>, Unopened>;

    /// The engine to search with. Where the store may be written to, what is new in it is made ready to be found: without,
    /// each search reads it anew.
    fn engine_to_search(&self) -> Result<Arc<Engine>, Unopened> {
        self.engine()
    }
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Unopened {
    /// What is the matter.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Source for Arc<Engine> {
    fn engine(&self) -> Result<Arc<Engine>, Unopened> {
        Ok(Arc::clone(self))
    }
}

/// A store by its address. No session in it is ever changed; others may write to it meanwhile.
pub struct StoreAt {
    address: String,
    held: Mutex<Option<Held>>,
}

struct Held {
    engine: Arc<Engine>,
    /// Begun with the first search, and there when the index is up to date.
    to_search: Option<Arc<OnceLock<Arc<Engine>>>>,
    file: Option<FileId>,
}

/// Which file it is: one that was deleted and made anew is another one.
type FileId = (u64, u64);

impl StoreAt {
    /// The store at an address. It need not be there yet.
    pub fn new(address: impl Into<String>) -> StoreAt {
        StoreAt { address: address.into(), held: Mutex::new(None) }
    }

    /// Looks at what is held, which is opened if it is not, or if its file is another by now.
    fn with<T>(&self, look: impl FnOnce(&mut Held) -> T) -> Result<T, Unopened> {
        // Guards what is held: whoever died holding it left it whole.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match store_file(&self.address).map(|path| file_id(&path)) {
            // An open file can be read after it was deleted, and would tell of what is no more.
            Some(None) => {
                *held = None;
                return Err(Unopened {
                    what: format!("there is no store at {}", self.address),
                    hint: "it is made when the first session is kept (`fanfold serve`, or `fanfold fold --session new`); \
                           --store names another one"
                        .to_owned(),
                });
            }
            file => file.flatten(),
        };
        if let Some(held) = held.as_mut().filter(|held| held.file == file) {
            return Ok(look(held));
        }
        let engine = open_engine(&self.address, Purpose::Read).map_err(|error| Unopened {
            what: format!("the store {} could not be opened: {}", self.address, store_words(&error)),
            hint: store_hint(&error),
        })?;
        Ok(look(held.insert(Held { engine, to_search: None, file })))
    }
}

impl Source for StoreAt {
    fn engine(&self) -> Result<Arc<Engine>, Unopened> {
        self.with(|held| Arc::clone(&held.engine))
    }

    fn engine_to_search(&self) -> Result<Arc<Engine>, Unopened> {
        self.with(|held| {
            let ready = held.to_search.get_or_insert_with(|| catch_up(self.address.clone()));
            Arc::clone(ready.get().unwrap_or(&held.engine))
        })
    }
}

fn open_engine(address: &str, purpose: Purpose) -> Result<Arc<Engine>, StoreError> {
    let store = open(address, purpose)?;
    Ok(Arc::new(Engine::new(Arc::from(store), Arc::new(MachineClock))))
}

/// Brings the index up to date on a thread of its own: after many messages came at once that takes longer than a call may.
/// The engine is there when it is done; where the store may not be written to, never.
fn catch_up(address: String) -> Arc<OnceLock<Arc<Engine>>> {
    let ready = Arc::new(OnceLock::new());
    let given = Arc::clone(&ready);
    std::thread::spawn(move || {
        // Whoever opens a store to write makes it, and one that just went is not to be made.
        let is_there = store_file(&address).is_none_or(|path| path.exists());
        let Some(engine) = is_there.then(|| open_engine(&address, Purpose::Write).ok()).flatten() else {
            return;
        };
        // To find anything is to index first.
        let find = Find { query: Query::parse("fanfold"), limit: 1, ..Find::default() };
        if engine.store().find(&find).is_ok() {
            drop(given.set(engine));
        }
    });
    ready
}

impl Drop for StoreAt {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A store on a server has a runtime of its own, which can't end inside another.
        if held.is_some() && tokio::runtime::Handle::try_current().is_ok() {
            drop(std::thread::spawn(move || drop(held)));
        }
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
    // A file that is open can't be deleted here, so that it is there is enough.
    std::fs::metadata(path).ok().map(|_| (0, 0))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use fanfold_store::SqliteStore;

    use super::*;

    #[test]
    fn a_store_may_come_go_and_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let source = StoreAt::new(path.display().to_string());
        let Err(none) = source.engine() else { panic!("there is nothing yet") };
        assert!(none.what.starts_with("there is no store at "), "{none}");
        drop(SqliteStore::open(&path).unwrap());
        let first = source.engine().unwrap();
        assert!(Arc::ptr_eq(&first, &source.engine().unwrap()), "it is opened once");
        // Searches go on with what there is until the index is up to date.
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
            "what was deleted is not read on"
        );
        assert!(!path.exists(), "a search makes no store");
        drop(SqliteStore::open(&path).unwrap());
        assert!(!Arc::ptr_eq(&first, &source.engine().unwrap()), "another file is another store");
    }

    #[test]
    fn what_is_no_store_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "buy milk").unwrap();
        let Err(error) = StoreAt::new(path.display().to_string()).engine() else { panic!("no store") };
        assert!(error.what.contains("notes.txt") && !error.hint.is_empty(), "{error}");
    }
}
