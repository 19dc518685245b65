//! Passes that run when nothing else makes the view fit.

pub(crate) mod squeeze;
pub(crate) mod user_text;
pub(crate) mod drop;
