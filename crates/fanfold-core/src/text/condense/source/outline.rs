//! Outlines of source files, computed by a parser of the language.
//!
//! The parsers are behind the feature `outline`. Without it, in other languages and if a text does not parse,
//! definitions are recognised by patterns instead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A function, a type or a class in a file. Lines are counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The first line.
    pub(crate) first: usize,
    /// The last line of the signature.
    pub(crate) signature: usize,
    /// The last line.
    pub(crate) last: usize,
    /// The number of enclosing definitions.
    pub(crate) depth: usize,
}

/// Outlines by text and path, including texts without an outline.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedOutlines(HashMap<u64, Option<Arc<[Definition]>>>);

impl CachedOutlines {
    /// The cache is cleared at this size.
    const MOST: usize = 1_024;
}

/// A cache of outlines with interior mutability.
#[derive(Debug, Default)]
pub struct Outlines(RefCell<CachedOutlines>);

impl Outlines {
    pub(crate) fn from_cache(cache: CachedOutlines) -> Outlines {
        Outlines(RefCell::new(cache))
    }

    pub(crate) fn into_cache(self) -> CachedOutlines {
        self.0.into_inner()
    }

    /// The definitions of a file in order, or `None` without an outline.
    pub(crate) fn definitions(&self, text: &str, path: &str) -> Option<Arc<[Definition]>> {
        let key = xxh3_64_with_seed(text.as_bytes(), xxh3_64(path.as_bytes()));
        let mut cache = self.0.borrow_mut();
        if cache.0.len() >= CachedOutlines::MOST {
            cache.0.clear();
        }
        cache.0.entry(key).or_insert_with(|| definitions(text, path).map(Arc::from)).clone()
    }
}

/// Parses the definitions of a file in order.
#[cfg(feature = "outline")]
fn definitions(text: &str, path: &str) -> Option<Vec<Definition>> {
    crate::text::condense::source::parse::definitions(text, path)
}

#[cfg(not(feature = "outline"))]
fn definitions(_text: &str, _path: &str) -> Option<Vec<Definition>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_outlines_equal_parsed_ones() {
        let text = "fn one() {\n    two();\n}\n";
        let outlines = Outlines::default();
        for path in ["src/a.rs", "src/a.py", "src/a.rs", "notes"] {
            let parsed = definitions(text, path).map(Arc::from);
            assert_eq!(outlines.definitions(text, path), parsed, "{path}");
        }
        let cache = outlines.into_cache();
        assert_eq!(cache.0.len(), 3);
        assert_eq!(Outlines::from_cache(cache).definitions("", "src/a.rs"), None);
    }
}
