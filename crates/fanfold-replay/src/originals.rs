//! The originals behind handles, each recalled once.

use std::collections::hash_map::Entry;

use fanfold_core::{Count, Extent, Handle, Session, find_by_content};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::content::analysis::{RecordAnalysis, ReplyAtomId};
use crate::content::text::unescape;

/// The originals of one conversation, shared by all policies.
#[derive(Default)]
pub(crate) struct OriginalCache {
    by_hash: FxHashMap<u128, usize>,
    all: Vec<RecalledOriginal>,
}

struct RecalledOriginal {
    content: String,
    /// The content without visible escapes, if it has any.
    unescaped: Option<String>,
    tokens: Option<u64>,
    /// A lower bound of its tokens, from counting its beginning.
    at_least: u64,
    contains: FxHashMap<ReplyAtomId, bool>,
}

/// Maps the handles of one session to originals.
pub(crate) type HandleMap = FxHashMap<Handle, usize>;

impl OriginalCache {
    /// The tokens of a recall that returns the atom: of the original behind a handle, or of its lines around the atom if
    /// the original has more than `max` tokens.
    pub(crate) fn tokens_with_atom(
        &mut self,
        (analysis, atom): (&RecordAnalysis<'_>, ReplyAtomId),
        (session, handles): (&Session<'_>, &mut HandleMap),
        handle: Handle,
        max: u64,
    ) -> Option<u64> {
        let at = match handles.entry(handle) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(self.add(content(session, handle))),
        };
        let original = &mut self.all[at];
        let needle = &analysis.needles[atom as usize];
        let text = original.unescaped.as_ref().unwrap_or(&original.content);
        let contains = original.contains.entry(atom);
        if !*contains.or_insert_with(|| needle.is_in(text)) {
            return None;
        }
        let counter = session.counter();
        if !original.is_more_than(max, counter) && original.tokens(counter) <= max {
            return Some(original.tokens(counter));
        }
        let text = original.unescaped.as_ref().unwrap_or(&original.content);
        let extent = Extent::Search { text: needle.text().to_owned(), around: 2 };
        let lines = extent.extract(text.clone(), handle).ok()?;
        Some(counter.count(&lines).0).filter(|tokens| *tokens <= max)
    }

    fn add(&mut self, content: String) -> usize {
        let next = self.all.len();
        let at = *self.by_hash.entry(xxh3_128(content.as_bytes())).or_insert(next);
        if at == next {
            let unescaped = content.contains('\\').then(|| unescape(&content));
            let contains = FxHashMap::default();
            self.all.push(RecalledOriginal { content, unescaped, tokens: None, at_least: 0, contains });
        }
        at
    }
}

impl RecalledOriginal {
    fn tokens(&mut self, counter: &dyn Count) -> u64 {
        *self.tokens.get_or_insert_with(|| counter.count(&self.content).0)
    }

    /// True if it certainly has more than `max` tokens. Avoids counting a very long original to its end.
    fn is_more_than(&mut self, max: u64, counter: &dyn Count) -> bool {
        /// Bytes of a long token. Only texts of more than twice as many bytes per allowed token are tested.
        const BYTES: usize = 8;
        /// A cut can change the tokens next to it.
        const CUT: u64 = 8;
        let n_counted = BYTES * max as usize;
        if self.at_least <= max && self.content.len() > 2 * n_counted {
            let beginning = &self.content[..self.content.floor_char_boundary(n_counted)];
            self.at_least = counter.count(beginning).0.saturating_sub(CUT);
        }
        self.at_least > max
    }
}

/// The original behind a handle, found by the session's folds or else by its content.
fn content(session: &Session<'_>, handle: Handle) -> String {
    let found = session.recall(handle, &Extent::Whole).ok();
    let found = found.or_else(|| find_by_content(session.transcript(), handle).map(|text| text.to_string()));
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fanfold_core::{Tokens, Words};

    use super::*;

    /// Counts words and records how many bytes it counted.
    struct ByteRecorder(AtomicUsize);

    impl Count for ByteRecorder {
        fn count(&self, text: &str) -> Tokens {
            self.0.fetch_add(text.len(), Ordering::Relaxed);
            Words.count(text)
        }

        fn name(&self) -> &str {
            "recorder"
        }

        fn is_exact(&self) -> bool {
            true
        }
    }

    fn original(content: String) -> RecalledOriginal {
        RecalledOriginal {
            content,
            unescaped: None,
            tokens: None,
            at_least: 0,
            contains: FxHashMap::default(),
        }
    }

    #[test]
    fn long_originals_are_not_counted_to_their_end() {
        let counter = ByteRecorder(AtomicUsize::new(0));
        let mut long = original("four ".repeat(100_000));
        assert!(long.is_more_than(100, &counter) && long.is_more_than(100, &counter));
        assert_eq!(counter.0.load(Ordering::Relaxed), 800);
        // A larger limit counts more of it.
        assert!(long.is_more_than(2_000, &counter));
        assert!(!long.is_more_than(200_000, &counter));
        assert_eq!(long.tokens(&counter), 100_000);
    }

    #[test]
    fn possibly_short_originals_are_counted() {
        let counter = ByteRecorder(AtomicUsize::new(0));
        for content in ["four ".repeat(90), "x".repeat(5_000), format!("{}end", " ".repeat(9_000))] {
            let mut short = original(content);
            assert!(!short.is_more_than(100, &counter), "{}", short.content);
            assert!(short.tokens(&counter) <= 100);
        }
    }
}
