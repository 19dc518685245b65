//! What a replay promises.

mod harmless; // any input can be replayed
mod whole; //    where everything fits, nothing is lost and nothing is saved

use fanfold_core::Policy;
use fanfold_replay::{Prices, Terms};

/// Every policy at these windows, for conversations of any length.
fn terms(windows: &[u64]) -> Terms {
    Terms {
        policies: Policy::NAMES.iter().filter_map(|name| Policy::named(name)).collect(),
        windows: windows.to_vec(),
        reserve: 0,
        min_ratio: 0.0,
        prices: Prices::built_in(),
        price: None,
        has_receipts: true,
    }
}
