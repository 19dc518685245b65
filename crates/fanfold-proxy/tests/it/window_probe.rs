//! Context windows probed from model servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_engine::Mode;
use fanfold_proxy::meter::Meter;
use fanfold_proxy::{Config, Host, Limits, Recall, Running, Upstream as Target, Upstreams, serve};
use fanfold_replay::PriceTable;
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, chat, long_chat, outcome};

/// A unique conversation of a few thousand words with an unknown model.
fn conversation(name: &str, n_steps: usize) -> String {
    let mut messages = long_chat(n_steps);
    messages[1]["content"] = format!("{name}: find out why records are lost.").into();
    chat(&messages).replacen("\"model\":\"m\"", "\"model\":\"unknown-1\"", 1)
}

fn list(window: u64) -> Value {
    json!({ "data": [{ "id": "unknown-1", "owned_by": "vllm", "max_model_len": window }] })
}

fn n_probes(stage: &Stage) -> usize {
    stage.upstream.seen().iter().filter(|seen| seen.method == "GET").count()
}

/// Starts sessions until one has the expected outcome.
async fn begin_until(stage: &Stage, wanted: &str) -> String {
    for i in 0..200 {
        let name = format!("session {i}");
        let response = stage.chat(&conversation(&name, 40)).await;
        let observed = outcome(&response);
        drop(response.bytes().await);
        if observed == wanted {
            return name;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no session was sent {wanted}");
}

/// Another proxy in front of the same provider, on the same store.
async fn second_proxy(stage: &Stage) -> Running {
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        upstreams: Upstreams::one(&Target::parse(&stage.upstream.url()).unwrap()),
        host: Arc::clone(&stage.host) as Arc<dyn Host>,
        mode: Mode::Fold,
        recall: Recall::Off,
        meter: Arc::new(Meter::new(PriceTable::built_in())),
        memory: None,
        ca: None,
        mcp: None,
        web_access: fanfold_proxy::WebAccess::default(),
        token: None,
        limits: Limits { deadline: Duration::from_secs(20), ..Limits::default() },
    };
    serve(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probed_window_applies_to_later_sessions() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.answer_at("/v1/models", &list(2500));
    // The first session uses the assumed window and does not wait.
    let first = stage.chat(&conversation("the first", 40)).await;
    assert_eq!(outcome(&first), "whole");
    drop(first.bytes().await);
    let folded = begin_until(&stage, "folded").await;
    // There is one probe, with the API key of the client.
    assert_eq!(n_probes(&stage), 1);
    let asked = stage.upstream.seen().into_iter().find(|seen| seen.method == "GET").unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer the-clients-own"));
    // Each session keeps the window it began with.
    assert_eq!(outcome(&stage.chat(&conversation("the first", 41)).await), "whole");
    assert_eq!(outcome(&stage.chat(&conversation(&folded, 41)).await), "folded");
    // This also holds after a restart, before any probe.
    let running = second_proxy(&stage).await;
    for (name, expected) in [("the first", "whole"), (folded.as_str(), "folded")] {
        let url = format!("http://{}/v1/chat/completions", running.address());
        let response = stage.client.post(url).body(conversation(name, 42)).send().await.unwrap();
        assert_eq!(outcome(&response), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_probed_window_is_used() {
    let stage = Stage::new(StageOptions { window: 2500, ..StageOptions::default() }).await;
    stage.upstream.answer_at("/v1/models", &list(100_000));
    assert_eq!(outcome(&stage.chat(&conversation("the first", 40)).await), "folded");
    begin_until(&stage, "whole").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_models_are_not_probed() {
    let stage = Stage::new(StageOptions::default()).await;
    for i in 0..3 {
        let body = conversation(&format!("session {i}"), 3).replacen("unknown-1", "known-1", 1);
        drop(stage.chat(&body).await.bytes().await);
    }
    assert!(stage.running.stop().await);
    assert_eq!(n_probes(&stage), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_probe_is_not_repeated_at_once() {
    let stage = Stage::new(StageOptions::default()).await;
    for i in 0..5 {
        drop(stage.chat(&conversation(&format!("session {i}"), 3)).await.bytes().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(stage.running.stop().await);
    let lists = stage.upstream.seen().iter().filter(|seen| seen.path == "/v1/models").count();
    assert_eq!(lists, 1);
}

/// A provider that answers prompts but no probes.
fn provider_without_probes() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut head = [0; 4];
                if stream.read_exact(&mut head).is_err() || &head != b"POST" {
                    std::thread::sleep(Duration::from_secs(60));
                }
                // A short body arrives with its headers.
                let _ = stream.read(&mut [0; 65536]);
                let body =
                    r#"{"choices":[{"index":0,"message":{"content":"Done."},"finish_reason":"stop"}]}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_delay_no_request() {
    let stage = Stage::with_provider(&provider_without_probes(), StageOptions::default()).await;
    for i in 0..3 {
        let began = Instant::now();
        let response = stage.chat(&conversation(&format!("session {i}"), 1)).await;
        assert_eq!(response.status(), 200);
        drop(response.bytes().await);
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
}
