//! All counts as JSON. `docs/guide/status.schema.json` is generated from these types.

mod sessions; //           the sessions used last
mod savings_report; //     the savings as text
pub(crate) mod client; // the status of another proxy, over HTTP

pub use savings_report::dollars;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meter::Meter;
use crate::meter::cost::BothCosts;
use crate::meter::summaries::SummaryTotals;
use sessions::{SessionEntry, SessionTable};

/// All counts of a proxy since it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of fanfold.
    pub version: String,
    /// `fold`, or `observe` if nothing is changed: folds and savings are then those that would have been made.
    pub mode: String,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Requests that have not ended.
    pub requests_in_flight: u64,
    /// Totals of all requests.
    pub totals: Totals,
    /// Totals per model family: a row of the table of prices, or `other`.
    pub models: Vec<ModelStatus>,
    /// The sessions used last, at most 300, newest first.
    pub sessions: Vec<SessionStatus>,
    /// Present while the store is unavailable and sessions are in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreOutage>,
}

/// Why the store is unavailable, and how much waits in memory to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreOutage {
    /// The error of the store.
    pub error: String,
    /// When it was first seen, in UTC.
    pub since: String,
    /// The sessions in memory.
    pub sessions: u64,
    /// The messages that the store does not have yet.
    pub messages: u64,
    /// Sessions that were dropped from memory before they could be stored, because too much waited.
    pub dropped: u64,
}

/// Totals of all requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Conversation requests that have ended.
    pub requests: u64,
    /// Requests on other routes.
    pub passed_through: u64,
    /// Requests by outcome of the body: `whole`, `folded`, `observed`, `as_it_came`.
    pub outcomes: BTreeMap<String, u64>,
    /// Requests sent unchanged, by reason.
    pub as_it_came: BTreeMap<String, u64>,
    /// Requests by end: `done`, `client_gone`, `unreachable`, `stalled`, `broken_off`.
    pub ended: BTreeMap<String, u64>,
    /// Requests refused by a provider for their length.
    pub refused: u64,
    /// Requests folded harder and sent again.
    pub retried: u64,
    /// Folds made.
    pub folds: u64,
    /// Originals recalled.
    pub recalls: u64,
    /// Identical calls repeated after their results had been folded.
    pub misses: u64,
    /// Averages of folds.
    #[serde(default)]
    pub folding: FoldTotals,
    /// Summaries by a model.
    #[serde(default)]
    pub summaries: SummaryTotals,
    /// Token counts.
    pub tokens: TokenTotals,
    /// Costs.
    pub dollars: Dollars,
    /// Requests with a known cost.
    pub requests_priced: u64,
    /// Requests without a known cost: no price, no token count, or no answer.
    pub requests_unpriced: u64,
}

/// Averages of folds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FoldTotals {
    /// Turns: user prompts with the steps that answer them.
    pub turns: u64,
    /// Folds per 100 turns.
    pub folds_per_100_turns: f64,
    /// Tokens removed per fold.
    pub saved_per_fold: f64,
    /// View size after folds divided by the size before; 1 if nothing was folded.
    pub ratio: f64,
}

/// Token counts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TokenTotals {
    /// Requests before folding, by the local counter.
    pub came: u64,
    /// Requests after folding, by the local counter.
    pub sent: u64,
    /// Tokens removed by folds, each counted once.
    pub folded_away: u64,
    /// Input tokens reported by providers.
    pub input: u64,
    /// Input tokens read from caches.
    pub read: u64,
    /// Input tokens written to caches, where providers report them.
    pub written: u64,
    /// Output tokens reported by providers.
    pub output: u64,
}

/// Costs of requests in dollars, unfolded and folded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dollars {
    /// The cost without folding.
    pub came: f64,
    /// The cost with folding.
    pub sent: f64,
    /// The difference; negative if folding cost more.
    pub saved: f64,
}

/// Totals of a model family.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelStatus {
    /// The row of the table of prices, or `other`.
    pub family: String,
    /// Requests that have ended.
    pub requests: u64,
    /// Requests that were folded, or would have been.
    pub folded: u64,
    /// Tokens of requests before folding.
    pub came: u64,
    /// Tokens of requests after folding.
    pub sent: u64,
    /// Tokens removed by folds, each counted once.
    pub folded_away: u64,
    /// Costs of requests; absent if no price is known.
    pub dollars: Option<Dollars>,
}

