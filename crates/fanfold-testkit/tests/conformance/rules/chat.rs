//! The rules of Chat Completions.

use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::{Value, json};

use super::{RuleExample, check, push, repeat};

#[test]
fn every_rule_of_chat_is_tested() {
    let base = json!({ "model": "m", "tools": [{ "type": "function",
            "function": { "name": "read", "parameters": { "type": "object" } } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Read." }] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "read", "arguments": "{}" } },
                { "id": "b", "type": "custom", "custom": { "name": "patch", "input": "x" } }] },
            { "role": "tool", "tool_call_id": "b", "content": "two" },
            { "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "one" }] },
            { "role": "assistant", "content": "Done." },
            { "role": "user", "content": "Thanks." }] });
    let examples = [
        RuleExample("`model` is a string", |b| b["model"] = 1.into(), |b| b["model"] = "x".into()),
        RuleExample(
            "`messages` is a non-empty list",
            |b| b["messages"] = json!([]),
            |b| b["messages"] = json!([{ "role": "user", "content": "" }]),
        ),
        RuleExample(
            "a role is developer, system, user, assistant, tool or function",
            |b| b["messages"][0]["role"] = "narrator".into(),
            |b| b["messages"][0]["role"] = "developer".into(),
        ),
        RuleExample(
            "a message has content; it may be null for functions and for assistants that call tools",
            |b| b["messages"][5]["content"] = Value::Null,
            |b| push(b, "messages", json!({ "role": "function", "name": "f", "content": null })),
        ),
        RuleExample(
            "a list of parts is not empty",
            |b| b["messages"][1]["content"] = json!([]),
            |b| b["messages"][1]["content"] = json!([{ "type": "text", "text": "" }]),
        ),
        RuleExample(
            "a part has a type that its role allows",
            |b| {
                b["messages"][4]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "https://x.org/a.png" } }]);
            },
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "https://x.org/a.png" } }]);
            },
        ),
        RuleExample(
            "a text part has a text",
            |b| b["messages"][1]["content"][0]["text"] = 7.into(),
            |b| b["messages"][1]["content"][0]["text"] = "7".into(),
        ),
        RuleExample(
            "an assistant's parts are texts, or a single refusal",
            |b| {
                b["messages"][5]["content"] =
                    json!([{ "type": "text", "text": "No." }, { "type": "refusal", "refusal": "No." }]);
            },
            |b| b["messages"][5]["content"] = json!([{ "type": "refusal", "refusal": "No." }]),
        ),
        RuleExample(
            "an image has a URL or image data",
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "a.png" } }]);
            },
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }]);
            },
        ),
        RuleExample(
            "a name has no spaces, `<`, `|`, `\\`, `/` or `>`, and at most 64 characters",
            |b| b["messages"][1]["name"] = "a b".into(),
            |b| b["messages"][1]["name"] = repeat("ä", 64).into(),
        ),
        RuleExample(
            "only assistant messages have tool calls",
            |b| {
                b["messages"][2]["role"] = "developer".into();
                b["messages"][2]["content"] = "Let me see.".into();
            },
            |b| b["messages"][2]["content"] = "Let me see.".into(),
        ),
        RuleExample(
            "a list of calls has 1 to 128 entries",
            |b| b["messages"][5]["tool_calls"] = json!([]),
            |b| b["messages"][5]["tool_calls"] = Value::Null,
        ),
        RuleExample("a list of calls has 1 to 128 entries", |b| many_calls(b, 129), |b| many_calls(b, 128)),
        RuleExample(
            "a call id has 1 to 40 characters",
            |b| {
                b["messages"][2]["tool_calls"][0]["id"] = repeat("x", 41).into();
                b["messages"][4]["tool_call_id"] = repeat("x", 41).into();
            },
            |b| {
                b["messages"][2]["tool_calls"][0]["id"] = repeat("x", 40).into();
                b["messages"][4]["tool_call_id"] = repeat("x", 40).into();
            },
        ),
        RuleExample(
            "a call has the type function or custom",
            |b| b["messages"][2]["tool_calls"][0]["type"] = "tool".into(),
            |b| b["messages"][2]["tool_calls"][0]["type"] = "function".into(),
        ),
        RuleExample(
            "the name of a called tool has at most 64 letters, digits, `_` and `-`",
            |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = "a.b".into(),
            |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = repeat("a", 64).into(),
        ),
        RuleExample(
            "arguments are a string",
            |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}),
            |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = "".into(),
        ),
        RuleExample(
            "the calls of a message have different ids",
            |b| {
                b["messages"][2]["tool_calls"][1]["id"] = "a".into();
                b["messages"].as_array_mut().unwrap().remove(3);
            },
            // Another message may reuse an id.
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(5);
                let again = json!([b["messages"][2], b["messages"][3], b["messages"][4]]);
                b["messages"].as_array_mut().unwrap().extend(again.as_array().unwrap().clone());
            },
        ),
        RuleExample(
            "every call has a tool message directly after it",
            |b| b["messages"].as_array_mut().unwrap().truncate(4),
            |b| b["messages"].as_array_mut().unwrap().truncate(5),
        ),
        RuleExample(
            "a tool message belongs to a call of the assistant message before it",
            |b| push(b, "messages", json!({ "role": "tool", "tool_call_id": "a", "content": "late" })),
            |b| push(b, "messages", json!({ "role": "user", "content": "late" })),
        ),
        RuleExample(
            "a call has one result",
            |b| {
                let again = b["messages"][4].clone();
                b["messages"].as_array_mut().unwrap().insert(5, again);
            },
            |b| b["messages"].as_array_mut().unwrap().swap(3, 4),
        ),
        RuleExample(
            "a function message has the function's name",
            |b| push(b, "messages", json!({ "role": "function", "content": "x" })),
            |b| push(b, "messages", json!({ "role": "function", "name": "f", "content": "x" })),
        ),
        RuleExample(
            "a message has no unknown fields",
            |b| b["messages"][1]["mood"] = "good".into(),
            |b| b["messages"][5]["refusal"] = Value::Null,
        ),
        RuleExample(
            "there are at most 128 tools, with different names of at most 64 letters, digits, `_` and `-`",
            |b| push(b, "tools", json!({ "type": "function", "function": { "name": "read" } })),
            |b| push(b, "tools", json!({ "type": "function", "function": { "name": "write" } })),
        ),
        RuleExample(
            "the parameters of a function are an object schema",
            |b| b["tools"][0]["function"]["parameters"] = json!({}),
            |b| drop(b["tools"][0]["function"].as_object_mut().unwrap().remove("parameters")),
        ),
        RuleExample(
            "`tool_choice` and `parallel_tool_calls` require tools",
            |b| {
                b["tools"] = json!([]);
                b["tool_choice"] = "auto".into();
            },
            |b| b["tool_choice"] = "auto".into(),
        ),
    ];
    check(BodyFormat::Chat, &base, &examples);
}

/// Adds an assistant message with `n` calls, and their results.
fn many_calls(body: &mut Value, n: usize) {
    let call = |i| json!({ "id": format!("c{i}"), "type": "function", "function": { "name": "read", "arguments": "{}" } });
    let calls: Vec<Value> = (0..n).map(call).collect();
    push(body, "messages", json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    for i in 0..n {
        push(body, "messages", json!({ "role": "tool", "tool_call_id": format!("c{i}"), "content": "x" }));
    }
}
