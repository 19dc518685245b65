//! The cost of a request, folded and unfolded.
//!
//! One of the two was sent and is charged by the reported usage. The other one is charged by the same prices and
//! the cost model of `fanfold replay`: the prefix shared with the previous request is read from the cache, the rest
//! is written. The hit rate of the cache is derived from the reported usage, so a cold cache counts neither as a
//! gain nor as a loss. A fold that breaks the cached prefix pays for it: unfolded, the prefix would have been read
//! from the cache.

use std::time::Duration;

use fanfold_replay::{CacheMatch, Price};

/// Token usage of a request, as reported by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseUsage {
    /// All input tokens, cached or not.
    pub input: u64,
    /// Input tokens read from the cache.
    pub read: u64,
    /// Input tokens written to the cache; `None` if the provider does not report them.
    pub written: Option<u64>,
    /// Output tokens.
    pub output: u64,
}

/// The cost of a request in dollars, unfolded and folded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BothCosts {
    pub(super) unfolded: f64,
    pub(super) folded: f64,
}

impl BothCosts {
    /// The savings; negative if folding costs more.
    pub(super) fn saved(self) -> f64 {
        self.unfolded - self.folded
    }

    pub(super) fn add(&mut self, other: BothCosts) {
        self.unfolded += other.unfolded;
        self.folded += other.folded;
    }
}

/// A request to charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    /// Tokens before folding, by the local counter.
    pub(super) unfolded: u64,
    /// Tokens after folding, by the local counter.
    pub(super) folded: u64,
    /// Length of the prefix that the folded request shares with the previous one; `None` if it is all of that.
    pub(super) shared: Option<u64>,
    pub(super) sent: SentBody,
    /// The reported usage of the sent body.
    pub(super) usage: Option<ResponseUsage>,
    /// Time since the start of the meter.
    pub(super) at: Duration,
}

/// Which of the two bodies was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentBody {
    Folded,
    Unfolded,
}

/// The part of the history of a session on which the cost of its next request depends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CostAccount {
    last: Option<LastRequest>,
}

#[derive(Debug, Clone, Copy)]
struct LastRequest {
    unfolded: u64,
    folded: u64,
    at: Duration,
}

/// One of the two bodies.
#[derive(Debug, Clone, Copy)]
struct Side {
    tokens: u64,
    /// Length of the prefix that a warm cache contains.
    cached: u64,
}

impl CostAccount {
    /// The cost of a request both ways.
    pub(super) fn charge(&mut self, price: &Price, charge: &Charge) -> BothCosts {
        let request = LastRequest { unfolded: charge.unfolded, folded: charge.folded, at: charge.at };
        let last = self.last.replace(request);
        let is_alive = |last: &LastRequest| {
            price.lifetime.is_none_or(|life| charge.at.saturating_sub(last.at) <= Duration::from_secs(life))
        };
        let warm = last.filter(is_alive);
        let unfolded = Side {
            tokens: charge.unfolded,
            cached: warm.map_or(0, |last| last.unfolded.min(charge.unfolded)),
        };
        let previous = warm.map_or(0, |last| last.folded.min(charge.folded));
        let folded = Side {
            tokens: charge.folded,
            cached: charge.shared.map_or(previous, |shared| shared.min(previous)),
        };
        let (sent, other) = match charge.sent {
            SentBody::Folded => (folded, unfolded),
            SentBody::Unfolded => (unfolded, folded),
        };
        let (sent, other) = match charge.usage {
            Some(usage) => {
                (reported_cost(price, &usage), other_cost(price, sent, other, &usage, last.is_some()))
            }
            None => (estimated_cost(price, sent), estimated_cost(price, other)),
        };
        match charge.sent {
            SentBody::Folded => BothCosts { unfolded: other, folded: sent },
            SentBody::Unfolded => BothCosts { unfolded: sent, folded: other },
        }
    }
}

