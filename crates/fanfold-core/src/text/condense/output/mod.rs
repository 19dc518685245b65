//! Output of programs.

pub(crate) mod log;
pub(crate) mod trace;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod listing;
