//! Why there is no answer: a status for programs, words and a next step for people.

use axum::http::StatusCode;
use fanfold_engine::{OpError, OpenError, store_hint, store_words};
use fanfold_store::StoreError;
use fanfold_store::search::SearchError;
use serde_json::{Value, json};

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>, hint: impl Into<String>) -> Refused {
        Refused { status, message: message.into(), hint: hint.into() }
    }

    /// It was asked wrongly.
    pub(crate) fn wrong(message: impl Into<String>, hint: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, message, hint)
    }

    /// What was asked for is not there.
    pub(crate) fn missing(message: impl Into<String>, hint: impl Into<String>) -> Refused {
        Refused::new(StatusCode::NOT_FOUND, message, hint)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": { "message": self.message, "hint": self.hint } })
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Refused {
        let status = match &error {
            StoreError::NoSession(_) | StoreError::NoNode(_) => StatusCode::NOT_FOUND,
            StoreError::SessionExists(_) | StoreError::TitleTaken { .. } | StoreError::Moved(_) => {
                StatusCode::CONFLICT
            }
            StoreError::ReadOnly(_) => StatusCode::FORBIDDEN,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refused::new(status, store_words(&error), store_hint(&error))
    }
}

impl From<OpError> for Refused {
    fn from(error: OpError) -> Refused {
        match error {
            OpError::Store(error) => error.into(),
            OpError::Wrong { what, hint } => Refused::wrong(what, hint),
        }
    }
}

impl From<SearchError> for Refused {
    fn from(error: SearchError) -> Refused {
        let status = match &error {
            SearchError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            SearchError::NoRole(_) => StatusCode::BAD_REQUEST,
            SearchError::NoSession(_) | SearchError::NoMessage { .. } | SearchError::NoProfile { .. } => {
                StatusCode::NOT_FOUND
            }
        };
        let words = error.to_string();
        let (what, hint) =
            words.split_once("\n\nhint: ").unwrap_or((&words, "`fanfold doctor` checks the store"));
        Refused::new(status, what, hint)
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Refused {
        let words = error.to_string();
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Unknown { near, .. } if near.is_empty() => {
                Refused::missing(words, "nothing of it was ever folded")
            }
            OpenError::Unknown { near, .. } => {
                Refused::missing(words, format!("there are {}", near.join(", ")))
            }
            OpenError::Broken(_) => {
                Refused::new(StatusCode::INTERNAL_SERVER_ERROR, words, "`fanfold doctor` tells what is left")
            }
            OpenError::Extent(_) => Refused::wrong(words, "leave out the lines to get all of it"),
        }
    }
}
