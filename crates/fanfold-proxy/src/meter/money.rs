//! What a request cost, and what it would have cost the other way: folded, or as it came.
//!
//! The way it went is charged by what the provider reports. The other way is charged by the same prices and the cost
//! model of `fanfold replay`: the beginning that the request before had is read from the cache, the rest is written.
//! How warm the cache was is taken from what was reported, so a cache that had gone cold is not counted as won or lost.
//! A fold that broke the cached beginning pays for it here: the other way had gone on reading.

use std::time::Duration;

use fanfold_replay::{CacheMatch, Price};

/// What a provider reports of a request, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// All of the input: read from the cache, written to it, and neither.
    pub input: u64,
    /// Of that, read from the cache.
    pub read: u64,
    /// Of that, written to the cache; none if the provider does not say.
    pub written: Option<u64>,
    /// The answer.
    pub output: u64,
}

/// What a request cost both ways, in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Money {
    /// As it came.
    pub(super) came: f64,
    /// As it is folded.
    pub(super) sent: f64,
}

impl Money {
    /// What folding saves; less than nothing where it costs more.
    pub(super) fn saved(self) -> f64 {
        self.came - self.sent
    }

    pub(super) fn add(&mut self, other: Money) {
        self.came += other.came;
        self.sent += other.sent;
    }
}

/// One request, to be charged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    /// As it came, in tokens by our count.
    pub(super) came: u64,
    /// As it is folded, in tokens by our count.
    pub(super) sent: u64,
    /// How much of `sent`, from its beginning on, was there before; none if all was that there was.
    pub(super) shared: Option<u64>,
    /// Which of the two left.
    pub(super) went: Way,
    /// What the provider reports of the one that left.
    pub(super) used: Option<Used>,
    /// When, since the meter began.
    pub(super) at: Duration,
}

/// Which of the two bodies left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Folded,
    AsItCame,
}

/// The requests of a session until now, as far as the next one's cost depends on them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    came: u64,
    sent: u64,
    at: Duration,
}

/// One way to send a request.
#[derive(Debug, Clone, Copy)]
struct Side {
    tokens: u64,
    /// What a warm cache has of it.
    cached: u64,
}

impl Account {
    /// What a request costs both ways.
    pub(super) fn charge(&mut self, price: &Price, charge: &Charge) -> Money {
        let last = self.last.replace(Last { came: charge.came, sent: charge.sent, at: charge.at });
        let is_alive = |last: &Last| {
            price.lifetime.is_none_or(|life| charge.at.saturating_sub(last.at) <= Duration::from_secs(life))
        };
        let warm = last.filter(is_alive);
        let came = Side { tokens: charge.came, cached: warm.map_or(0, |last| last.came.min(charge.came)) };
        let before = warm.map_or(0, |last| last.sent.min(charge.sent));
        let sent =
            Side { tokens: charge.sent, cached: charge.shared.map_or(before, |shared| shared.min(before)) };
        let (went, other) = match charge.went {
            Way::Folded => (sent, came),
            Way::AsItCame => (came, sent),
        };
        let (went, other) = match charge.used {
            Some(used) => (reported(price, &used), the_other(price, went, other, &used, last.is_some())),
            None => (modelled(price, went, 0), modelled(price, other, 0)),
        };
        match charge.went {
            Way::Folded => Money { came: other, sent: went },
            Way::AsItCame => Money { came: went, sent: other },
        }
    }
}

/// What is reported, at its price.
pub(super) fn reported(price: &Price, used: &Used) -> f64 {
    let (base, output) = price.at(used.input);
    let read = used.read.min(used.input);
    let rest = used.input - read;
    let written = used.written.unwrap_or(if is_written(price, used.input) { rest } else { 0 }).min(rest);
    let input = price.read * read as f64 + price.write * written as f64 + (rest - written) as f64;
    (base * input + output * used.output as f64) / 1e6
}

