//! Passes over the newest results, before they are sent for the first time.

pub(crate) mod again;
pub(crate) mod arrival;
