//! Errors: a status for programs, a message and a hint for people.

use axum::http::StatusCode;
use fanfold_core::RecallError;
use fanfold_engine::{OpError, OpenError, store_hint, store_message};
use fanfold_store::StoreError;
use fanfold_store::search::SearchError;
use serde_json::{Value, json};

/// An error of the API.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>, hint: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>, hint: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message, hint)
    }

    pub(crate) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, message, hint)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": { "message": self.message, "hint": self.hint } })
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        let status = match &error {
            StoreError::NoSession(_) | StoreError::NoNode(_) => StatusCode::NOT_FOUND,
            StoreError::SessionExists(_) | StoreError::TitleTaken { .. } | StoreError::Conflict(_) => {
                StatusCode::CONFLICT
            }
            StoreError::ReadOnly(_) => StatusCode::FORBIDDEN,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        ApiError::new(status, store_message(&error), store_hint(&error))
    }
}

impl From<OpError> for ApiError {
    fn from(error: OpError) -> ApiError {
        match error {
            OpError::Store(error) => error.into(),
            OpError::Invalid { message, hint } => ApiError::bad_request(message, hint),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> ApiError {
        let status = match &error {
            SearchError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            SearchError::NoRole(_) => StatusCode::BAD_REQUEST,
            SearchError::NoSession(_) | SearchError::NoMessage { .. } | SearchError::NoProfile { .. } => {
                StatusCode::NOT_FOUND
            }
        };
        let message = error.to_string();
        let (what, hint) =
            message.split_once("\n\nhint: ").unwrap_or((&message, "`fanfold doctor` checks the store"));
        ApiError::new(status, what, hint)
    }
}

impl From<OpenError> for ApiError {
    fn from(error: OpenError) -> ApiError {
        let message = error.to_string();
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Unknown { near, .. } if near.is_empty() => {
                ApiError::not_found(message, "find its text with /fanfold/api/search")
            }
            OpenError::Unknown { near, .. } => {
                ApiError::not_found(message, format!("similar handles: {}", near.join(", ")))
            }
            OpenError::Broken(_) => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                message,
                "`fanfold doctor` shows what is damaged",
            ),
            OpenError::Extent(RecallError::NoSuchPlace { .. }) => {
                ApiError::not_found(message, "give the number of a step that the conversation has")
            }
            OpenError::Extent(_) => ApiError::bad_request(message, "leave out the lines to get all of it"),
        }
    }
}
