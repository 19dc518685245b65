//! Regressions that only a comparison of the received and the sent request shows.

use fanfold_testkit::contracts::api_rules::find_regression;
use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::{Value, json};

/// The regression if a request is sent with a change.
fn regression(kind: BodyFormat, received: &Value, change: fn(&mut Value)) -> Option<String> {
    let mut sent = received.clone();
    change(&mut sent);
    find_regression(kind, &received.to_string(), &sent.to_string())
}

#[test]
fn thinking_blocks_are_sent_unchanged() {
    let thinking = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": "s" });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    let result =
        |id: &str| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id }] });
    let received = json!({ "model": "m", "max_tokens": 9, "tools": [{ "name": "read", "input_schema": { "type": "object" } }],
        "messages": [
            { "role": "user", "content": "Read." },
            { "role": "assistant", "content": [thinking("one"), call("a")] },
            result("a"),
            { "role": "assistant", "content": [thinking("two"), thinking("three"), call("b")] },
            result("b")] });
    let kind = BodyFormat::Anthropic;
    assert_eq!(regression(kind, &received, |_| {}), None);
    // Those of older replies may be omitted.
    let shorter = |b: &mut Value| drop(b["messages"][1]["content"].as_array_mut().unwrap().remove(0));
    assert_eq!(regression(kind, &received, shorter), None);
    let words = |b: &mut Value| b["messages"][1]["content"][0]["thinking"] = "On".into();
    assert!(regression(kind, &received, words).unwrap().contains("was changed or moved"));
    let order = |b: &mut Value| b["messages"][3]["content"].as_array_mut().unwrap().swap(0, 1);
    assert!(regression(kind, &received, order).unwrap().contains("was changed or moved"));
    let newest = |b: &mut Value| drop(b["messages"][3]["content"].as_array_mut().unwrap().remove(1));
    assert!(regression(kind, &received, newest).unwrap().contains("lacks some of its thinking blocks"));
    // Adjacent replies may be sent as one message with all thinking blocks of the newest.
    let mut twice = received.clone();
    twice["messages"][2] =
        json!({ "role": "assistant", "content": [thinking("on"), { "type": "text", "text": "On." }] });
    twice["messages"][1] =
        json!({ "role": "assistant", "content": [thinking("one"), { "type": "text", "text": "One." }] });
    fn joined(b: &mut Value) {
        let newest = b["messages"].as_array_mut().unwrap().remove(3);
        let blocks = newest["content"].as_array().unwrap().clone();
        b["messages"][2]["content"].as_array_mut().unwrap().extend(blocks);
    }
    assert_eq!(regression(kind, &twice, joined), None);
    let shorter = |b: &mut Value| {
        joined(b);
        b["messages"][2]["content"].as_array_mut().unwrap().remove(3);
    };
    assert!(regression(kind, &twice, shorter).unwrap().contains("lacks some of its thinking blocks"));
}

#[test]
fn an_item_is_sent_with_its_reasoning_item() {
    let received = json!({ "model": "m", "input": [
        { "role": "user", "content": "Read." },
        { "type": "reasoning", "id": "rs_1", "summary": [] },
        { "type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a", "output": "one" }] });
    let kind = BodyFormat::Responses;
    assert_eq!(regression(kind, &received, |_| {}), None);
    let alone = |b: &mut Value| drop(b["input"].as_array_mut().unwrap().remove(1));
    assert!(regression(kind, &received, alone).unwrap().contains("fc_1 is sent without its reasoning item"));
    let unknown = |b: &mut Value| {
        b["input"].as_array_mut().unwrap().remove(1);
        b["input"][1].as_object_mut().unwrap().remove("id");
    };
    assert_eq!(regression(kind, &received, unknown), None);
}
