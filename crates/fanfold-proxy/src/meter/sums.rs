//! What is added up, over all and for each family of models.

use std::collections::BTreeMap;

use super::money::Money;
use super::summaries::SummarySums;

/// Figures of all requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) n_requests: u64,
    pub(super) n_passed_through: u64,
    /// How bodies left, by name.
    pub(super) outcomes: BTreeMap<&'static str, u64>,
    /// Why bodies left as they came, by name.
    pub(super) reasons: BTreeMap<&'static str, u64>,
    /// How requests ended, by name.
    pub(super) exits: BTreeMap<&'static str, u64>,
    pub(super) n_refused: u64,
    pub(super) n_retried: u64,
    pub(super) n_folds: u64,
    pub(super) n_recalls: u64,
    pub(super) n_misses: u64,
    /// Turns: a person's words and the steps that answer them.
    pub(super) n_turns: u64,
    /// What the views cost before their folds and after, added up.
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) summaries: SummarySums,
    pub(super) tokens: TokenSums,
    pub(super) money: Money,
    pub(super) n_priced: u64,
    pub(super) n_unpriced: u64,
}

/// Figures in tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenSums {
    /// Of the requests as they came.
    pub(super) came: u64,
    /// As they were folded, or would have been.
    pub(super) sent: u64,
    /// What folds took out, each token once however often it was not sent.
    pub(super) folded_away: u64,
    /// What providers report.
    pub(super) input: u64,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) output: u64,
}

/// Figures of a family of models.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FamilySums {
    pub(super) n_requests: u64,
    pub(super) n_folded: u64,
    pub(super) came: u64,
    pub(super) sent: u64,
    pub(super) folded_away: u64,
    pub(super) money: Money,
    pub(super) n_priced: u64,
}

/// So much for each, to a tenth; nothing where there is none.
pub(super) fn mean(sum: u64, n: u64) -> f64 {
    if n == 0 { 0.0 } else { (sum as f64 * 10.0 / n as f64).round() / 10.0 }
}

/// The families that were seen; there are no more of them than rows in the table of prices.
pub(super) type ByFamily = BTreeMap<String, FamilySums>;
