//! All that is counted, as JSON. `docs/guide/status.schema.json` is made of these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;
use super::sessions::Known;
use super::summaries::SummaryTotals;
use super::sums::{FamilySums, Sums, mean};
use super::{Book, Meter};

/// What a proxy has counted since it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of fanfold.
    pub version: String,
    /// `fold`, or `observe` where nothing is changed: what is told as folded and saved then is what would have been.
    pub mode: String,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Requests that have not ended.
    pub requests_in_flight: u64,
    /// Over all requests.
    pub totals: Totals,
    /// For each family of models: a row of the table of prices, or `other`.
    pub models: Vec<ModelStatus>,
    /// The sessions used last, at most 300, the last one first.
    pub sessions: Vec<SessionStatus>,
}

/// Figures over all requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Requests for a model that have ended.
    pub requests: u64,
    /// Requests on other routes.
    pub passed_through: u64,
    /// How bodies left: `whole`, `folded`, `observed`, `as_it_came`.
    pub outcomes: BTreeMap<String, u64>,
    /// Why bodies left as they came.
    pub as_it_came: BTreeMap<String, u64>,
    /// How requests ended: `done`, `client_gone`, `unreachable`, `stalled`, `broken_off`.
    pub ended: BTreeMap<String, u64>,
    /// Requests that a provider refused for their length.
    pub refused: u64,
    /// Requests folded harder and sent again.
    pub retried: u64,
    /// Folds made.
    pub folds: u64,
    /// Folds opened.
    pub recalls: u64,
    /// Calls made again, word for word, although their results had been folded.
    pub misses: u64,
    /// What folds do.
    #[serde(default)]
    pub folding: FoldTotals,
    /// Summaries by a model.
    #[serde(default)]
    pub summaries: SummaryTotals,
    /// In tokens.
    pub tokens: TokenTotals,
    /// In dollars.
    pub dollars: Dollars,
    /// Requests whose cost is in `dollars`.
    pub requests_priced: u64,
    /// Requests that are not: no price is known, nothing was counted, or there was no answer.
    pub requests_unpriced: u64,
}

/// What folds do, on average.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FoldTotals {
    /// Turns: what people said, with the steps that answer it.
    pub turns: u64,
    /// Folds for a hundred turns.
    pub folds_per_100_turns: f64,
    /// What a fold takes out, in tokens.
    pub saved_per_fold: f64,
    /// What a fold leaves of its view: 0.4 is two fifths. One where nothing was folded.
    pub ratio: f64,
}

/// Figures in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenTotals {
    /// Requests as they came, by our count.
    pub came: u64,
    /// Requests as they were folded, by our count.
    pub sent: u64,
    /// What folds took out, each token once, however many requests it was left out of.
    pub folded_away: u64,
    /// Input, as providers report it.
    pub input: u64,
    /// Of that, read from caches.
    pub read: u64,
    /// Of that, written to caches, where providers tell.
    pub written: u64,
    /// Output, as providers report it.
    pub output: u64,
}

/// What requests cost both ways.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dollars {
    /// As they came.
    pub came: f64,
    /// As they were folded.
    pub sent: f64,
    /// The difference; below zero where folding cost more.
    pub saved: f64,
}

/// Figures of a family of models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelStatus {
    /// The row of the table of prices, or `other`.
    pub family: String,
    /// Requests that have ended.
    pub requests: u64,
    /// Requests that were folded, or would have been.
    pub folded: u64,
    /// Tokens of requests as they came.
    pub came: u64,
    /// Tokens of requests as they were folded.
    pub sent: u64,
    /// Tokens that folds took out, each once.
    pub folded_away: u64,
    /// What requests cost; none if no price is known.
    pub dollars: Option<Dollars>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    /// Its id.
    pub id: String,
    /// The first words of its first prompt.
    pub words: String,
    /// How it is written.
    pub format: String,
    /// The model it asked last.
    pub model: String,
    /// When it was first seen here, in seconds since 1970.
    pub since: u64,
    /// Seconds since its last request came or ended.
    pub idle_seconds: f64,
    /// Requests.
    pub requests: u64,
    /// Of those, not ended yet.
    pub in_flight: u64,
    /// The model's window, in tokens.
    pub window: u64,
    /// What of it is for the request.
    pub room: u64,
    /// The last request as it came, in tokens.
    pub came: u64,
    /// The last request as it was folded, in tokens.
    pub sent: u64,
    /// What the smallest view needs, in tokens, where none fits and the request left as it came.
    #[serde(default)]
    pub needs: Option<u64>,
    /// How full its room is: `none`, or from 60 % on `info`, 75 % `notice`, 85 % `warning`, 95 % `critical`.
    #[serde(default)]
    pub pressure: String,
    /// Turns since the start.
    #[serde(default)]
    pub turns: u64,
    /// Summaries written since the start.
    #[serde(default)]
    pub summaries: u64,
    /// Folds it has had.
    pub folds: u64,
    /// Of those, made since the start.
    pub folds_here: u64,
    /// Folds opened.
    pub recalls: u64,
    /// Calls made again although their results had been folded.
    pub misses: u64,
    /// Tokens that folds made since the start took out, each once.
    pub folded_away: u64,
    /// What its requests cost since the start; none if no price is known.
    pub dollars: Option<Dollars>,
}

