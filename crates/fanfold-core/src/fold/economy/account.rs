//! What the requests of a session have cost, with folds and without, and what came since the last fold.
//!
//! A step of the model's tells that a request was made before it. So the account follows from the conversation, and a
//! replay arrives at the same figures as following it.

use crate::actions::tool_rule::ToolFold;
use crate::fold::economy::Economy;
use crate::fold::ledger::{Ledger, Standing};
use crate::fold::policy::Policy;
use crate::model::prices::{CacheBoundary, Prices};
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId, Speaker, Transcript};

/// What requests have cost, and what came since the last fold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// What the requests cost, in tokens at the base price.
    pub(crate) cost: f64,
    /// What they had cost without folds.
    pub(crate) whole_cost: f64,
    pub(crate) n_requests: u32,
    /// The view as it is now: what the next request sends.
    pub(crate) view: Tokens,
    /// Whether the provider has forgotten what was sent.
    pub(crate) is_cold: bool,
    /// Nothing is tried before the backlog has grown to this.
    pub(crate) wait: Tokens,
    pub(crate) backlog: Backlog,
    /// The whole conversation as it is now, and at the last request.
    whole: Tokens,
    whole_sent: Tokens,
    ends: Vec<End>,
    /// A breakpoint behind the newest segment, which the next request sets.
    mark: Option<End>,
    n_seen: usize,
    /// Whether the backlog has been looked through since something old changed.
    is_fresh: bool,
}

/// Where an earlier request ended, as the view still begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    n_entries: usize,
    tokens: Tokens,
}

/// What came since the newest segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    /// The first entry behind the newest segment.
    pub(crate) from: usize,
    /// The first of the newest entries, which stay.
    pub(crate) tail: usize,
    /// What the view costs before it.
    pub(crate) before: Tokens,
    /// What of it may go.
    pub(crate) may_go: Tokens,
    /// What of it must stay.
    pub(crate) stays: Tokens,
    /// What the newest entries cost.
    pub(crate) tail_tokens: Tokens,
    /// How many steps there are, the newest with them.
    pub(crate) n_steps: usize,
    n_tail_steps: usize,
    n_seen: usize,
}

impl Account {
    /// Takes note of the newest entry.
    pub(crate) fn see(&mut self, transcript: &Transcript, prices: &Prices) {
        let n_entries = transcript.len();
        if self.n_seen == n_entries {
            return;
        }
        self.n_seen = n_entries;
        let is_step = transcript.entries().last().is_some_and(|entry| entry.step().is_some());
        if is_step {
            self.charge(n_entries - 1, prices);
        }
    }

    /// Charges the request that was made when there were so many entries.
    fn charge(&mut self, n_entries: usize, prices: &Prices) {
        self.cost += self.next(self.view, self.cached(), prices);
        self.whole_cost += self.next(self.whole, self.whole_sent, prices);
        self.n_requests += 1;
        self.is_cold = false;
        if self.whole >= prices.minimum {
            self.whole_sent = self.whole;
        }
        if self.view >= prices.minimum {
            self.ends.extend(self.mark.take());
            self.ends.push(End { n_entries, tokens: self.view });
        }
    }

    /// What a request costs of which so much would be in the cache if that were warm.
    fn next(&self, tokens: Tokens, cached: Tokens, prices: &Prices) -> f64 {
        prices.request_cost(tokens, self.if_warm(tokens, cached))
    }

    /// What of a request is in the cache.
    fn if_warm(&self, tokens: Tokens, cached: Tokens) -> Tokens {
        if self.is_cold { Tokens::ZERO } else { cached.min(tokens) }
    }

    fn cached(&self) -> Tokens {
        self.ends.last().map_or(Tokens::ZERO, |end| end.tokens)
    }

    /// How much of the view is in the cache when it changes from an entry on.
    pub(crate) fn cached_before(&self, entry: usize) -> Tokens {
        let n_kept = self.ends.partition_point(|end| end.n_entries <= entry);
        self.ends[..n_kept].last().map_or(Tokens::ZERO, |end| end.tokens)
    }

    /// Whether all requests together stay under the limit if the next one sends a view of this length. What else is said
    /// before that, up to as much again, may lift it over a cliff.
    pub(crate) fn may_cost(&self, view: Tokens, cached: Tokens, economy: &Economy, prices: &Prices) -> bool {
        let next = |tokens, cached| prices.base_cost(tokens, self.if_warm(tokens, cached));
        let whole_next = next(self.whole, self.whole_sent);
        let more = next(view, cached) - whole_next;
        let cost =
            self.cost + whole_next + more * if more > 0.0 { prices.cliff_factor(view + view) } else { 1.0 };
        cost * 1000.0 <= (self.whole_cost + whole_next) * f64::from(economy.limit)
    }

    /// Whether they do with the view as it is.
    pub(crate) fn is_within(&self, economy: &Economy, prices: &Prices) -> bool {
        self.may_cost(self.view, self.cached(), economy, prices)
    }

    /// Takes note that the provider has forgotten what was sent.
    pub(crate) fn cool(&mut self) {
        self.is_cold = true;
        self.wait = Tokens::ZERO;
    }

