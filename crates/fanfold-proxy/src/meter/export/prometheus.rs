//! Counters for Prometheus. Labels have few fixed values: no sessions, and no model names from clients.

use std::time::Duration;

use metrics::{Unit, with_local_recorder};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::meter::cost::{BothCosts, ResponseUsage};
use crate::outcome::{Exit, ProxyOutcome};

/// Time that the proxy adds before the call to the provider, in seconds.
const ADDED: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0];
/// Response times of the provider, in seconds.
const UPSTREAM: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
const BYTES: &[f64] = &[1e3, 1e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2e6, 4e6, 8e6, 1.6e7, 3.2e7, 6.4e7];
const TOKENS: &[f64] = &[1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1.5e5, 2e5, 3e5, 5e5, 1e6, 2e6];

const SUMMARIES: &[f64] = &[2.5e2, 5e2, 1e3, 2e3, 3e3, 5e3, 7.5e3, 1e4, 1.5e4];

const HISTOGRAMS: [(&str, &[f64]); 7] = [
    ("fanfold_added_seconds", ADDED),
    ("fanfold_first_byte_seconds", UPSTREAM),
    ("fanfold_request_seconds", UPSTREAM),
    ("fanfold_request_bytes", BYTES),
    ("fanfold_request_tokens", TOKENS),
    ("fanfold_fold_saved_tokens", TOKENS),
    ("fanfold_summary_tokens", SUMMARIES),
];

/// Counters, gauges and histograms.
pub(crate) struct Counters {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Counters {
    pub(crate) fn new() -> Counters {
        let with_buckets = |builder: PrometheusBuilder, (name, buckets): (&str, &[f64])| {
            let matcher = Matcher::Full(name.to_owned());
            builder.set_buckets_for_metric(matcher, buckets).expect("every histogram has buckets")
        };
        let recorder = HISTOGRAMS.into_iter().fold(PrometheusBuilder::new(), with_buckets).build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, describe);
        Counters { recorder, handle }
    }

    pub(crate) fn passed_through(&self) {
        self.with(|| counter!("fanfold_passed_through_total").increment(1));
    }

    pub(crate) fn recalled(&self, way: &'static str) {
        self.with(|| counter!("fanfold_recalls_total", "way" => way).increment(1));
    }

    pub(crate) fn memory(&self, what: &'static str) {
        self.with(|| counter!("fanfold_memory_total", "what" => what).increment(1));
    }

    pub(crate) fn outcome(&self, format: &'static str, family: &str, outcome: ProxyOutcome) {
        self.with(|| {
            let labels = [
                ("format", format.to_owned()),
                ("family", family.to_owned()),
                ("outcome", outcome.name().to_owned()),
            ];
            counter!("fanfold_requests_total", &labels).increment(1);
            if let ProxyOutcome::Unchanged(why) = outcome {
                counter!("fanfold_as_it_came_total", "why" => why.name()).increment(1);
            }
        });
    }

    pub(crate) fn sizes(&self, came: u64, sent: u64) {
        self.with(|| {
            for (side, tokens) in [("came", came), ("sent", sent)] {
                counter!("fanfold_tokens_total", "side" => side).increment(tokens);
                histogram!("fanfold_request_tokens", "side" => side).record(tokens as f64);
            }
        });
    }

    pub(crate) fn folds(&self, n_folds: u64, folded_away: u64, n_misses: u64) {
        self.with(|| {
            counter!("fanfold_folds_total").increment(n_folds);
            counter!("fanfold_folded_tokens_total").increment(folded_away);
            counter!("fanfold_misses_total").increment(n_misses);
        });
    }

    /// New turns, and the sizes of views before and after their folds.
    pub(crate) fn turns(&self, n_turns: u64, folds: &[(u64, u64)]) {
        self.with(|| {
            counter!("fanfold_turns_total").increment(n_turns);
            for (before, after) in folds {
                counter!("fanfold_fold_view_tokens_total", "side" => "before").increment(*before);
                counter!("fanfold_fold_view_tokens_total", "side" => "after").increment(*after);
                histogram!("fanfold_fold_saved_tokens").record(before.saturating_sub(*after) as f64);
            }
        });
    }

    pub(crate) fn pressure(&self, level: &'static str) {
        self.with(|| counter!("fanfold_pressure_total", "level" => level).increment(1));
    }

    pub(crate) fn summary_written(&self, by: &'static str, tokens: u64) {
        self.with(|| {
            counter!("fanfold_summaries_total", "by" => by).increment(1);
            histogram!("fanfold_summary_tokens").record(tokens as f64);
        });
    }

    pub(crate) fn summary_flawed(&self, flaw: &'static str) {
        self.with(|| counter!("fanfold_summary_flaws_total", "flaw" => flaw).increment(1));
    }

    pub(crate) fn summary_fell_back(&self, why: &'static str, to: &'static str) {
        self.with(|| {
            counter!("fanfold_summary_fallbacks_total", "why" => why, "to" => to).increment(1);
        });
    }

    pub(crate) fn call_started(&self, format: &'static str, added: Duration, n_bytes: usize) {
        self.with(|| {
            histogram!("fanfold_added_seconds", "format" => format).record(added);
            histogram!("fanfold_request_bytes", "format" => format).record(n_bytes as f64);
        });
    }