impl Status {
    pub(super) fn of(meter: &Meter, book: &Book) -> Status {
        let sums = &book.sums;
        let named = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
        };
        let now = meter.began.elapsed();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: if meter.is_observing { "observe" } else { "fold" }.to_owned(),
            uptime_seconds: (now.as_secs_f64() * 10.0).round() / 10.0,
            requests_in_flight: meter.n_in_flight(),
            totals: Totals {
                requests: sums.n_requests,
                passed_through: sums.n_passed_through,
                outcomes: named(&sums.outcomes),
                as_it_came: named(&sums.reasons),
                ended: named(&sums.exits),
                refused: sums.n_refused,
                retried: sums.n_retried,
                folds: sums.n_folds,
                recalls: sums.n_recalls,
                misses: sums.n_misses,
                folding: FoldTotals::of(sums),
                summaries: sums.summaries.totals(),
                tokens: TokenTotals {
                    came: sums.tokens.came,
                    sent: sums.tokens.sent,
                    folded_away: sums.tokens.folded_away,
                    input: sums.tokens.input,
                    read: sums.tokens.read,
                    written: sums.tokens.written,
                    output: sums.tokens.output,
                },
                dollars: Dollars::of(sums.money),
                requests_priced: sums.n_priced,
                requests_unpriced: sums.n_unpriced,
            },
            models: book.families.iter().map(|(name, sums)| ModelStatus::of(name, sums)).collect(),
            sessions: book
                .sessions
                .by_use()
                .into_iter()
                .map(|(id, known)| {
                    SessionStatus::of(&id.0, known, now.saturating_sub(known.last).as_secs_f64())
                })
                .collect(),
        }
    }
}

impl FoldTotals {
    fn of(sums: &Sums) -> FoldTotals {
        let ratio = if sums.before == 0 { 1.0 } else { sums.after as f64 / sums.before as f64 };
        FoldTotals {
            turns: sums.n_turns,
            folds_per_100_turns: mean(sums.n_folds * 100, sums.n_turns),
            saved_per_fold: mean(sums.before.saturating_sub(sums.after), sums.n_folds),
            ratio: (ratio * 1000.0).round() / 1000.0,
        }
    }
}

impl Dollars {
    fn of(money: Money) -> Dollars {
        let round = |dollars: f64| (dollars * 1e6).round() / 1e6;
        Dollars { came: round(money.came), sent: round(money.sent), saved: round(money.saved()) }
    }
}

impl ModelStatus {
    fn of(family: &str, sums: &FamilySums) -> ModelStatus {
        ModelStatus {
            family: family.to_owned(),
            requests: sums.n_requests,
            folded: sums.n_folded,
            came: sums.came,
            sent: sums.sent,
            folded_away: sums.folded_away,
            dollars: (sums.n_priced > 0).then(|| Dollars::of(sums.money)),
        }
    }
}

impl SessionStatus {
    fn of(id: &str, known: &Known, idle_seconds: f64) -> SessionStatus {
        let since = known.since.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        SessionStatus {
            id: id.to_owned(),
            words: known.words.clone(),
            format: known.format.to_owned(),
            model: known.model.clone(),
            since: since.as_secs(),
            idle_seconds: (idle_seconds * 10.0).round() / 10.0,
            requests: known.n_requests,
            in_flight: known.n_in_flight,
            window: known.window,
            room: known.room,
            came: known.came,
            sent: known.sent,
            needs: known.needs,
            pressure: known.pressure.name().to_owned(),
            turns: known.n_turns,
            summaries: known.n_summaries,
            folds: known.n_folds,
            folds_here: known.n_folds_here,
            recalls: known.n_recalls,
            misses: known.n_misses,
            folded_away: known.folded_away,
            dollars: known.has_price.then(|| Dollars::of(known.money)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_guide_is_that_of_the_status() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Status)).unwrap();
        expect_test::expect_file!["../../../../docs/guide/status.schema.json"]
            .assert_eq(&format!("{schema}\n"));
    }

    #[test]
    fn what_is_written_reads_back() {
        let meter = Meter::new(fanfold_replay::PriceTable::built_in());
        meter.passed_through();
        let status = meter.status();
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        assert_eq!((status.mode.as_str(), status.totals.passed_through), ("fold", 1));
    }
}
