//! What each fold did and why, as values that a person or a program can read.

use std::fmt;

use crate::fold::economy::Weighed;
use crate::model::budget::Pressure;
use crate::model::handle::Handle;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// Why a fold was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The view passed the policy's threshold.
    Threshold(Tokens),
    /// The view no longer fits.
    Window,
    /// It pays.
    Economy(Weighed),
    /// A result was over its tool's cap.
    Cap,
    /// The view no longer fits, and the newest step takes more than its share.
    Arrival,
    /// Lines of the newest results stand in view already.
    Again,
    /// Somebody asked.
    Asked,
    /// The provider refused the request for its length.
    Refused,
}

impl Reason {
    /// Whether only what was not sent yet is folded.
    pub(crate) fn is_of_newest(self) -> bool {
        matches!(self, Reason::Cap | Reason::Arrival | Reason::Again)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Threshold(at) => write!(f, "the view passed {at} tokens"),
            Reason::Window => f.write_str("the view no longer fitted"),
            Reason::Economy(weighed) => weighed.fmt(f),
            Reason::Cap => f.write_str("a result was over its tool's cap"),
            Reason::Arrival => f.write_str("the newest results took more than their share of the window"),
            Reason::Again => f.write_str("lines of the newest results stood above already"),
            Reason::Asked => f.write_str("asked for by hand"),
            Reason::Refused => f.write_str("the provider refused the request for its length"),
        }
    }
}

/// What one pass did in one fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReport {
    /// The pass.
    pub pass: &'static str,
    /// How many places or entries it folded.
    pub n_folded: usize,
    /// What it won.
    pub won: Tokens,
}

/// One thing that left the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The pass that folded it.
    pub pass: &'static str,
    /// Where it stood.
    pub what: What,
    /// What opens it.
    pub handle: Handle,
    /// Its cost before.
    pub before: Tokens,
    /// The cost of what stands for it.
    pub after: Tokens,
}

/// What left the view: a place or a range of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One place of an entry.
    Place(Place),
    /// Entries from the first to the last.
    Entries(EntryId, EntryId),
}

/// What one fold did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// How many entries the transcript had.
    pub at: usize,
    /// Why it was made.
    pub reason: Reason,
    /// The stage it went to: 1 is normal.
    pub stage: &'static str,
    /// The view's cost before.
    pub before: Tokens,
    /// The view's cost after.
    pub after: Tokens,
    /// What each pass did, in order.
    pub passes: Vec<PassReport>,
    /// What left.
    pub left: Vec<Left>,
    /// How much of the view, from the first changed piece on, the provider has to read anew; nothing where that was not sent yet.
    pub rewritten: Tokens,
    /// What that costs more than reading it from the cache, in tokens at the base price; none without prices.
    pub price: Option<Tokens>,
    /// User messages that had to be shortened: a last resort that is always told.
    pub user_text: Vec<EntryId>,
}

impl Receipt {
    /// What was won.
    pub fn won(&self) -> Tokens {
        self.before - self.after
    }
}

/// Something a person should hear of, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The room is filling.
    Pressure(Pressure),
    /// Two folds in a row won little, so folding rests until something changes.
    Resting {
        /// What is in the way: the largest things that can't be folded.
        in_the_way: Vec<Contributor>,
    },
    /// A fold was asked for and there was nothing to do.
    NothingToFold(String),
}

/// Something large in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributor {
    /// What it is, for a person.
    pub what: String,
    /// What it costs.
    pub tokens: Tokens,
}

/// No view fits: why, and the smallest thing that would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow {
    /// The smallest view that could be made.
    pub smallest: Tokens,
    /// The room there is.
    pub room: Tokens,
    /// Whether all was folded that can be; with the strategy `off` nothing is.
    pub is_folded: bool,
    /// The largest contributors that can't be folded, largest first.
    pub contributors: Vec<Contributor>,
    /// What would make it fit.
    pub remedy: String,
}

impl std::error::Error for Overflow {}

impl Overflow {
    /// What is wrong, in a line.
    pub fn headline(&self) -> String {
        match self.is_folded {
            true => {
                format!("{} tokens are left when all is folded, and the room is {}", self.smallest, self.room)
            }
            false => format!(
                "{} tokens are there, the room is {}, and nothing may be folded",
                self.smallest, self.room
            ),
        }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for contributor in &self.contributors {
            write!(f, "\n  {:>9}  {}", contributor.tokens, contributor.what)?;
        }
        write!(f, "\n\nhint: {}", self.remedy)
    }
}
