//! What will be sent: the transcript as its ledger shows it.

use std::sync::Arc;

use crate::model::handle::Handle;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// One place of an entry that is sent as something shorter.
///
/// An empty stub means that the place is left out: only reasoning is ever left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub place: Place,
    /// What is sent instead. For arguments this is JSON where the arguments were JSON.
    pub stub: Arc<str>,
}

/// In whose role a note is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// As a message of fanfold's in the user role, fenced and marked.
    Fanfold,
    /// As a text of the assistant's.
    Assistant,
}

/// One piece of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An entry as it came.
    Whole(EntryId),
    /// An entry with some of its places folded.
    Edited(EntryId, Vec<Edit>),
    /// Words of fanfold's own that stand for entries, or that orient the model.
    Note {
        /// The words.
        text: Arc<str>,
        /// In whose role they are sent.
        voice: Voice,
    },
}

/// The messages to send; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The pieces in order.
    pub items: Vec<Item>,
    /// What they cost, tool schemas included.
    pub tokens: Tokens,
    /// The handles that stand in the view.
    pub handles: Vec<Handle>,
}

impl View {
    /// Whether every entry is sent as it came and nothing was added.
    pub fn is_untouched(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Whole(_)))
    }
}