/// Counts of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    /// Its id.
    pub id: String,
    /// The first words of its first prompt.
    pub words: String,
    /// Its format.
    pub format: String,
    /// The model of its last request.
    pub model: String,
    /// When its first request arrived, in seconds since 1970.
    pub since: u64,
    /// Seconds since its last request arrived or ended.
    pub idle_seconds: f64,
    /// Requests.
    pub requests: u64,
    /// Requests that have not ended.
    pub in_flight: u64,
    /// The context window of the model, in tokens.
    pub window: u64,
    /// The part of the window for the request, in tokens.
    pub room: u64,
    /// The last request before folding, in tokens.
    pub came: u64,
    /// The last request after folding, in tokens.
    pub sent: u64,
    /// Size of the smallest possible view, in tokens, if no view fits.
    #[serde(default)]
    pub needs: Option<u64>,
    /// Fill level: `none`, `info` from 60 % of the room, `notice` from 75 %, `warning` from 85 %, `critical` from 95 %.
    #[serde(default)]
    pub pressure: String,
    /// Turns since the start.
    #[serde(default)]
    pub turns: u64,
    /// Summaries written since the start.
    #[serde(default)]
    pub summaries: u64,
    /// Folds in all.
    pub folds: u64,
    /// Folds since the start.
    pub folds_here: u64,
    /// Originals recalled.
    pub recalls: u64,
    /// Identical calls repeated after their results had been folded.
    pub misses: u64,
    /// Tokens removed by folds since the start, each counted once.
    pub folded_away: u64,
    /// Costs of its requests since the start; absent if no price is known.
    pub dollars: Option<Dollars>,
}

/// Counts since the start.
#[derive(Default)]
pub(super) struct Book {
    /// Totals. Averages and dollars are filled in when the status is read.
    pub(super) totals: Totals,
    /// Tokens of views before and after their folds.
    pub(super) folded_views: (u64, u64),
    pub(super) cost: BothCosts,
    /// There are no more families than rows in the table of prices.
    pub(super) families: BTreeMap<String, FamilyTotals>,
    pub(super) sessions: SessionTable,
}

/// Counts of a model family.
#[derive(Default)]
pub(super) struct FamilyTotals {
    pub(super) status: ModelStatus,
    pub(super) cost: BothCosts,
    pub(super) n_priced: u64,
}

impl Status {
    pub(super) fn new(meter: &Meter, book: &Book) -> Status {
        let now = meter.started.elapsed();
        let idle_seconds = |entry: &SessionEntry| tenths(now.saturating_sub(entry.last).as_secs_f64());
        let session = |entry: &SessionEntry| SessionStatus {
            idle_seconds: idle_seconds(entry),
            dollars: entry.has_price.then(|| Dollars::new(entry.cost)),
            ..entry.status.clone()
        };
        let model = |(name, family): (&String, &FamilyTotals)| ModelStatus {
            family: name.clone(),
            dollars: (family.n_priced > 0).then(|| Dollars::new(family.cost)),
            ..family.status.clone()
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: if meter.is_observing { "observe" } else { "fold" }.to_owned(),
            uptime_seconds: tenths(now.as_secs_f64()),
            requests_in_flight: meter.n_in_flight(),
            totals: Totals {
                folding: FoldTotals::new(&book.totals, book.folded_views),
                summaries: book.totals.summaries.with_average(),
                dollars: Dollars::new(book.cost),
                ..book.totals.clone()
            },
            models: book.families.iter().map(model).collect(),
            sessions: book.sessions.by_use().into_iter().map(session).collect(),
            store: None,
        }
    }
}

impl FoldTotals {
    fn new(totals: &Totals, (before, after): (u64, u64)) -> FoldTotals {
        let turns = totals.folding.turns;
        let ratio = if before == 0 { 1.0 } else { after as f64 / before as f64 };
        FoldTotals {
            turns,
            folds_per_100_turns: mean(totals.folds * 100, turns),
            saved_per_fold: mean(before.saturating_sub(after), totals.folds),
            ratio: (ratio * 1000.0).round() / 1000.0,
        }
    }
}

impl Dollars {
    fn new(cost: BothCosts) -> Dollars {
        let round = |dollars: f64| (dollars * 1e6).round() / 1e6;
        Dollars { came: round(cost.unfolded), sent: round(cost.folded), saved: round(cost.saved()) }
    }
}

/// An average, rounded to a tenth; 0 for no values.
pub(super) fn mean(sum: u64, n: u64) -> f64 {
    if n == 0 { 0.0 } else { tenths(sum as f64 / n as f64) }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Adds one to a count by name.
pub(super) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(n) => *n += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_guide_is_current() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Status)).unwrap();
        expect_test::expect_file!["../../../../../docs/guide/status.schema.json"]
            .assert_eq(&format!("{schema}\n"));
    }

    #[test]
    fn status_round_trips_as_json() {
        let meter = Meter::new(fanfold_replay::PriceTable::built_in());
        meter.count_pass_through();
        let status = meter.status();
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        assert_eq!((status.mode.as_str(), status.totals.passed_through), ("fold", 1));
    }
}
