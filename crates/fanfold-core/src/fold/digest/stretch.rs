//! Stretches: runs of folded entries with one handle, each small enough that a recall does not fill the window again.
//!
//! ```text
//! 200 150 5,000 80 tokens, 650 to a stretch  ->  [200 150] [625] [625] [625] [625] [625] [625] [625] [625] [80]
//! ```
//!
//! Neighbouring stretches without a visible line are joined; their handle opens stretches of them.

use std::ops::Range;

use crate::fold::draft::Draft;
use crate::fold::originals::Original;
use crate::model::handle::Handle;
use crate::model::tokens::Tokens;
use crate::model::transcript::EntryId;
use crate::text::slices::SLICE;

/// A run of entries, a slice of a long entry, or several of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: EntryId,
    pub(crate) last: EntryId,
    /// The offset of its beginning in the script of the first entry.
    from: usize,
    tokens: Tokens,
    /// Its handle, or the handles of the stretches that it was joined from.
    handles: Vec<Handle>,
}

impl Stretch {
    /// Its beginning: an entry and an offset in the script.
    pub(crate) fn start(&self) -> (EntryId, usize) {
        (self.first, self.from)
    }

    /// Its handle, created on demand.
    pub(crate) fn name(&mut self, draft: &mut Draft<'_>) -> Handle {
        if let [name] = self.handles[..] {
            return name;
        }
        let entries = (self.first.0..=self.last.0).map(EntryId).collect();
        let name = draft.ledger.name_several(entries, std::mem::take(&mut self.handles));
        self.handles = vec![name];
        name
    }

    /// Joins this stretch with the next one, unless visible entries are between them.
    fn joined(&self, next: &Stretch) -> Option<Stretch> {
        let is_adjacent = next.first.0 <= self.last.0 + 1;
        is_adjacent.then(|| Stretch {
            last: self.last.max(next.last),
            tokens: self.tokens + next.tokens,
            handles: [&self.handles[..], &next.handles].concat(),
            ..self.clone()
        })
    }
}

/// Cuts entries into stretches and assigns handles.
pub(crate) fn stretches(draft: &mut Draft<'_>, entries: &[EntryId]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    let mut group = Group::default();
    for &entry in entries {
        let tokens = draft.transcript.tokens(entry);
        let is_adjacent = group.entries.last().is_none_or(|last| last.0 + 1 == entry.0);
        if !is_adjacent || group.tokens + tokens > SLICE {
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

/// Consecutive entries of one stretch.
#[derive(Default)]
struct Group {
    entries: Vec<EntryId>,
    tokens: Tokens,
}

impl Group {
    fn close(&mut self, draft: &mut Draft<'_>) -> Option<Stretch> {
        let Group { entries, tokens } = std::mem::take(self);
        let (first, last) = (*entries.first()?, *entries.last()?);
        let handle = draft.name_entries(&entries);
        Some(Stretch { first, last, from: 0, tokens, handles: vec![handle] })
    }
}

/// Joins small neighbouring stretches without lines.
pub(crate) fn join_bare(stretches: &[Stretch], has_lines: &[bool]) -> Vec<Stretch> {
    let join = |run: Range<usize>| {
        let (first, last) = (&stretches[run.start], &stretches[run.end - 1]);
        Stretch {
            last: last.last,
            tokens: stretches[run.clone()].iter().map(|stretch| stretch.tokens).sum(),
            handles: stretches[run].iter().flat_map(|stretch| &stretch.handles).copied().collect(),
            ..*first
        }
    };
    bare_runs(stretches, has_lines).map(join).collect()
}

/// The number of stretches after joining.
pub(crate) fn n_joined(stretches: &[Stretch], has_lines: &[bool]) -> usize {
    bare_runs(stretches, has_lines).count()
}

/// Runs of stretches to join. A stretch with lines stays alone.
fn bare_runs(stretches: &[Stretch], has_lines: &[bool]) -> impl Iterator<Item = Range<usize>> {
    let max_tokens = SLICE.permille(1200);
    let mut from = 0;
    std::iter::from_fn(move || {
        let mut tokens = stretches.get(from)?.tokens;
        let mut end = from + 1;
        while let Some(next) = stretches.get(end)
            && !has_lines[end - 1]
            && !has_lines[end]
            && tokens + next.tokens <= max_tokens
            && next.first.0 <= stretches[end - 1].last.0 + 1
        {
            tokens += next.tokens;
            end += 1;
        }
        Some(std::mem::replace(&mut from, end)..end)
    })
}

/// Joins neighbouring stretches until there are at most `max_stretches`, if possible.
pub(crate) fn coarsen(mut stretches: Vec<Stretch>, max_stretches: usize) -> Vec<Stretch> {
    while stretches.len() > max_stretches {
        let mut out: Vec<Stretch> = Vec::with_capacity(stretches.len() / 2 + 1);
        let pairs = stretches
            .chunk_by(|before, after| after.first.0 <= before.last.0 + 1)
            .flat_map(|run| run.chunks(2));
        for pair in pairs {
            let joined = match pair {
                [one, other] => one.joined(other),
                _ => None,
            };
            out.push(joined.unwrap_or_else(|| pair[0].clone()));
        }
        if out.len() == stretches.len() {
            break;
        }
        stretches = out;
    }
    stretches
}
