//! Where the definitions of a source file stand, by a parser of its language.
//!
//! The parsers come with the feature `outline`. Without it, for other languages and where a text does not parse, there
//! is no outline, and definitions are told by how their lines look.

/// Something that a file defines: a function, a type, a class with its methods. Lines are counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Definition {
    /// Its first line.
    pub(super) first: usize,
    /// The last line of its signature: its body follows.
    pub(super) signature: usize,
    /// Its last line.
    pub(super) last: usize,
    /// In how many others it stands.
    pub(super) depth: usize,
}

/// What the text of a file defines, in order, or nothing where that cannot be told.
#[cfg(feature = "outline")]
pub(super) fn definitions(text: &str, path: &str) -> Option<Vec<Definition>> {
    super::parse::definitions(text, path)
}

/// Nothing can be told without a parser.
#[cfg(not(feature = "outline"))]
pub(super) fn definitions(_text: &str, _path: &str) -> Option<Vec<Definition>> {
    None
}
