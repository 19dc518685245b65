//! Folding for economy: decides when a fold pays for itself, from the prices and the past requests.
//!
//! A request reads its prefix from the provider's cache and writes the rest, at ten to fifty times the price. A fold
//! invalidates a part of the cached prefix, which costs once, and makes all later requests shorter. With a tail of T
//! tokens, a growth of g tokens per request, a removable share f of the growth, and prices w to write and r to read, it
//! is cheapest to fold every k* = sqrt(2(w−r)T / (r·f·g)) requests, that is, whenever f·k*·g tokens can be removed.
//!
//! ```text
//! head   segments   newer entries     tail
//! ------------------|----- backlog ---|-- T --|
//!      in the cache ^ from            ^ tail
//! ```
//!
//! The length of a conversation is unknown, and a fold right before its end does not pay. So folds are paid from
//! earlier savings: at every request, the total cost so far is at most the total cost without folds. The first savings
//! come from the pass `again`, which removes visible lines from new results before they are sent, so that no cache is
//! invalidated.
//!
//! Removed content that is needed later costs a recall: one more request. The scorer's probability of use times that
//! price is part of the price of a fold. It decides how large the segment is that replaces the folded entries, and a
//! fold that saves less is not made.

pub(crate) mod account;

use std::fmt;

use crate::fold::economy::account::Account;
use crate::fold::passes;
use crate::fold::policy::{SegmentPrices, SegmentSize, Stage};
use crate::model::prices::Prices;
use crate::model::tokens::Tokens;

/// The number of uses that one recall serves, because an agent uses several texts of one place in one step. Chosen
/// with `fanfold replay`.
const USES_PER_RECALL: f64 = 2.8;

/// The settings of folding for economy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Economy {
    /// The minimum size of the tail.
    pub tail: Tokens,
    /// The minimum number of steps in the tail.
    pub min_steps: usize,
    /// The expected size of a segment relative to the folded entries, in per mille; its size if losses have no weight.
    pub kept_share: u32,
    /// The size of a fold up to which `kept_share` applies. The share is smaller for larger folds.
    pub full_share_limit: Tokens,
    /// The minimum saving of a fold.
    pub min_saving: Tokens,
    /// The saving that triggers a fold, in per mille of the cheapest one. Above 1000, the original text stays longer at
    /// a small price.
    pub delay: u32,
    /// The maximum number of requests after which a fold must have paid for itself.
    pub max_payback_requests: u32,
    /// The minimum size of visible lines to remove from a new result.
    pub min_repeat: Tokens,
    /// The maximum total cost at any time, in per mille of the total cost without folds.
    pub cost_limit: u32,
    /// The weight of the recalls that a fold is expected to cause, in per mille of their price. Zero ignores them.
    pub loss_weight: u32,
}

impl Economy {
    /// Limits the tail to a quarter of the room.
    pub(crate) fn limited_to(self, room: Tokens) -> Economy {
        Economy { tail: self.tail.min(room.permille(250)), ..self }
    }

    /// The size of the segment for folded entries of a given size.
    pub(crate) fn segment_size(&self, folded: Tokens) -> Tokens {
        let share = folded.permille(self.kept_share);
        if folded <= self.full_share_limit {
            return share;
        }
        Tokens((float(share) * (float(self.full_share_limit) / float(folded)).sqrt()) as u64)
    }

    /// The size of the segment relative to the folded entries, in per mille.
    fn segment_share(&self, folded: Tokens) -> u32 {
        (self.segment_size(folded).0 * 1000 / folded.0.max(1)) as u32
    }

