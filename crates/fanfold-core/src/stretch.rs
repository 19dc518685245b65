//! Stretches of folded entries that one handle opens, each small enough that a recall does not fill the window again.
//!
//! ```text
//! 200 150 5,000 80 tokens, 650 to a stretch  ->  [200 150] [625] [625] [625] [625] [625] [625] [625] [625] [80]
//! ```
//!
//! Neighbours are joined where nothing of them is told in the view; their handle opens to theirs.

use std::ops::Range;

use crate::draft::{Draft, SLICE};
use crate::handle::Handle;
use crate::ledger::Original;
use crate::tokens::Tokens;
use crate::transcript::EntryId;

/// Some entries, or a slice of a long one, or several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: EntryId,
    pub(crate) last: EntryId,
    /// Where it begins in the script of the first entry.
    from: usize,
    tokens: Tokens,
    /// The handles of what it was joined from, or its own.
    handles: Vec<Handle>,
}

impl Stretch {
    /// Where it begins: an entry, and a place in its script.
    pub(crate) fn start(&self) -> (EntryId, usize) {
        (self.first, self.from)
    }

    /// Its name.
    pub(crate) fn name(&mut self, draft: &mut Draft<'_>) -> Handle {
        if let [name] = self.handles[..] {
            return name;
        }
        let entries = (self.first.0..=self.last.0).map(EntryId).collect();
        let name = draft.ledger.name_several(entries, std::mem::take(&mut self.handles));
        self.handles = vec![name];
        name
    }

    /// Its name, where it has one already.
    pub(crate) fn handle(&self) -> Option<Handle> {
        if let [name] = self.handles[..] { Some(name) } else { None }
    }

    /// This one and the next as one, if nothing that stays is between them.
    fn joined(&self, next: &Stretch) -> Option<Stretch> {
        let is_beside = next.first.0 <= self.last.0 + 1;
        is_beside.then(|| Stretch {
            last: self.last.max(next.last),
            tokens: self.tokens + next.tokens,
            handles: [&self.handles[..], &next.handles].concat(),
            ..self.clone()
        })
    }
}

/// Cuts entries into stretches and names them.
pub(crate) fn stretches(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    let mut group = Group::default();
    for &entry in entries {
        let tokens = draft.transcript.tokens(entry);
        let is_beside = group.entries.last().is_none_or(|last| last.0 + 1 == entry.0);
        if !is_beside || group.tokens + tokens > SLICE {
            out.extend(group.close(draft));
        }
        let scan = draft.scan(entry);
        if scan.slices.is_empty() {
            group.entries.push(entry);
            group.tokens += tokens;
            continue;
        }
        let tokens = Tokens(tokens.0 / scan.slices.len() as u64);
        for (bytes, hash) in &scan.slices {
            let handle = draft.ledger.name(Original::EntrySlice(entry, bytes.clone()), *hash);
            let (from, handles) = (bytes.start, vec![handle]);
            out.push(Stretch { first: entry, last: entry, from, tokens, handles });
        }
    }
    out.extend(group.close(draft));
    out
}

/// Entries one after another that will be a stretch.
#[derive(Default)]
struct Group {
    entries: Vec<EntryId>,
    tokens: Tokens,
}

impl Group {
    fn close(&mut self, draft: &mut Draft<'_>) -> Option<Stretch> {
        let Group { entries, tokens } = std::mem::take(self);
        let (first, last) = (*entries.first()?, *entries.last()?);
        let handle = draft.ledger.name_entries(draft.transcript, &entries);
        Some(Stretch { first, last, from: 0, tokens, handles: vec![handle] })
    }
}

/// Neighbours joined as long as they are small, where nothing of them is told.
pub(crate) fn join_bare(all: &[Stretch], is_told: &[bool]) -> Vec<Stretch> {
    let join = |run: Range<usize>| {
        let (first, last) = (&all[run.start], &all[run.end - 1]);
        Stretch {
            last: last.last,
            tokens: all[run.clone()].iter().map(|stretch| stretch.tokens).sum(),
            handles: all[run].iter().flat_map(|stretch| &stretch.handles).copied().collect(),
            ..*first
        }
    };
    bare_runs(all, is_told).map(join).collect()
}

/// How many there are once they are joined.
pub(crate) fn n_joined(all: &[Stretch], is_told: &[bool]) -> usize {
    bare_runs(all, is_told).count()
}

/// Neighbours that are joined; one that is told stays alone.
fn bare_runs(all: &[Stretch], is_told: &[bool]) -> impl Iterator<Item = Range<usize>> {
    let most = SLICE.permille(1200);
    let mut from = 0;
    std::iter::from_fn(move || {
        let mut tokens = all.get(from)?.tokens;
        let mut end = from + 1;
        while let Some(next) = all.get(end)
            && !is_told[end - 1]
            && !is_told[end]
            && tokens + next.tokens <= most
            && next.first.0 <= all[end - 1].last.0 + 1
        {
            tokens += next.tokens;
            end += 1;
        }
        Some(std::mem::replace(&mut from, end)..end)
    })
}

/// Stretches joined with their neighbours until there are no more than `most`, as far as that goes.
pub(crate) fn coarsened(mut all: Vec<Stretch>, most: usize) -> Vec<Stretch> {
    while all.len() > most {
        let mut out: Vec<Stretch> = Vec::with_capacity(all.len() / 2 + 1);
        let pairs =
            all.chunk_by(|before, after| after.first.0 <= before.last.0 + 1).flat_map(|run| run.chunks(2));
        for pair in pairs {
            let joined = match pair {
                [one, other] => one.joined(other),
                _ => None,
            };
            out.push(joined.unwrap_or_else(|| pair[0].clone()));
        }
        if out.len() == all.len() {
            break;
        }
        all = out;
    }
    all
}
