//! The passes of the preset `hermes`.

pub(crate) mod summary;
