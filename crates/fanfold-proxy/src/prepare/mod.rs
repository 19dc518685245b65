//! Preparing: the body that is sent instead of the one that was received.

pub(crate) mod prepared_body;
pub(crate) mod reconnecting_engine;
pub(crate) mod learnt_windows;
pub(crate) mod window_probe;
pub(crate) mod subagents;
pub(crate) mod recall_offer;
pub(crate) mod pending_recalls;
pub(crate) mod memory;
pub(crate) mod summary_jobs;
pub(crate) mod folding;
