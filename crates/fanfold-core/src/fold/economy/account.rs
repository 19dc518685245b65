//! The cost account of a session: what its requests cost with folds and without, and the backlog since the last fold.
//!
//! A step implies that a request was sent before it. So the account depends on the conversation only, and a replay
//! gives the same figures.

use crate::fold::economy::Economy;
use crate::fold::ledger::{EntryState, Ledger};
use crate::fold::policy::Policy;
use crate::model::prices::{CacheBoundary, Prices};
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};

/// The cost of the requests, the provider's cache, and the backlog since the last fold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// The cost of all requests, in tokens at the base price.
    pub(crate) cost: f64,
    /// The cost that all requests would have had without folds.
    pub(crate) cost_without_folds: f64,
    pub(crate) n_requests: u32,
    /// The size of the present view, which the next request sends.
    pub(crate) view: Tokens,
    /// True if the provider's cache has expired.
    pub(crate) is_cold: bool,
    /// The minimum saving of the next attempt to fold.
    pub(crate) min_saving: Tokens,
    pub(crate) backlog: Backlog,
    /// The size of the transcript now, and the part of it that would be in the cache without folds.
    transcript: Tokens,
    transcript_cached: Tokens,
    /// The prefixes of the present view that are in the provider's cache, shortest first.
    cached_prefixes: Vec<CachedPrefix>,
    /// The prefix up to the newest segment, if the next request sets a cache breakpoint there.
    pending_breakpoint: Option<CachedPrefix>,
    n_recorded: usize,
    /// True if the backlog only lacks the newest entries. False after a change of older ones.
    is_backlog_valid: bool,
}

/// A prefix of the view that an earlier request sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CachedPrefix {
    n_entries: usize,
    tokens: Tokens,
}

/// The entries after the newest segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    /// The index of the first entry after the newest segment.
    pub(crate) from: usize,
    /// The index of the first entry of the tail, which is not folded.
    pub(crate) tail: usize,
    /// The cost of the view before the backlog.
    pub(crate) before: Tokens,
    /// The cost of the foldable entries.
    pub(crate) foldable: Tokens,
    /// The cost of the entries that cannot be folded.
    pub(crate) unfoldable: Tokens,
    /// The cost of the tail.
    pub(crate) tail_tokens: Tokens,
    /// The number of steps, including those in the tail.
    pub(crate) n_steps: usize,
    n_tail_steps: usize,
    n_seen: usize,
}

impl Account {
    /// Records the newest entry: a step implies a request.
    pub(crate) fn record_entry(&mut self, transcript: &Transcript, prices: &Prices) {
        let n_entries = transcript.len();
        if self.n_recorded == n_entries {
            return;
        }
        self.n_recorded = n_entries;
        let is_step = transcript.entries().last().is_some_and(|entry| entry.step().is_some());
        if is_step {
            self.charge(n_entries - 1, prices);
        }
    }

    /// Charges the request that sent the first `n_entries` entries.
    fn charge(&mut self, n_entries: usize, prices: &Prices) {
        self.cost += self.request_price(self.view, self.cached(), prices);
        self.cost_without_folds += self.request_price(self.transcript, self.transcript_cached, prices);
        self.n_requests += 1;
        self.is_cold = false;
        if self.transcript >= prices.minimum {
            self.transcript_cached = self.transcript;
        }
        if self.view >= prices.minimum {
            self.cached_prefixes.extend(self.pending_breakpoint.take());
            self.cached_prefixes.push(CachedPrefix { n_entries, tokens: self.view });
        }
    }

    /// The price of a request with a cached prefix.
    fn request_price(&self, tokens: Tokens, cached: Tokens, prices: &Prices) -> f64 {
        prices.request_cost(tokens, self.cache_hit(tokens, cached))
    }

    /// The cached part of a request; zero if the cache has expired.
    fn cache_hit(&self, tokens: Tokens, cached: Tokens) -> Tokens {
        if self.is_cold { Tokens::ZERO } else { cached.min(tokens) }
    }

