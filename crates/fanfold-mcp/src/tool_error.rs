//! The error of a tool, written for a model: what is wrong, and what to do next.

use std::fmt;

use fanfold_engine::{HandleTextError, OpError, store_hint, store_message};
use fanfold_store::StoreError;
use fanfold_store::search::SearchError;

use crate::source::SourceError;

/// Why a tool call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl ToolError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> ToolError {
        ToolError { message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n\nhint: {}", self.message, self.hint)
    }
}

impl From<SourceError> for ToolError {
    fn from(error: SourceError) -> ToolError {
        ToolError { message: error.message, hint: error.hint }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> ToolError {
        match error {
            // The store's own hint names a command, which a model cannot run.
            StoreError::NoSession(_) => ToolError::new(error.to_string(), HINT_NO_SESSION),
            other => ToolError::new(store_message(&other), store_hint(&other)),
        }
    }
}

impl From<OpError> for ToolError {
    fn from(error: OpError) -> ToolError {
        match error {
            OpError::Store(error) => error.into(),
            OpError::Invalid { message, hint } => ToolError { message, hint },
        }
    }
}

impl From<HandleTextError> for ToolError {
    fn from(error: HandleTextError) -> ToolError {
        ToolError::new(error.to_string(), error.hint())
    }
}

impl From<SearchError> for ToolError {
    fn from(error: SearchError) -> ToolError {
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::NoSession(session) => StoreError::NoSession(session).into(),
            other => {
                let words = other.to_string();
                let (message, hint) =
                    words.split_once("\n\nhint: ").unwrap_or((&words, "change the arguments"));
                ToolError::new(message, hint)
            }
        }
    }
}

const HINT_NO_SESSION: &str =
    "`status` without a session_id lists the newest sessions, `search` finds others";