/// What the way that was not gone had cost, by what is reported of the one that was.
fn the_other(price: &Price, went: Side, other: Side, used: &Used, has_last: bool) -> f64 {
    // Providers count a little differently than we do, and both ways alike.
    let scale = if went.tokens == 0 { 1.0 } else { used.input as f64 / went.tokens as f64 };
    let tokens = (other.tokens as f64 * scale).round() as u64;
    // Without marks a cache that wants them is not used, whichever way is gone.
    let is_unused = price.matching == CacheMatch::Marks && used.read == 0 && used.written == Some(0);
    let expected = went.cached as f64 * scale;
    let is_telling = went.cached >= price.minimum.max(1);
    let read = if is_unused {
        0.0
    } else if is_telling {
        let warmth = (used.read as f64 / expected).min(1.0);
        other.cached as f64 * scale * warmth
    } else if has_last {
        // The fold left nothing that could tell, so the cache is taken as warm: the break is ours.
        other.cached as f64 * scale
    } else {
        // The first request that is seen of a session: what others have left in the cache.
        let share = used.read as f64 / used.input.max(1) as f64;
        if other.tokens > went.tokens { tokens as f64 * share } else { used.read as f64 }
    };
    let read = (read.round() as u64).min(tokens);
    let written = if is_unused { Some(0) } else { None };
    let read = if read < price.minimum { 0 } else { read };
    reported(price, &Used { input: tokens, read, written, output: used.output })
}

/// What a request costs that nothing is reported of.
fn modelled(price: &Price, side: Side, output: u64) -> f64 {
    let read = side.cached / price.step * price.step;
    let read = if read < price.minimum || price.matching == CacheMatch::None { 0 } else { read };
    reported(price, &Used { input: side.tokens, read, written: None, output })
}

