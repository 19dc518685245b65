//! The digest: folded steps as a few lines and handles.

pub(crate) mod segment;
pub(crate) mod stretch;
pub(crate) mod gist;
