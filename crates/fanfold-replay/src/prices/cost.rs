//! Charges requests as a provider with a prompt cache does.
//!
//! Of a request of L tokens, H are read from the cache: the longest prefix that an earlier request has too, that ends
//! where the provider can match, and that is within the cache's lifetime and minimum. The request costs
//!
//! ```text
//! p·(r·H + w·(L − H)) + o·O
//! ```
//!
//! where p is the base price at the tier of L, r and w are the multiples for reading and writing, o is the price of
//! output and O its length. A request shorter than the minimum is not cached: it costs p·L + o·O. Prefixes are compared
//! by whole messages.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{CacheMatch, Price};

/// One message of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestPiece {
    /// A hash of the message.
    pub print: u64,
    /// Its length.
    pub tokens: u64,
}

/// One request: tool schemas first, then the messages in order.
#[derive(Debug, Clone, Default)]
pub struct ChargedRequest {
    /// Tool schemas and messages.
    pub pieces: Vec<RequestPiece>,
    /// The number of pieces before the breakpoint after a fold.
    pub mark: Option<usize>,
    /// The length of the answer.
    pub output: u64,
    /// The time it was sent, in seconds. Without it the cache is assumed to be warm.
    pub at: Option<f64>,
}

/// The charge for one request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RequestCharge {
    /// Its length.
    pub tokens: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// The price, in dollars.
    pub dollars: f64,
    /// The extra price of a token that is written again instead of read from the cache, in dollars.
    pub per_rewritten: f64,
}

/// The charges for a sequence of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bill {
    /// The price, in dollars.
    pub dollars: f64,
    /// Tokens of input.
    pub tokens: u64,
    /// Of those, read from the cache.
    pub read: u64,
    /// Tokens of output.
    pub output: u64,
}

impl Bill {
    /// Adds another bill.
    pub fn add(&mut self, other: &Bill) {
        self.dollars += other.dollars;
        self.tokens += other.tokens;
        self.read += other.read;
        self.output += other.output;
    }
}

/// Charges requests one by one.
#[derive(Debug, Clone)]
pub struct CostMeter {
    price: Price,
    /// The last use of each prefix that can be matched.
    cached: FxHashMap<u64, f64>,
    bill: Bill,
}

impl CostMeter {
    /// A meter before the first request.
    pub fn new(price: Price) -> CostMeter {
        CostMeter { price, cached: FxHashMap::default(), bill: Bill::default() }
    }

    /// The total of all charges.
    pub fn bill(&self) -> Bill {
        self.bill
    }

    /// The prices it uses.
    pub fn price(&self) -> &Price {
        &self.price
    }

    /// Charges a request.
    pub fn charge(&mut self, request: &ChargedRequest) -> RequestCharge {
        let price = &self.price;
        let now = request.at.unwrap_or_default();
        let is_alive =
            |last: &f64| request.at.is_none() || price.lifetime.is_none_or(|life| now - last <= life as f64);
        let mut print = 0;
        let (mut tokens, mut read, mut matched) = (0, 0, None);
        let mut prints = Vec::with_capacity(request.pieces.len());
        for piece in &request.pieces {
            print = mix(print, piece.print);
            tokens += piece.tokens;
            prints.push(print);
            if self.cached.get(&print).is_some_and(is_alive) {
                (read, matched) = (tokens, Some(print));
            }
        }
        read = read / price.step * price.step;
        if read < price.minimum {
            (read, matched) = (0, None);
        }
        let is_written = price.matching != CacheMatch::None && tokens >= price.minimum;
        let ends = match price.matching {
            CacheMatch::Prefix => prints,
            CacheMatch::Marks => {
                let mark = request.mark.and_then(|n| prints.get(n.checked_sub(1)?));
                matched.into_iter().chain(mark.copied()).chain(prints.last().copied()).collect()
            }
            CacheMatch::Ends => matched.into_iter().chain(prints.last().copied()).collect(),
            CacheMatch::None => Vec::new(),
        };
        if is_written {
            self.cached.extend(ends.into_iter().map(|print| (print, now)));
        }
        let (base, output) = price.at(tokens);
        let write = if is_written { price.write } else { 1.0 };
        let input = price.read * read as f64 + write * (tokens - read) as f64;
        let charge = RequestCharge {
            tokens,
            read,
            dollars: (base * input + output * request.output as f64) / 1e6,
            per_rewritten: base * (write - price.read).max(0.0) / 1e6,
        };
        let bill = Bill { dollars: charge.dollars, tokens, read, output: request.output };
        self.bill.add(&bill);
        charge
    }
}

