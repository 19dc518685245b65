//! The passes of the preset `hamr`.

pub(crate) mod stubs;
