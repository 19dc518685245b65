//! Where the definitions of a source file stand, by a parser of its language.
//!
//! The parsers come with the feature `outline`. Without it, for other languages and where a text does not parse, there
//! is no outline, and definitions are told by how their lines look.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Something that a file defines: a function, a type, a class with its methods. Lines are counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Its first line.
    pub(crate) first: usize,
    /// The last line of its signature: its body follows.
    pub(crate) signature: usize,
    /// Its last line.
    pub(crate) last: usize,
    /// In how many others it stands.
    pub(crate) depth: usize,
}

/// The outlines that are known, by the text and the path; a text that has none is known, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(HashMap<u64, Option<Arc<[Definition]>>>);

impl Known {
    /// More outlines are not kept: what is cut shorter again was cut not long ago.
    const MOST: usize = 1_024;
}

/// Outlines for the time of one wish: a text that is cut shorter again is not parsed again.
#[derive(Debug, Default)]
pub struct Outlines(RefCell<Known>);

impl Outlines {
    pub(crate) fn of(known: Known) -> Outlines {
        Outlines(RefCell::new(known))
    }

    pub(crate) fn into_known(self) -> Known {
        self.0.into_inner()
    }

    /// What the text of a file defines, in order, or nothing where that cannot be told.
    pub(crate) fn definitions(&self, text: &str, path: &str) -> Option<Arc<[Definition]>> {
        let key = xxh3_64_with_seed(text.as_bytes(), xxh3_64(path.as_bytes()));
        let mut known = self.0.borrow_mut();
        if known.0.len() >= Known::MOST {
            known.0.clear();
        }
        known.0.entry(key).or_insert_with(|| definitions(text, path).map(Arc::from)).clone()
    }
}

/// What the text of a file defines, in order, or nothing where that cannot be told.
#[cfg(feature = "outline")]
fn definitions(text: &str, path: &str) -> Option<Vec<Definition>> {
    crate::text::condense::source::parse::definitions(text, path)
}

/// Nothing can be told without a parser.
#[cfg(not(feature = "outline"))]
fn definitions(_text: &str, _path: &str) -> Option<Vec<Definition>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_a_parser_says() {
        let text = "fn one() {\n    two();\n}\n";
        let outlines = Outlines::default();
        for path in ["src/a.rs", "src/a.py", "src/a.rs", "notes"] {
            let parsed = definitions(text, path).map(Arc::from);
            assert_eq!(outlines.definitions(text, path), parsed, "{path}");
        }
        let known = outlines.into_known();
        assert_eq!(known.0.len(), 3);
        assert_eq!(Outlines::of(known).definitions("", "src/a.rs"), None);
    }
}
