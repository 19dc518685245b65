//! Passes for conversations that do not fit otherwise.

pub(crate) mod squeeze;
pub(crate) mod user_text;
pub(crate) mod drop;
