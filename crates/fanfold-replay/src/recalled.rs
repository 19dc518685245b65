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
    holds: FxHashMap<AtomId, bool>,
}

/// What one session's handles name, by their position among the originals.
pub(crate) type Named = FxHashMap<Handle, usize>;

impl Originals {
    /// The cost of the original behind a handle, if the atom is in it.
    pub(crate) fn cost_of(
        &mut self,
        (trajectory, atom): (&Trajectory<'_>, AtomId),
        (session, named): (&Session<'_>, &mut Named),
        handle: Handle,
    ) -> Option<u64> {
        let at = match named.entry(handle) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(self.learn(content(session, handle))),
        };
        let recalled = &mut self.all[at];
        let text = recalled.plain.as_ref().unwrap_or(&recalled.content);
        let holds = recalled.holds.entry(atom);
        if !*holds.or_insert_with(|| trajectory.needles[atom as usize].is_in(text)) {
            return None;
        }
        let counter: &dyn Count = session.counter();
        Some(*recalled.tokens.get_or_insert_with(|| counter.count(&recalled.content).0))
    }

    fn learn(&mut self, content: String) -> usize {
        let next = self.all.len();
        let at = *self.known.entry(xxh3_128(content.as_bytes())).or_insert(next);
        if at == next {
            let plain = content.contains('\\').then(|| plain(&content));
            self.all.push(Recalled { content, plain, tokens: None, holds: FxHashMap::default() });
        }
        at
    }
}

/// What a handle opens: by the folds as they were made, or else by its content alone.
fn content(session: &Session<'_>, handle: Handle) -> String {
    let found = session.recall(handle, &Extent::Whole).ok();
    let found = found.or_else(|| find_by_content(session.transcript(), handle).map(|text| text.to_string()));
    found.unwrap_or_default()
}
