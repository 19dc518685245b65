//! The engine: a store, a clock, and the cached sessions.

use std::sync::Arc;

use fanfold_store::{FallbackStore, SessionId, SessionRow, Store, StoreError};

use crate::clock::{Clock, random_word};
use crate::follow::folded_conversation::FoldedConversation;
use crate::follow::session_cache::Cache;

/// Stores the messages of requests, folds them, and manages the stored sessions.
pub struct SessionEngine {
    pub(crate) store: Arc<dyn Store>,
    /// The same store.
    pub(crate) fallback: Arc<FallbackStore>,
    /// True if requests are folded in memory while the store fails.
    pub(crate) continues_in_memory: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cache: Cache,
}

/// The error of an operation on sessions.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// The store failed.
    #[error("{}", store_message(.0))]
    Store(#[from] StoreError),
    /// The session or the arguments do not allow the operation.
    #[error("{message}")]
    Invalid {
        /// The reason.
        message: String,
        /// The next step for the user.
        hint: String,
    },
}

impl OpError {
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> OpError {
        OpError::Invalid { message: message.into(), hint: hint.into() }
    }

    /// The next step for the user.
    pub fn hint(&self) -> String {
        match self {
            OpError::Invalid { hint, .. } => hint.clone(),
            OpError::Store(error) => store_hint(error),
        }
    }
}

/// The next step for the user after an error of the store.
pub fn store_hint(error: &StoreError) -> String {
    let text = error.to_string();
    if let Some((_, hint)) = text.split_once(HINT) {
        return hint.to_owned();
    }
    match error {
        StoreError::NoSession(_) => "`fanfold sessions list` shows all sessions",
        StoreError::SessionExists(_) => "choose another id",
        StoreError::NoNode(_) => "`fanfold doctor` checks the store",
        StoreError::TitleTaken { .. } => "choose another title",
        StoreError::Conflict(_) => "try again",
        StoreError::Busy { .. } => "try again when other processes are done",
        StoreError::TooNew { .. } => "use the newer version of fanfold",
        StoreError::ReadOnly(_) => "open the store by its own address to write to it",
        _ => "check that the store exists and is writable (--store)",
    }
    .to_owned()
}

/// Separates an error message from its hint.
const HINT: &str = "\n\nhint: ";

/// The message of an error of the store, without its hint.
pub fn store_message(error: &StoreError) -> String {
    let text = error.to_string();
    text.split(HINT).next().unwrap_or_default().to_owned()
}

impl SessionEngine {
    /// An engine on a store. If the store fails, requests are not folded.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> SessionEngine {
        SessionEngine::on(FallbackStore::new(Ok(store)), clock)
    }

    pub(crate) fn on(store: FallbackStore, clock: Arc<dyn Clock>) -> SessionEngine {
        let fallback = Arc::new(store);
        let store = Arc::clone(&fallback) as Arc<dyn Store>;
        SessionEngine { store, fallback, continues_in_memory: false, clock, cache: Cache::default() }
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Removes all sessions from the cache. Their next requests are replayed from the store.
    pub fn clear_cache(&self) {
        self.cache.clear();
    }

    /// Calls a function with a cached session, in its state after the last request. Returns `None` if it is not
    /// cached.
    pub fn with_cached<T>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&mut FoldedConversation) -> T,
    ) -> Option<T> {
        let mut cached = self.cache.take(session)?;
        let result = read(&mut cached.state.followed);
        self.cache.put(session.clone(), cached);
        Some(result)
    }

    /// A new session id: the current time and a random suffix.
    pub fn new_id(&self) -> SessionId {
        let digits: String = self.clock.now().to_string().chars().filter(char::is_ascii_digit).collect();
        SessionId(format!("{}-{}-{}", &digits[..8], &digits[8..], &random_word()[..6]))
    }

    /// The row of a session that must exist.
    pub fn row(&self, session: &SessionId) -> Result<SessionRow, OpError> {
        Ok(self.store.session(session)?.ok_or_else(|| StoreError::NoSession(session.clone()))?)
    }
}
