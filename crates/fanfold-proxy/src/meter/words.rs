//! Outcomes and endings, as labels have them: few, fixed words.

/// How a body left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it came, because it fits.
    Whole,
    /// Folded.
    Folded,
    /// As it came, because nothing is to be changed, though folding would have changed it.
    Observed,
    /// As it came, for a reason that has this name.
    AsItCame(&'static str),
}

impl Outcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Whole => "whole",
            Outcome::Folded => "folded",
            Outcome::Observed => "observed",
            Outcome::AsItCame(_) => "as_it_came",
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The answer went to the client to its end.
    Done,
    /// The client went away before.
    ClientGone,
    /// The upstream could not be reached.
    Unreachable,
    /// The upstream answered too late, or fell silent.
    Stalled,
    /// The answer broke off.
    BrokenOff,
}

impl Exit {
    /// The word for it.
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
