//! Load beyond the limits: too many clients, large bodies, forwarding loops.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_proxy::{Config, Limits, ServeError, Upstream, Upstreams, serve};
use fanfold_testkit::fakes::upstream::Fault;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::setting::{Stage, StageOptions, chat, long_chat, outcome};

const HALF: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ";
const BEGUN: &[u8] = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{\"mod";

async fn open(stage: &Stage, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(stage.running.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The status of a local route, requested on a new connection.
async fn status_of(stage: &Stage, path: &str) -> Option<u16> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client.get(stage.url(path)).timeout(Duration::from_secs(5)).send().await;
    response.ok().map(|response| response.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_requests_block_no_other_clients() {
    for begun in [HALF, BEGUN, b""] {
        let limits = Limits { connections: 8, ..Limits::default() };
        let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
        let mut slow = Vec::new();
        for _ in 0..40 {
            slow.push(open(&stage, begun).await);
        }
        assert_eq!(status_of(&stage, "/fanfold/health").await, Some(200));
        assert_eq!(status_of(&stage, "/fanfold/ready").await, Some(200));
        assert_eq!(stage.chat(&chat(&long_chat(1))).await.status(), 200);
        drop(slow);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_slots_get_503() {
    let limits = Limits { connections: 2, deadline: Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let mut streams = Vec::new();
    for _ in 0..2 {
        stage.upstream.fault(Fault::Drip(Duration::from_millis(700)));
        let mut response = stage.chat(&body.to_string()).await;
        let first = response.chunk().await.unwrap().unwrap();
        streams.push((response, first.to_vec()));
    }
    assert_eq!(status_of(&stage, "/fanfold/health").await, Some(200));
    assert_eq!(status_of(&stage, "/fanfold/ready").await, Some(200));
    let refused = stage.chat(&chat(&long_chat(1))).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    assert!(refused.text().await.unwrap().contains("all 2 slots are taken"));
    for (mut response, mut got) in streams {
        while let Some(chunk) = response.chunk().await.unwrap() {
            got.extend_from_slice(&chunk);
        }
        assert!(String::from_utf8(got).unwrap().contains("[DONE]"), "a running stream is not cut off");
    }
    assert_eq!(stage.chat(&chat(&long_chat(1))).await.status(), 200, "a slot is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_has_a_shorter_timeout() {
    let limits = Limits { first_request: Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    let mut slow = open(&stage, HALF).await;
    let ended = tokio::time::timeout(Duration::from_secs(5), slow.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection is closed");
    let health = b"GET /fanfold/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    let mut kept = open(&stage, health).await;
    let mut answer = [0; 12];
    kept.read_exact(&mut answer).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    kept.write_all(health).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(1), kept.read_to_end(&mut rest)).await;
    assert!(
        String::from_utf8_lossy(&rest).contains("HTTP/1.1 200"),
        "later requests have the longer timeout"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_wait_for_quota_and_are_then_forwarded() {
    let deadline = Duration::from_millis(1500);
    let limits = Limits { buffered_bytes: 512 << 10, deadline, ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, window: 10_000_000, ..StageOptions::default() }).await;
    let body = |n_words: usize| {
        let content = "word ".repeat(n_words);
        json!({ "model": "m", "messages": [{ "role": "user", "content": content }] }).to_string()
    };
    let packed = |n_words: usize| {
        let packed = zstd::encode_all(body(n_words).as_bytes(), 3).unwrap();
        stage.post("/v1/chat/completions", packed).header("content-encoding", "zstd").send()
    };
    assert_eq!(
        outcome(&packed(110_000).await.unwrap()),
        "whole",
        "a body larger than the quota gets all of it"
    );
    stage.upstream.fault(Fault::Stall(Duration::from_secs(4)));
    let first = tokio::spawn(packed(110_000));
    assert!(stage.upstream.wait_for(Duration::from_secs(10), |seen| seen.len() == 2));
    let second = packed(100_000).await.unwrap();
    assert_eq!(outcome(&second), "as it came: deadline", "the body was not decompressed");
    assert_eq!(outcome(&stage.chat(&body(100_000)).await), "as it came: busy");
    assert_eq!(outcome(&stage.chat(&body(1_000)).await), "whole", "a small body needs no quota");
    assert_eq!(outcome(&first.await.unwrap().unwrap()), "whole");
    assert_eq!(outcome(&stage.chat(&body(100_000)).await), "whole");
    assert!(
        stage.upstream.seen().iter().all(|seen| seen.violations.is_empty()),
        "every body arrived complete"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_too_many_messages_is_forwarded_unread() {
    let limits = Limits { messages: 60, ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    let messages: Vec<_> = (0..61).map(|i| json!({ "role": "user", "content": i.to_string() })).collect();
    assert_eq!(outcome(&stage.chat(&chat(&messages[..60])).await), "whole");
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "as it came: too_large");
    assert_eq!(stage.received()[1], chat(&messages));
}

#[tokio::test(flavor = "multi_thread")]
async fn detects_forwarding_loops() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}", listener.local_addr().unwrap());
    let stage = Stage::with_provider_at(elsewhere, StageOptions::default()).await;
    let (proxy, n_passed) = (stage.running.address(), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&n_passed);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            *counted.lock().unwrap() += 1;
            let mut to = TcpStream::connect(proxy).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    let response = stage.chat(&chat(&long_chat(1))).await;
    assert_eq!(response.status(), 508);
    assert!(response.text().await.unwrap().contains("came back"));
    assert_eq!(*n_passed.lock().unwrap(), 1, "the loop is detected on the second pass");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_its_own_address_as_upstream() {
    let stage = Stage::new(StageOptions::default()).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for host in ["127.0.0.1", "localhost"] {
        let itself = Upstream::parse(&format!("http://{host}:{port}/v1")).unwrap();
        let listen = format!("127.0.0.1:{port}").parse().unwrap();
        let config = Config { listen, upstreams: Upstreams::one(&itself), ..stage.config.clone() };
        assert!(matches!(serve(config).await, Err(ServeError::OwnAddress(_))), "{host}");
    }
    assert_eq!(stage.chat(&chat(&long_chat(1))).await.status(), 200);
    let via = stage.upstream.seen()[0].header("via").map(str::to_owned);
    assert!(via.is_some_and(|via| via.starts_with("1.1 fanfold-")), "requests carry the marker of the proxy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_http2_control_frames_ends_its_connection() {
    let stage = Stage::new(StageOptions::default()).await;
    let settings: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    for flood in [ping, settings] {
        let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings].concat();
        let (mut from, mut to) = open(&stage, &preface).await.into_split();
        let reading = tokio::spawn(async move { tokio::io::copy(&mut from, &mut tokio::io::sink()).await });
        let frames = flood.repeat(1_000);
        let sending = async { while to.write_all(&frames).await.is_ok() {} };
        let ended = tokio::time::timeout(Duration::from_secs(5), sending).await;
        assert!(ended.is_ok(), "the connection takes more and more frames");
        let ended = tokio::time::timeout(Duration::from_secs(5), reading).await;
        assert!(ended.is_ok(), "the connection is closed");
    }
    assert_eq!(status_of(&stage, "/fanfold/health").await, Some(200));
}
