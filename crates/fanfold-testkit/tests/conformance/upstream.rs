//! Tests of the replies and faults of the scripted provider.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fanfold_testkit::fakes::upstream::{ConstantReply, Fault, Limit, RequestEnd, Script, Upstream};
use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::{Value, json};

const PATHS: [(BodyFormat, &str); 3] = [
    (BodyFormat::Chat, "/v1/chat/completions"),
    (BodyFormat::Responses, "/v1/responses"),
    (BodyFormat::Anthropic, "/v1/messages"),
];

fn body(kind: BodyFormat, is_stream: bool) -> Value {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    match kind {
        BodyFormat::Anthropic => json!({ "model": "m", "max_tokens": 9, "stream": is_stream,
            "tools": [{ "name": "Bash", "input_schema": schema }],
            "messages": [{ "role": "user", "content": "Look." }] }),
        BodyFormat::Responses => json!({ "model": "m", "stream": is_stream, "input": "Look.",
            "tools": [{ "type": "function", "name": "shell", "parameters": schema }] }),
        _ => json!({ "model": "m", "stream": is_stream,
            "tools": [{ "type": "function", "function": { "name": "bash", "parameters": schema } }],
            "messages": [{ "role": "user", "content": "Look." }] }),
    }
}

/// Sends a request on a new connection and returns the whole response.
fn send(upstream: &Upstream, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn every_api_answers_with_and_without_streaming() {
    for (kind, path) in PATHS {
        let upstream = Upstream::start(Script::steps(1)).unwrap();
        let call = send(&upstream, "POST", path, &body(kind, false).to_string());
        assert!(call.starts_with("HTTP/1.1 200 OK\r\n") && call.contains("ls -la"), "{call}");
        let text = send(&upstream, "POST", path, &body(kind, true).to_string());
        assert!(text.contains("text/event-stream") && text.contains(" results."), "{text}");
        let seen = upstream.seen();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen| seen.kind == Some(kind) && seen.violations.is_empty()), "{seen:?}");
        assert_eq!(seen[1].ended, Some(RequestEnd::Answered(200)));
    }
}

#[test]
fn invalid_and_overlong_requests_are_refused() {
    let upstream = Upstream::start(Script::steps(1)).unwrap();
    let invalid = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "" }] });
    let answer = send(&upstream, "POST", "/v1/messages", &invalid.to_string());
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("messages[0]: a message has non-empty content"),
        "{answer}"
    );
    upstream.set_limit(Some(Limit::Bytes(100)));
    for (kind, path) in PATHS {
        let answer = send(&upstream, "POST", path, &body(kind, true).to_string());
        let words =
            if kind == BodyFormat::Anthropic { "prompt is too long" } else { "context_length_exceeded" };
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(words), "{answer}");
    }
    upstream.set_limit(Some(Limit::Tokens(10_000, &fanfold_core::Words)));
    let answer = send(&upstream, "POST", PATHS[0].1, &body(BodyFormat::Chat, false).to_string());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let refused = upstream.seen().iter().filter(|seen| seen.is_too_long).count();
    assert_eq!(refused, 3);
}