/// Whether a request of this length is written to the cache.
fn is_written(price: &Price, tokens: u64) -> bool {
    price.matching != CacheMatch::None && tokens >= price.minimum
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_replay::{ChargedRequest, CostMeter, PriceTable, RequestPiece};

    /// A price of one dollar a token, written at 1.25 and read at 0.1.
    fn price(matching: CacheMatch) -> Price {
        let prices = PriceTable::built_in();
        let none = prices.find("none").expect("it is in the table").price.clone();
        Price { base: 1e6, output: 5e6, write: 1.25, read: 0.1, matching, ..none }
    }

    /// Each message is a letter and a hundred tokens long.
    fn request(text: &str) -> ChargedRequest {
        let piece = |c: char| RequestPiece { print: u64::from(u32::from(c)), tokens: 100 };
        ChargedRequest { pieces: text.chars().map(piece).collect(), ..ChargedRequest::default() }
    }

    fn n_shared(before: &str, now: &str) -> usize {
        before.chars().zip(now.chars()).take_while(|(a, b)| a == b).count()
    }

    /// A conversation as it came and as it was folded, request by request.
    const STORY: [(&str, &str); 6] = [
        ("ab", "ab"),
        ("abcd", "abcd"),
        ("abcdefg", "aXfg"),
        ("abcdefghi", "aXfghi"),
        ("abcdefghijkl", "aXYkl"),
        ("abcdefghijklmn", "aXYklmn"),
    ];

    /// Charges the story, told or not told what a provider reports of it, whose cache is like that of `fanfold replay`.
    fn check(price: &Price, went: Way, is_told: bool) {
        let mut came = CostMeter::new(price.clone());
        let mut sent = CostMeter::new(price.clone());
        let mut account = Account::default();
        let mut sum = Money::default();
        let mut before = "";
        for (whole, folded) in STORY {
            let (of_came, of_sent) = (came.charge(&request(whole)), sent.charge(&request(folded)));
            let gone = if went == Way::Folded { of_sent } else { of_came };
            let used = Used { input: gone.tokens, read: gone.read, written: None, output: 0 };
            let n_shared = n_shared(before, folded);
            let charge = Charge {
                came: of_came.tokens,
                sent: of_sent.tokens,
                shared: (n_shared < before.len()).then_some(n_shared as u64 * 100),
                went,
                used: is_told.then_some(used),
                at: Duration::ZERO,
            };
            sum.add(account.charge(price, &charge));
            before = folded;
        }
        let expected = Money { came: came.bill().dollars, sent: sent.bill().dollars };
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(is_near(sum.came, expected.came), "came {} is not {}", sum.came, expected.came);
        assert!(is_near(sum.sent, expected.sent), "sent {} is not {}", sum.sent, expected.sent);
    }

    #[test]
    fn the_cost_is_that_of_a_replay() {
        for is_told in [false, true] {
            for went in [Way::Folded, Way::AsItCame] {
                check(&price(CacheMatch::Prefix), went, is_told);
                check(&price(CacheMatch::None), went, is_told);
                check(&Price { minimum: 250, ..price(CacheMatch::Prefix) }, went, is_told);
            }
        }
    }

    fn charge(came: u64, sent: u64, used: Used) -> Charge {
        Charge { came, sent, shared: None, went: Way::Folded, used: Some(used), at: Duration::ZERO }
    }

    #[test]
    fn what_is_reported_wins_over_what_is_counted() {
        // The provider counts twice as much as we do, so the other way is twice as long, too.
        let used = Used { input: 200, read: 0, written: Some(200), output: 10 };
        let money = Account::default().charge(&price(CacheMatch::Marks), &charge(300, 100, used));
        assert_eq!(money, Money { came: 750.0 + 50.0, sent: 250.0 + 50.0 });
    }

    #[test]
    fn a_cache_that_nobody_asked_for_is_not_charged() {
        let used = Used { input: 100, read: 0, written: Some(0), output: 0 };
        let mut account = Account::default();
        for _ in 0..2 {
            let money = account.charge(&price(CacheMatch::Marks), &charge(300, 100, used));
            assert_eq!(money, Money { came: 300.0, sent: 100.0 });
        }
    }

    #[test]
    fn a_cache_that_went_cold_is_cold_both_ways() {
        let mut account = Account::default();
        let price = price(CacheMatch::Prefix);
        account.charge(&price, &charge(1000, 500, Used { input: 500, ..Used::default() }));
        let cold = account.charge(&price, &charge(1100, 600, Used { input: 600, ..Used::default() }));
        assert_eq!(cold, Money { came: 1375.0, sent: 750.0 });
        let warm = Used { input: 700, read: 600, ..Used::default() };
        let warm = account.charge(&price, &charge(1200, 700, warm));
        assert_eq!(warm, Money { came: 110.0 + 125.0, sent: 60.0 + 125.0 });
    }

    #[test]
    fn a_fold_that_breaks_a_warm_beginning_can_cost_more_than_it_saves() {
        let mut account = Account::default();
        let price = price(CacheMatch::Prefix);
        account.charge(&price, &charge(1000, 1000, Used { input: 1000, ..Used::default() }));
        let used = Used { input: 900, read: 0, ..Used::default() };
        let broken = Charge { shared: Some(0), ..charge(1100, 900, used) };
        let money = account.charge(&price, &broken);
        assert_eq!(money, Money { came: 100.0 + 125.0, sent: 1125.0 });
        assert!(money.saved() < 0.0);
    }

    #[test]
    fn a_cache_that_is_too_old_is_not_counted_on() {
        let mut account = Account::default();
        let price = Price { lifetime: Some(300), ..price(CacheMatch::Prefix) };
        let untold = |came, sent, at| Charge {
            came,
            sent,
            shared: None,
            went: Way::Folded,
            used: None,
            at: Duration::from_secs(at),
        };
        account.charge(&price, &untold(1000, 500, 0));
        assert_eq!(account.charge(&price, &untold(1000, 500, 300)), Money { came: 100.0, sent: 50.0 });
        assert_eq!(account.charge(&price, &untold(1000, 500, 601)), Money { came: 1250.0, sent: 625.0 });
    }
}
