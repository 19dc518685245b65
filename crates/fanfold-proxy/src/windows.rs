//! Windows that providers told when they refused something: the next session begins with what the last one learnt.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fanfold_core::Tokens;

/// So many are kept; names come from clients.
const MOST_KEPT: usize = 1024;
/// A smaller one was no window.
const LEAST: Tokens = Tokens(1024);

/// What upstreams take of their models at most.
#[derive(Default)]
pub(crate) struct Windows {
    /// Guards the table; values are put in whole.
    told: Mutex<HashMap<(String, String), Tokens>>,
}

impl Windows {
    fn told(&self) -> MutexGuard<'_, HashMap<(String, String), Tokens>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an upstream takes of a model, if it ever said so.
    pub(crate) fn of(&self, upstream: &str, model: Option<&str>) -> Option<Tokens> {
        self.told().get(&key(upstream, model)).copied()
    }

    /// Takes note of what an upstream said. The newest word holds.
    pub(crate) fn learn(&self, upstream: &str, model: Option<&str>, window: Tokens) {
        let mut told = self.told();
        let key = key(upstream, model);
        if window >= LEAST && (told.len() < MOST_KEPT || told.contains_key(&key)) {
            told.insert(key, window);
        }
    }
}

fn key(upstream: &str, model: Option<&str>) -> (String, String) {
    (upstream.to_owned(), model.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_upstream_has_its_own_windows() {
        let windows = Windows::default();
        windows.learn("a", Some("m"), Tokens(8000));
        windows.learn("a", Some("n"), Tokens(7));
        assert_eq!(windows.of("a", Some("m")), Some(Tokens(8000)));
        assert_eq!(windows.of("a", Some("n")), None);
        assert_eq!(windows.of("b", Some("m")), None);
        windows.learn("a", Some("m"), Tokens(16_000));
        assert_eq!(windows.of("a", Some("m")), Some(Tokens(16_000)));
    }
}
