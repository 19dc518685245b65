//! Stretches of folded entries that one handle opens, each small enough that a recall does not fill the window again.
//!
//! ```text
//! entries of  200 900 150 5,000 80 tokens, 1,000 to a stretch
//!            [200] [900] [150] [1,000][1,000][1,000][1,000][1,000] [80]  ->  200+… as many as fit, a long one in slices
//! ```

use std::ops::Range;

use crate::draft::{Draft, slices};
use crate::handle::{Handle, Hash};
use crate::ledger::Original;
use crate::recall::write_script;
use crate::tokens::Tokens;
use crate::transcript::EntryId;

/// Some entries, or a slice of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: EntryId,
    pub(crate) last: EntryId,
    /// The bytes of the entry's script, for a slice.
    bytes: Option<Range<usize>>,
    tokens: Tokens,
    /// Its name, once it was needed.
    name: Option<Handle>,
}

impl Stretch {
    /// Where it begins: an entry, and a place in its script.
    pub(crate) fn start(&self) -> (EntryId, usize) {
        (self.first, self.bytes.as_ref().map_or(0, |bytes| bytes.start))
    }

    /// Its name.
    pub(crate) fn name(&mut self, draft: &mut Draft<'_>) -> Handle {
        if let Some(name) = self.name {
            return name;
        }
        let name = match &self.bytes {
            None => {
                let entries: Vec<EntryId> = (self.first.0..=self.last.0).map(EntryId).collect();
                draft.ledger.name_entries(draft.transcript, &entries)
            }
            Some(bytes) => {
                let hash = match draft.ledger.scans.get(&self.first) {
                    Some(scan) => Hash::of(scan.script[bytes.clone()].as_bytes()),
                    None => {
                        let mut script = String::new();
                        write_script(draft.transcript.entry(self.first), &mut script);
                        Hash::of(script[bytes.clone()].as_bytes())
                    }
                };
                draft.ledger.name(Original::EntrySlice(self.first, bytes.clone()), hash)
            }
        };
        self.name = Some(name);
        name
    }

    /// This one and the next as one, if they stand side by side and are no more than `most` together.
    fn joined(&self, next: &Stretch, most: Tokens) -> Option<Stretch> {
        let tokens = self.tokens + next.tokens;
        let (first, last) = (self.first, next.last);
        let bytes = match (&self.bytes, &next.bytes) {
            _ if tokens > most => return None,
            (None, None) if self.last.0 + 1 == next.first.0 => None,
            (Some(here), Some(there)) if self.first == next.first && here.end == there.start => {
                Some(here.start..there.end)
            }
            _ => return None,
        };
        Some(Stretch { first, last, bytes, tokens, name: None })
    }

    /// This one and the next as one, whatever they are, if nothing that stays is between them.
    fn swallowed(&self, next: &Stretch) -> Option<Stretch> {
        let is_beside = next.first.0 <= self.last.0 + 1;
        let tokens = self.tokens + next.tokens;
        let last = self.last.max(next.last);
        is_beside.then(|| Stretch { first: self.first, last, bytes: None, tokens, name: None })
    }
}

/// Cuts entries into stretches.
pub(crate) fn stretches(draft: &mut Draft<'_>, entries: &[EntryId], most: Tokens) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for &entry in entries {
        let tokens = draft.transcript.tokens(entry);
        if tokens > most {
            let scan = draft.scan(entry);
            let cut = slices(&scan.script, tokens, most);
            let tokens = Tokens(tokens.0 / cut.len() as u64);
            let slice = |bytes| Stretch { first: entry, last: entry, bytes: Some(bytes), tokens, name: None };
            out.extend(cut.into_iter().map(slice));
            continue;
        }
        let one = Stretch { first: entry, last: entry, bytes: None, tokens, name: None };
        match out.last().and_then(|last| last.joined(&one, most)) {
            Some(joined) => *out.last_mut().expect("there is one") = joined,
            None => out.push(one),
        }
    }
    out
}

/// Neighbours joined as long as they are small, where nothing of them is told.
pub(crate) fn join_bare(all: &[Stretch], is_told: &[bool], most: Tokens) -> Vec<Stretch> {
    let mut out: Vec<(Stretch, bool)> = Vec::with_capacity(all.len());
    for (stretch, &is_told) in all.iter().zip(is_told) {
        let before = out.last().filter(|(_, before_told)| !is_told && !before_told);
        match before.and_then(|(before, _)| before.joined(stretch, most)) {
            Some(joined) => *out.last_mut().expect("there is one") = (joined, false),
            None => out.push((stretch.clone(), is_told)),
        }
    }
    out.into_iter().map(|(stretch, _)| stretch).collect()
}

/// Stretches joined with their neighbours until there are no more than `most`, as far as that goes.
pub(crate) fn coarsened(mut all: Vec<Stretch>, most: usize) -> Vec<Stretch> {
    while all.len() > most {
        let mut out: Vec<Stretch> = Vec::with_capacity(all.len());
        let n_before = all.len();
        let mut is_joined = true;
        for stretch in all {
            // A slice goes with the one before, whose handle then opens the whole entry.
            let is_same_entry = out.last().is_some_and(|before| before.last >= stretch.first);
            let both = out
                .last()
                .filter(|_| !is_joined || is_same_entry)
                .and_then(|before| before.swallowed(&stretch));
            match both {
                Some(both) => {
                    *out.last_mut().expect("there is one") = both;
                    is_joined = true;
                }
                None => {
                    out.push(stretch);
                    is_joined = false;
                }
            }
        }
        all = out;
        if all.len() == n_before {
            break;
        }
    }
    all
}
