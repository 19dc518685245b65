//! Context windows learnt from refusals. They are stored, so that later sessions and proxies start with them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_core::Tokens;
use fanfold_engine::Engine;

/// The maximum number of entries; names come from clients.
const MAX_MODELS: usize = 1024;
/// Smaller numbers are not windows.
const MIN_WINDOW: Tokens = Tokens(1024);

/// The largest windows that upstreams accept, by upstream and model.
#[derive(Default)]
pub(crate) struct LearntWindows {
    /// Guards the table; whole values are inserted. `None` where the store has no window.
    windows: Mutex<HashMap<(String, String), Option<Tokens>>>,
}

impl LearntWindows {
    fn windows(&self) -> MutexGuard<'_, HashMap<(String, String), Option<Tokens>>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window that an upstream reported for a model. The store is read once.
    pub(crate) fn find(&self, upstream: &str, model: Option<&str>, engine: &Engine) -> Option<Tokens> {
        let key = key(upstream, model);
        if let Some(known) = self.windows().get(&key) {
            return *known;
        }
        let Ok(found) = engine.limit(&key.0, &key.1) else { return None };
        self.insert(key, found);
        found
    }

    /// Stores the window that an upstream reported. The newest one is valid.
    pub(crate) fn learn(&self, upstream: &str, model: Option<&str>, window: Tokens, engine: &Engine) {
        if window < MIN_WINDOW {
            return;
        }
        let key = key(upstream, model);
        if let Err(error) = engine.learn_limit(&key.0, &key.1, window) {
            tracing::debug!(%error, "a context window could not be stored");
        }
        self.insert(key, Some(window));
    }

    fn insert(&self, key: (String, String), window: Option<Tokens>) {
        let mut windows = self.windows();
        if windows.len() < MAX_MODELS || windows.contains_key(&key) {
            windows.insert(key, window);
        }
    }
}

fn key(upstream: &str, model: Option<&str>) -> (String, String) {
    (upstream.to_owned(), model.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fanfold_engine::MachineClock;
    use fanfold_store::{MemoryStore, Store};

    use super::*;

    #[test]
    fn windows_are_kept_per_upstream_and_stored() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let engine = || Engine::new(Arc::clone(&store), Arc::new(MachineClock));
        let windows = LearntWindows::default();
        assert_eq!(windows.find("a", Some("m"), &engine()), None);
        windows.learn("a", Some("m"), Tokens(8000), &engine());
        windows.learn("a", Some("n"), Tokens(7), &engine());
        for windows in [&windows, &LearntWindows::default()] {
            assert_eq!(windows.find("a", Some("m"), &engine()), Some(Tokens(8000)));
            assert_eq!(windows.find("a", Some("n"), &engine()), None);
            assert_eq!(windows.find("b", Some("m"), &engine()), None);
        }
        windows.learn("a", Some("m"), Tokens(16_000), &engine());
        assert_eq!(windows.find("a", Some("m"), &engine()), Some(Tokens(16_000)));
        assert_eq!(LearntWindows::default().find("a", Some("m"), &engine()), Some(Tokens(16_000)));
    }
}