#[test]
fn other_routes_are_answered() {
    let upstream = Upstream::start(Script::steps(0)).unwrap();
    assert!(send(&upstream, "GET", "/v1/models?limit=2", "").contains("scripted-1"));
    assert!(send(&upstream, "POST", "/v1/messages/count_tokens", "{}").contains("input_tokens"));
    assert!(send(&upstream, "GET", "/nowhere", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn faults_replace_the_answer() {
    let upstream = Upstream::start(Script::steps(0)).unwrap();
    let ask =
        |is_stream| send(&upstream, "POST", PATHS[2].1, &body(BodyFormat::Anthropic, is_stream).to_string());
    upstream.fault(Fault::HangUp);
    assert_eq!(ask(true), "");
    upstream.fault(Fault::Disconnect(3));
    let aborted = ask(true);
    assert!(aborted.contains("message_start") && !aborted.contains("message_stop"), "{aborted}");
    upstream.fault(Fault::Disconnect(0));
    let half = ask(false);
    let length: usize =
        half.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert!(half.split("\r\n\r\n").nth(1).unwrap_or_default().len() < length, "{half}");
    upstream.fault(Fault::Garbage);
    assert!(ask(true).contains("oops"));
    upstream.fault(Fault::NotHttp);
    assert!(!ask(true).starts_with("HTTP"));
    for status in [429, 500, 529] {
        upstream.fault(Fault::Status(status));
        let answer = ask(true);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains("retry-after: 7"),
            "{answer}"
        );
    }
    upstream.fault(Fault::Answer(413, String::new()));
    assert!(ask(true).starts_with("HTTP/1.1 413"));
    assert!(ask(true).contains("message_stop"), "later requests are answered");
}

#[test]
fn faults_change_the_reply() {
    for (kind, path) in PATHS {
        let upstream = Upstream::start(Script::steps(0)).unwrap();
        let ask = |is_stream| send(&upstream, "POST", path, &body(kind, is_stream).to_string());
        let end = if kind == BodyFormat::Responses { "response.completed" } else { "_stop" };
        let is_complete = |answer: &str| {
            if kind == BodyFormat::Chat { answer.contains("[DONE]") } else { answer.contains(end) }
        };
        upstream.fault(Fault::EndEarly(2));
        let cut = ask(true);
        assert!(cut.ends_with("0\r\n\r\n") && !is_complete(&cut), "{cut}");
        upstream.fault(Fault::LateError(2));
        let late = ask(true);
        assert!(late.contains("200 OK") && late.contains("overloaded") && !is_complete(&late), "{late}");
        upstream.fault(Fault::ReplyText("I can't help with that.".to_owned()));
        let answer = ask(true);
        assert!(is_complete(&answer) && answer.contains("I can't help with"), "{answer}");
        upstream.fault(Fault::GatewayPage(502));
        let page = ask(true);
        assert!(page.starts_with("HTTP/1.1 502") && page.contains("text/html"), "{page}");
        upstream.fault(Fault::AnswerWith(
            429,
            vec![("retry-after".to_owned(), "1".to_owned())],
            "no".to_owned(),
        ));
        assert!(ask(true).contains("retry-after: 1\r\n"));
        for (status, words) in [(401, "API key"), (402, "Balance"), (403, "may not"), (404, "m")] {
            upstream.fault(Fault::Status(status));
            let refused = ask(false);
            assert!(
                refused.starts_with(&format!("HTTP/1.1 {status}")) && refused.contains(words),
                "{refused}"
            );
        }
        upstream.set_models(&["n"]);
        assert!(ask(true).starts_with("HTTP/1.1 404"));
        upstream.set_models(&["m"]);
        assert!(is_complete(&ask(true)));
        upstream.answer_at("/props", &json!({ "n_ctx": 7 }));
        assert!(send(&upstream, "GET", "/props", "").ends_with("{\"n_ctx\":7}"));
    }
    for (kind, path, stop) in
        [(BodyFormat::Chat, PATHS[0].1, "length"), (BodyFormat::Anthropic, PATHS[2].1, "max_tokens")]
    {
        let upstream = Upstream::start(Script::steps(0)).unwrap();
        upstream.fault(Fault::StopReason(stop.to_owned()));
        let answer = send(&upstream, "POST", path, &body(kind, true).to_string());
        assert!(answer.contains(&format!("_reason\":\"{stop}\"")), "{answer}");
    }
}

#[test]
fn a_disconnected_client_is_noticed() {
    let upstream = Upstream::start(Script::steps(0)).unwrap();
    for fault in [Fault::Stall(Duration::from_secs(30)), Fault::Drip(Duration::from_secs(30))] {
        upstream.fault(fault);
        let n_before = upstream.n_seen();
        let mut stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
        let body = body(BodyFormat::Chat, true).to_string();
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        assert!(upstream.wait_for(Duration::from_secs(5), |seen| seen.len() > n_before));
        drop(stream);
        let is_gone = upstream.wait_for(Duration::from_secs(5), |seen| {
            seen.last().is_some_and(|last| last.ended == Some(RequestEnd::ClientGone))
        });
        assert!(is_gone);
    }
}

#[test]
fn a_constant_provider_is_fast() {
    let upstream = Upstream::start_constant(0, ConstantReply::new(5, Duration::ZERO)).unwrap();
    let started = Instant::now();
    for (kind, path) in PATHS {
        for _ in 0..50 {
            let answer = send(&upstream, "POST", path, &body(kind, true).to_string());
            assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
        }
        assert!(send(&upstream, "POST", path, &body(kind, false).to_string()).contains("a word or two"));
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
