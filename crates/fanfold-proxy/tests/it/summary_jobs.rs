//! Summaries written in the background.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::Tokens;
use fanfold_engine::{SummaryModel, SummaryModels};
use fanfold_provider::{Endpoint, ModelClient};
use fanfold_testkit::fakes::summaries::{REFUSAL, summary_server};
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptedReply, Upstream};
use fanfold_wire::Provider;

use crate::memory::until;
use crate::setting::{Stage, StageOptions, chat, long_chat, outcome};

const MARK: &str = "Summary of earlier steps, written by a model";
const WINDOW: u64 = 3_000;

fn way(model: &Upstream, name: &str) -> SummaryModel {
    let server = format!("{}/v1", model.url());
    let endpoint = Endpoint { n_retries: 0, ..Endpoint::new(Provider::usual(), server.clone(), name) };
    let writer = Arc::new(ModelClient::new(endpoint).unwrap());
    SummaryModel { model: name.to_owned(), server, window: Tokens(4_000), writer }
}

fn ways(model: &Upstream) -> SummaryModels {
    SummaryModels { models: vec![way(model, "little")], abort_on_failure: false }
}

/// Sends a growing conversation. Returns the duration of the slowest request, and the number of folded ones.
async fn grow(stage: &Stage, from: usize, to: usize) -> (Duration, usize) {
    let messages = long_chat(to);
    let (mut slowest, mut n_folded) = (Duration::ZERO, 0);
    for n in (2 + 2 * from..=messages.len()).step_by(2) {
        let began = Instant::now();
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(response.status(), 200);
        n_folded += usize::from(outcome(&response) == "folded");
        response.bytes().await.unwrap();
        slowest = slowest.max(began.elapsed());
    }
    (slowest, n_folded)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_written_after_a_fold_and_sent_later() {
    let (stage, model) =
        (Stage::new(StageOptions { window: WINDOW, ..StageOptions::default() }).await, summary_server());
    *stage.host.ways.lock().unwrap() = ways(&model);
    let (_, n_folded) = grow(&stage, 0, 60).await;
    assert!(n_folded > 0);
    let is_done = |seen: &[fanfold_testkit::fakes::upstream::RecordedRequest]| {
        seen.iter().any(|seen| seen.ended.is_some())
    };
    assert!(model.wait_for(Duration::from_secs(20), is_done));
    // It is stored after a moment, and the next fold contains it.
    let mut n = 60;
    let contains_summary =
        |stage: &Stage| stage.upstream.seen().iter().any(|seen| seen.text().contains(MARK));
    while !contains_summary(&stage) && n < 160 {
        grow(&stage, n, n + 5).await;
        n += 5;
    }
    assert!(contains_summary(&stage));
    let summaries = stage.meter.status().totals.summaries;
    assert!(summaries.by["summary"] > 0 && summaries.tokens > 0, "summaries are counted");
    assert!(
        stage.upstream.seen().iter().all(|seen| seen.violations.is_empty()),
        "valid by the rules of the API"
    );
    // The API key of the client was sent only to its provider.
    assert!(model.seen().iter().all(|seen| seen.header("authorization").is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_fallback_writers_and_flaws() {
    let (stage, main) =
        (Stage::new(StageOptions { window: WINDOW, ..StageOptions::default() }).await, summary_server());
    let refuses = Script::new(|_| ScriptedReply { text: REFUSAL.to_owned(), ..ScriptedReply::default() });
    let little = Upstream::start(Script { is_strict: false, ..refuses }).unwrap();
    let both = vec![way(&little, "little"), way(&main, "large")];
    *stage.host.ways.lock().unwrap() = SummaryModels { models: both, abort_on_failure: false };
    assert!(grow(&stage, 0, 60).await.1 > 0);
    until(|| stage.meter.status().totals.summaries.failures.contains_key("flawed")).await;
    let summaries = stage.meter.status().totals.summaries;
    assert!(summaries.by.get("main").is_some_and(|n| *n > 0), "{summaries:?}");
    assert_eq!(summaries.by.get("summary"), None, "{summaries:?}");
    assert!(summaries.flaws.get("refused").is_some_and(|n| *n >= 2), "requested twice: {summaries:?}");
    assert!(summaries.fallbacks.get("main").is_some_and(|n| *n > 0), "{summaries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_waits_for_a_summary() {
    let (stage, model) =
        (Stage::new(StageOptions { window: WINDOW, ..StageOptions::default() }).await, summary_server());
    *stage.host.ways.lock().unwrap() = ways(&model);
    for _ in 0..20 {
        model.fault(Fault::Stall(Duration::from_secs(30)));
    }
    let (slowest, n_folded) = grow(&stage, 0, 90).await;
    assert!(n_folded > 2 && slowest < Duration::from_secs(10), "{n_folded} {slowest:?}");
    // One job at a time per session, for any number of folds.
    assert_eq!(model.n_seen(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_summary_without_a_model_or_when_observing() {
    let model = summary_server();
    let stage = Stage::new(StageOptions { window: WINDOW, ..StageOptions::default() }).await;
    assert!(grow(&stage, 0, 60).await.1 > 0);
    let options =
        StageOptions { window: WINDOW, mode: fanfold_engine::Mode::Observe, ..StageOptions::default() };
    let stage = Stage::new(options).await;
    *stage.host.ways.lock().unwrap() = ways(&model);
    grow(&stage, 0, 60).await;
    assert_eq!(model.n_seen(), 0);
}
