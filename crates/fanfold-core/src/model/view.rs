//! Views: the messages to send, derived from a transcript and its ledger.

use std::sync::Arc;

use crate::model::handle::Handle;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;

/// A place of an entry that is replaced by a stub.
///
/// An empty stub omits the place, which is only done to reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The place that is replaced.
    pub place: Place,
    /// The text sent instead. The stub of JSON arguments is JSON.
    pub stub: Arc<str>,
}

/// The role of the message that contains a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// A marked and fenced message of fanfold in the user role.
    Fanfold,
    /// A message of the assistant.
    Assistant,
}

/// One element of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An entry without changes.
    Whole(EntryId),
    /// An entry with some of its places folded.
    Edited(EntryId, Vec<Edit>),
    /// A text of fanfold that replaces entries or gives the model orientation.
    Note {
        /// The text.
        text: Arc<str>,
        /// The role of its message.
        voice: Voice,
    },
}

/// The messages to send; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The elements in order.
    pub items: Vec<Item>,
    /// Their cost, including the tool schemas.
    pub tokens: Tokens,
    /// The handles in the view.
    pub handles: Vec<Handle>,
}

impl View {
    /// Returns whether every entry is sent without changes and nothing was added.
    pub fn is_untouched(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Whole(_)))
    }
}
