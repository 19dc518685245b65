//! Recalls with the tool that the proxy answers.

use std::time::Duration;

use fanfold_proxy::Recall;
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptedReply};
use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, chat, json_of, long_chat, outcome, session};

/// A model that recalls the first handle it sees, and then quotes the original.
fn recalling_model() -> Script {
    model_with_call(|handle| json!({ "handle": handle }))
}

/// A model that calls the recall tool once it sees a handle, and then quotes the first line of the result.
fn model_with_call(arguments: fn(&str) -> Value) -> Script {
    Script::new(move |asked| {
        let text = asked.body.to_string();
        let messages = asked.body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().cloned().unwrap_or_default();
        let is_recalled = last["tool_call_id"].as_str().is_some() && messages.len() > 1 && {
            let before = &messages[messages.len() - 2];
            before["tool_calls"][0]["function"]["name"] == "fanfold_recall"
        };
        if is_recalled {
            let original = last["content"].as_str().unwrap_or_default();
            let line = original.lines().next().unwrap_or_default();
            return ScriptedReply { text: format!("It says: {line}"), ..ScriptedReply::default() };
        }
        let has_tool = text.contains("fanfold_recall");
        let handle = handles_in(&text).into_iter().next();
        match handle.filter(|_| has_tool) {
            Some(handle) => {
                let call = ("fanfold_recall".to_owned(), arguments(&handle));
                ScriptedReply {
                    text: "Let me look.".to_owned(),
                    calls: vec![call],
                    ..ScriptedReply::default()
                }
            }
            None => ScriptedReply { text: "Nothing is folded.".to_owned(), ..ScriptedReply::default() },
        }
    })
}

async fn stage() -> Stage {
    Stage::new(StageOptions {
        window: 600,
        script: recalling_model(),
        recall: Recall::Tool,
        ..StageOptions::default()
    })
    .await
}

fn with_stream(body: &str) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["stream"] = true.into();
    body.to_string()
}

