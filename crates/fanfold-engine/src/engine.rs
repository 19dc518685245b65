//! The engine: a store, a clock, and the sessions used last.

use std::sync::Arc;

use fanfold_store::{SessionId, SessionRow, Store, StoreError};

use crate::clock::{Clock, random_word};
use crate::follow::pipeline::Followed;
use crate::sessions::cache::Cache;

/// Takes requests, keeps what was said, and gives what is to be sent.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cache: Cache,
}

/// Why an operation on sessions was not done.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// The store did not do it.
    #[error("{}", store_words(.0))]
    Store(#[from] StoreError),
    /// What was asked for is not there, or can't be done: what, and what to do instead.
    #[error("{what}")]
    Wrong {
        /// What is wrong.
        what: String,
        /// What to do instead.
        hint: String,
    },
}

impl OpError {
    pub(crate) fn wrong(what: impl Into<String>, hint: impl Into<String>) -> OpError {
        OpError::Wrong { what: what.into(), hint: hint.into() }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            OpError::Wrong { hint, .. } => hint.clone(),
            OpError::Store(error) => store_hint(error),
        }
    }
}

/// What to do about a store that failed.
pub fn store_hint(error: &StoreError) -> String {
    let words = error.to_string();
    if let Some((_, hint)) = words.split_once(HINT) {
        return hint.to_owned();
    }
    match error {
        StoreError::NoSession(_) => "`fanfold sessions list` names those there are",
        StoreError::SessionExists(_) => "choose another id",
        StoreError::NoNode(_) => "`fanfold doctor` checks the store",
        StoreError::TitleTaken { .. } => "choose another title",
        StoreError::Conflict(_) => "try again",
        StoreError::Busy { .. } => "try again when the others are done",
        StoreError::TooNew { .. } => "use the newer fanfold",
        StoreError::ReadOnly(_) => "open it by its own address to write to it",
        _ => "check that the store is there and may be written (--store)",
    }
    .to_owned()
}

/// Before the hint of an error that has one.
const HINT: &str = "\n\nhint: ";

/// What a store says of its failure, without what to do about it.
pub fn store_words(error: &StoreError) -> String {
    let words = error.to_string();
    words.split(HINT).next().unwrap_or_default().to_owned()
}

impl Engine {
    /// An engine on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Engine {
        Engine { store, clock, cache: Cache::default() }
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Forgets what is held in memory; the next requests are replayed from the store.
    pub fn forget(&self) {
        self.cache.clear();
    }

    /// Looks at a session as the last request left it; none if it is not held.
    pub fn look<T>(&self, session: &SessionId, look: impl FnOnce(&mut Followed) -> T) -> Option<T> {
        let mut cached = self.cache.take(session)?;
        let seen = look(&mut cached.state.followed);
        self.cache.put(session.clone(), cached);
        Some(seen)
    }

    /// A new id for a session: when it was made, and a word that nobody else has.
    pub fn new_id(&self) -> SessionId {
        let moment: String = self.clock.now().to_string().chars().filter(char::is_ascii_digit).collect();
        SessionId(format!("{}-{}-{}", &moment[..8], &moment[8..], &random_word()[..6]))
    }

    /// A session that must be there.
    pub fn row(&self, session: &SessionId) -> Result<SessionRow, OpError> {
        Ok(self.store.session(session)?.ok_or_else(|| StoreError::NoSession(session.clone()))?)
    }
}
