//! Bytes that a provider sends to keep the connection alive are forwarded while the model thinks.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanfold_proxy::Recall;
use serde_json::json;

use crate::setting::{Stage, StageOptions, chat, long_chat};

const OPENROUTER: &str = ": OPENROUTER PROCESSING\n\n";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// The response of a slow provider: a beginning, keep-alive bytes until the test continues, then the rest.
#[derive(Clone, Copy)]
struct SlowResponse {
    kind: &'static str,
    first: &'static str,
    sign: &'static str,
    rest: &'static str,
}

/// A provider that sends keep-alive bytes until the test continues.
fn provider(slow_response: SlowResponse) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let may_continue = Arc::new(AtomicBool::new(false));
    let may_continue_shared = Arc::clone(&may_continue);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 65536]).unwrap();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {}\r\nconnection: close\r\n\r\n", slow_response.kind);
        stream.write_all(format!("{head}{}", slow_response.first).as_bytes()).unwrap();
        while !may_continue_shared.load(Ordering::SeqCst) {
            if stream.write_all(slow_response.sign.as_bytes()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        let _ = stream.write_all(slow_response.rest.as_bytes());
    });
    (address, may_continue)
}

/// The client receives the first bytes while the model thinks, and all bytes at the end.
async fn check(path: &str, body: String, slow_response: SlowResponse, options: StageOptions) {
    let (first, sign, rest) = (slow_response.first, slow_response.sign, slow_response.rest);
    let (address, may_continue) = provider(slow_response);
    let stage = Stage::with_provider_at(address, options).await;
    let began = Instant::now();
    let seen = async {
        let mut response = stage.post(path, body).send().await.unwrap();
        let chunk = response.chunk().await.unwrap().unwrap();
        (response, chunk.to_vec())
    };
    let seen = tokio::time::timeout(Duration::from_secs(5), seen).await;
    may_continue.store(true, Ordering::SeqCst);
    let (mut response, mut received) = seen.unwrap_or_else(|_| panic!("{path}: all of it is held back"));
    assert!(began.elapsed() < Duration::from_secs(2), "{path}: {:?}", began.elapsed());
    while let Some(chunk) = response.chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    let received = String::from_utf8(received).unwrap();
    let signs =
        received.strip_prefix(first).unwrap().strip_suffix(rest).unwrap_or_else(|| panic!("{received}"));
    assert_eq!(signs.replace(sign, ""), "", "no byte is added or lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_reach_the_client_while_the_model_thinks() {
    let rest = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let slow_response = SlowResponse { kind: "text/event-stream", first: OPENROUTER, sign: OPENROUTER, rest };
    check("/v1/chat/completions", body.to_string(), slow_response, StageOptions::default()).await;
    let first = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
    let slow_response = SlowResponse { kind: "text/event-stream", first, sign: "", rest };
    check("/v1/chat/completions", body.to_string(), slow_response, StageOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_reach_the_client_while_the_model_thinks() {
    let first = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\
        \"role\":\"assistant\",\"model\":\"x\",\"content\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";
    let rest = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let body = json!({ "model": "m", "max_tokens": 9, "stream": true,
        "messages": [{ "role": "user", "content": "hi" }] });
    let slow_response = SlowResponse { kind: "text/event-stream", first, sign: PING, rest };
    check("/v1/messages", body.to_string(), slow_response, StageOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn white_space_before_a_whole_answer_reaches_the_client() {
    let rest =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
    for recall in [Recall::Off, Recall::Tool] {
        let slow_response = SlowResponse { kind: "application/json", first: "\n", sign: "   \n", rest };
        let options = StageOptions { recall, ..StageOptions::default() };
        check("/v1/chat/completions", chat(&long_chat(1)), slow_response, options).await;
    }
}
