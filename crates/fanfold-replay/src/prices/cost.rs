//! What a sequence of requests costs.
//!
//! A request of L tokens finds H of them in the cache: the longest beginning that is equal to that of an earlier
//! request, ends where the provider can match, is no older than the cache's lifetime and no shorter than its minimum.
//! With p the base price at the tier that L falls in, r and w the multiples for reading and writing, o the price of
//! output and O its length, the request costs
//!
//! ```text
//! p·(r·H + w·(L − H)) + o·O
//! ```
//!
//! A request shorter than the minimum is not written: it costs p·L + o·O. A beginning is equal up to a message: what
//! two messages have in common inside is not counted.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{Match, Price};

/// One message of a request: something by which it is known again, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Equal messages have equal prints.
    pub print: u64,
    /// Its length.
    pub tokens: u64,
}

/// One request: tool schemas first, then the messages in order.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Its pieces.
    pub pieces: Vec<Piece>,
    /// Up to which piece there is a breakpoint behind a fold.
    pub mark: Option<usize>,
    /// The length of the answer.
    pub output: u64,
    /// When it was sent, in seconds. Without it the cache is taken as warm.
    pub at: Option<f64>,
}

/// What one request was charged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Charge {
    /// Its length.
    pub tokens: u64,
    /// How much of it was read from the cache.
    pub read: u64,
    /// In dollars.
    pub dollars: f64,
    /// What reading one of its tokens anew costs more than from the cache, in dollars.
    pub per_rewritten: f64,
}

/// What a sequence was charged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bill {
    /// In dollars.
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

/// What a sequence of requests costs.
pub fn cost(price: &Price, requests: &[Request]) -> Bill {
    let mut meter = Meter::new(price.clone());
    for request in requests {
        meter.take(request);
    }
    meter.bill
}

/// Charges requests one by one.
#[derive(Debug, Clone)]
pub struct Meter {
    price: Price,
    /// When each beginning that can be matched was last used.
    cached: FxHashMap<u64, f64>,
    bill: Bill,
}

impl Meter {
    /// A meter before the first request.
    pub fn new(price: Price) -> Meter {
        Meter { price, cached: FxHashMap::default(), bill: Bill::default() }
    }

    /// What all requests until now were charged.
    pub fn bill(&self) -> Bill {
        self.bill
    }

    /// The prices it charges by.
    pub fn price(&self) -> &Price {
        &self.price
    }

    /// Charges a request.
    pub fn take(&mut self, request: &Request) -> Charge {
        let price = &self.price;
        let now = request.at.unwrap_or_default();
        let is_alive =
            |last: &f64| request.at.is_none() || price.lifetime.is_none_or(|life| now - last <= life as f64);
        let mut print = 0;
        let (mut tokens, mut read, mut matched) = (0, 0, None);
        let mut prints = Vec::with_capacity(request.pieces.len());
        for piece in &request.pieces {
            print = mixed(print, piece.print);
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
        let is_written = price.matching != Match::None && tokens >= price.minimum;
        let ends = match price.matching {
            Match::Prefix => prints,
            Match::Marks => {
                let mark = request.mark.and_then(|n| prints.get(n.checked_sub(1)?));
                matched.into_iter().chain(mark.copied()).chain(prints.last().copied()).collect()
            }
            Match::Ends => matched.into_iter().chain(prints.last().copied()).collect(),
            Match::None => Vec::new(),
        };
        if is_written {
            self.cached.extend(ends.into_iter().map(|print| (print, now)));
        }
        let (base, output) = price.at(tokens);
        let write = if is_written { price.write } else { 1.0 };
        let input = price.read * read as f64 + write * (tokens - read) as f64;
        let charge = Charge {
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

fn mixed(before: u64, print: u64) -> u64 {
    (before.rotate_left(23) ^ print.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::{Cliff, PriceTable};

    /// A price of one dollar a token, written at 1.25 and read at 0.1.
    fn price(matching: Match) -> Price {
        let prices = PriceTable::built_in();
        let none = prices.find("none").expect("it is in the table").price.clone();
        Price { base: 1e6, output: 5e6, write: 1.25, read: 0.1, matching, ..none }
    }

    /// Each request is a list of messages, each named by a letter and a hundred tokens long.
    fn requests(texts: &[&str]) -> Vec<Request> {
        let piece = |c: char| Piece { print: u64::from(u32::from(c)), tokens: 100 };
        texts
            .iter()
            .map(|text| Request { pieces: text.chars().map(piece).collect(), ..Request::default() })
            .collect()
    }

    fn check(price: &Price, texts: &[&str], dollars: f64) {
        let found = cost(price, &requests(texts)).dollars;
        assert!((found - dollars).abs() < 1e-6, "{found} is not {dollars}");
    }

    #[test]
    fn what_is_there_is_read_and_the_rest_is_written() {
        // 125 + (10 + 125) + (20 + 125)
        check(&price(Match::Prefix), &["a", "ab", "abc"], 405.0);
    }

    #[test]
    fn a_fold_writes_again_what_follows_it() {
        // 375, then a is read and x and c are written: 10 + 250
        check(&price(Match::Prefix), &["abc", "axc"], 635.0);
        // Where only ends match, a was never one: 375 + 375
        check(&price(Match::Ends), &["abc", "axc"], 750.0);
        // ... unless a request ended there: 125 + 10 + 250 + 10 + 250
        check(&price(Match::Ends), &["a", "abc", "axc"], 645.0);
    }

    #[test]
    fn an_older_request_is_found_again() {
        // 250, 10 + 125, and then ab from the first: 20 + 125
        check(&price(Match::Ends), &["ab", "ax", "aby"], 250.0 + 250.0 + 145.0);
        check(&price(Match::Prefix), &["ab", "ax", "aby"], 250.0 + 135.0 + 145.0);
    }

    #[test]
    fn short_requests_are_not_cached() {
        let price = Price { minimum: 200, ..price(Match::Prefix) };
        // 100, 250, 20 + 125
        check(&price, &["a", "ab", "abc"], 495.0);
    }

    #[test]
    fn matches_are_cut_to_steps() {
        let price = Price { step: 128, ..price(Match::Prefix) };
        // 250, then 128 of 200 are read: 12.8 + 1.25 * 172
        check(&price, &["ab", "abc"], 250.0 + 12.8 + 215.0);
    }

    #[test]
    fn no_cache_charges_everything() {
        check(&price(Match::None), &["a", "ab"], 300.0);
    }

    #[test]
    fn a_cold_cache_is_written_anew_and_a_hit_keeps_it_warm() {
        let price = Price { lifetime: Some(300), ..price(Match::Prefix) };
        let mut meter = Meter::new(price);
        let mut read = Vec::new();
        for (request, at) in requests(&["a", "a", "a", "a"]).into_iter().zip([0.0, 200.0, 400.0, 701.0]) {
            read.push(meter.take(&Request { at: Some(at), ..request }).read);
        }
        assert_eq!(read, [0, 100, 100, 0]);
    }

    #[test]
    fn a_cliff_and_the_output_are_charged() {
        let cliffs = vec![Cliff { above: 150, base: 2e6, output: 10e6 }];
        let price = Price { cliffs, ..price(Match::Prefix) };
        let requests: Vec<_> =
            requests(&["a", "ab"]).into_iter().map(|request| Request { output: 10, ..request }).collect();
        // 125 + 50, then twice (10 + 125) + 100
        assert!((cost(&price, &requests).dollars - (175.0 + 370.0)).abs() < 1e-6);
    }
}