/// The cost of a reported usage.
pub(super) fn reported_cost(price: &Price, usage: &ResponseUsage) -> f64 {
    let (base, output) = price.at(usage.input);
    let read = usage.read.min(usage.input);
    let rest = usage.input - read;
    let written = usage.written.unwrap_or(if is_written(price, usage.input) { rest } else { 0 }).min(rest);
    let input = price.read * read as f64 + price.write * written as f64 + (rest - written) as f64;
    (base * input + output * usage.output as f64) / 1e6
}

/// The cost of the other body, derived from the usage of the sent one.
fn other_cost(price: &Price, sent: Side, other: Side, usage: &ResponseUsage, has_last: bool) -> f64 {
    // The provider counts both bodies with the same deviation from the local counter.
    let scale = if sent.tokens == 0 { 1.0 } else { usage.input as f64 / sent.tokens as f64 };
    let tokens = (other.tokens as f64 * scale).round() as u64;
    // A cache that requires markers is used by neither body if the request has none.
    let is_unused = price.matching == CacheMatch::Marks && usage.read == 0 && usage.written == Some(0);
    let expected = sent.cached as f64 * scale;
    let is_conclusive = sent.cached >= price.minimum.max(1);
    let read = if is_unused {
        0.0
    } else if is_conclusive {
        let hit_rate = (usage.read as f64 / expected).min(1.0);
        other.cached as f64 * scale * hit_rate
    } else if has_last {
        // The fold left no cached prefix, so the hit rate is unknown and taken as 1: the fold broke the prefix.
        other.cached as f64 * scale
    } else {
        // The first request of a session in this proxy: others may have filled the cache.
        let share = usage.read as f64 / usage.input.max(1) as f64;
        if other.tokens > sent.tokens { tokens as f64 * share } else { usage.read as f64 }
    };
    let read = (read.round() as u64).min(tokens);
    let written = if is_unused { Some(0) } else { None };
    let read = if read < price.minimum { 0 } else { read };
    reported_cost(price, &ResponseUsage { input: tokens, read, written, output: usage.output })
}

/// The cost of the input if no usage was reported.
fn estimated_cost(price: &Price, side: Side) -> f64 {
    let read = side.cached / price.step * price.step;
    let read = if read < price.minimum || price.matching == CacheMatch::None { 0 } else { read };
    reported_cost(price, &ResponseUsage { input: side.tokens, read, ..ResponseUsage::default() })
}

