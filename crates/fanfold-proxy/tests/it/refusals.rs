//! Requests refused for their length: folded harder and sent once more; the limit is learnt.

use fanfold_core::Words;
use fanfold_engine::Mode;
use fanfold_testkit::fakes::upstream::{Fault, Limit};
use serde_json::json;

use crate::setting::{LATER, Stage, StageOptions, chat, long_chat, outcome, session};

const LIMIT: usize = 1500;

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_hidden_and_its_limit_is_learnt() {
    let stage = Stage::new(StageOptions::default()).await;
    let messages = long_chat(30);
    assert_eq!(outcome(&stage.chat(&chat(&messages[..40])).await), "whole");
    stage.upstream.set_limit(Some(Limit::Tokens(LIMIT, &Words)));
    let response = stage.chat(&chat(&messages[..42])).await;
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
    let first = session(&response);
    drop(response.bytes().await.unwrap());
    let n_refused = || stage.upstream.seen().iter().filter(|seen| seen.is_too_long).count();
    assert_eq!((n_refused(), stage.upstream.n_seen()), (1, 3));
    // The next request is folded without another refusal.
    for n in (44..=messages.len()).step_by(2) {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!((response.status().as_u16(), session(&response)), (200, first.clone()));
    }
    assert_eq!(n_refused(), 1);
    // Another conversation with the same model starts with the learnt limit.
    let mut others = messages.clone();
    others[1] = json!({ "role": "user", "content": "Now something else altogether." });
    let response = stage.chat(&chat(&others)).await;
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
    assert_ne!(session(&response), first);
    assert_eq!(n_refused(), 1);
    let totals = stage.meter.status().totals;
    assert_eq!((totals.refused, totals.retried), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_refusal_is_forwarded() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.set_limit(Some(Limit::Tokens(20, &Words)));
    let word = "word ".repeat(3000);
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": word }] }).to_string();
    let response = stage.chat(&body).await;
    assert_eq!(response.status(), 400);
    let error = response.text().await.unwrap();
    let direct = stage.client.post(format!("{}/v1/chat/completions", stage.upstream.url())).body(body);
    let direct = direct.send().await.unwrap();
    assert_eq!(direct.status(), 400);
    let kind = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["error"]["code"].clone();
    assert_eq!(kind(&error), kind(&direct.text().await.unwrap()));
    assert!(stage.upstream.n_seen() <= 3, "at most one retry");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observing_proxy_forwards_refusals() {
    let stage = Stage::new(StageOptions { mode: Mode::Observe, ..StageOptions::default() }).await;
    stage.upstream.set_limit(Some(Limit::Tokens(LIMIT, &Words)));
    let response = stage.chat(&chat(&long_chat(30))).await;
    assert_eq!(response.status(), 400);
    assert_eq!(stage.upstream.n_seen(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_may_come_as_the_first_event_of_a_stream() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let created =
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n";
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\
        \"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context \
        window of this model. Please adjust your input and try again.\"}}}\n\n";
    let done = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"ok\"}\n\n";
    let (first, second) = (format!("{head}{created}{failed}"), format!("{head}{created}{done}"));
    let (stage, seen) = Stage::with_raw_answers(&[&first, &second], StageOptions::default()).await;
    let mut input = vec![json!({ "type": "message", "role": "user", "content": "Find the lost record." })];
    for i in 0..30 {
        let id = format!("call_{i}");
        let lines: String = (0..12).map(|n| format!("stage {i} line {n} takes batch_{i}_{n}\n")).collect();
        input.push(json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": "{}" }));
        input.push(json!({ "type": "function_call_output", "call_id": id, "output": lines }));
    }
    let body = json!({ "model": "m", "stream": true, "store": false, "input": input }).to_string();
    let response = stage.post("/v1/responses", body.clone()).send().await.unwrap();
    assert_eq!(outcome(&response), "folded");
    assert_eq!(response.text().await.unwrap(), format!("{created}{done}"));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].ends_with(&body) && seen[1].len() < seen[0].len() * 3 / 4, "{}", seen[1].len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_refusal_is_recognised() {
    let body = chat(&long_chat(28));
    for status in [413, 400] {
        let stage = Stage::new(StageOptions { window: 3000, ..StageOptions::default() }).await;
        stage.upstream.fault(Fault::Answer(status, String::new()));
        let response = stage.chat(&body).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"), "{status}");
        let seen = stage.upstream.seen();
        assert!(seen.len() == 2 && seen[1].body.len() < seen[0].body.len());
    }
    // If the window is far from full, an empty 400 is not about length.
    let stage = Stage::new(StageOptions::default()).await;
    stage.upstream.fault(Fault::Answer(400, String::new()));
    let response = stage.chat(&body).await;
    assert_eq!((response.status().as_u16(), stage.upstream.n_seen()), (400, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_may_have_status_200() {
    let refusals = [
        r#"{"id":"1","choices":null,"model":"m","usage":{"total_tokens":0},"base_resp":{"status_code":1039,"status_msg":"token limit"}}"#,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":1500}}"#,
    ];
    for refusal in refusals {
        let stage = Stage::new(StageOptions { window: 3000, ..StageOptions::default() }).await;
        stage.upstream.fault(Fault::Answer(200, refusal.to_owned()));
        let response = stage.chat(&chat(&long_chat(28))).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"), "{refusal}");
        assert!(response.text().await.unwrap().contains("It is done."));
        let seen = stage.upstream.seen();
        assert!(seen.len() == 2 && seen[1].body.len() < seen[0].body.len());
    }
    // An answer that mentions the error text is not a refusal.
    let answer = r#"{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"prompt is too long: 9 tokens > 8 maximum"},"finish_reason":"stop"}]}"#;
    let stage = Stage::new(StageOptions { window: 3000, ..StageOptions::default() }).await;
    stage.upstream.fault(Fault::Answer(200, answer.to_owned()));
    assert_eq!(stage.chat(&chat(&long_chat(28))).await.text().await.unwrap(), answer);
    assert_eq!(stage.upstream.n_seen(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_may_follow_the_preamble_of_a_stream() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[]}}\n\n\
        event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\
        \"prompt is too long: 2000 tokens > 1500 maximum\"}}\n\n";
    let block = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":\
        {\"type\":\"text\",\"text\":\"\"}}\n\n";
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
    let too_long = "data: {\"error\":{\"message\":\"maximum context length is 1500 tokens\",\"code\":\
        \"context_length_exceeded\"}}\n\n";
    let text =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":null}]}\n\n";
    let mut messages = long_chat(28);
    let anthropic = {
        let mut list = vec![json!({ "role": "user", "content": "Find the lost record." })];
        for i in 0..28 {
            let id = format!("call_{i}");
            let lines: String =
                (0..12).map(|n| format!("stage {i} line {n} takes batch_{i}_{n}\n")).collect();
            list.push(json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": id, "name": "read", "input": {} }] }));
            list.push(json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": lines }] }));
        }
        json!({ "model": "m", "stream": true, "max_tokens": 9, "messages": list }).to_string()
    };
    messages.remove(0);
    let chat = json!({ "model": "m", "stream": true, "messages": messages }).to_string();
    let cases = [
        ("/v1/messages", anthropic, format!("{start}{LATER}{error}"), format!("{start}{block}")),
        ("/v1/chat/completions", chat, format!("{role}{LATER}{too_long}"), format!("{role}{text}")),
    ];
    for (path, body, refused, answered) in cases {
        let (first, second) = (format!("{head}{refused}"), format!("{head}{answered}"));
        let (stage, seen) = Stage::with_raw_answers(&[&first, &second], StageOptions::default()).await;
        let response = stage.post(path, body).send().await.unwrap();
        assert_eq!(outcome(&response), "folded", "{path}");
        assert_eq!(response.text().await.unwrap(), answered, "{path}");
        assert_eq!(seen.lock().unwrap().len(), 2, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_survive_a_restart() {
    let mut stage = Stage::new(StageOptions::default()).await;
    let mut messages = long_chat(30);
    stage.upstream.set_limit(Some(Limit::Tokens(LIMIT, &Words)));
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
    let n_refused = |stage: &Stage| stage.upstream.seen().iter().filter(|seen| seen.is_too_long).count();
    assert_eq!(n_refused(&stage), 1);
    stage.restart().await;
    messages[1] = json!({ "role": "user", "content": "Now something else altogether." });
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
    assert_eq!(n_refused(&stage), 1, "the limit is not exceeded again");
}
