//! Outcomes of a request body (sent whole, folded, or unchanged for a reason), and ends of requests.

use std::fmt;

use fanfold_engine::RequestError;

/// Why a body was sent unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BypassReason {
    /// The client asks for a summary of the conversation, which needs all of it.
    Summary,
    /// The content encoding is unknown or the data is corrupt.
    Encoding,
    /// The body is over the size limit.
    TooLarge,
    /// The memory quota for large bodies was exhausted.
    Busy,
    /// The body is not a conversation.
    NotDecoded,
    /// The store failed.
    Store,
    /// Another process is folding the session.
    Locked,
    /// No view fits the window.
    Overflow,
    /// The view failed its check.
    Fault,
    /// The provider holds the beginning of the conversation.
    Continued,
    /// Folding took longer than its deadline.
    Deadline,
    /// The proxy panicked.
    Panicked,
    /// There are no settings for the model.
    Terms,
    /// The provider refused every changed form of the body, and not for its length.
    Rejected,
}

impl BypassReason {
    /// The name in headers and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            BypassReason::Summary => "summary",
            BypassReason::Encoding => "packed",
            BypassReason::TooLarge => "too_large",
            BypassReason::Busy => "busy",
            BypassReason::NotDecoded => "not_decoded",
            BypassReason::Store => "store",
            BypassReason::Locked => "locked",
            BypassReason::Overflow => "overflow",
            BypassReason::Fault => "fault",
            BypassReason::Continued => "continued",
            BypassReason::Deadline => "deadline",
            BypassReason::Panicked => "panicked",
            BypassReason::Terms => "terms",
            BypassReason::Rejected => "not_taken",
        }
    }
}

impl fmt::Display for BypassReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<&RequestError> for BypassReason {
    fn from(trouble: &RequestError) -> BypassReason {
        match trouble {
            RequestError::NotDecoded(_) => BypassReason::NotDecoded,
            RequestError::Store(_) => BypassReason::Store,
            RequestError::Locked(_) => BypassReason::Locked,
            RequestError::Overflow(_) => BypassReason::Overflow,
            RequestError::Fault(_) | RequestError::Edit(_) => BypassReason::Fault,
            RequestError::Continued => BypassReason::Continued,
            RequestError::Late => BypassReason::Deadline,
            RequestError::Panicked(_) => BypassReason::Panicked,
        }
    }
}

/// How a body was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyOutcome {
    /// Not folded, because it fits.
    Whole,
    /// Folded.
    Folded,
    /// Unchanged by an observing proxy, where folding would have changed it.
    Observed,
    /// Unchanged for a reason.
    Unchanged(BypassReason),
}

impl ProxyOutcome {
    /// The name in metric labels and log lines.
    pub fn name(self) -> &'static str {
        match self {
            ProxyOutcome::Whole => "whole",
            ProxyOutcome::Folded => "folded",
            ProxyOutcome::Observed => "observed",
            ProxyOutcome::Unchanged(_) => "as_it_came",
        }
    }
}

/// The value of the response header `x-fanfold`.
impl fmt::Display for ProxyOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyOutcome::Unchanged(reason) => write!(f, "as it came: {reason}"),
            other => f.write_str(other.name()),
        }
    }
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The client received the whole answer.
    Done,
    /// The client closed the connection early.
    ClientGone,
    /// The provider could not be reached.
    Unreachable,
    /// The provider sent nothing for too long.
    Stalled,
    /// The provider closed the connection early.
    BrokenOff,
}

impl Exit {
    /// The name in metric labels and log lines.
    pub fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::ClientGone => "client_gone",
            Exit::Unreachable => "unreachable",
            Exit::Stalled => "stalled",
            Exit::BrokenOff => "broken_off",
        }
    }
}
