//! A summary written by a model.

use std::sync::Arc;

use crate::model::transcript::EntryId;

/// A summary of the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its sections, without the fence that surrounds them in a view.
    pub text: Arc<str>,
    /// The last entry that it covers.
    pub upto: EntryId,
    /// The date on which it was written, for the reader; empty if unknown.
    pub day: String,
}
