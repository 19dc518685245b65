//! Text analysis: lines, atoms, words, content kinds, condensers.

pub(crate) mod atoms;
pub(crate) mod words;
pub(crate) mod copied_lines;
pub(crate) mod counted_text;
pub(crate) mod slices;
pub(crate) mod compact_json;
pub(crate) mod clean;
pub(crate) mod condense;