    /// The stage of a fold for economy, which adds a segment after the existing ones.
    pub(crate) fn stage(&self, account: &Account, prices: &Prices) -> Stage {
        let passes = vec![passes::MEDIA, passes::ANCHOR, passes::DIGEST];
        let segment_size = match self.loss_weight {
            0 => SegmentSize::Share(self.segment_share(account.backlog.foldable)),
            _ => SegmentSize::Cheapest(SegmentPrices {
                per_token: prices.write_surcharge() + n_expected_requests(account) * prices.read,
                per_use: self.use_price(account.view, prices),
            }),
        };
        Stage { tail: 0, segment_size: Some(segment_size), ..Stage::new("economy", passes) }
    }

    /// The price of each expected use of content that is not in the view: a share of a recall, with its weight.
    pub(crate) fn use_price(&self, view: Tokens, prices: &Prices) -> f64 {
        let weight = f64::from(self.loss_weight) / 1000.0;
        weight * prices.recall_cost(view) / USES_PER_RECALL
    }

    /// Returns whether a fold saves more, in the requests that are expected, than its expected recalls cost.
    /// `rewriting` is the extra price of writing the view again.
    pub(crate) fn exceeds_loss(
        &self,
        account: &Account,
        prices: &Prices,
        (removed, rewriting): (Tokens, Tokens),
        loss: f64,
    ) -> bool {
        let saving = n_expected_requests(account) * prices.read * float(removed) - float(rewriting);
        self.loss_weight == 0 || saving > loss
    }

    /// The settings of the quality `economy`: the lowest bill, without a price for losses.
    pub(crate) fn ignoring_losses(self) -> Economy {
        Economy { tail: Tokens(1_500), delay: 1400, loss_weight: 0, ..self }
    }
}

/// The decision whether to fold for economy now, with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldEstimate {
    /// The tokens that a fold would save.
    pub saving: Tokens,
    /// The saving that triggers a fold.
    pub due_at: Tokens,
    /// The number of requests after which a fold would have paid for itself.
    pub n_payback_requests: u32,
    /// The decision.
    pub decision: FoldDecision,
}

/// The decision for or against a fold for economy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldDecision {
    /// Fold: it pays for itself.
    Pays,
    /// Fold: the cache has expired, so folding costs nothing.
    Cold,
    /// Fold: requests above this size have a higher price.
    Cliff(Tokens),
    /// Wait: the saving is too small.
    TooLittle,
    /// Wait: it would take too many requests to pay for itself.
    TooLate,
    /// Wait: it would cost more than folds have saved before.
    TooExpensive,
}

impl FoldDecision {
    /// Returns whether to fold.
    pub(crate) fn is_fold(self) -> bool {
        matches!(self, FoldDecision::Pays | FoldDecision::Cold | FoldDecision::Cliff(_))
    }
}

impl fmt::Display for FoldEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FoldEstimate { saving, due_at, n_payback_requests, decision } = self;
        let calls = if *n_payback_requests == 1 { "call" } else { "calls" };
        match decision {
            FoldDecision::Pays if *n_payback_requests == 0 => {
                write!(f, "the backlog of {saving} tokens has reached {due_at}: folding pays at once")
            }
            FoldDecision::Pays => write!(
                f,
                "the backlog of {saving} tokens has reached {due_at}: folding pays within {n_payback_requests} {calls}"
            ),
            FoldDecision::Cold => write!(f, "the cache is cold, so folding {saving} tokens costs nothing"),
            FoldDecision::Cliff(above) => write!(f, "requests above {above} tokens cost more"),
            FoldDecision::TooLittle => {
                write!(f, "waiting: the backlog of {saving} tokens has not reached {due_at}")
            }
            FoldDecision::TooLate => write!(
                f,
                "waiting: folding the backlog of {saving} tokens would only pay within {n_payback_requests} {calls}"
            ),
            FoldDecision::TooExpensive => write!(
                f,
                "waiting: folding the backlog of {saving} tokens now would cost more than was saved so far"
            ),
        }
    }
}

