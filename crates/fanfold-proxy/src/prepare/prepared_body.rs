//! How a body leaves, and why.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_engine::Trouble;
use fanfold_store::SessionId;

use crate::meter::{Glance, Outcome};

/// Why a body went out as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// It is the client's own request for a summary: it wants all of it.
    Summary,
    /// It is packed in a way that is not known here.
    Packed,
    /// It is larger than what is looked at.
    TooLarge,
    /// There was no space for it beside other large ones.
    Busy,
    /// It is no conversation.
    NotDecoded,
    /// The store did not take it.
    Store,
    /// Somebody else is folding the session.
    Locked,
    /// Nothing fits.
    Overflow,
    /// The view broke a promise.
    Fault,
    /// The provider holds the beginning.
    Continued,
    /// Our own work took too long.
    Deadline,
    /// Something of ours panicked.
    Panicked,
    /// The settings give no terms for the model.
    Terms,
    /// The provider refused what was made of it, and not for its length.
    NotTaken,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 14] = [
        Reason::Summary,
        Reason::Packed,
        Reason::TooLarge,
        Reason::Busy,
        Reason::NotDecoded,
        Reason::Store,
        Reason::Locked,
        Reason::Overflow,
        Reason::Fault,
        Reason::Continued,
        Reason::Deadline,
        Reason::Panicked,
        Reason::Terms,
        Reason::NotTaken,
    ];

    /// Its name, as headers and counters have it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Summary => "summary",
            Reason::Packed => "packed",
            Reason::TooLarge => "too_large",
            Reason::Busy => "busy",
            Reason::NotDecoded => "not_decoded",
            Reason::Store => "store",
            Reason::Locked => "locked",
            Reason::Overflow => "overflow",
            Reason::Fault => "fault",
            Reason::Continued => "continued",
            Reason::Deadline => "deadline",
            Reason::Panicked => "panicked",
            Reason::Terms => "terms",
            Reason::NotTaken => "not_taken",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// The body to send; none if it is the one that came.
    pub(crate) body: Option<Bytes>,
    pub(crate) session: Option<SessionId>,
    pub(crate) left: Sent,
    /// Whether the body has the tool that opens folds.
    pub(crate) has_tool: bool,
    /// What was counted here for what is sent, and the window it was counted for.
    pub(crate) counted: Option<Counted>,
    /// What the meter saw.
    pub(crate) glance: Option<Glance>,
    /// What was done for it, when, and for how long.
    pub(crate) steps: Vec<(&'static str, Instant, Duration)>,
}

/// How long a body is, by our own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) tokens: Tokens,
    pub(crate) window: Tokens,
}

/// How a body leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// As it came, because it fits.
    Whole,
    /// Folded.
    Folded,
    /// As it came, because nothing is to be changed, though folding would have changed it.
    Observed,
    /// As it came, for another reason.
    AsItCame(Reason),
}

impl Sent {
    /// As the meter has it.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Sent::Whole => Outcome::Whole,
            Sent::Folded => Outcome::Folded,
            Sent::Observed => Outcome::Observed,
            Sent::AsItCame(reason) => Outcome::AsItCame(reason.name()),
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sent::Whole => f.write_str("whole"),
            Sent::Folded => f.write_str("folded"),
            Sent::Observed => f.write_str("observed"),
            Sent::AsItCame(reason) => write!(f, "as it came: {reason}"),
        }
    }
}

impl Made {
    /// The body that came.
    pub(crate) fn as_it_came(reason: Reason) -> Made {
        Made {
            body: None,
            session: None,
            left: Sent::AsItCame(reason),
            has_tool: false,
            counted: None,
            glance: None,
            steps: Vec::new(),
        }
    }
}

impl From<&Trouble> for Reason {
    fn from(trouble: &Trouble) -> Reason {
        match trouble {
            Trouble::NotDecoded(_) => Reason::NotDecoded,
            Trouble::Store(_) => Reason::Store,
            Trouble::Locked(_) => Reason::Locked,
            Trouble::Overflow(_) => Reason::Overflow,
            Trouble::Fault(_) => Reason::Fault,
            Trouble::Continued => Reason::Continued,
            Trouble::Late => Reason::Deadline,
            Trouble::Panicked(_) => Reason::Panicked,
        }
    }
}
