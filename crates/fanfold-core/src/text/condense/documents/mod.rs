//! Documents and data.

pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod html;
pub(crate) mod prose;
pub(crate) mod dense;
pub(crate) mod escaped;