    /// The size of the longest cached prefix.
    fn cached(&self) -> Tokens {
        self.cached_prefixes.last().map_or(Tokens::ZERO, |prefix| prefix.tokens)
    }

    /// The size of the cached prefix that remains if the view changes from `entry` on.
    pub(crate) fn cached_before(&self, entry: usize) -> Tokens {
        let n_valid = self.cached_prefixes.partition_point(|prefix| prefix.n_entries <= entry);
        self.cached_prefixes[..n_valid].last().map_or(Tokens::ZERO, |prefix| prefix.tokens)
    }

    /// Returns whether the total cost stays within the limit if the next request sends a view of this size. Assumes the
    /// worst case that the view doubles before that and reaches a price cliff.
    pub(crate) fn is_affordable(
        &self,
        view: Tokens,
        cached: Tokens,
        economy: &Economy,
        prices: &Prices,
    ) -> bool {
        let price = |tokens, cached| prices.base_cost(tokens, self.cache_hit(tokens, cached));
        let unfolded = price(self.transcript, self.transcript_cached);
        let more = price(view, cached) - unfolded;
        let cost =
            self.cost + unfolded + more * if more > 0.0 { prices.cliff_factor(view + view) } else { 1.0 };
        // The savings also pay for one use of lost content.
        let cost = cost + economy.use_price(view, prices);
        cost * 1000.0 <= (self.cost_without_folds + unfolded) * f64::from(economy.cost_limit)
    }

    /// Returns whether the total cost stays within the limit with the present view.
    pub(crate) fn is_within_limit(&self, economy: &Economy, prices: &Prices) -> bool {
        self.is_affordable(self.view, self.cached(), economy, prices)
    }

    /// Records that the provider's cache has expired.
    pub(crate) fn mark_cold(&mut self) {
        self.is_cold = true;
        self.min_saving = Tokens::ZERO;
    }

    /// Drops all assumptions about the view and the cache after an arbitrary change.
    pub(crate) fn invalidate(&mut self) {
        self.cached_prefixes.clear();
        self.pending_breakpoint = None;
        self.is_backlog_valid = false;
    }

    /// Sets the sizes of the view, which the next request sends, and of the transcript.
    pub(crate) fn set_sizes(&mut self, view: Tokens, transcript: Tokens) {
        (self.view, self.transcript) = (view, transcript);
    }

    /// Records that a fold changed the view from the entry `first` on. Returns the extra price of the cache miss, in
    /// tokens at the base price.
    pub(crate) fn record_break(
        &mut self,
        transcript: &Transcript,
        ledger: &Ledger,
        first: usize,
        prices: &Prices,
    ) -> Tokens {
        let unsent = self.view - self.cached();
        let was_sent = self.cached_prefixes.last().is_some_and(|prefix| prefix.n_entries > first);
        self.cached_prefixes
            .truncate(self.cached_prefixes.partition_point(|prefix| prefix.n_entries <= first));
        self.pending_breakpoint = None;
        if was_sent && prices.boundary == CacheBoundary::AnyMessage {
            let tokens = cost_before(transcript, ledger, first);
            self.cached_prefixes.push(CachedPrefix { n_entries: first, tokens });
        }
        let n_entries = end_of_segments(ledger);
        let is_longest = self.cached_prefixes.last().is_none_or(|prefix| prefix.n_entries < n_entries);
        if prices.boundary == CacheBoundary::Breakpoints && is_longest {
            let tokens = cost_before(transcript, ledger, n_entries);
            self.pending_breakpoint = Some(CachedPrefix { n_entries, tokens });
        }
        self.view = ledger.total_without_summary(transcript);
        self.is_backlog_valid = false;
        self.min_saving = Tokens::ZERO;
        let written = self.view - self.cached() - unsent;
        let price = if self.is_cold { 0.0 } else { prices.write_surcharge() * written.0 as f64 };
        Tokens(price as u64)
    }

