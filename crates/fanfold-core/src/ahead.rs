//! Entries taken apart before they are needed, while others are being folded.
//!
//! A host that has all of a conversation tells what is to come, and lends workers. What comes out does not depend on
//! it: an entry that came otherwise than was told is taken apart when it is there.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::policy::ToolRule;
use crate::scan::{Parts, size_of, take_apart_here};
use crate::tokens::Tokens;
use crate::transcript::{EntryId, Transcript};
use crate::workers::Workers;

/// So many bytes are one job.
const SHARE: usize = 8 * 1024;

/// What is to come, in shares.
pub(crate) struct Ahead {
    transcript: Transcript,
    /// What the policy says of tools: entries are taken apart by it, now as later.
    rules: Vec<ToolRule>,
    shares: Vec<Share>,
}

/// Entries that are taken apart in one go.
struct Share {
    entries: Range<usize>,
    n_bytes: usize,
    /// Each is taken out once.
    parts: OnceLock<Mutex<Vec<Option<Parts>>>>,
}

impl Ahead {
    pub(crate) fn of(transcript: Transcript, rules: Vec<ToolRule>) -> Ahead {
        let mut shares = Vec::new();
        let (mut from, mut n_bytes) = (0, 0);
        for (i, entry) in transcript.entries().iter().enumerate() {
            n_bytes += size_of(entry);
            if n_bytes >= SHARE || i + 1 == transcript.len() {
                shares.push(Share { entries: from..i + 1, n_bytes, parts: OnceLock::new() });
                (from, n_bytes) = (i + 1, 0);
            }
        }
        Ahead { transcript, rules, shares }
    }

    /// Whether nothing is to come behind so many entries.
    pub(crate) fn ends_at(&self, n_entries: usize) -> bool {
        self.transcript.len() <= n_entries
    }

    /// Takes entries apart that are needed now: side by side, the last first, since somebody may be at the first.
    pub(crate) fn hurry(&self, entries: &Range<usize>, workers: &dyn Workers) {
        let wanted = self.shares_of(entries);
        let wanted: Vec<&Share> = wanted.iter().filter(|share| share.parts.get().is_none()).collect();
        workers.run(wanted.len(), &|i| self.take_apart(wanted[wanted.len() - 1 - i]));
    }

    /// Has the first entries taken apart, those that cost no more than the room: they are folded once it is full.
    pub(crate) fn begin(self: &Arc<Self>, room: Tokens, workers: &dyn Workers) {
        let mut cost = Tokens::ZERO;
        let is_within = |i: &usize| {
            cost += self.transcript.tokens(EntryId::from(*i));
            cost <= room
        };
        let n_entries = (0..self.transcript.len()).take_while(is_within).count();
        let n_bytes = self.shares_of(&(0..n_entries)).iter().map(|share| share.n_bytes).sum();
        self.go_on(0, n_bytes, workers);
    }

    /// Has about as much taken apart behind some entries as there is in them, while something else is done.
    pub(crate) fn go_on_behind(self: &Arc<Self>, entries: &Range<usize>, workers: &dyn Workers) {
        let n_bytes = self.shares_of(entries).iter().map(|share| share.n_bytes).sum();
        let first = self.shares.partition_point(|share| share.entries.start < entries.end);
        self.go_on(first, n_bytes, workers);
    }

    /// Has so many bytes taken apart from a share on, while something else is done.
    fn go_on(self: &Arc<Self>, first: usize, n_bytes: usize, workers: &dyn Workers) {
        let ahead = Arc::clone(self);
        workers.soon(Box::new(move || {
            let mut n_done = 0;
            for share in &ahead.shares[first..] {
                if n_done >= n_bytes {
                    break;
                }
                ahead.take_apart(share);
                n_done += share.n_bytes;
            }
        }));
    }

    /// An entry taken apart, if it came as was told; each only once.
    pub(crate) fn take(&self, id: EntryId, transcript: &Transcript) -> Option<Parts> {
        let i = id.index();
        let is_as_told = i < self.transcript.len()
            && self.transcript.tokens(id) == transcript.tokens(id)
            && self.transcript.entry(id) == transcript.entry(id);
        let share = self.shares_of(&(i..i + 1)).first().filter(|_| is_as_told)?;
        let parts = share.parts.get()?;
        parts.lock().unwrap_or_else(PoisonError::into_inner)[i - share.entries.start].take()
    }

    fn shares_of(&self, entries: &Range<usize>) -> &[Share] {
        let first = self.shares.partition_point(|share| share.entries.end <= entries.start);
        let end = self.shares.partition_point(|share| share.entries.start < entries.end);
        &self.shares[first..end.max(first)]
    }

    fn take_apart(&self, share: &Share) {
        share.parts.get_or_init(|| {
            let entries = share.entries.clone().map(EntryId::from);
            let entries: Vec<_> =
                entries.map(|id| (self.transcript.entry(id), self.transcript.tokens(id))).collect();
            Mutex::new(take_apart_here(&entries, &self.rules).into_iter().map(Some).collect())
        });
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("n_entries", &self.transcript.len()).finish_non_exhaustive()
    }
}
