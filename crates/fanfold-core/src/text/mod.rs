//! Text analysis: lines, atoms, words, content kinds, condensers.

pub(crate) mod atoms;
pub(crate) mod words;
pub(crate) mod line_hash;
pub(crate) mod ansi;
pub(crate) mod compact_json;
pub(crate) mod clean;
pub(crate) mod condense;
