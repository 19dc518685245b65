//! Selects the lines of folded entries that are kept.

pub(crate) mod analysis;
pub(crate) mod scan;
pub(crate) mod scorer;
pub(crate) mod chooser;
pub(crate) mod edited_lines;
pub(crate) mod visible_lines;
