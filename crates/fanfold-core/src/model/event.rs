//! Events that change a session but are not part of the conversation.
//!
//! They are recorded in order, so that a replay produces the same views.

use crate::model::budget::Budget;
use crate::model::handle::Handle;
use crate::model::summary::Summary;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// An event that is not part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The window or the reserve changed, for example with the model.
    Budget(Budget),
    /// The provider refused a request because of its length.
    Refused {
        /// The provider's limit, if it named one.
        limit: Option<Tokens>,
    },
    /// The provider reported its own token count of a view. It replaces an estimate of that view; only later entries
    /// remain estimated.
    ///
    /// Hosts report it with each request, so it does not end a rest of folding.
    UsageReported {
        /// Our count.
        counted: Tokens,
        /// The provider's count.
        reported: Tokens,
    },
    /// The provider's cache is empty: it expired, or the model changed.
    CacheExpired,
    /// An entry that must not be folded.
    Pinned(EntryId),
    /// An entry that may be folded again.
    Unpinned(EntryId),
    /// A topic to keep in more detail; an empty text ends that.
    Focused(String),
    /// The user requested a fold now.
    FoldRequested {
        /// The first and the last entry to fold; `None` for everything old.
        range: Option<(EntryId, EntryId)>,
    },
    /// The user requested the originals behind a handle back in the view.
    Unfolded(Handle),
    /// A model wrote a summary of the existing entries. The next fold places it in the view.
    SummaryWritten(Summary),
}
