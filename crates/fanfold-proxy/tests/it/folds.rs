//! Bodies that are sent folded or whole.

use std::time::Duration;

use fanfold_core::Extent;
use fanfold_engine::Mode;
use fanfold_proxy::Host as _;
use fanfold_store::SessionId;
use fanfold_testkit::fakes::upstream::Fault;
use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, chat, json_of, long_chat, outcome, session};

const NARROW: u64 = 500;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_fits_is_forwarded_verbatim() {
    let stage = Stage::new(StageOptions::default()).await;
    let cases = [
        (
            "/v1/chat/completions?x=1",
            r#"{ "model":"m",  "messages":[{"role":"user","content":"caf\u00e9 \/"}] , "seed":1.50 }"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"store":false }"#,
        ),
        ("/v1/messages", r#"{"model":"m","max_tokens":9, "messages":[ {"content":"hi","role":"user"} ]}"#),
    ];
    for (path, body) in cases {
        let response =
            stage.post(path, body).header("x-own", "1").header("x-fanfold-x", "2").send().await.unwrap();
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "whole"), "{path}");
        let answer: Value = json_of(response).await;
        assert!(answer.to_string().contains("It is done."), "{answer}");
        let seen = stage.upstream.seen();
        let seen = seen.last().unwrap();
        assert_eq!((seen.path.as_str(), seen.text().as_str()), (path, body));
        assert_eq!(seen.header("authorization"), Some("Bearer the-clients-own"));
        assert_eq!((seen.header("x-own"), seen.header("x-fanfold-x")), (Some("1"), None));
        assert_eq!(seen.header("content-length"), Some(body.len().to_string().as_str()));
    }
}

