//! Which lines of a folded entry stay.

pub(crate) mod analysis;
pub(crate) mod scan;
pub(crate) mod scorer;
pub(crate) mod candidates;
pub(crate) mod chooser;
pub(crate) mod edited_lines;
pub(crate) mod visible_lines;
