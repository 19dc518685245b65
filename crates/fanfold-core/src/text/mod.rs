//! What a text contains: lines, atoms, words, and what kind of text it is.

pub(crate) mod atoms;
pub(crate) mod words;
pub(crate) mod copied_lines;
pub(crate) mod counted_lines;
pub(crate) mod slices;
pub(crate) mod spacing;
pub(crate) mod clean;
pub(crate) mod condense;
