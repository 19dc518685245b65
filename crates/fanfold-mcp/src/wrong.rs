//! Why a tool did not do what it was asked, in words for a model: what, and what to do next.

use std::fmt;

use fanfold_engine::{OpError, store_hint, store_words};
use fanfold_store::StoreError;
use fanfold_store::search::SearchError;

use crate::source::Unopened;

/// Why a tool did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) what: String,
    pub(crate) hint: String,
}

impl Wrong {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n\nhint: {}", self.what, self.hint)
    }
}

impl From<Unopened> for Wrong {
    fn from(unopened: Unopened) -> Wrong {
        Wrong { what: unopened.what, hint: unopened.hint }
    }
}

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Wrong {
        match error {
            // A model has no command line at hand.
            StoreError::NoSession(_) => Wrong::new(error.to_string(), NAMES_SESSIONS),
            other => Wrong::new(store_words(&other), store_hint(&other)),
        }
    }
}

impl From<OpError> for Wrong {
    fn from(error: OpError) -> Wrong {
        match error {
            OpError::Store(error) => error.into(),
            OpError::Wrong { what, hint } => Wrong { what, hint },
        }
    }
}

impl From<SearchError> for Wrong {
    fn from(error: SearchError) -> Wrong {
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::NoSession(session) => StoreError::NoSession(session).into(),
            other => {
                let words = other.to_string();
                let (what, hint) = words.split_once("\n\nhint: ").unwrap_or((&words, "try it otherwise"));
                Wrong::new(what, hint)
            }
        }
    }
}

/// What to do about a session that is not there.
const NAMES_SESSIONS: &str = "`status` without a session_id names the newest sessions, `search` finds others";