/// Estimates whether a fold of the backlog pays now.
pub(crate) fn estimate_fold(account: &Account, economy: &Economy, prices: &Prices) -> FoldEstimate {
    let backlog = &account.backlog;
    let removed = backlog.foldable - economy.segment_size(backlog.foldable);
    let kept = backlog.foldable - removed + backlog.unfoldable;
    // Entries before the backlog are also written again, unless a cached prefix ends there.
    let unmatched = backlog.before - account.cached_before(backlog.from);
    let always_rewritten = float(backlog.tail_tokens + unmatched);
    let span = float(backlog.foldable + backlog.unfoldable);
    let (write, read) = (prices.write_surcharge(), prices.read.max(1e-6));
    let growth = (span + float(backlog.tail_tokens)) / backlog.n_steps.max(1) as f64;
    let share = if span > 0.0 { float(removed) / span } else { 0.0 };
    let cheapest = (2.0 * write * always_rewritten * share * growth / read).sqrt();
    let due_at = Tokens(cheapest as u64).permille(economy.delay).max(economy.min_saving);
    let price = write * (float(kept) + always_rewritten);
    let n_payback_requests = (price / (read * float(removed)).max(1.0)).ceil() - 1.0;
    let n_payback_requests = n_payback_requests.clamp(0.0, 1e6) as u32;
    let after = account.view - removed;
    let next_cliff =
        prices.cliff_above(after).filter(|cliff| float(account.view) + growth > float(cliff.above));
    let is_little = removed < economy.min_saving.max(account.min_saving) || after < prices.minimum;
    let decision = match next_cliff {
        _ if is_little => FoldDecision::TooLittle,
        _ if !account.is_affordable(after, account.cached_before(backlog.from), economy, prices) => {
            FoldDecision::TooExpensive
        }
        _ if account.is_cold => FoldDecision::Cold,
        Some(cliff) => FoldDecision::Cliff(cliff.above),
        None if removed < due_at => FoldDecision::TooLittle,
        None if n_payback_requests > max_payback_requests(account, economy) => FoldDecision::TooLate,
        None => FoldDecision::Pays,
    };
    FoldEstimate { saving: removed, due_at, n_payback_requests, decision }
}

/// The number of requests after which a fold must have paid for itself: half of the past requests, up to a limit.
fn max_payback_requests(account: &Account, economy: &Economy) -> u32 {
    economy.max_payback_requests.min(account.n_requests / 2)
}

/// The best first entry of a fold. Each entry from there on counts with the savings of its fold, minus the price of
/// writing it again. None if no fold saves anything.
pub(crate) fn best_start(
    account: &Account,
    economy: &Economy,
    prices: &Prices,
    costs: impl Iterator<Item = (Tokens, bool)>,
) -> Option<usize> {
    let from = account.backlog.from;
    let (write, read) = (prices.write_surcharge(), prices.read);
    let n_requests = f64::from(max_payback_requests(account, economy));
    let entries: Vec<(Tokens, bool)> = costs.collect();
    let mut before: Tokens = account.backlog.before + entries.iter().map(|(cost, _)| *cost).sum();
    let mut sum = -write * float(account.backlog.tail_tokens);
    let keep = economy.segment_share(account.backlog.foldable);
    let mut best = (0.0, None);
    for (i, (cost, is_foldable)) in entries.iter().enumerate().rev() {
        before -= *cost;
        let removed = if *is_foldable { *cost - cost.permille(keep) } else { Tokens::ZERO };
        sum += (n_requests + 1.0) * read * float(removed) - write * float(*cost - removed);
        let unmatched = before - account.cached_before(from + i);
        let saving = sum - write * float(unmatched);
        if *is_foldable && (saving > best.0 || account.is_cold && best.1.is_none()) {
            best = (saving, Some(from + i));
        }
    }
    best.1
}

/// The number of requests that are expected to follow: half of the past ones, and at least twenty.
fn n_expected_requests(account: &Account) -> f64 {
    f64::from((account.n_requests / 2).max(20))
}

