//! Source code and patches.

pub(crate) mod code;
pub(crate) mod diff;
pub(crate) mod outline;
#[cfg(feature = "outline")]
mod parse;
#[cfg(feature = "outline")]
mod grammar;
