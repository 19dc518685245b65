//! What only a request beside the one that came can show.

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::rules::worse;
use serde_json::{Value, json};

/// What is worse when a request leaves changed like this.
fn changed(kind: Kind, came: &Value, change: fn(&mut Value)) -> Option<String> {
    let mut left = came.clone();
    change(&mut left);
    worse(kind, &came.to_string(), &left.to_string())
}

#[test]
fn a_signed_thought_is_the_one_that_was_written() {
    let thought = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": "s" });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    let result =
        |id: &str| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id }] });
    let came = json!({ "model": "m", "max_tokens": 9, "tools": [{ "name": "read", "input_schema": { "type": "object" } }],
        "messages": [
            { "role": "user", "content": "Read." },
            { "role": "assistant", "content": [thought("one"), call("a")] },
            result("a"),
            { "role": "assistant", "content": [thought("two"), thought("three"), call("b")] },
            result("b")] });
    let kind = Kind::Anthropic;
    assert_eq!(changed(kind, &came, |_| {}), None);
    // Of an older reply they may be left out, with it or alone.
    let shorter = |b: &mut Value| drop(b["messages"][1]["content"].as_array_mut().unwrap().remove(0));
    assert_eq!(changed(kind, &came, shorter), None);
    let words = |b: &mut Value| b["messages"][1]["content"][0]["thinking"] = "On".into();
    assert!(changed(kind, &came, words).unwrap().contains("never written so"));
    let order = |b: &mut Value| b["messages"][3]["content"].as_array_mut().unwrap().swap(0, 1);
    assert!(changed(kind, &came, order).unwrap().contains("never written so, or not there"));
    let newest = |b: &mut Value| drop(b["messages"][3]["content"].as_array_mut().unwrap().remove(1));
    assert!(changed(kind, &came, newest).unwrap().contains("without all its thoughts"));
    // Neighbours are one turn to the provider, and may leave as one message, with every thought of the newest.
    let mut twice = came.clone();
    twice["messages"][2] =
        json!({ "role": "assistant", "content": [thought("on"), { "type": "text", "text": "On." }] });
    twice["messages"][1] =
        json!({ "role": "assistant", "content": [thought("one"), { "type": "text", "text": "One." }] });
    fn joined(b: &mut Value) {
        let newest = b["messages"].as_array_mut().unwrap().remove(3);
        let blocks = newest["content"].as_array().unwrap().clone();
        b["messages"][2]["content"].as_array_mut().unwrap().extend(blocks);
    }
    assert_eq!(changed(kind, &twice, joined), None);
    let shorter = |b: &mut Value| {
        joined(b);
        b["messages"][2]["content"].as_array_mut().unwrap().remove(3);
    };
    assert!(changed(kind, &twice, shorter).unwrap().contains("without all its thoughts"));
}

#[test]
fn an_item_keeps_the_thought_that_it_is_known_with() {
    let came = json!({ "model": "m", "input": [
        { "role": "user", "content": "Read." },
        { "type": "reasoning", "id": "rs_1", "summary": [] },
        { "type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a", "output": "one" }] });
    let kind = Kind::Responses;
    assert_eq!(changed(kind, &came, |_| {}), None);
    let alone = |b: &mut Value| drop(b["input"].as_array_mut().unwrap().remove(1));
    assert!(changed(kind, &came, alone).unwrap().contains("fc_1 is sent without the thought"));
    let unknown = |b: &mut Value| {
        b["input"].as_array_mut().unwrap().remove(1);
        b["input"][1].as_object_mut().unwrap().remove("id");
    };
    assert_eq!(changed(kind, &came, unknown), None);
}
