//! Providers that stall, die, send garbage or refuse, and clients that vanish.

use std::time::Duration;

use fanfold_proxy::Limits;
use fanfold_testkit::fakes::upstream::{Fault, RequestEnd};
use serde_json::json;

use crate::setting::{Stage, StageOptions, chat, json_of, long_chat, outcome};

fn streamed() -> String {
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn error_statuses_are_forwarded_without_retry() {
    for status in [429u16, 500, 503, 529] {
        let stage = Stage::new(StageOptions::default()).await;
        stage.upstream.fault(Fault::Status(status));
        let response = stage.chat(&chat(&long_chat(1))).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (status, "whole"));
        let headers = response.headers().clone();
        let body = response.text().await.unwrap();
        stage.upstream.fault(Fault::Status(status));
        let direct = format!("{}/v1/chat/completions", stage.upstream.url());
        let direct = stage.client.post(direct).body(chat(&long_chat(1))).send().await.unwrap();
        for (name, value) in direct.headers().iter().filter(|(name, _)| *name != "connection") {
            assert_eq!(headers.get(name), Some(value), "{status} {name}");
        }
        assert_eq!(body, direct.text().await.unwrap());
        assert_eq!(stage.upstream.n_seen(), 2, "each request is sent once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_provider_times_out() {
    let limits = Limits { upstream_idle: Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    stage.upstream.fault(Fault::Stall(Duration::from_secs(3)));
    let response = stage.chat(&chat(&long_chat(1))).await;
    assert_eq!(response.status(), 504);
    let error: serde_json::Value = json_of(response).await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not answer") && message.contains("hint:"), "{message}");
    assert_eq!(stage.meter.status().totals.ended.get("stalled"), Some(&1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_provider_is_named() {
    let stage = Stage::new(StageOptions::default()).await;
    let (unreachable, _) = Stage::with_raw_answers(&[], StageOptions::default()).await;
    // The listener of a provider without answers is closed by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let response = unreachable.chat(&chat(&long_chat(1))).await;
    assert_eq!(response.status(), 502);
    assert!(response.text().await.unwrap().contains("can't be reached"));
    drop(stage);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_breaks_for_the_client() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.fault(Fault::Disconnect(2));
    let mut response = stage.chat(&streamed()).await;
    assert_eq!(response.status(), 200);
    let mut received = Vec::new();
    let broken = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => received.extend_from_slice(&chunk),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broken, "the stream breaks, so that half an answer does not look complete");
    assert!(received.starts_with(b"data: "), "the bytes before the break were forwarded");
    drop(response);
    assert_eq!(stage.meter.status().totals.ended.get("broken_off"), Some(&1));
    // The next request is served normally.
    assert_eq!(stage.chat(&streamed()).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_forwarded() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.fault(Fault::Garbage);
    let response = stage.chat(&streamed()).await;
    let (status, body) = (response.status(), response.bytes().await.unwrap());
    stage.upstream.fault(Fault::Garbage);
    let direct = format!("{}/v1/chat/completions", stage.upstream.url());
    let direct = stage.client.post(direct).body(streamed()).send().await.unwrap();
    assert_eq!((status, body), (direct.status(), direct.bytes().await.unwrap()));
    stage.upstream.fault(Fault::NotHttp);
    let response = stage.chat(&streamed()).await;
    assert_eq!(response.status(), 502);
    assert!(response.text().await.unwrap().contains("broke off"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_client_cancels_the_call() {
    let stage = Stage::new(StageOptions::default()).await;
    // The client disconnects in the middle of a stream.
    stage.upstream.fault(Fault::Drip(Duration::from_millis(100)));
    let mut response = stage.chat(&streamed()).await;
    response.chunk().await.unwrap().unwrap();
    drop(response);
    let is_gone = |seen: &[fanfold_testkit::fakes::upstream::RecordedRequest]| {
        seen.last().is_some_and(|seen| seen.ended == Some(RequestEnd::ClientGone))
    };
    assert!(stage.upstream.wait_for(Duration::from_secs(10), is_gone));
    // The client disconnects before the response.
    stage.upstream.fault(Fault::Stall(Duration::from_millis(1500)));
    let waiting = stage.post("/v1/chat/completions", streamed()).timeout(Duration::from_millis(300));
    assert!(waiting.send().await.is_err());
    let both_gone =
        |seen: &[fanfold_testkit::fakes::upstream::RecordedRequest]| seen.len() == 2 && is_gone(seen);
    assert!(stage.upstream.wait_for(Duration::from_secs(10), both_gone), "{:?}", stage.upstream.seen());
    let is_counted = || stage.meter.status().totals.ended.get("client_gone") == Some(&2);
    for _ in 0..100 {
        if is_counted() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_counted(), "{:?}", stage.meter.status().totals.ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_finishes_streams_and_accepts_no_connections() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.fault(Fault::Drip(Duration::from_millis(60)));
    let mut response = stage.chat(&streamed()).await;
    let mut received = response.chunk().await.unwrap().unwrap().to_vec();
    let (is_done, rest) = tokio::join!(stage.running.stop(), async {
        let late = reqwest::Client::builder().no_proxy().build().unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(late.get(stage.url("/fanfold/health")).send().await.is_err(), "new connections are refused");
        let mut rest = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            rest.extend_from_slice(&chunk);
        }
        rest
    });
    received.extend(rest);
    assert!(is_done && String::from_utf8(received).unwrap().contains("[DONE]"));
}
