//! The contract of a replay.

mod harmless; // any input can be replayed
mod regret; //   folding hardly ever costs more than not folding
mod whole; //    views that fit are the whole conversation

use fanfold_core::Policy;
use fanfold_replay::{PriceTable, ReplayOptions};

/// Every policy at these windows, for conversations of any length.
fn options(windows: &[u64]) -> ReplayOptions {
    ReplayOptions {
        policies: Policy::NAMES.iter().filter_map(|name| Policy::named(name)).collect(),
        windows: windows.to_vec(),
        reserve: 0,
        min_ratio: 0.0,
        prices: PriceTable::built_in(),
        price: None,
        min_tokens: 0,
        has_receipts: true,
    }
}
