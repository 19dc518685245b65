//! What the requests of a session have said of how it is folded. What one leaves out is as it was.

use std::sync::Arc;

use super::request::Request;

/// What a session has been told, from its first request to the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) window: Option<u64>,
    pub(crate) reserve: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) format: Option<String>,
    /// The topic of the last `focus`.
    pub(crate) focus: Option<String>,
    /// The schemas as they came. Most sessions of a program have the same ones, and share them.
    pub(crate) tools: Option<Arc<str>>,
}

impl Wanted {
    /// What is wanted when a request has come, with its tools.
    pub(crate) fn after(&self, request: &Request<'_>, tools: Option<Arc<str>>) -> Wanted {
        Wanted {
            window: request.window.or(self.window),
            reserve: request.reserve.or(self.reserve),
            model: request.model.clone().or_else(|| self.model.clone()),
            format: request.format.clone().or_else(|| self.format.clone()),
            focus: self.focus.clone(),
            tools: tools.or_else(|| self.tools.clone()),
        }
    }
}
