//! The passes of the preset `rules`.

pub(crate) mod late_system;
pub(crate) mod collapse;
pub(crate) mod call_lines;
pub(crate) mod truncate;
