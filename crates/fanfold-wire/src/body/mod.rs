//! Bodies: the message list within its frame, and cache markers set apart from messages.

pub(crate) mod frame;
mod incoming;
pub(crate) mod resume;
pub(crate) mod cache_markers;

pub use cache_markers::{MessageStyle, restore_style, same_system, strip_style};
pub use frame::DecodeError;
pub use incoming::Incoming;
pub(crate) use incoming::StyleHandling;