/// The proxy folds with the engine that the terms name, and continues the session with it.
#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_folded_by_the_selected_engine() {
    let stage = Stage::new(StageOptions { window: NARROW, ..StageOptions::default() }).await;
    let messages = long_chat(16);
    let mut sessions = Vec::new();
    for n in [16, 24, messages.len()] {
        let body = chat(&messages[..n]).replacen("\"m\"", "\"folded-by-newest\"", 1);
        assert!(body.contains("folded-by-newest"), "{body}");
        let response = stage.chat(&body).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
        sessions.push(session(&response));
        assert!(stage.upstream.seen().last().unwrap().text().contains("earlier entries are left out"));
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_folded_in_one_session() {
    let stage = Stage::new(StageOptions { window: NARROW, ..StageOptions::default() }).await;
    let messages = long_chat(16);
    let (mut sessions, mut n_folded) = (Vec::new(), 0);
    for n in (2..=messages.len()).step_by(2) {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(response.status(), 200);
        n_folded += usize::from(outcome(&response) == "folded");
        sessions.push(session(&response));
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert!(n_folded > 5, "{n_folded}");
    let seen = stage.upstream.seen();
    assert!(seen.iter().all(|seen| seen.violations.is_empty()), "valid by the rules of the API");
    let last = seen.last().unwrap();
    let whole = chat(&messages);
    assert!(last.body.len() < whole.len() / 2, "{} of {}", last.body.len(), whole.len());
    // All folded originals are in the store and can be recalled.
    let engine = stage.host.open().unwrap();
    let (n_handles, broken) = engine.check_handles(&SessionId(sessions[0].clone())).unwrap();
    assert!(n_handles > 3 && broken.is_empty(), "{n_handles} {broken:?}");
    let handle = handles_in(&last.text())[0].parse().unwrap();
    let opened = engine.recall(&SessionId(sessions[0].clone()), handle, &Extent::Whole).unwrap();
    assert!(opened.contains("stage"), "{opened}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_proxy_on_the_same_store_sends_the_same_bytes() {
    let first = Stage::new(StageOptions { window: NARROW, ..StageOptions::default() }).await;
    let messages = long_chat(12);
    for n in (2..messages.len()).step_by(4) {
        first.chat(&chat(&messages[..n])).await;
    }
    let body = chat(&messages);
    let named = session(&first.chat(&body).await);
    let sent = first.upstream.seen().last().unwrap().text();
    assert!(first.running.stop().await);
    let second = Stage::new(StageOptions { window: NARROW, ..StageOptions::default() }).await;
    std::fs::create_dir_all(second.host.file.parent().unwrap()).unwrap();
    for end in ["", "-wal"] {
        let store_file = |stage: &Stage| format!("{}{end}", stage.host.file.display());
        if std::fs::metadata(store_file(&first)).is_ok() {
            std::fs::copy(store_file(&first), store_file(&second)).unwrap();
        }
    }
    let response = second.chat(&body).await;
    assert_eq!((session(&response), outcome(&response).as_str()), (named, "folded"));
    assert_eq!(second.upstream.seen().last().unwrap().text(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_forwarded_as_they_arrive() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.fault(Fault::Drip(Duration::from_millis(150)));
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let mut response = stage.chat(&body.to_string()).await;
    let first = response.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"data: "), "{first:?}");
    assert_eq!(stage.upstream.seen()[0].ended, None, "the provider is still streaming");
    let mut whole = first.to_vec();
    while let Some(chunk) = response.chunk().await.unwrap() {
        whole.extend_from_slice(&chunk);
    }
    assert!(String::from_utf8(whole).unwrap().trim_end().ends_with("data: [DONE]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_routes_are_passed_through() {
    let stage = Stage::new(StageOptions::default()).await;
    let models = stage.client.get(stage.url("/v1/models?limit=2")).send().await.unwrap();
    let direct =
        stage.client.get(format!("{}/v1/models?limit=2", stage.upstream.url())).send().await.unwrap();
    assert_eq!(models.status(), direct.status());
    assert_eq!(models.headers().get("content-type"), direct.headers().get("content-type"));
    assert_eq!(models.bytes().await.unwrap(), direct.bytes().await.unwrap());
    let response = stage.post("/v1/messages/count_tokens", "{ not even JSON").send().await.unwrap();
    assert!(!response.headers().contains_key("x-fanfold"));
    let seen = stage.upstream.seen();
    let last = seen.last().unwrap();
    assert_eq!((last.path.as_str(), last.text().as_str()), ("/v1/messages/count_tokens", "{ not even JSON"));
    assert_eq!(stage.meter.status().totals.passed_through, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_decompressed_only_when_folded() {
    let stage = Stage::new(StageOptions { window: NARROW, ..StageOptions::default() }).await;
    let send = async |messages: &[Value]| {
        let packed = zstd::encode_all(chat(messages).as_bytes(), 3).unwrap();
        let request = stage.post("/v1/chat/completions", packed).header("content-encoding", "zstd");
        let response = request.send().await.unwrap();
        let seen = stage.upstream.seen();
        (outcome(&response), seen.last().unwrap().header("content-encoding").map(str::to_owned))
    };
    let messages = long_chat(12);
    assert_eq!(send(&messages[..2]).await, ("whole".to_owned(), Some("zstd".to_owned())));
    assert_eq!(send(&messages).await, ("folded".to_owned(), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_speak_http_2() {
    let stage = Stage::new(StageOptions::default()).await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let request = client.post(stage.url("/v1/chat/completions")).body(chat(&long_chat(1)));
    let response = request.send().await.unwrap();
    assert_eq!((response.version(), response.status().as_u16()), (http::Version::HTTP_2, 200));
    assert_eq!(outcome(&response), "whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn observing_changes_nothing_and_counts() {
    let stage =
        Stage::new(StageOptions { window: NARROW, mode: Mode::Observe, ..StageOptions::default() }).await;
    let body = chat(&long_chat(12));
    let response = stage.chat(&body).await;
    assert_eq!(outcome(&response), "observed");
    assert_eq!(stage.upstream.seen()[0].text(), body);
    drop(response.bytes().await);
    let status = stage.meter.status();
    assert_eq!(status.totals.outcomes.get("observed"), Some(&1), "{status:?}");
    assert!(status.totals.tokens.came > status.totals.tokens.sent, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_reported_usage_from_the_response() {
    let stage = Stage::new(StageOptions::default()).await;
    for is_stream in [false, true] {
        let body = json!({ "model": "m", "stream": is_stream, "stream_options": { "include_usage": is_stream },
            "messages": [{ "role": "user", "content": "hi" }] });
        let mut body = body;
        if !is_stream {
            body.as_object_mut().unwrap().shift_remove("stream_options");
        }
        drop(stage.chat(&body.to_string()).await.bytes().await.unwrap());
    }
    let totals = stage.meter.status().totals;
    assert!(totals.tokens.input > 0, "{totals:?}");
    assert_eq!(totals.tokens.output, 40, "two answers of 20, each counted once");
    assert_eq!(totals.ended.get("done"), Some(&2), "{totals:?}");
}
