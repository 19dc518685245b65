//! The pass of the preset `mask`.

pub(crate) mod placeholders;