fn float(tokens: Tokens) -> f64 {
    tokens.0 as f64
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::fold::policy::Policy;
    use crate::model::budget::Budget;
    use crate::model::event::Event;
    use crate::model::prices::PriceCliff;
    use crate::model::tokens::Words;
    use crate::notation::parse;
    use crate::session::Session;

    const SMALL: Economy = Economy {
        tail: Tokens(30),
        min_steps: 1,
        kept_share: 200,
        full_share_limit: Tokens(200),
        min_saving: Tokens(40),
        delay: 1000,
        max_payback_requests: 25,
        min_repeat: Tokens(40),
        cost_limit: 1050,
        loss_weight: 0,
    };

    fn cache_prices() -> Prices {
        Prices { write: 1.25, read: 0.1, ..Prices::without_cache() }
    }

    /// A session of `n_steps` steps of about thirty words each.
    fn session(n_steps: usize, prices: Prices) -> Session<'static> {
        session_of(Policy { economy: Some(SMALL), ..Policy::fanfold() }, n_steps, prices)
    }

    fn session_of(policy: Policy, n_steps: usize, prices: Prices) -> Session<'static> {
        let budget = Budget::with_reserve(Tokens(100_000), Tokens::ZERO);
        let mut session = Session::new(policy, budget, &Words).with_prices(prices);
        let mut text = "user    mend the parser\n".to_owned();
        for i in 0..n_steps {
            let words = format!("line {i} of a file that is long enough to be folded ").repeat(2);
            text.push_str(&format!("call    read file_{i}.rs\nresult  {words}\n"));
        }
        for entry in parse(&text).expect("valid notation") {
            session.append(entry);
        }
        session.view().expect("everything fits");
        session
    }

    fn check_last_reason(session: &Session<'_>, expected: &Expect) {
        let receipt = session.ledger().receipts().last();
        expected.assert_eq(&receipt.map_or_else(|| "none".to_owned(), |last| last.reason.to_string()));
    }

    #[test]
    fn waits_until_folding_pays() {
        let waiting = session(6, cache_prices());
        check_last_reason(&waiting, &expect!["none"]);
        expect!["waiting: folding the backlog of 84 tokens now would cost more than was saved so far"]
            .assert_eq(&waiting.weighed().expect("there are prices").to_string());
        let folded = session(60, cache_prices());
        check_last_reason(
            &folded,
            &expect!["the backlog of 192 tokens has reached 182: folding pays within 6 calls"],
        );
    }

    #[test]
    fn folding_is_free_with_a_cold_cache() {
        let mut session = session(6, cache_prices());
        session.apply(Event::CacheExpired);
        check_last_reason(&session, &expect!["the cache is cold, so folding 84 tokens costs nothing"]);
        assert_eq!(session.ledger().receipts()[0].price, Some(Tokens::ZERO));
    }

    #[test]
    fn folds_before_a_price_cliff() {
        let cliffs = vec![PriceCliff { above: Tokens(400), factor: 2.0 }];
        let economy = Economy { cost_limit: 1500, delay: 100_000, ..SMALL };
        let policy = Policy { economy: Some(economy), ..Policy::fanfold() };
        let prices = Prices { cliffs, ..cache_prices() };
        check_last_reason(
            &session_of(policy, 16, prices.clone()),
            &expect!["requests above 400 tokens cost more"],
        );
        // Above the cliff, a fold without immediate savings costs twice as much.
        check_last_reason(&session(16, prices), &expect!["none"]);
    }

    #[test]
    fn every_fold_pays_without_a_cache() {
        check_last_reason(
            &session(8, Prices::without_cache()),
            &expect!["the backlog of 42 tokens has reached 40: folding pays at once"],
        );
    }

    #[test]
    fn keeps_a_smaller_share_of_larger_folds() {
        let sizes = [100, 200, 800, 3_200].map(|folded| SMALL.segment_size(Tokens(folded)).0);
        assert_eq!(sizes, [20, 40, 80, 160]);
    }
}