/// Returns whether a request of this length is written to the cache.
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

    /// A conversation unfolded and folded, request by request.
    const STORY: [(&str, &str); 6] = [
        ("ab", "ab"),
        ("abcd", "abcd"),
        ("abcdefg", "aXfg"),
        ("abcdefghi", "aXfghi"),
        ("abcdefghijkl", "aXYkl"),
        ("abcdefghijklmn", "aXYklmn"),
    ];

    /// Charges the story with or without reported usage, for a cache like that of `fanfold replay`.
    fn check(price: &Price, body: SentBody, is_reported: bool) {
        let mut unfolded = CostMeter::new(price.clone());
        let mut folded = CostMeter::new(price.clone());
        let mut account = CostAccount::default();
        let mut sum = BothCosts::default();
        let mut before = "";
        for (whole, short) in STORY {
            let (long, brief) = (unfolded.charge(&request(whole)), folded.charge(&request(short)));
            let sent = if body == SentBody::Folded { brief } else { long };
            let usage = ResponseUsage { input: sent.tokens, read: sent.read, written: None, output: 0 };
            let n_shared = n_shared(before, short);
            let charge = Charge {
                unfolded: long.tokens,
                folded: brief.tokens,
                shared: (n_shared < before.len()).then_some(n_shared as u64 * 100),
                sent: body,
                usage: is_reported.then_some(usage),
                at: Duration::ZERO,
            };
            sum.add(account.charge(price, &charge));
            before = short;
        }
        let expected = BothCosts { unfolded: unfolded.bill().dollars, folded: folded.bill().dollars };
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(is_near(sum.unfolded, expected.unfolded), "{sum:?} {expected:?}");
        assert!(is_near(sum.folded, expected.folded), "{sum:?} {expected:?}");
    }

    #[test]
    fn costs_agree_with_replay() {
        for is_reported in [false, true] {
            for body in [SentBody::Folded, SentBody::Unfolded] {
                check(&price(CacheMatch::Prefix), body, is_reported);
                check(&price(CacheMatch::None), body, is_reported);
                check(&Price { minimum: 250, ..price(CacheMatch::Prefix) }, body, is_reported);
            }
        }
    }

    fn charge(unfolded: u64, folded: u64, usage: ResponseUsage) -> Charge {
        let sent = SentBody::Folded;
        Charge { unfolded, folded, shared: None, sent, usage: Some(usage), at: Duration::ZERO }
    }

    #[test]
    fn reported_usage_takes_precedence_over_local_counts() {
        // The provider's count is twice the local count. This factor applies to both bodies.
        let usage = ResponseUsage { input: 200, read: 0, written: Some(200), output: 10 };
        let cost = CostAccount::default().charge(&price(CacheMatch::Marks), &charge(300, 100, usage));
        assert_eq!(cost, BothCosts { unfolded: 750.0 + 50.0, folded: 250.0 + 50.0 });
    }

    #[test]
    fn an_unused_cache_is_not_charged() {
        let usage = ResponseUsage { input: 100, read: 0, written: Some(0), output: 0 };
        let mut account = CostAccount::default();
        for _ in 0..2 {
            let cost = account.charge(&price(CacheMatch::Marks), &charge(300, 100, usage));
            assert_eq!(cost, BothCosts { unfolded: 300.0, folded: 100.0 });
        }
    }

    #[test]
    fn a_cold_cache_is_cold_for_both_bodies() {
        let mut account = CostAccount::default();
        let price = price(CacheMatch::Prefix);
        account.charge(&price, &charge(1000, 500, ResponseUsage { input: 500, ..ResponseUsage::default() }));
        let cold = account
            .charge(&price, &charge(1100, 600, ResponseUsage { input: 600, ..ResponseUsage::default() }));
        assert_eq!(cold, BothCosts { unfolded: 1375.0, folded: 750.0 });
        let warm = ResponseUsage { input: 700, read: 600, ..ResponseUsage::default() };
        let warm = account.charge(&price, &charge(1200, 700, warm));
        assert_eq!(warm, BothCosts { unfolded: 110.0 + 125.0, folded: 60.0 + 125.0 });
    }

    #[test]
    fn a_fold_that_breaks_a_cached_prefix_can_cost_more_than_it_saves() {
        let mut account = CostAccount::default();
        let price = price(CacheMatch::Prefix);
        account
            .charge(&price, &charge(1000, 1000, ResponseUsage { input: 1000, ..ResponseUsage::default() }));
        let usage = ResponseUsage { input: 900, read: 0, ..ResponseUsage::default() };
        let broken = Charge { shared: Some(0), ..charge(1100, 900, usage) };
        let cost = account.charge(&price, &broken);
        assert_eq!(cost, BothCosts { unfolded: 100.0 + 125.0, folded: 1125.0 });
        assert!(cost.saved() < 0.0);
    }

    #[test]
    fn an_expired_cache_is_not_read() {
        let mut account = CostAccount::default();
        let price = Price { lifetime: Some(300), ..price(CacheMatch::Prefix) };
        let unreported = |unfolded, folded, at| Charge {
            unfolded,
            folded,
            shared: None,
            sent: SentBody::Folded,
            usage: None,
            at: Duration::from_secs(at),
        };
        account.charge(&price, &unreported(1000, 500, 0));
        assert_eq!(
            account.charge(&price, &unreported(1000, 500, 300)),
            BothCosts { unfolded: 100.0, folded: 50.0 }
        );
        assert_eq!(
            account.charge(&price, &unreported(1000, 500, 601)),
            BothCosts { unfolded: 1250.0, folded: 625.0 }
        );
    }
}
