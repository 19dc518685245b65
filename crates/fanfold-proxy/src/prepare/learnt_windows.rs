//! Windows that providers told when they refused something: the next session begins with what the last one learnt, and so
//! does the next proxy on the same store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_core::Tokens;
use fanfold_engine::Engine;

/// So many are held; names come from clients.
const MOST_KEPT: usize = 1024;
/// A smaller one was no window.
const LEAST: Tokens = Tokens(1024);

/// What upstreams take of their models at most.
#[derive(Default)]
pub(crate) struct Windows {
    /// Guards the table; values are put in whole. None where nothing is known, and the store has been asked.
    told: Mutex<HashMap<(String, String), Option<Tokens>>>,
}

impl Windows {
    fn told(&self) -> MutexGuard<'_, HashMap<(String, String), Option<Tokens>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an upstream takes of a model, if it ever said so. The store is asked once.
    pub(crate) fn of(&self, upstream: &str, model: Option<&str>, engine: &Engine) -> Option<Tokens> {
        let key = key(upstream, model);
        if let Some(known) = self.told().get(&key) {
            return *known;
        }
        let Ok(found) = engine.limit(&key.0, &key.1) else { return None };
        self.put(key, found);
        found
    }

    /// Takes note of what an upstream said. The newest word holds.
    pub(crate) fn learn(&self, upstream: &str, model: Option<&str>, window: Tokens, engine: &Engine) {
        if window < LEAST {
            return;
        }
        let key = key(upstream, model);
        if let Err(error) = engine.learn_limit(&key.0, &key.1, window) {
            tracing::debug!(%error, "a limit could not be kept");
        }
        self.put(key, Some(window));
    }

    fn put(&self, key: (String, String), window: Option<Tokens>) {
        let mut told = self.told();
        if told.len() < MOST_KEPT || told.contains_key(&key) {
            told.insert(key, window);
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
    fn each_upstream_has_its_own_windows_and_the_next_proxy_knows_them() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let engine = || Engine::new(Arc::clone(&store), Arc::new(MachineClock));
        let windows = Windows::default();
        assert_eq!(windows.of("a", Some("m"), &engine()), None);
        windows.learn("a", Some("m"), Tokens(8000), &engine());
        windows.learn("a", Some("n"), Tokens(7), &engine());
        for windows in [&windows, &Windows::default()] {
            assert_eq!(windows.of("a", Some("m"), &engine()), Some(Tokens(8000)));
            assert_eq!(windows.of("a", Some("n"), &engine()), None);
            assert_eq!(windows.of("b", Some("m"), &engine()), None);
        }
        windows.learn("a", Some("m"), Tokens(16_000), &engine());
        assert_eq!(windows.of("a", Some("m"), &engine()), Some(Tokens(16_000)));
        assert_eq!(Windows::default().of("a", Some("m"), &engine()), Some(Tokens(16_000)));
    }
}
