//! What a replay promises.

mod harmless; // any input can be replayed
mod regret; //   folding is never much dearer
mod whole; //    where everything fits, nothing is lost and nothing is saved

use fanfold_core::Policy;
use fanfold_replay::{PriceTable, Terms};

/// Every policy at these windows, for conversations of any length.
fn terms(windows: &[u64]) -> Terms {
    Terms {
        policies: Policy::NAMES.iter().filter_map(|name| Policy::named(name)).collect(),
        windows: windows.to_vec(),
        reserve: 0,
        min_ratio: 0.0,
        prices: PriceTable::built_in(),
        price: None,
        least: 0,
        has_receipts: true,
    }
}