    pub(crate) fn refused(&self) {
        self.with(|| counter!("fanfold_refused_total").increment(1));
    }

    pub(crate) fn retried(&self) {
        self.with(|| counter!("fanfold_retried_total").increment(1));
    }

    pub(crate) fn first_byte(&self, format: &'static str, status: u16, after: Duration) {
        let class = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.with(|| {
            counter!("fanfold_answers_total", "format" => format, "status" => class).increment(1);
            histogram!("fanfold_first_byte_seconds", "format" => format).record(after);
        });
    }

    pub(crate) fn usage(&self, usage: &ResponseUsage) {
        let written = usage.written.unwrap_or_default();
        let fresh = usage.input.saturating_sub(usage.read + written);
        let kinds = [("read", usage.read), ("written", written), ("fresh", fresh), ("output", usage.output)];
        self.with(|| {
            for (kind, tokens) in kinds {
                counter!("fanfold_used_tokens_total", "kind" => kind).increment(tokens);
            }
        });
    }

    pub(crate) fn ended(&self, format: &'static str, exit: Exit, took: Duration) {
        self.with(|| {
            counter!("fanfold_ended_total", "format" => format, "exit" => exit.name()).increment(1);
            histogram!("fanfold_request_seconds", "format" => format).record(took);
        });
    }

    pub(crate) fn spans_dropped(&self, n_dropped: u64) {
        self.with(|| counter!("fanfold_spans_dropped_total").absolute(n_dropped));
    }

    /// The text format of Prometheus.
    pub(crate) fn render(
        &self,
        n_sessions: usize,
        n_in_flight: u64,
        uptime: Duration,
        cost: BothCosts,
    ) -> String {
        self.with(|| {
            gauge!("fanfold_sessions").set(n_sessions as f64);
            gauge!("fanfold_requests_in_flight").set(n_in_flight as f64);
            gauge!("fanfold_uptime_seconds").set(uptime.as_secs_f64());
            gauge!("fanfold_cost_dollars", "side" => "came").set(cost.unfolded);
            gauge!("fanfold_cost_dollars", "side" => "sent").set(cost.folded);
        });
        self.handle.render()
    }

    /// Moves the samples of histograms into their buckets.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    fn with(&self, count: impl FnOnce()) {
        with_local_recorder(&self.recorder, count);
    }
}

fn describe() {
    let count = |name: &'static str, words: &'static str| describe_counter!(name, words);
    count("fanfold_requests_total", "Conversation requests, by outcome.");
    count("fanfold_as_it_came_total", "Requests sent unchanged, by reason.");
    count("fanfold_passed_through_total", "Requests on other routes.");
    count("fanfold_tokens_total", "Tokens of requests before and after folding, by the local counter.");
    count("fanfold_folded_tokens_total", "Tokens removed by folds, each counted once.");
    count("fanfold_used_tokens_total", "Tokens reported by providers.");
    count("fanfold_folds_total", "Folds made.");
    count("fanfold_turns_total", "Turns: user prompts with the steps that answer them.");
    count("fanfold_fold_view_tokens_total", "Tokens of views before and after their folds.");
    count("fanfold_pressure_total", "Fill levels reached by sessions.");
    count("fanfold_summaries_total", "Summaries, by writer.");
    count("fanfold_summary_flaws_total", "Answers that were not valid summaries, by flaw.");
    count(
        "fanfold_summary_fallbacks_total",
        "Summary models that failed, by fault and by the writer that replaced them.",
    );
    count("fanfold_misses_total", "Identical calls repeated after their results had been folded.");
    count("fanfold_recalls_total", "Originals recalled, by method.");
    count("fanfold_memory_total", "Memory lookups and records, by result.");
    count("fanfold_refused_total", "Requests refused by a provider for their length.");
    count("fanfold_retried_total", "Requests folded harder and sent again.");
    count("fanfold_answers_total", "Responses, by class of their status.");
    count("fanfold_ended_total", "Requests, by the way they ended.");
    count("fanfold_spans_dropped_total", "Requests whose spans did not reach the collector.");
    describe_gauge!("fanfold_sessions", "Sessions in the status.");
    describe_gauge!("fanfold_requests_in_flight", "Requests that have not ended.");
    describe_gauge!("fanfold_uptime_seconds", Unit::Seconds, "Time since the start.");
    describe_gauge!("fanfold_cost_dollars", "Cost of requests with folding, and without it.");
    let seconds = |name: &'static str, words: &'static str| describe_histogram!(name, Unit::Seconds, words);
    seconds("fanfold_added_seconds", "Time that the proxy adds before the call to the provider.");
    seconds("fanfold_first_byte_seconds", "From the call to the provider to its first byte.");
    seconds("fanfold_request_seconds", "From arrival to the end of the response.");
    describe_histogram!("fanfold_fold_saved_tokens", "Tokens removed per fold.");
    describe_histogram!("fanfold_summary_tokens", "Sizes of summaries.");
    describe_histogram!("fanfold_request_bytes", Unit::Bytes, "Sizes of bodies as they were sent.");
    describe_histogram!(
        "fanfold_request_tokens",
        "Sizes of requests before and after folding, by the local counter."
    );
}
