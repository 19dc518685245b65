//! Providers that stall, die, send garbage or refuse, and clients that vanish.

use std::time::Duration;

use fanfold_proxy::{Limits, Recall};
use fanfold_testkit::fakes::upstream::{Fault, RequestEnd};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

/// The bytes that a client receives until its connection is closed.
async fn raw_answer(stage: &Stage, body: &str) -> String {
    let mut stream = TcpStream::connect(stage.running.address()).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Answers that break off: after the headers, in the JSON, in a long JSON, and with damaged compression.
fn broken_answers() -> [String; 5] {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req-7\r\n";
    [
        format!("{head}content-length: 900\r\n\r\n"),
        format!("{head}content-length: 900\r\n\r\n{{\"choices\":[{{"),
        format!("{head}content-length: 90000\r\n\r\n{{\"choices\":[{{"),
        format!("{head}transfer-encoding: chunked\r\n\r\n9\r\n{{\"choices\r\n"),
        format!("{head}content-encoding: gzip\r\ncontent-length: 10\r\n\r\nnot gzip.."),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_an_error_with_the_request_id() {
    for answer in broken_answers() {
        let options = StageOptions { recall: Recall::Tool, ..StageOptions::default() };
        let (stage, _) = Stage::with_raw_answers(&[&answer], options).await;
        let got = raw_answer(&stage, &chat(&long_chat(1))).await;
        assert!(got.starts_with("HTTP/1.1 502"), "{answer}: {got}");
        assert!(got.contains("x-request-id: req-7") && got.contains("broke off"), "{answer}: {got}");
        assert_eq!(stage.meter.status().totals.ended.get("broken_off"), Some(&1), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_passes_keeps_its_headers_when_it_breaks_off() {
    for answer in broken_answers() {
        let (stage, _) = Stage::with_raw_answers(&[&answer], StageOptions::default()).await;
        let got = raw_answer(&stage, &chat(&long_chat(1))).await;
        assert!(got.starts_with("HTTP/1.1 200") && got.contains("x-request-id: req-7"), "{answer}: {got}");
        let sent = answer.contains("choices");
        assert_eq!(got.contains("choices"), sent, "{answer}: {got}");
    }
}