    /// Takes note that anything may have changed.
    pub(crate) fn forget(&mut self) {
        self.ends.clear();
        self.mark = None;
        self.is_fresh = false;
    }

    /// Takes note of what the next request sends.
    pub(crate) fn close(&mut self, view: Tokens, whole: Tokens) {
        (self.view, self.whole) = (view, whole);
    }

    /// Takes note that a fold changed the view from an entry on. Says what the broken beginning costs, in tokens at the
    /// base price.
    pub(crate) fn broke(
        &mut self,
        transcript: &Transcript,
        ledger: &Ledger,
        first: usize,
        prices: &Prices,
    ) -> Tokens {
        let unsent = self.view - self.cached();
        let was_sent = self.ends.last().is_some_and(|end| end.n_entries > first);
        self.ends.truncate(self.ends.partition_point(|end| end.n_entries <= first));
        self.mark = None;
        if was_sent && prices.boundary == CacheBoundary::AnyMessage {
            self.ends.push(End { n_entries: first, tokens: until(transcript, ledger, first) });
        }
        let behind = behind_segments(ledger);
        if prices.boundary == CacheBoundary::Breakpoints
            && self.ends.last().is_none_or(|end| end.n_entries < behind)
        {
            self.mark = Some(End { n_entries: behind, tokens: until(transcript, ledger, behind) });
        }
        self.view = ledger.bare_total(transcript);
        self.is_fresh = false;
        self.wait = Tokens::ZERO;
        let written = self.view - self.cached() - unsent;
        let price = if self.is_cold { 0.0 } else { prices.write_surcharge() * written.0 as f64 };
        Tokens(price as u64)
    }

    /// Takes the newest entries into the backlog; looks through all of it only when something old has changed.
    pub(crate) fn grow(
        &mut self,
        transcript: &Transcript,
        ledger: &Ledger,
        policy: &Policy,
        economy: &Economy,
    ) {
        if !self.is_fresh {
            let first_step = transcript.entries().iter().position(|entry| entry.step().is_some());
            let Some(first_step) = first_step else { return };
            let from = behind_segments(ledger).max(first_step);
            let before = until(transcript, ledger, from);
            self.backlog = Backlog { from, tail: from, before, n_seen: from, ..Backlog::default() };
            self.is_fresh = true;
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
                let (oldest, of_oldest) = (backlog.tail, cost(backlog.tail));
                let has_enough = backlog.n_tail_steps - is_step(oldest) >= economy.steps
                    && backlog.tail_tokens - of_oldest >= economy.tail;
                if !has_enough {
                    break;
                }
                backlog.tail += 1;
                backlog.n_tail_steps -= is_step(oldest);
                backlog.tail_tokens -= of_oldest;
                match may_go(transcript, ledger, policy, oldest) {
                    true => backlog.may_go += of_oldest,
                    false => backlog.stays += of_oldest,
                }
            }
        }
    }
}

/// The first entry behind all segments.
pub(crate) fn behind_segments(ledger: &Ledger) -> usize {
    let last = ledger.standing.iter().rposition(|standing| matches!(standing, Standing::Segment(_)));
    last.map_or(0, |last| last + 1)
}

/// What the view costs before an entry.
fn until(transcript: &Transcript, ledger: &Ledger, entry: usize) -> Tokens {
    let entries: Tokens = (0..entry).map(|i| ledger.cost(transcript, EntryId::from(i))).sum();
    let parts = ledger.live_segments().flat_map(|segment| &segment.parts);
    transcript.overhead()
        + entries
        + parts.filter(|part| part.at.index() < entry).map(|part| part.tokens).sum()
}

/// Whether an old entry may go into a segment, as far as that can be told without a draft.
pub(crate) fn may_go(transcript: &Transcript, ledger: &Ledger, policy: &Policy, i: usize) -> bool {
    let is_never = |tool: &str| policy.tool(tool).is_some_and(|rule| rule.fold == ToolFold::Never);
    let is_free = match &transcript.entries()[i] {
        Entry::Step(step) => !step.calls.iter().any(|call| is_never(&call.tool)),
        Entry::Prompt(prompt) => prompt.speaker == Speaker::Harness,
    };
    is_free && !ledger.pinned.contains(&EntryId::from(i)) && !transcript.is_running(EntryId::from(i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::economy::start;

    #[test]
    fn what_is_dear_to_keep_stands_before_the_start() {
        let prices = Prices { write: 1.25, read: 0.1, ..Prices::without_cache() };
        let economy = crate::Policy::fanfold().economy.expect("it folds for economy");
        let check = |kept: u64, expected: usize| {
            let entries = [(Tokens(100), true), (Tokens(kept), false), (Tokens(1_000), true)];
            let end = |n_entries: usize| End {
                n_entries,
                tokens: entries[..n_entries].iter().map(|(cost, _)| *cost).sum(),
            };
            let backlog =
                Backlog { may_go: Tokens(1_100), tail_tokens: Tokens(30), tail: 3, ..Backlog::default() };
            let ends = (0..3).map(end).collect();
            let account = Account { n_requests: 100, backlog, ends, ..Account::default() };
            assert_eq!(start(&account, &economy, &prices, entries.into_iter()), Some(expected), "{kept}");
        };
        check(10, 0);
        check(500, 2);
    }
}
