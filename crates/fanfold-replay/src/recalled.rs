//! What handles bring back, each original looked at once.

use std::collections::hash_map::Entry;

use fanfold_core::{Count, Extent, Handle, Session, find_by_content};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::text::plain;
use crate::trajectory::{AtomId, Trajectory};

/// The originals of one trajectory, shared by all ways of folding it.
#[derive(Default)]
pub(crate) struct Originals {
    known: FxHashMap<u128, usize>,
    all: Vec<Recalled>,
}

struct Recalled {
    content: String,
    /// The content without visible escapes, where it has some.
    plain: Option<String>,
    tokens: Option<u64>,
    /// What its beginning costs, once that was enough.
    at_least: u64,
    holds: FxHashMap<AtomId, bool>,
}

/// What one session's handles name, by their position among the originals.
pub(crate) type Named = FxHashMap<Handle, usize>;

impl Originals {
    /// The cost of the original behind a handle, if the atom is in it and it costs no more than `most`.
    pub(crate) fn cost_of(
        &mut self,
        (trajectory, atom): (&Trajectory<'_>, AtomId),
        (session, named): (&Session<'_>, &mut Named),
        handle: Handle,
        most: u64,
    ) -> Option<u64> {
        let at = match named.entry(handle) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(self.learn(content(session, handle))),
        };
        let recalled = &mut self.all[at];
        if recalled.is_more_than(most, session.counter()) {
            return None;
        }
        let text = recalled.plain.as_ref().unwrap_or(&recalled.content);
        let holds = recalled.holds.entry(atom);
        if !*holds.or_insert_with(|| trajectory.needles[atom as usize].is_in(text)) {
            return None;
        }
        Some(recalled.cost(session.counter())).filter(|cost| *cost <= most)
    }

    fn learn(&mut self, content: String) -> usize {
        let next = self.all.len();
        let at = *self.known.entry(xxh3_128(content.as_bytes())).or_insert(next);
        if at == next {
            let plain = content.contains('\\').then(|| plain(&content));
            let holds = FxHashMap::default();
            self.all.push(Recalled { content, plain, tokens: None, at_least: 0, holds });
        }
        at
    }
}

impl Recalled {
    fn cost(&mut self, counter: &dyn Count) -> u64 {
        *self.tokens.get_or_insert_with(|| counter.count(&self.content).0)
    }

    /// Whether it is certain that it costs more. What opens to much of a conversation is not counted to its end for that.
    fn is_more_than(&mut self, most: u64, counter: &dyn Count) -> bool {
        /// So many bytes are more than a token, almost always; a text of twice as many is too much.
        const BYTES: usize = 8;
        /// A token at the cut may be another than in the whole.
        const CUT: u64 = 8;
        let n_looked = BYTES * most as usize;
        if self.at_least <= most && self.content.len() > 2 * n_looked {
            let beginning = &self.content[..self.content.floor_char_boundary(n_looked)];
            self.at_least = counter.count(beginning).0.saturating_sub(CUT);
        }
        self.at_least > most
    }
}

/// What a handle opens: by the folds as they were made, or else by its content alone.
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

    /// Counts words, and how many bytes it was shown.
    struct Watched(AtomicUsize);

    impl Count for Watched {
        fn count(&self, text: &str) -> Tokens {
            self.0.fetch_add(text.len(), Ordering::Relaxed);
            Words.count(text)
        }

        fn name(&self) -> &str {
            "watched"
        }

        fn is_exact(&self) -> bool {
            true
        }
    }

    fn recalled(content: String) -> Recalled {
        Recalled { content, plain: None, tokens: None, at_least: 0, holds: FxHashMap::default() }
    }

    #[test]
    fn what_is_too_much_is_not_counted_to_its_end() {
        let counter = Watched(AtomicUsize::new(0));
        let mut long = recalled("four ".repeat(100_000));
        assert!(long.is_more_than(100, &counter) && long.is_more_than(100, &counter));
        assert_eq!(counter.0.load(Ordering::Relaxed), 800);
        // Once a larger one is asked for, more of it is looked at.
        assert!(long.is_more_than(2_000, &counter));
        assert!(!long.is_more_than(200_000, &counter));
        assert_eq!(long.cost(&counter), 100_000);
    }

    #[test]
    fn what_may_be_little_is_counted() {
        let counter = Watched(AtomicUsize::new(0));
        for content in ["four ".repeat(90), "x".repeat(5_000), format!("{}end", " ".repeat(9_000))] {
            let mut little = recalled(content);
            assert!(!little.is_more_than(100, &counter), "{}", little.content);
            assert!(little.cost(&counter) <= 100);
        }
    }
}
