//! At no request of any conversation has folding for economy cost more than not folding.
//!
//! What requests cost is counted here from the views alone, by a meter that knows nothing of the session's own account.

use fanfold_core::{
    Budget, CacheBoundary, Count, Entry, FrameCosts, Item, Policy, PriceCliff, Prices, Session, Tokens, View,
    recount,
};
use fanfold_testkit::conversations::{Size, conversation};
use rayon::prelude::*;

use crate::again::talk;
use crate::cases::share;

/// Forty tokens for each word, so that conversations from a seed are as long as real ones.
struct Loud;

impl Count for Loud {
    fn count(&self, text: &str) -> Tokens {
        Tokens(40 * text.split_whitespace().count() as u64)
    }

    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens(4), call: Tokens(8), media: Tokens(1_500) }
    }

    fn name(&self) -> &str {
        "loud"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// What a sequence of requests costs, in tokens at the base price.
struct Meter<'p> {
    prices: &'p Prices,
    cost: f64,
    /// The beginnings that the provider knows.
    known: Vec<Vec<Item>>,
    sent: Vec<Item>,
}

impl<'p> Meter<'p> {
    fn new(prices: &'p Prices) -> Meter<'p> {
        Meter { prices, cost: 0.0, known: Vec::new(), sent: Vec::new() }
    }

    fn charge(&mut self, session: &Session<'_>, items: &[Item]) {
        let tokens = |items: &[Item]| {
            let view = View { items: items.to_vec(), ..View::default() };
            recount(session.transcript(), &view, &Loud)
        };
        let n_equal = items.iter().zip(&self.sent).take_while(|(a, b)| a == b).count();
        let n_cached = match self.prices.boundary {
            CacheBoundary::AnyMessage => n_equal,
            CacheBoundary::Breakpoints | CacheBoundary::RequestEnds => {
                let begins = self.known.iter().filter(|known| items.starts_with(known));
                begins.map(Vec::len).max().unwrap_or(0)
            }
        };
        let all = tokens(items);
        let cached = if n_cached > 0 { tokens(&items[..n_cached]) } else { Tokens::ZERO };
        self.cost += self.prices.request_cost(all, cached);
        if all < self.prices.minimum {
            return;
        }
        self.sent = items.to_vec();
        self.known.push(items.to_vec());
        let note = items.iter().rposition(|item| matches!(item, Item::Note { .. }));
        if let Some(note) = note.filter(|_| self.prices.boundary == CacheBoundary::Breakpoints) {
            self.known.push(items[..=note].to_vec());
        }
    }
}

/// The kinds of prices that are shipped: how much writing and reading cost, from when on, and where a cache matches.
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

/// As much, but for how sums of broken numbers are rounded.
const EVEN: f64 = 1.0 + 1e-9;

/// The most that all requests up to one cost, as a share of what they had cost without folds, and how many folds there were.
fn worst(entries: Vec<Entry>, prices: &Prices) -> (f64, usize) {
    let budget = Budget::with_reserve(Tokens(10_000_000), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Loud).with_prices(prices.clone());
    let (mut folded, mut whole) = (Meter::new(prices), Meter::new(prices));
    let mut worst: f64 = 0.0;
    let mut said: Vec<Item> = Vec::new();
    for entry in entries {
        let is_reply = entry.step().is_some();
        if is_reply && !session.transcript().is_empty() {
            let view = session.view().expect("everything fits").clone();
            folded.charge(&session, &view.items);
            whole.charge(&session, &said);
            worst = worst.max(folded.cost / whole.cost);
        }
        said.push(Item::Whole(session.append(entry)));
    }
    (worst, session.ledger().receipts().len())
}

#[test]
fn folding_never_costs_more() {
    let n_seeds = (400 / share()).max(100);
    let mut n_folds = 0;
    for prices in all_prices() {
        // Half of them look at the same files again and again.
        let entries = |seed| if seed % 2 == 0 { conversation(seed, Size::Long) } else { talk(seed) };
        let all = (0..n_seeds).into_par_iter().map(|seed| (seed, worst(entries(seed), &prices)));
        let all: Vec<_> = all.collect();
        for (seed, (worst, n)) in all {
            assert!(worst <= EVEN, "seed {seed}: {worst:.6} times as much at {prices:?}");
            n_folds += n;
        }
    }
    // A property that never meets a fold says nothing.
    assert!(n_folds > 400, "there were only {n_folds} folds");
}
