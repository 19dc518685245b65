//! The scripted provider answers as each API does, and fails as it is told.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::upstream::{Ended, Fault, Limit, Quick, Script, Upstream};
use serde_json::{Value, json};

const PATHS: [(Kind, &str); 3] = [
    (Kind::Chat, "/v1/chat/completions"),
    (Kind::Responses, "/v1/responses"),
    (Kind::Anthropic, "/v1/messages"),
];

fn body(kind: Kind, is_stream: bool) -> Value {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    match kind {
        Kind::Anthropic => json!({ "model": "m", "max_tokens": 9, "stream": is_stream,
            "tools": [{ "name": "Bash", "input_schema": schema }],
            "messages": [{ "role": "user", "content": "Look." }] }),
        Kind::Responses => json!({ "model": "m", "stream": is_stream, "input": "Look.",
            "tools": [{ "type": "function", "name": "shell", "parameters": schema }] }),
        _ => json!({ "model": "m", "stream": is_stream,
            "tools": [{ "type": "function", "function": { "name": "bash", "parameters": schema } }],
            "messages": [{ "role": "user", "content": "Look." }] }),
    }
}

/// Sends a request on a connection of its own, and gives all that comes back.
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
fn every_api_is_answered_whole_and_as_a_stream() {
    for (kind, path) in PATHS {
        let upstream = Upstream::start(Script::steps(1)).unwrap();
        let call = send(&upstream, "POST", path, &body(kind, false).to_string());
        assert!(call.starts_with("HTTP/1.1 200 OK\r\n") && call.contains("ls -la"), "{call}");
        let text = send(&upstream, "POST", path, &body(kind, true).to_string());
        assert!(text.contains("text/event-stream") && text.contains(" results."), "{text}");
        let seen = upstream.seen();
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen| seen.kind == Some(kind) && seen.broken.is_empty()), "{seen:?}");
        assert_eq!(seen[1].ended, Some(Ended::Answered(200)));
    }
}

#[test]
fn what_breaks_a_rule_or_is_too_long_is_refused() {
    let upstream = Upstream::start(Script::steps(1)).unwrap();
    let invalid = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "" }] });
    let said = send(&upstream, "POST", "/v1/messages", &invalid.to_string());
    assert!(
        said.starts_with("HTTP/1.1 400") && said.contains("messages[0]: a message has a content"),
        "{said}"
    );
    upstream.set_limit(Some(Limit::Bytes(100)));
    for (kind, path) in PATHS {
        let said = send(&upstream, "POST", path, &body(kind, true).to_string());
        let words = if kind == Kind::Anthropic { "prompt is too long" } else { "context_length_exceeded" };
        assert!(said.starts_with("HTTP/1.1 400") && said.contains(words), "{said}");
    }
    upstream.set_limit(Some(Limit::Tokens(10_000, &fanfold_core::Words)));
    let said = send(&upstream, "POST", PATHS[0].1, &body(Kind::Chat, false).to_string());
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
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
fn faults_are_what_they_say() {
    let upstream = Upstream::start(Script::steps(0)).unwrap();
    let ask = |is_stream| send(&upstream, "POST", PATHS[2].1, &body(Kind::Anthropic, is_stream).to_string());
    upstream.fault(Fault::HangUp);
    assert_eq!(ask(true), "");
    upstream.fault(Fault::Die(3));
    let died = ask(true);
    assert!(died.contains("message_start") && !died.contains("message_stop"), "{died}");
    upstream.fault(Fault::Die(0));
    let half = ask(false);
    let length: usize =
        half.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert!(half.split("\r\n\r\n").nth(1).unwrap_or_default().len() < length, "{half}");
    upstream.fault(Fault::Garbage);
    assert!(ask(true).contains("oops"));
    upstream.fault(Fault::NoHttp);
    assert!(!ask(true).starts_with("HTTP"));
    for status in [429, 500, 529] {
        upstream.fault(Fault::Status(status));
        let said = ask(true);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")) && said.contains("retry-after: 7"), "{said}");
    }
    upstream.fault(Fault::Answer(413, String::new()));
    assert!(ask(true).starts_with("HTTP/1.1 413"));
    assert!(ask(true).contains("message_stop"), "and then all is well");
}

#[test]
fn faults_of_answers_are_what_they_say() {
    for (kind, path) in PATHS {
        let upstream = Upstream::start(Script::steps(0)).unwrap();
        let ask = |is_stream| send(&upstream, "POST", path, &body(kind, is_stream).to_string());
        let end = if kind == Kind::Responses { "response.completed" } else { "_stop" };
        let is_complete = |answer: &str| {
            if kind == Kind::Chat { answer.contains("[DONE]") } else { answer.contains(end) }
        };
        upstream.fault(Fault::Cut(2));
        let cut = ask(true);
        assert!(cut.ends_with("0\r\n\r\n") && !is_complete(&cut), "{cut}");
        upstream.fault(Fault::Late(2));
        let late = ask(true);
        assert!(late.contains("200 OK") && late.contains("overloaded") && !is_complete(&late), "{late}");
        upstream.fault(Fault::Say("I can't help with that.".to_owned()));
        let said = ask(true);
        assert!(is_complete(&said) && said.contains("I can't help with"), "{said}");
        upstream.fault(Fault::Page(502));
        let page = ask(true);
        assert!(page.starts_with("HTTP/1.1 502") && page.contains("text/html"), "{page}");
        upstream.fault(Fault::With(429, vec![("retry-after".to_owned(), "1".to_owned())], "no".to_owned()));
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
        [(Kind::Chat, PATHS[0].1, "length"), (Kind::Anthropic, PATHS[2].1, "max_tokens")]
    {
        let upstream = Upstream::start(Script::steps(0)).unwrap();
        upstream.fault(Fault::Stop(stop.to_owned()));
        let said = send(&upstream, "POST", path, &body(kind, true).to_string());
        assert!(said.contains(&format!("_reason\":\"{stop}\"")), "{said}");
    }
}

#[test]
fn who_hangs_up_is_noticed() {
    let upstream = Upstream::start(Script::steps(0)).unwrap();
    for fault in [Fault::Stall(Duration::from_secs(30)), Fault::Drip(Duration::from_secs(30))] {
        upstream.fault(fault);
        let n_before = upstream.n_seen();
        let mut stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
        let body = body(Kind::Chat, true).to_string();
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        assert!(upstream.wait_for(Duration::from_secs(5), |seen| seen.len() > n_before));
        drop(stream);
        let is_gone = upstream.wait_for(Duration::from_secs(5), |seen| {
            seen.last().is_some_and(|last| last.ended == Some(Ended::Gone))
        });
        assert!(is_gone);
    }
}

#[test]
fn a_quick_provider_is_quick() {
    let upstream = Upstream::quick(0, Quick::new(5, Duration::ZERO)).unwrap();
    let started = Instant::now();
    for (kind, path) in PATHS {
        for _ in 0..50 {
            let said = send(&upstream, "POST", path, &body(kind, true).to_string());
            assert!(said.ends_with("0\r\n\r\n"), "{said}");
        }
        assert!(send(&upstream, "POST", path, &body(kind, false).to_string()).contains("a word or two"));
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