/// The text of a stream of Chat Completions, which must not contain the recall tool.
fn text_of_stream(stream: &str) -> String {
    let chunks = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = chunks.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_sees_one_answer_without_recalls() {
    let stage = stage().await;
    let messages = long_chat(12);
    let first = stage.chat(&chat(&messages[..2])).await;
    let named = session(&first);
    assert!(first.text().await.unwrap().contains("Nothing is folded."));
    for is_stream in [false, true] {
        let body = chat(&messages);
        let body = if is_stream { with_stream(&body) } else { body };
        let n_before = stage.upstream.n_seen();
        let response = stage.chat(&body).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
        assert_eq!(session(&response), named);
        let answer = response.text().await.unwrap();
        assert!(!answer.contains("fanfold_recall"), "{answer}");
        let text = if is_stream {
            assert_eq!(answer.matches("[DONE]").count(), 1, "{answer}");
            text_of_stream(&answer)
        } else {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["choices"][0]["finish_reason"], "stop");
            answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        };
        assert!(text.starts_with("Let me look.") && text.contains("It says: "), "{text}");
        assert!(text.contains("It says: Step "), "an original: {text}");
        let seen = stage.upstream.seen();
        assert_eq!(seen.len(), n_before + 2, "one request and one follow-up");
        assert!(
            seen[n_before..].iter().all(|seen| seen.violations.is_empty()),
            "{:?}",
            seen[n_before + 1].violations
        );
    }
    let totals = stage.meter.status().totals;
    // The stream reports no usage, so three usages remain: the first answer and two rounds of the second.
    assert_eq!((totals.recalls, totals.tokens.output), (2, 60), "each round is counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_a_handle_looks_in_everything_folded() {
    let script = model_with_call(|_| json!({ "search": "BATCH_0_3" }));
    let options = StageOptions { window: 600, script, recall: Recall::Tool, ..StageOptions::default() };
    let stage = Stage::new(options).await;
    let messages = long_chat(12);
    drop(stage.chat(&chat(&messages[..2])).await.bytes().await);
    let answer: Value = json_of(stage.chat(&chat(&messages)).await).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    // The model repeats the first line of the answer: the match is in line 4, with two lines before it.
    assert!(text.contains("It says: #1.1 2- stage 0 line 1 takes batch_0_1 of it"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_its_recall_method() {
    let stage = stage().await;
    let messages = long_chat(4);
    for n in [2, 4, 6, 10] {
        drop(stage.chat(&chat(&messages[..n])).await.bytes().await);
    }
    let tools: Vec<Value> = stage
        .upstream
        .seen()
        .iter()
        .map(|seen| serde_json::from_slice::<Value>(&seen.body).unwrap()["tools"].clone())
        .collect();
    assert!(tools[0].to_string().contains("fanfold_recall"), "{}", tools[0]);
    assert!(tools.windows(2).all(|pair| pair[0] == pair[1]), "the tools never change");
    // A conversation without tools gets no recall tool.
    let body =
        json!({ "model": "m", "messages": [{ "role": "user", "content": "a title, please" }] }).to_string();
    drop(stage.chat(&body).await.bytes().await);
    assert_eq!(stage.upstream.seen().last().unwrap().text(), body);
}

#[tokio::test(flavor = "multi_thread")]
async fn recalls_are_limited_per_answer() {
    let script = Script::new(|asked| {
        let has_tool = asked.body["tools"].to_string().contains("fanfold_recall");
        let call = ("fanfold_recall".to_owned(), json!({ "handle": "123456" }));
        ScriptedReply {
            text: "Again.".to_owned(),
            calls: if has_tool { vec![call] } else { Vec::new() },
            ..ScriptedReply::default()
        }
    });
    let stage = Stage::new(StageOptions { script, recall: Recall::Tool, ..StageOptions::default() }).await;
    let response = stage.chat(&chat(&long_chat(1))).await;
    let answer: Value = json_of(response).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    assert!(!answer.to_string().contains("fanfold_recall"), "{answer}");
    assert!(stage.upstream.n_seen() <= 10, "{}", stage.upstream.n_seen());
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_requests_of_clients_are_sent_whole() {
    let stage = stage().await;
    let mut messages = long_chat(12);
    drop(stage.chat(&chat(&messages)).await.bytes().await);
    let words =
        "Your task is to create a detailed summary of the conversation so far, paying close attention.";
    messages.push(json!({ "role": "user", "content": words }));
    let body = chat(&messages);
    let response = stage.chat(&body).await;
    assert_eq!(outcome(&response), "as it came: summary");
    assert_eq!(stage.upstream.seen().last().unwrap().text(), body);
}

/// A model recalls an original, and the follow-up request gets these responses first.
async fn after_a_recall(is_stream: bool, faults: &[(u16, &str)]) -> (u16, String, usize, Stage) {
    let stage = stage().await;
    let messages = long_chat(12);
    drop(stage.chat(&chat(&messages[..2])).await.bytes().await);
    let n_before = stage.upstream.n_seen();
    // The first request succeeds.
    stage.upstream.fault(Fault::Stall(Duration::ZERO));
    for (status, body) in faults {
        stage.upstream.fault(Fault::Answer(*status, (*body).to_owned()));
    }
    let body = chat(&messages);
    let response = stage.chat(&if is_stream { with_stream(&body) } else { body }).await;
    let status = response.status().as_u16();
    let answer = response.text().await.unwrap();
    let n_requests = stage.upstream.n_seen() - n_before;
    (status, answer, n_requests, stage)
}

const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 600 tokens. However, your messages resulted in 700 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
const BUSY: &str = r#"{"error":{"message":"Overloaded for now","type":"overloaded_error"}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_recall_that_does_not_fit_gets_a_message() {
    for is_stream in [false, true] {
        for (status, body) in [(400, TOO_LONG), (413, ""), (200, TOO_LONG)] {
            let (told, answer, n_requests, stage) = after_a_recall(is_stream, &[(status, body)]).await;
            assert_eq!((told, n_requests), (200, 3), "{status}: {answer}");
            assert!(answer.contains("Let me look.") && !answer.contains("context_length"), "{answer}");
            let text = if is_stream { self::text_of_stream(&answer) } else { answer };
            assert!(text.contains("It says: There is no room for it now"), "{text}");
            assert!(stage.upstream.seen().iter().all(|seen| seen.violations.is_empty()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_follow_up_is_retried_once() {
    for is_stream in [false, true] {
        let (status, answer, n_requests, _) = after_a_recall(is_stream, &[(529, BUSY)]).await;
        assert_eq!((status, n_requests), (200, 3), "{answer}");
        let text = if is_stream { text_of_stream(&answer) } else { answer };
        assert!(text.contains("It says: Step "), "{text}");
    }
    // If the retry fails as well, the client gets the error of the provider.
    let (status, answer, n_requests, _) = after_a_recall(false, &[(529, BUSY), (529, BUSY)]).await;
    assert_eq!((status, n_requests, answer.as_str()), (529, 3, BUSY));
    let (status, answer, _, _) = after_a_recall(true, &[(529, BUSY), (529, BUSY)]).await;
    assert_eq!(status, 200);
    assert!(answer.contains("Overloaded for now") && answer.contains("overloaded_error"), "{answer}");
}
