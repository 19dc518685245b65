//! Requests and answers.

use std::time::Duration;

use fanfold_provider::ErrorClass;
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptedReply, Upstream};
use serde_json::{Value, json};

use crate::setup::{ANTHROPIC, OPENAI, PROVIDERS, expect_error, raw, say, send, upstream};

#[test]
fn both_styles_send_valid_requests_and_read_answers() {
    for provider in PROVIDERS {
        let upstream = upstream();
        let answer = send(provider, &upstream.url()).unwrap();
        assert_eq!(answer.text, "All of it is done, and well — so it is.");
        assert!(!answer.is_truncated);
        assert!(answer.usage.is_some_and(|usage| usage.input > 10 && usage.output == 20), "{answer:?}");
        assert_eq!(answer.model.as_deref(), Some("m"));
        let seen = upstream.seen();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].violations.is_empty() && seen[0].text().contains("\"stream\":true"), "{seen:?}");
        assert!(seen[0].header("authorization").is_none() && seen[0].header("x-api-key").is_none());
    }
}

#[test]
fn the_blocking_call_works_inside_of_a_runtime() {
    let upstream = upstream();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async { send(OPENAI, &upstream.url()) }).unwrap();
    assert!(answer.text.starts_with("All of it"));
}

#[test]
fn thoughts_are_removed() {
    for provider in PROVIDERS {
        let script = Script::new(|_| ScriptedReply {
            thought: "Let me see, the user wants…".to_owned(),
            ..say("Done.")
        });
        let upstream = Upstream::start(script).unwrap();
        assert_eq!(send(provider, &upstream.url()).unwrap().text, "Done.");
        upstream.fault(Fault::ReplyText("<think>\nLet me see.\n</think>\n\nDone.".to_owned()));
        assert_eq!(send(provider, &upstream.url()).unwrap().text, "Done.");
        upstream.fault(Fault::ReplyText("<think>for ever".to_owned()));
        expect_error(provider, &upstream.url(), ErrorClass::Empty);
    }
}

#[test]
fn an_answer_at_the_output_limit_is_truncated() {
    for (provider, stop) in [(OPENAI, "length"), (ANTHROPIC, "max_tokens")] {
        let upstream = upstream();
        upstream.fault(Fault::StopReason(stop.to_owned()));
        assert!(send(provider, &upstream.url()).unwrap().is_truncated);
    }
}

/// The events of a whole answer, from a server without content lengths.
fn stream_bytes(provider: &str) -> Vec<u8> {
    let event = |name: &str, value: Value| match provider {
        OPENAI => format!("data: {value}\r\n\r\n"),
        _ => format!("event: {name}\ndata: {value}\n\n"),
    };
    let events = match provider {
        OPENAI => {
            let chunk = |delta: Value, stop: Value| {
                event(
                    "",
                    json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }] }),
                )
            };
            [
                ": waiting\n\n".to_owned(),
                chunk(json!({ "reasoning_content": "Hm." }), Value::Null),
                chunk(json!({ "content": "Größe " }), Value::Null),
                chunk(json!({ "content": "\"zwölf\"\n✓" }), Value::Null),
                chunk(json!({}), "stop".into()),
                event("", json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4 } })),
                "data: [DONE]\n\n".to_owned(),
            ]
            .concat()
        }
        _ => {
            let block = json!({ "type": "text", "text": "" });
            let delta = |text: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } });
            [
                event("message_start", json!({ "type": "message_start", "message": { "id": "a", "model": "m", "usage": { "input_tokens": 3, "output_tokens": 1 } } })),
                event("content_block_start", json!({ "type": "content_block_start", "index": 0, "content_block": block })),
                event("content_block_delta", delta("Größe ")),
                event("ping", json!({ "type": "ping" })),
                event("content_block_delta", delta("\"zwölf\"\n✓")),
                event("message_delta", json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 4 } })),
                event("message_stop", json!({ "type": "message_stop" })),
            ]
            .concat()
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    [head.as_bytes(), events.as_bytes()].concat()
}

#[test]
fn a_stream_split_at_every_byte_on_the_wire_gives_the_same_answer() {
    let is_long = std::env::var_os("FANFOLD_MANY").is_some();
    for provider in PROVIDERS {
        let bytes = stream_bytes(provider);
        // Every byte alone first, then one split at every offset; a quick run takes only some of them.
        let step = if is_long { 1 } else { 23 };
        let mut answers: Vec<Vec<Vec<u8>>> = vec![bytes.iter().map(|byte| vec![*byte]).collect()];
        answers.extend(
            (1..bytes.len()).step_by(step).map(|cut| vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()]),
        );
        let n_answers = answers.len();
        let url = raw(answers, Duration::from_micros(200));
        for i in 0..n_answers {
            let answer = send(provider, &url).unwrap_or_else(|error| panic!("{provider} {i}: {error}"));
            assert_eq!(answer.text, "Größe \"zwölf\"\n✓", "{provider} {i}");
            let usage = answer.usage.map(|usage| (usage.input, usage.output));
            assert_eq!(usage, Some((3, 4)), "{provider} {i}");
        }
    }
}
