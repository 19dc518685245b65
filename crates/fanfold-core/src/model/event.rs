//! What matters to a session but was not said in it. Recorded in order, so that a replay arrives at the same view.

use crate::model::budget::Budget;
use crate::model::handle::Handle;
use crate::model::summary::Summary;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// Something that happened beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Another model, another window, or another reserve.
    Budget(Budget),
    /// The provider refused a request for its length and named its limit, if it did.
    Refused {
        /// What the provider takes at most.
        limit: Option<Tokens>,
    },
    /// The provider told what it counted for a view: of an estimate, only what came since is still one. It is no news:
    /// hosts tell it with each request, and folding that rests goes on resting.
    Used {
        /// What was counted here.
        counted: Tokens,
        /// What the provider counted.
        reported: Tokens,
    },
    /// The provider has forgotten what was sent: nothing came for longer than its cache lives, or the model changed.
    Cooled,
    /// An entry that must not be folded.
    Pinned(EntryId),
    /// An entry that may be folded again.
    Unpinned(EntryId),
    /// A topic of which more should be kept; empty ends it.
    Focused(String),
    /// A person wants a fold now: of these entries, or of whatever is old.
    FoldAsked {
        /// The first and last entry, or everything old.
        range: Option<(EntryId, EntryId)>,
    },
    /// A person wants the originals behind a handle back in the view.
    Unfolded(Handle),
    /// A model wrote a summary of what was said so far. It stands in the view from the next fold on.
    Summarised(Summary),
}
