//! Conversations in a database.

use std::sync::Arc;

use fanfold_core::{Extent, Tokens};
use fanfold_engine::{
    FoldOutcome, MachineClock, OpenError, RequestError, RequestInput, SessionEngine, decode,
};
use fanfold_store::{OpenMode, SessionFilter, SessionId, SqliteStore, StoreError, open};

use crate::{Error, Folded, Options};

/// Sessions in a database. Every message is stored before a stub replaces it, and every handle can be recalled for
/// as long as the session exists.
///
/// ```
/// # fn main() -> Result<(), fanfold::Error> {
/// use fanfold::{Options, Store};
///
/// let store = Store::in_memory();
/// let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}"#;
/// let folded = store.request("greeting", body, &Options::default())?;
/// assert_eq!((folded.body.as_str(), store.sessions()?), (body, vec!["greeting".to_owned()]));
/// # Ok(())
/// # }
/// ```
pub struct Store {
    engine: SessionEngine,
}

impl Store {
    /// Opens or creates a store: the path of a SQLite file or, with the feature `postgres`, a PostgreSQL URL.
    pub fn open(address: &str) -> Result<Store, Error> {
        let store = open(address, OpenMode::Write)?;
        Ok(Store { engine: SessionEngine::new(store.into(), Arc::new(MachineClock)) })
    }

    /// A store without a file.
    pub fn in_memory() -> Store {
        Store { engine: SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(MachineClock)) }
    }

    /// Stores the messages of a request and returns the body to send. The session is created if necessary; a body
    /// that differs from what is stored moves the session back to where they differ.
    pub fn request(&self, session: &str, body: &str, options: &Options) -> Result<Folded, Error> {
        let (conversation, _) = decode(body, None).map_err(|error| Error::InvalidBody(error.to_string()))?;
        let terms = options.terms(conversation.model())?;
        let id = SessionId(session.to_owned());
        let answer = self.engine.request(&RequestInput::new(&id, body, &terms, "library"));
        if let FoldOutcome::Failed(trouble) = answer.fold {
            return Err(Error::from(trouble));
        }
        let handles = self.engine.with_cached(&id, |followed| {
            let view = followed.view().map(|view| view.handles).unwrap_or_default();
            view.iter().map(ToString::to_string).collect()
        });
        let sizes = answer.sizes;
        let tokens = |size: Option<Tokens>| size.unwrap_or_default().0;
        Ok(Folded {
            body: answer.body,
            tokens: tokens(sizes.map(|sizes| sizes.view)),
            tokens_before: tokens(sizes.map(|sizes| sizes.transcript)),
            n_folds: sizes.map_or(0, |sizes| sizes.n_folds),
            handles: handles.unwrap_or_default(),
        })
    }

    /// The original behind a handle of a session.
    pub fn recall(&self, session: &str, handle: &str) -> Result<String, Error> {
        let unknown = || Error::UnknownHandle(handle.to_owned());
        let parsed = handle.parse().map_err(|_| unknown())?;
        let id = SessionId(session.to_owned());
        self.engine.recall(&id, parsed, &Extent::Whole).map_err(|error| match error {
            OpenError::Unknown { .. } => unknown(),
            OpenError::Store(error) => error.into(),
            OpenError::Broken(_) | OpenError::Extent(_) => Error::Store(error.to_string()),
        })
    }

    /// The ids of all sessions, the last updated first.
    pub fn sessions(&self) -> Result<Vec<String>, Error> {
        let rows = self.engine.sessions(&SessionFilter::default())?;
        Ok(rows.into_iter().map(|row| row.id.0).collect())
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::Store(error.to_string())
    }
}

impl From<RequestError> for Error {
    fn from(trouble: RequestError) -> Error {
        match trouble {
            RequestError::Overflow(overflow) => Error::Overflow {
                smallest: overflow.smallest.0,
                room: overflow.room.0,
                remedy: overflow.remedy,
            },
            RequestError::NotDecoded(error) => Error::InvalidBody(error.to_string()),
            RequestError::Store(error) => error.into(),
            other => Error::NotFolded(other.to_string()),
        }
    }
}