    /// Adds the newest entries to the backlog. Recomputes all of it only after a change of older entries.
    pub(crate) fn extend_backlog(
        &mut self,
        transcript: &Transcript,
        ledger: &Ledger,
        policy: &Policy,
        economy: &Economy,
    ) {
        if !self.is_backlog_valid {
            let first_step = transcript.entries().iter().position(|entry| entry.step().is_some());
            let Some(first_step) = first_step else { return };
            let from = end_of_segments(ledger).max(first_step);
            let before = cost_before(transcript, ledger, from);
            self.backlog = Backlog { from, tail: from, before, n_seen: from, ..Backlog::default() };
            self.is_backlog_valid = true;
        }
        let backlog = &mut self.backlog;
        let cost = |i: usize| ledger.cost(transcript, EntryId::from(i));
        let is_step = |i: usize| usize::from(transcript.entries()[i].step().is_some());
        while backlog.n_seen < transcript.len() {
            let newest = backlog.n_seen;
            backlog.n_seen += 1;
            backlog.n_steps += is_step(newest);
            backlog.n_tail_steps += is_step(newest);
            backlog.tail_tokens += cost(newest);
            loop {
                let (oldest, oldest_cost) = (backlog.tail, cost(backlog.tail));
                let can_shrink = backlog.n_tail_steps - is_step(oldest) >= economy.min_steps
                    && backlog.tail_tokens - oldest_cost >= economy.tail;
                if !can_shrink {
                    break;
                }
                backlog.tail += 1;
                backlog.n_tail_steps -= is_step(oldest);
                backlog.tail_tokens -= oldest_cost;
                match is_foldable(transcript, ledger, policy, oldest) {
                    true => backlog.foldable += oldest_cost,
                    false => backlog.unfoldable += oldest_cost,
                }
            }
        }
    }
}

/// The index of the first entry after all segments.
pub(crate) fn end_of_segments(ledger: &Ledger) -> usize {
    let last = ledger.entry_states.iter().rposition(|state| matches!(state, EntryState::Segment(_)));
    last.map_or(0, |last| last + 1)
}

/// The cost of the view before an entry.
fn cost_before(transcript: &Transcript, ledger: &Ledger, entry: usize) -> Tokens {
    transcript.overhead() + ledger.cost_in(transcript, 0..entry)
}

/// Returns whether an old entry may be absorbed by a segment. An approximation of `Draft::may_absorb`.
pub(crate) fn is_foldable(transcript: &Transcript, ledger: &Ledger, policy: &Policy, i: usize) -> bool {
    let is_absorbable = match &transcript.entries()[i] {
        Entry::Step(step) => !step.calls.iter().any(|call| policy.never_folds(&call.tool)),
        Entry::Prompt(prompt) => prompt.speaker == Speaker::Harness,
    };
    is_absorbable && !ledger.pinned.contains(&EntryId::from(i)) && !transcript.is_running(EntryId::from(i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::economy::best_start;

    #[test]
    fn fold_starts_after_expensive_unfoldable_entries() {
        let prices = Prices { write: 1.25, read: 0.1, ..Prices::without_cache() };
        let economy = crate::Policy::fanfold().economy.expect("the preset folds for economy");
        let check = |unfoldable: u64, expected: usize| {
            let entries = [(Tokens(100), true), (Tokens(unfoldable), false), (Tokens(1_000), true)];
            let prefix = |n_entries: usize| CachedPrefix {
                n_entries,
                tokens: entries[..n_entries].iter().map(|(cost, _)| *cost).sum(),
            };
            let backlog =
                Backlog { foldable: Tokens(1_100), tail_tokens: Tokens(30), tail: 3, ..Backlog::default() };
            let cached_prefixes = (0..3).map(prefix).collect();
            let account = Account { n_requests: 100, backlog, cached_prefixes, ..Account::default() };
            let start = best_start(&account, &economy, &prices, entries.into_iter());
            assert_eq!(start, Some(expected), "{unfoldable}");
        };
        check(10, 0);
        check(500, 2);
    }
}
