//! A summary written by a model.

use std::sync::Arc;

use crate::model::transcript::EntryId;

/// What a model wrote about the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its sections, without what stands around them in a view.
    pub text: Arc<str>,
    /// The last entry that it tells of.
    pub upto: EntryId,
    /// The day on which it was written, as it should be read; empty where nobody said.
    pub day: String,
}
