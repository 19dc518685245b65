//! When a fold pays: what requests have cost, what could be folded, and whether that is enough.
//!
//! A request reads what the provider has in its cache and writes the rest, which costs ten to fifty times as much. A fold
//! breaks the cached beginning, so it has a price; behind it every request is shorter. With T tokens of newest entries,
//! g tokens of growth per request of which a share f can be removed, and prices w to write and r to read, folding every
//! k* = sqrt(2(w−r)T / (r·f·g)) requests is cheapest: whenever f·k*·g tokens can be removed.
//!
//! ```text
//! head   segments   what came since   newest
//! ------------------|----- backlog ---|-- T --|
//!      in the cache ^ from            ^ tail
//! ```
//!
//! How long a conversation goes on can't be foreseen, and one that ends right behind a fold has paid for nothing. So a fold
//! is paid from what was saved before: at no request have all of them together cost more than without folds. The first
//! savings are lines that stand in view already, which are left out of results before they are sent for the first time
//! (pass `again`): that breaks no cache.

pub(crate) mod account;

use std::fmt;

use crate::fold::economy::account::Account;
use crate::fold::passes;
use crate::fold::policy::Stage;
use crate::model::prices::Prices;
use crate::model::tokens::Tokens;

/// How a policy folds for economy. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Economy {
    /// The newest entries that stay, in tokens.
    pub tail: Tokens,
    /// At least so many steps stay.
    pub steps: usize,
    /// How much of what is folded stands in the segment, in per mille.
    pub keep: u32,
    /// Up to this much folded at once that share holds; of more, less is kept.
    pub usual: Tokens,
    /// A fold removes at least so much.
    pub least: Tokens,
    /// The backlog is let grow to this, in per mille of what is cheapest: original words are worth the last per cent.
    pub patience: u32,
    /// A fold pays within so many requests, or it is not made.
    pub horizon: u32,
    /// Lines that stand in view already are left out of a result where that leaves out at least so much.
    pub again: Tokens,
    /// What all requests may have cost at any time, in per mille of what they had cost without folds.
    pub limit: u32,
}

impl Economy {
    /// The same with no more of the newest entries than a quarter of the room.
    pub(crate) fn within(self, room: Tokens) -> Economy {
        Economy { tail: self.tail.min(room.permille(250)), ..self }
    }

    /// How much of folded entries stands in their segment: a share, less of it the more there is.
    pub(crate) fn kept(&self, folded: Tokens) -> Tokens {
        let share = folded.permille(self.keep);
        if folded <= self.usual {
            return share;
        }
        Tokens((float(share) * (float(self.usual) / float(folded)).sqrt()) as u64)
    }

    /// The same as a share, in per mille.
    fn keep_of(&self, folded: Tokens) -> u32 {
        (self.kept(folded).0 * 1000 / folded.0.max(1)) as u32
    }

    /// What a fold for economy does: a segment of its own behind those that are there.
    pub(crate) fn stage(&self, folded: Tokens) -> Stage {
        let passes = vec![passes::MEDIA, passes::ANCHOR, passes::DIGEST];
        Stage { tail: 0, keep: Some(self.keep_of(folded)), ..Stage::new("economy", passes) }
    }
}

/// Whether a fold pays now, and the figures behind that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighed {
    /// What a fold would remove.
    pub backlog: Tokens,
    /// What it must reach.
    pub enough: Tokens,
    /// Within how many requests folding now would pay.
    pub pays_in: u32,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What weighing a fold comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It pays.
    Pays,
    /// The cache is cold, so it costs nothing.
    Cold,
    /// Requests longer than this cost more.
    Cliff(Tokens),
    /// There is too little to remove yet.
    TooLittle,
    /// It would pay too late.
    TooLate,
    /// It would cost more than was saved so far.
    TooDear,
}

impl Verdict {
    /// Whether it is for a fold.
    pub fn is_fold(self) -> bool {
        matches!(self, Verdict::Pays | Verdict::Cold | Verdict::Cliff(_))
    }
}

impl fmt::Display for Weighed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weighed { backlog, enough, pays_in, verdict } = self;
        let calls = if *pays_in == 1 { "call" } else { "calls" };
        match verdict {
            Verdict::Pays if *pays_in == 0 => {
                write!(f, "the backlog of {backlog} tokens has reached {enough}: folding pays at once")
            }
            Verdict::Pays => write!(
                f,
                "the backlog of {backlog} tokens has reached {enough}: folding pays within {pays_in} {calls}"
            ),
            Verdict::Cold => write!(f, "the cache is cold, so folding {backlog} tokens costs nothing"),
            Verdict::Cliff(above) => write!(f, "requests above {above} tokens cost more"),
            Verdict::TooLittle => {
                write!(f, "waiting: the backlog of {backlog} tokens has not reached {enough}")
            }
            Verdict::TooLate => write!(
                f,
                "waiting: folding the backlog of {backlog} tokens would only pay within {pays_in} {calls}"
            ),
            Verdict::TooDear => write!(
                f,
                "waiting: folding the backlog of {backlog} tokens now would cost more than was saved so far"
            ),
        }
    }
}

