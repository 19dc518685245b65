//! Originals opened by their handles, from the store alone.

pub(crate) mod handle_text; // the handle in a text that a model wrote
pub(crate) mod handles; // the handles of one session
pub(crate) mod any_session; // a handle looked up in all sessions
