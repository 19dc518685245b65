//! The data: transcripts, budgets, prices, events, handles, views.

pub(crate) mod tokens;
pub(crate) mod transcript;
pub(crate) mod handle;
pub(crate) mod location;
pub(crate) mod script;
pub(crate) mod summary;
pub(crate) mod view;
pub(crate) mod budget;
pub(crate) mod prices;
pub(crate) mod event;
pub(crate) mod usage;
pub(crate) mod parallel;
