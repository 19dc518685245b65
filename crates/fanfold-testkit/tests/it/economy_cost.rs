//! Up to any request of a conversation, folding for economy never costs more than not folding.
//!
//! An independent meter computes the cost of the requests from the views alone.

use fanfold_core::{
    Budget, CacheBoundary, Count, Entry, FrameCosts, Item, Policy, PriceCliff, Prices, Session, Tokens, View,
    recount,
};
use fanfold_testkit::generators::conversations::{ConversationSize, conversation};
use rayon::prelude::*;

use crate::cases::case_divisor;
use crate::repeated_lines::rereading_conversation;

/// Counts forty tokens per word, so that generated conversations are as long as real ones.
struct FortyPerWord;

impl Count for FortyPerWord {
    fn count(&self, text: &str) -> Tokens {
        Tokens(40 * text.split_whitespace().count() as u64)
    }

    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens(4), call: Tokens(8), media: Tokens(1_500) }
    }

    fn name(&self) -> &str {
        "forty-per-word"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// Sums the cost of requests, in tokens at the base price.
struct CostMeter<'p> {
    prices: &'p Prices,
    cost: f64,
    /// The prefixes that the provider has cached.
    cached: Vec<Vec<Item>>,
    sent: Vec<Item>,
}

impl<'p> CostMeter<'p> {
    fn new(prices: &'p Prices) -> CostMeter<'p> {
        CostMeter { prices, cost: 0.0, cached: Vec::new(), sent: Vec::new() }
    }

    fn charge(&mut self, session: &Session<'_>, items: &[Item]) {
        let tokens = |items: &[Item]| {
            let view = View { items: items.to_vec(), ..View::default() };
            recount(session.transcript(), &view, &FortyPerWord)
        };
        let n_equal = items.iter().zip(&self.sent).take_while(|(a, b)| a == b).count();
        let n_cached = match self.prices.boundary {
            CacheBoundary::AnyMessage => n_equal,
            CacheBoundary::Breakpoints | CacheBoundary::RequestEnds => {
                let prefixes = self.cached.iter().filter(|prefix| items.starts_with(prefix));
                prefixes.map(Vec::len).max().unwrap_or(0)
            }
        };
        let all = tokens(items);
        let cached = if n_cached > 0 { tokens(&items[..n_cached]) } else { Tokens::ZERO };
        self.cost += self.prices.request_cost(all, cached);
        if all < self.prices.minimum {
            return;
        }
        self.sent = items.to_vec();
        self.cached.push(items.to_vec());
        let note = items.iter().rposition(|item| matches!(item, Item::Note { .. }));
        if let Some(note) = note.filter(|_| self.prices.boundary == CacheBoundary::Breakpoints) {
            self.cached.push(items[..=note].to_vec());
        }
    }
}

/// The shipped kinds of prices: for cache writes and reads, with the minimum size and the granularity of the cache.
fn all_prices() -> Vec<Prices> {
    let kinds = [
        (1.25, 0.10, 1_024, CacheBoundary::Breakpoints),
        (1.25, 0.05, 512, CacheBoundary::Breakpoints),
        (1.25, 0.025, 512, CacheBoundary::Breakpoints),
        (1.25, 0.10, 4_096, CacheBoundary::Breakpoints),
        (2.0, 0.10, 1_024, CacheBoundary::Breakpoints),
        (1.25, 0.10, 1_024, CacheBoundary::RequestEnds),
        (1.0, 0.02, 0, CacheBoundary::RequestEnds),
        (1.0, 0.10, 1_024, CacheBoundary::AnyMessage),
        (1.0, 0.25, 1_024, CacheBoundary::AnyMessage),
        (1.0, 0.50, 1_024, CacheBoundary::AnyMessage),
        (1.0, 1.0, 0, CacheBoundary::AnyMessage),
    ];
    let prices = |(write, read, minimum, boundary)| Prices {
        write,
        read,
        minimum: Tokens(minimum),
        boundary,
        ..Prices::without_cache()
    };
    let mut all: Vec<Prices> = kinds.into_iter().map(prices).collect();
    let cliffs = vec![PriceCliff { above: Tokens(20_000), factor: 2.0 }];
    all.push(Prices { cliffs, ..all[0].clone() });
    all
}

/// The ratio of equal costs, with a tolerance for rounding errors.
const EQUAL_COST: f64 = 1.0 + 1e-9;

/// The highest ratio, over all requests, of the cost up to that request with and without folds; and the number of
/// folds.
fn worst_ratio(entries: Vec<Entry>, prices: &Prices) -> (f64, usize) {
    let budget = Budget::with_reserve(Tokens(10_000_000), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &FortyPerWord).with_prices(prices.clone());
    let (mut folded, mut whole) = (CostMeter::new(prices), CostMeter::new(prices));
    let mut worst: f64 = 0.0;
    let mut all_items: Vec<Item> = Vec::new();
    for entry in entries {
        let is_reply = entry.step().is_some();
        if is_reply && !session.transcript().is_empty() {
            let view = session.view().expect("everything fits").clone();
            folded.charge(&session, &view.items);
            whole.charge(&session, &all_items);
            worst = worst.max(folded.cost / whole.cost);
        }
        all_items.push(Item::Whole(session.append(entry)));
    }
    (worst, session.ledger().receipts().len())
}

#[test]
fn folding_never_costs_more() {
    let n_seeds = (400 / case_divisor()).max(100);
    let mut n_folds = 0;
    for prices in all_prices() {
        // Half of the conversations reread the same files.
        let entries = |seed| {
            if seed % 2 == 0 {
                conversation(seed, ConversationSize::Long)
            } else {
                rereading_conversation(seed)
            }
        };
        let all = (0..n_seeds).into_par_iter().map(|seed| (seed, worst_ratio(entries(seed), &prices)));
        let all: Vec<_> = all.collect();
        for (seed, (worst, n)) in all {
            assert!(worst <= EQUAL_COST, "seed {seed}: {worst:.6} times as much at {prices:?}");
            n_folds += n;
        }
    }
    // Without folds, the test would be meaningless.
    assert!(n_folds > 400, "only {n_folds} folds");
}