fn mix(before: u64, print: u64) -> u64 {
    (before.rotate_left(23) ^ print.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::{Cliff, PriceTable};

    /// A price of one dollar a token, written at 1.25 and read at 0.1.
    fn price(matching: CacheMatch) -> Price {
        let prices = PriceTable::built_in();
        let none = prices.find("none").expect("in the table").price.clone();
        Price { base: 1e6, output: 5e6, write: 1.25, read: 0.1, matching, ..none }
    }

    /// Each request is a list of messages, each named by a letter and a hundred tokens long.
    fn requests(texts: &[&str]) -> Vec<ChargedRequest> {
        let piece = |c: char| RequestPiece { print: u64::from(u32::from(c)), tokens: 100 };
        texts
            .iter()
            .map(|text| ChargedRequest {
                pieces: text.chars().map(piece).collect(),
                ..ChargedRequest::default()
            })
            .collect()
    }

    /// The charges for a sequence of requests.
    fn cost(price: &Price, requests: &[ChargedRequest]) -> Bill {
        let mut meter = CostMeter::new(price.clone());
        requests.iter().for_each(|request| {
            meter.charge(request);
        });
        meter.bill()
    }

    fn check(price: &Price, texts: &[&str], dollars: f64) {
        let found = cost(price, &requests(texts)).dollars;
        assert!((found - dollars).abs() < 1e-6, "{found} is not {dollars}");
    }

    #[test]
    fn the_cached_prefix_is_read_and_the_rest_is_written() {
        // 125 + (10 + 125) + (20 + 125)
        check(&price(CacheMatch::Prefix), &["a", "ab", "abc"], 405.0);
    }

    #[test]
    fn messages_after_a_fold_are_written_again() {
        // 375, then a is read and x and c are written: 10 + 250
        check(&price(CacheMatch::Prefix), &["abc", "axc"], 635.0);
        // If only ends match, no request ended after a: 375 + 375
        check(&price(CacheMatch::Ends), &["abc", "axc"], 750.0);
        // ... unless a request ended there: 125 + 10 + 250 + 10 + 250
        check(&price(CacheMatch::Ends), &["a", "abc", "axc"], 645.0);
    }

    #[test]
    fn the_prefix_of_an_older_request_is_read() {
        // 250, 10 + 125, and then ab from the first: 20 + 125
        check(&price(CacheMatch::Ends), &["ab", "ax", "aby"], 250.0 + 250.0 + 145.0);
        check(&price(CacheMatch::Prefix), &["ab", "ax", "aby"], 250.0 + 135.0 + 145.0);
    }

    #[test]
    fn short_requests_are_not_cached() {
        let price = Price { minimum: 200, ..price(CacheMatch::Prefix) };
        // 100, 250, 20 + 125
        check(&price, &["a", "ab", "abc"], 495.0);
    }

    #[test]
    fn matches_are_rounded_down_to_steps() {
        let price = Price { step: 128, ..price(CacheMatch::Prefix) };
        // 250, then 128 of 200 are read: 12.8 + 1.25 * 172
        check(&price, &["ab", "abc"], 250.0 + 12.8 + 215.0);
    }

    #[test]
    fn no_cache_charges_everything() {
        check(&price(CacheMatch::None), &["a", "ab"], 300.0);
    }

    #[test]
    fn an_expired_prefix_is_written_again_and_a_hit_renews_it() {
        let price = Price { lifetime: Some(300), ..price(CacheMatch::Prefix) };
        let mut meter = CostMeter::new(price);
        let mut read = Vec::new();
        for (request, at) in requests(&["a", "a", "a", "a"]).into_iter().zip([0.0, 200.0, 400.0, 701.0]) {
            read.push(meter.charge(&ChargedRequest { at: Some(at), ..request }).read);
        }
        assert_eq!(read, [0, 100, 100, 0]);
    }

    #[test]
    fn a_cliff_and_the_output_are_charged() {
        let cliffs = vec![Cliff { above: 150, base: 2e6, output: 10e6 }];
        let price = Price { cliffs, ..price(CacheMatch::Prefix) };
        let requests: Vec<_> = requests(&["a", "ab"])
            .into_iter()
            .map(|request| ChargedRequest { output: 10, ..request })
            .collect();
        // 125 + 50, then twice (10 + 125) + 100
        assert!((cost(&price, &requests).dollars - (175.0 + 370.0)).abs() < 1e-6);
    }
}
