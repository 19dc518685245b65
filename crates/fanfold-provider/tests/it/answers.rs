//! What is asked, and what is heard.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_provider::{ErrorClass, Style};
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptedReply, Upstream};
use serde_json::{Value, json};

use crate::setting::{STYLES, ask, client, fault, prompt, raw, said, upstream};

#[test]
fn both_styles_are_answered_and_their_requests_break_no_rule() {
    for style in STYLES {
        let upstream = upstream();
        let answer = ask(style, &upstream.url()).unwrap();
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
fn it_may_be_asked_from_inside_of_a_runtime() {
    let upstream = upstream();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async { ask(Style::OpenAi, &upstream.url()) }).unwrap();
    assert!(answer.text.starts_with("All of it"));
}

#[test]
fn thoughts_are_not_the_answer() {
    for style in STYLES {
        let script = Script::new(|_| ScriptedReply {
            thought: "Let me see, the user wants…".to_owned(),
            ..said("Done.")
        });
        let upstream = Upstream::start(script).unwrap();
        assert_eq!(ask(style, &upstream.url()).unwrap().text, "Done.");
        upstream.fault(Fault::ReplyText("<think>\nLet me see.\n</think>\n\nDone.".to_owned()));
        assert_eq!(ask(style, &upstream.url()).unwrap().text, "Done.");
        upstream.fault(Fault::ReplyText("<think>for ever".to_owned()));
        fault(style, &upstream.url(), ErrorClass::Empty);
    }
}

#[test]
fn an_answer_that_was_cut_by_its_length_says_so() {
    for (style, stop) in [(Style::OpenAi, "length"), (Style::Anthropic, "max_tokens")] {
        let upstream = upstream();
        upstream.fault(Fault::StopReason(stop.to_owned()));
        assert!(ask(style, &upstream.url()).unwrap().is_truncated);
    }
}

#[tokio::test]
async fn words_are_told_as_they_come() {
    for style in STYLES {
        let upstream = upstream();
        let mut pieces = Vec::new();
        let client = client(style, &upstream.url());
        let answer = client.stream(&prompt(), |piece| pieces.push(piece.to_owned())).await.unwrap();
        assert!(pieces.len() > 1, "{pieces:?}");
        assert_eq!(pieces.concat(), answer.text);
    }
}

#[tokio::test]
async fn what_was_told_is_not_asked_for_again() {
    let upstream = upstream();
    let mut endpoint = crate::setting::endpoint(Style::OpenAi, &upstream.url());
    endpoint.n_retries = 3;
    let client = fanfold_provider::Client::new(endpoint).unwrap();
    upstream.fault(Fault::Disconnect(2));
    let heard = Arc::new(Mutex::new(String::new()));
    let hearing = Arc::clone(&heard);
    let fault =
        client.stream(&prompt(), move |piece| hearing.lock().unwrap().push_str(piece)).await.unwrap_err();
    assert_eq!((fault.class, upstream.n_seen()), (ErrorClass::Broken, 1));
    assert!(!heard.lock().unwrap().is_empty());
    // Without anybody who heard it, the same is asked for again.
    upstream.fault(Fault::Disconnect(2));
    assert!(client.send(&prompt()).await.is_ok());
    assert_eq!(upstream.n_seen(), 3);
}

/// The events of a whole answer, as a server without lengths sends them.
fn stream_of(style: Style) -> Vec<u8> {
    let event = |name: &str, value: Value| match style {
        Style::OpenAi => format!("data: {value}\r\n\r\n"),
        Style::Anthropic => format!("event: {name}\ndata: {value}\n\n"),
    };
    let events = match style {
        Style::OpenAi => {
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
        Style::Anthropic => {
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
    for style in STYLES {
        let bytes = stream_of(style);
        // Every byte by itself first; then one cut at each place, of which a quick run takes some.
        let step = if is_long { 1 } else { 23 };
        let mut answers: Vec<Vec<Vec<u8>>> = vec![bytes.iter().map(|byte| vec![*byte]).collect()];
        answers.extend(
            (1..bytes.len()).step_by(step).map(|cut| vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()]),
        );
        let n_answers = answers.len();
        let url = raw(answers, Duration::from_micros(200));
        for i in 0..n_answers {
            let answer = ask(style, &url).unwrap_or_else(|fault| panic!("{style} {i}: {fault}"));
            assert_eq!(answer.text, "Größe \"zwölf\"\n✓", "{style} {i}");
            let usage = answer.usage.map(|usage| (usage.input, usage.output));
            assert_eq!(usage, Some((3, 4)), "{style} {i}");
        }
    }
}