/// Weighs a fold of what came since the last one.
pub(crate) fn weigh(account: &Account, economy: &Economy, prices: &Prices) -> Weighed {
    let backlog = &account.backlog;
    let removed = backlog.may_go - economy.kept(backlog.may_go);
    let kept = backlog.may_go - removed + backlog.stays;
    // What stands before the backlog is written again, too, where the provider can't match up to there.
    let unmatched = backlog.before - account.cached_before(backlog.from);
    let always = float(backlog.tail_tokens + unmatched);
    let span = float(backlog.may_go + backlog.stays);
    let (write, read) = (prices.write_surcharge(), prices.read.max(1e-6));
    let growth = (span + float(backlog.tail_tokens)) / backlog.n_steps.max(1) as f64;
    let share = if span > 0.0 { float(removed) / span } else { 0.0 };
    let best = (2.0 * write * always * share * growth / read).sqrt();
    let enough = Tokens(best as u64).permille(economy.patience).max(economy.least);
    let rewritten = write * (float(kept) + always);
    let pays_in = (rewritten / (read * float(removed)).max(1.0)).ceil() - 1.0;
    let pays_in = pays_in.clamp(0.0, 1e6) as u32;
    let after = account.view - removed;
    let ahead = prices.cliff_above(after).filter(|cliff| float(account.view) + growth > float(cliff.above));
    let is_little = removed < economy.least.max(account.wait) || after < prices.minimum;
    let verdict = match ahead {
        _ if is_little => Verdict::TooLittle,
        _ if !account.may_cost(after, account.cached_before(backlog.from), economy, prices) => {
            Verdict::TooDear
        }
        _ if account.is_cold => Verdict::Cold,
        Some(cliff) => Verdict::Cliff(cliff.above),
        None if removed < enough => Verdict::TooLittle,
        None if pays_in > horizon(account, economy) => Verdict::TooLate,
        None => Verdict::Pays,
    };
    Weighed { backlog: removed, enough, pays_in, verdict }
}

/// Within how many requests a fold must pay: half as many as there were, up to a limit.
fn horizon(account: &Account, economy: &Economy) -> u32 {
    economy.horizon.min(account.n_requests / 2)
}

/// The entry from which on folding wins most: the largest sum, over what comes behind it, of what each entry saves when
/// it goes less what it costs when it is written again. None if nothing is won.
pub(crate) fn start(
    account: &Account,
    economy: &Economy,
    prices: &Prices,
    costs: impl Iterator<Item = (Tokens, bool)>,
) -> Option<usize> {
    let from = account.backlog.from;
    let (write, read) = (prices.write_surcharge(), prices.read);
    let n = f64::from(horizon(account, economy));
    let entries: Vec<(Tokens, bool)> = costs.collect();
    let mut before: Tokens = account.backlog.before + entries.iter().map(|(cost, _)| *cost).sum();
    let mut sum = -write * float(account.backlog.tail_tokens);
    let keep = economy.keep_of(account.backlog.may_go);
    let mut best = (0.0, None);
    for (i, (cost, may_go)) in entries.iter().enumerate().rev() {
        before -= *cost;
        let removed = if *may_go { *cost - cost.permille(keep) } else { Tokens::ZERO };
        sum += (n + 1.0) * read * float(removed) - write * float(*cost - removed);
        let unmatched = before - account.cached_before(from + i);
        let won = sum - write * float(unmatched);
        if *may_go && (won > best.0 || account.is_cold && best.1.is_none()) {
            best = (won, Some(from + i));
        }
    }
    best.1
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
        steps: 1,
        keep: 200,
        usual: Tokens(200),
        least: Tokens(40),
        patience: 1000,
        horizon: 25,
        again: Tokens(40),
        limit: 1050,
    };

    fn classic() -> Prices {
        Prices { write: 1.25, read: 0.1, ..Prices::without_cache() }
    }

    /// A session of so many steps of about thirty words.
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
        for entry in parse(&text).expect("the notation is right") {
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
    fn it_waits_until_folding_pays() {
        let waiting = session(6, classic());
        check_last_reason(&waiting, &expect!["none"]);
        expect!["waiting: folding the backlog of 84 tokens now would cost more than was saved so far"]
            .assert_eq(&waiting.weighed().expect("there are prices").to_string());
        let folded = session(60, classic());
        check_last_reason(
            &folded,
            &expect!["the backlog of 192 tokens has reached 186: folding pays within 6 calls"],
        );
    }

    #[test]
    fn a_cold_cache_makes_a_fold_free() {
        let mut session = session(6, classic());
        session.apply(Event::CacheExpired);
        check_last_reason(&session, &expect!["the cache is cold, so folding 84 tokens costs nothing"]);
        assert_eq!(session.ledger().receipts()[0].price, Some(Tokens::ZERO));
    }

    #[test]
    fn a_cliff_ahead_is_a_reason() {
        let cliffs = vec![PriceCliff { above: Tokens(400), factor: 2.0 }];
        let economy = Economy { limit: 1500, patience: 100_000, ..SMALL };
        let policy = Policy { economy: Some(economy), ..Policy::fanfold() };
        let prices = Prices { cliffs, ..classic() };
        check_last_reason(
            &session_of(policy, 16, prices.clone()),
            &expect!["requests above 400 tokens cost more"],
        );
        // Behind it, a fold that saves nothing at once costs twice as much.
        check_last_reason(&session(16, prices), &expect!["none"]);
    }

    #[test]
    fn without_a_cache_every_fold_pays() {
        check_last_reason(
            &session(8, Prices::without_cache()),
            &expect!["the backlog of 42 tokens has reached 40: folding pays at once"],
        );
    }

    #[test]
    fn less_is_kept_of_more() {
        let kept = [100, 200, 800, 3_200].map(|folded| SMALL.kept(Tokens(folded)).0);
        assert_eq!(kept, [20, 40, 80, 160]);
    }
}
