//! Receipts: the reason and the effects of each fold, for users and programs.

use std::fmt;

use crate::fold::economy::FoldEstimate;
use crate::model::budget::Pressure;
use crate::model::handle::Handle;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// The reason for a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The view passed the policy's threshold.
    Threshold(Tokens),
    /// The view no longer fits.
    Window,
    /// The fold pays for itself.
    Economy(FoldEstimate),
    /// A result exceeded the cap of its tool.
    Cap,
    /// The view no longer fits, and the newest step exceeds its share.
    Arrival,
    /// The newest results repeat lines that are visible in the view.
    Again,
    /// The user requested it.
    Requested,
    /// The provider refused the request because of its length.
    Refused,
}

impl Reason {
    /// Returns whether the fold only changes results that were not sent yet.
    pub(crate) fn is_of_newest(self) -> bool {
        matches!(self, Reason::Cap | Reason::Arrival | Reason::Again)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Threshold(at) => write!(f, "the view passed {at} tokens"),
            Reason::Window => f.write_str("the view no longer fitted"),
            Reason::Economy(estimate) => estimate.fmt(f),
            Reason::Cap => f.write_str("a result exceeded the cap of its tool"),
            Reason::Arrival => f.write_str("the newest results exceeded their share of the room"),
            Reason::Again => f.write_str("the newest results repeated visible lines"),
            Reason::Requested => f.write_str("requested by the user"),
            Reason::Refused => f.write_str("the provider refused the request because of its length"),
        }
    }
}

/// The effect of a pass in a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReport {
    /// The name of the pass.
    pub pass: &'static str,
    /// The number of texts and segments that it folded.
    pub n_folded: usize,
    /// The tokens that it saved.
    pub saved: Tokens,
}

/// A part of the view that was folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedItem {
    /// The name of the pass that folded it.
    pub pass: &'static str,
    /// Its location.
    pub target: FoldTarget,
    /// The handle of the original.
    pub handle: Handle,
    /// Its cost before.
    pub before: Tokens,
    /// The cost of the text that replaces it.
    pub after: Tokens,
}

/// The location of a folded part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldTarget {
    /// A text of an entry.
    Place(Place),
    /// The first and the last entry of a segment.
    Entries(EntryId, EntryId),
}

/// The record of one fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The number of entries in the transcript.
    pub at: usize,
    /// The reason.
    pub reason: Reason,
    /// The name of the last stage that folded something.
    pub stage: &'static str,
    /// The view's cost before.
    pub before: Tokens,
    /// The view's cost after.
    pub after: Tokens,
    /// The effect of each pass, in running order.
    pub passes: Vec<PassReport>,
    /// The folded parts.
    pub folded: Vec<FoldedItem>,
    /// The cost of the view after the first change, which misses the provider's cache. Zero if that part was not sent
    /// yet.
    pub rewritten: Tokens,
    /// The extra price of the cache miss, in tokens at the base price, if prices are known.
    pub price: Option<Tokens>,
    /// The user messages that had to be shortened, which is a last resort.
    pub user_text: Vec<EntryId>,
}

impl Receipt {
    /// The tokens that the fold saved.
    pub fn saved(&self) -> Tokens {
        self.before - self.after
    }
}

/// An event that is reported to the user once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The view fills more of the room.
    Pressure(Pressure),
    /// Two consecutive folds saved little, so folding rests until something changes.
    Resting {
        /// The most expensive parts of the view.
        in_the_way: Vec<Contributor>,
    },
    /// A requested fold found nothing to fold, for this reason.
    NothingToFold(String),
}

/// An expensive part of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributor {
    /// A description for the user.
    pub description: String,
    /// Its cost.
    pub tokens: Tokens,
}

/// No view fits: the cause and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow {
    /// The cost of the smallest possible view.
    pub smallest: Tokens,
    /// The available room.
    pub room: Tokens,
    /// True if everything foldable was folded. With the strategy `off`, nothing is.
    pub is_folded: bool,
    /// The most expensive parts of the view, most expensive first.
    pub contributors: Vec<Contributor>,
    /// The next step for the user.
    pub remedy: String,
}

impl std::error::Error for Overflow {}

impl Overflow {
    /// Describes the problem in one line.
    pub fn headline(&self) -> String {
        match self.is_folded {
            true => {
                format!("{} tokens remain after all folds, and the room is {}", self.smallest, self.room)
            }
            false => format!(
                "the conversation has {} tokens, the room is {}, and nothing may be folded",
                self.smallest, self.room
            ),
        }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for contributor in &self.contributors {
            write!(f, "\n  {:>9}  {}", contributor.tokens, contributor.description)?;
        }
        write!(f, "\n\nhint: {}", self.remedy)
    }
}
