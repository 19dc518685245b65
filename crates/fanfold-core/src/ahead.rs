//! Entries taken apart before they are needed, while others are being folded.
//!
//! A host that has all of a conversation tells what is to come, and lends workers. What comes out does not depend on
//! it: an entry that came otherwise than was told is taken apart when it is there.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::policy::ToolRule;
use crate::scan::{Bench, OwnAtom, Parts, size_of};
use crate::tokens::Tokens;
use crate::transcript::{Entry, EntryId, Transcript};
use crate::workers::Workers;

/// So many bytes are one job.
const SHARE: usize = 6 * 1024;
/// Where so much is done ahead, nobody is asked to do more.
const NEAR: usize = 32 * 1024;
/// Who is asked does so much.
const FAR: usize = 96 * 1024;
/// About so many bytes are a token, where nothing is counted yet.
const TOKEN: u64 = 4;

/// What is to come, in shares.
pub(crate) struct Ahead {
    entries: Vec<Entry>,
    /// What each entry costs; zero until that is known.
    costs: Vec<AtomicU64>,
    /// What the policy says of tools: entries are taken apart by it, now as later.
    rules: Vec<ToolRule>,
    shares: Vec<Share>,
    /// What nobody takes anything apart with at the moment.
    benches: Mutex<Vec<Bench>>,
}

/// Entries that are taken apart in one go.
struct Share {
    entries: Range<usize>,
    n_bytes: usize,
    /// Whether somebody has begun with it.
    is_begun: AtomicBool,
    parts: OnceLock<Mutex<Vec<Taken>>>,
}

/// An entry taken apart, once for who asks. Its own atoms stay here: where one thread gives memory back while another asks
/// for some, both wait.
struct Taken {
    parts: Option<Parts>,
    _own: Arc<[OwnAtom]>,
}

impl Ahead {
    pub(crate) fn of(entries: Vec<Entry>, rules: Vec<ToolRule>) -> Ahead {
        let mut shares = Vec::new();
        let (mut from, mut n_bytes) = (0, 0);
        for (i, entry) in entries.iter().enumerate() {
            n_bytes += size_of(entry);
            if n_bytes >= SHARE || i + 1 == entries.len() {
                let (range, is_begun) = (from..i + 1, AtomicBool::new(false));
                shares.push(Share { entries: range, n_bytes, is_begun, parts: OnceLock::new() });
                (from, n_bytes) = (i + 1, 0);
            }
        }
        let costs = entries.iter().map(|_| AtomicU64::new(0)).collect();
        Ahead { entries, costs, rules, shares, benches: Mutex::default() }
    }

    /// Tells what entries cost, from one on. What of them is taken apart from now on is named, too.
    pub(crate) fn set_costs(&self, first: usize, costs: &[Tokens]) {
        let places = self.costs.iter().skip(first);
        places.zip(costs).for_each(|(place, cost)| place.store(cost.0, Ordering::Relaxed));
    }

    /// Whether nothing is to come behind so many entries.
    pub(crate) fn ends_at(&self, n_entries: usize) -> bool {
        self.entries.len() <= n_entries
    }

    /// Whether all of it likely takes more than the room.
    pub(crate) fn is_more_than(&self, room: Tokens) -> bool {
        self.n_bytes() as u64 / TOKEN > room.0
    }

    /// About how many bytes there are.
    pub(crate) fn n_bytes(&self) -> usize {
        self.shares.iter().map(|share| share.n_bytes).sum()
    }

    /// Has the first entries taken apart, those that take about the room: they are folded once it is full.
    pub(crate) fn begin(self: &Arc<Self>, room: Tokens, workers: &dyn Workers) {
        self.go_on(0, room.0.saturating_mul(TOKEN) as usize, workers);
    }

    /// Has some entries taken apart, and about as much behind them, while something else is done.
    pub(crate) fn go_on_from(self: &Arc<Self>, entries: &Range<usize>, workers: &dyn Workers) {
        let n_bytes: usize = self.shares_of(entries).iter().map(|share| share.n_bytes).sum();
        let first = self.shares.partition_point(|share| share.entries.end <= entries.start);
        // Who wakes somebody for a little has lost more than that.
        let mut n_ahead = 0;
        let is_near = |share: &&Share| {
            n_ahead += share.n_bytes;
            n_ahead <= n_bytes + NEAR
        };
        let is_done = self.shares[first..].iter().take_while(is_near).all(Share::is_begun);
        if !is_done {
            self.go_on(first, (2 * n_bytes).max(n_bytes + FAR), workers);
        }
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
                if share.begin() {
                    ahead.take_apart(share);
                }
                n_done += share.n_bytes;
            }
        }));
    }

    /// An entry taken apart, if it came as was told; each only once. As long as another thread is at it, others before
    /// the end are taken apart.
    pub(crate) fn take(&self, id: EntryId, end: usize, transcript: &Transcript) -> Option<Parts> {
        let i = id.index();
        let is_as_told = self.entries.get(i).is_some_and(|told| told == transcript.entry(id));
        let (share, others) = self.shares_of(&(i..end)).split_first().filter(|_| is_as_told)?;
        if !share.begin() {
            let mut others = others.iter();
            while share.parts.get().is_none()
                && let Some(other) = others.find(|other| other.begin())
            {
                self.take_apart(other);
            }
        }
        let parts = self.take_apart(share);
        let taken = &mut parts.lock().unwrap_or_else(PoisonError::into_inner)[i - share.entries.start];
        taken.parts.take().map(|parts| parts.named(transcript.tokens(id)))
    }

    fn shares_of(&self, entries: &Range<usize>) -> &[Share] {
        let first = self.shares.partition_point(|share| share.entries.end <= entries.start);
        let end = self.shares.partition_point(|share| share.entries.start < entries.end);
        &self.shares[first..end.max(first)]
    }

    /// Takes a share apart, or waits for who is at it.
    fn take_apart<'a>(&self, share: &'a Share) -> &'a Mutex<Vec<Taken>> {
        share.parts.get_or_init(|| {
            let benches = || self.benches.lock().unwrap_or_else(PoisonError::into_inner);
            let mut bench = benches().pop().unwrap_or_default();
            let parts_of = |i: usize| {
                let parts = bench.parts_of(&self.entries[i], &self.rules);
                let cost = Tokens(self.costs[i].load(Ordering::Relaxed));
                // Who needs it sees whether it is named by what it costs.
                let parts = if cost == Tokens::ZERO { parts } else { parts.named(cost) };
                Taken { _own: Arc::clone(&parts.own), parts: Some(parts) }
            };
            let parts = share.entries.clone().map(parts_of).collect();
            benches().push(bench);
            Mutex::new(parts)
        })
    }
}

impl Share {
    /// Begins with it, if nobody has.
    fn begin(&self) -> bool {
        !self.is_begun.swap(true, Ordering::Relaxed)
    }

    fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("n_entries", &self.entries.len()).finish_non_exhaustive()
    }
}
