//! The rules of Responses.

use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::{Value, json};

use super::{RuleExample, check, push, repeat};

#[test]
fn every_rule_of_responses_is_tested() {
    let base = json!({ "model": "m", "store": false, "tools": [
            { "type": "function", "name": "read", "parameters": { "type": "object" } }],
        "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "Read." }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed" },
            { "type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}" },
            { "type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "x" },
            { "type": "function_call_output", "call_id": "a", "output": "one" },
            { "type": "custom_tool_call_output", "call_id": "b", "output": [
                { "type": "input_text", "text": "two" }] },
            { "type": "message", "id": "msg_1", "role": "assistant", "content": [
                { "type": "output_text", "text": "Done.", "annotations": [] }] },
            { "type": "message", "role": "user", "content": "Thanks." }] });
    let examples = [
        RuleExample("`model` is a string", |b| b["model"] = Value::Null, |b| b["model"] = "x".into()),
        RuleExample(
            "`input` is a non-empty string or list",
            |b| b["input"] = "".into(),
            |b| b["input"] = "Read.".into(),
        ),
        RuleExample(
            "an item has a known type",
            |b| push(b, "input", json!({ "type": "hologram" })),
            |b| push(b, "input", json!({ "type": "compaction", "encrypted_content": "sealed" })),
        ),
        RuleExample(
            "a role is user, assistant, system or developer",
            |b| b["input"][7]["role"] = "tool".into(),
            |b| b["input"][7]["role"] = "developer".into(),
        ),
        RuleExample(
            "a message has content",
            |b| b["input"][7]["content"] = Value::Null,
            |b| b["input"][7]["content"] = "".into(),
        ),
        RuleExample(
            "a part has a type that its role allows",
            |b| b["input"][6]["content"][0]["type"] = "input_text".into(),
            |b| b["input"][6]["content"][0] = json!({ "type": "refusal", "refusal": "No." }),
        ),
        RuleExample(
            "a text part has a text",
            |b| b["input"][0]["content"][0]["text"] = Value::Null,
            |b| b["input"][0]["content"][0]["text"] = "".into(),
        ),
        RuleExample(
            "an id has at most 64 letters, digits, `_` and `-`, and the prefix of its type",
            |b| b["input"][2]["id"] = "call_1".into(),
            |b| b["input"][2]["id"] = format!("fc_{}", repeat("x", 61)).into(),
        ),
        RuleExample(
            "an id has at most 64 letters, digits, `_` and `-`, and the prefix of its type",
            |b| b["input"][2]["id"] = "fc_1.2".into(),
            |b| b["input"][2]["id"] = "fc_1-2".into(),
        ),
        RuleExample(
            "a text has at most 10,485,760 characters",
            |b| b["input"][4]["output"] = repeat("ä", 10_485_761).into(),
            |b| b["input"][4]["output"] = repeat("ä", 10_485_760).into(),
        ),
        RuleExample(
            "an output follows a call of its type",
            |b| {
                let other = json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "" });
                push(b, "input", other);
            },
            |b| b["input"].as_array_mut().unwrap().swap(4, 5),
        ),
        RuleExample(
            "items have different ids",
            |b| {
                let again = b["input"][6].clone();
                push(b, "input", again);
            },
            |b| {
                let mut again = b["input"][6].clone();
                again["id"] = "msg_2".into();
                push(b, "input", again);
            },
        ),
        RuleExample(
            "a `call_id` has 1 to 64 characters",
            |b| {
                b["input"][2]["call_id"] = repeat("x", 65).into();
                b["input"][4]["call_id"] = repeat("x", 65).into();
            },
            |b| {
                b["input"][2]["call_id"] = repeat("x", 64).into();
                b["input"][4]["call_id"] = repeat("x", 64).into();
            },
        ),
        RuleExample(
            "the name of a called tool has at most 128 letters, digits, `_` and `-`",
            |b| b["input"][2]["name"] = "".into(),
            |b| b["input"][2]["name"] = repeat("n", 128).into(),
        ),
        RuleExample(
            "arguments and inputs are strings",
            |b| b["input"][3]["input"] = json!({}),
            |b| b["input"][3]["input"] = "".into(),
        ),
        RuleExample(
            "an output is a string or a list of parts",
            |b| b["input"][4]["output"] = Value::Null,
            |b| b["input"][4]["output"] = "".into(),
        ),
        RuleExample(
            "every call has an output",
            |b| drop(b["input"].as_array_mut().unwrap().remove(4)),
            |b| b["input"].as_array_mut().unwrap().swap(4, 5),
        ),
        RuleExample(
            "an output follows a call of its type",
            |b| push(b, "input", json!({ "type": "function_call_output", "call_id": "c", "output": "" })),
            |b| {
                let call = json!({ "type": "local_shell_call", "call_id": "c", "action": {} });
                push(b, "input", call);
                push(b, "input", json!({ "type": "local_shell_call_output", "call_id": "c", "output": "" }));
            },
        ),
        RuleExample(
            "a call has one result",
            |b| {
                let again = b["input"][4].clone();
                push(b, "input", again);
            },
            |b| {
                let late = b["input"].as_array_mut().unwrap().remove(4);
                push(b, "input", late);
            },
        ),
        RuleExample(
            "calls have different `call_id`s",
            |b| {
                let again =
                    json!({ "type": "function_call", "call_id": "a", "name": "read", "arguments": "" });
                b["input"].as_array_mut().unwrap().insert(3, again);
            },
            |b| {
                let call =
                    json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "" });
                push(b, "input", call);
                push(b, "input", json!({ "type": "function_call_output", "call_id": "c", "output": "" }));
            },
        ),
        RuleExample(
            "a reasoning item has a summary",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("summary")),
            |b| b["input"][1]["summary"] = json!([{ "type": "summary_text", "text": "hm" }]),
        ),
        RuleExample(
            "a reasoning item is followed by the item that it belongs to",
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(7, thought);
            },
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(2, thought);
            },
        ),
        RuleExample(
            "with `store: false`, a reasoning item has its encrypted content",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("encrypted_content")),
            |b| {
                b["store"] = true.into();
                b["input"][1].as_object_mut().unwrap().remove("encrypted_content");
            },
        ),
        RuleExample(
            "with `store: false`, nothing refers to stored items",
            |b| push(b, "input", json!({ "type": "item_reference", "id": "msg_9" })),
            |b| {
                b["store"] = true.into();
                b["previous_response_id"] = "resp_1".into();
                push(b, "input", json!({ "type": "item_reference", "id": "msg_9" }));
                push(b, "input", json!({ "type": "function_call_output", "call_id": "z", "output": "" }));
            },
        ),
        RuleExample(
            "an item has no unknown fields",
            |b| b["input"][4]["mood"] = "good".into(),
            |b| b["input"][4]["status"] = "completed".into(),
        ),
        RuleExample(
            "functions have different names of at most 128 letters, digits, `_` and `-`",
            |b| push(b, "tools", json!({ "type": "function", "name": "read" })),
            |b| push(b, "tools", json!({ "type": "function", "name": "write" })),
        ),
        RuleExample(
            "the parameters of a function are an object schema",
            |b| b["tools"][0]["parameters"] = json!({ "type": "string" }),
            |b| b["tools"][0]["parameters"] = Value::Null,
        ),
    ];
    check(BodyFormat::Responses, &base, &examples);
}
