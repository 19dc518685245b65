//! The terms that the requests of a session have set. A field that a request omits keeps its last value.

use std::sync::Arc;

use super::request::Request;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionTerms {
    pub(super) window: Option<u64>,
    pub(super) reserve: Option<u64>,
    pub(super) model: Option<String>,
    pub(super) format: Option<String>,
    /// The topic of the last `focus`.
    pub(super) focus: Option<String>,
    /// The schemas of the tools, verbatim. Shared, because most sessions of a program have the same tools.
    pub(super) tools: Option<Arc<str>>,
}

impl SessionTerms {
    /// The terms after a request with these tools.
    pub(super) fn updated(&self, request: &Request<'_>, tools: Option<Arc<str>>) -> SessionTerms {
        SessionTerms {
            window: request.window.or(self.window),
            reserve: request.reserve.or(self.reserve),
            model: request.model.clone().or_else(|| self.model.clone()),
            format: request.format.clone().or_else(|| self.format.clone()),
            focus: self.focus.clone(),
            tools: tools.or_else(|| self.tools.clone()),
        }
    }
}
