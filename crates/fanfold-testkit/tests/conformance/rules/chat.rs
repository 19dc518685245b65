//! The rules of Chat Completions.

use fanfold_testkit::bodies::Kind;
use serde_json::{Value, json};

use super::{Example, check, push, repeat};

#[test]
fn every_rule_of_chat_is_tried() {
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
        Example("`model` is a text", |b| b["model"] = 1.into(), |b| b["model"] = "x".into()),
        Example(
            "`messages` is a list that is not empty",
            |b| b["messages"] = json!([]),
            |b| b["messages"] = json!([{ "role": "user", "content": "" }]),
        ),
        Example(
            "a role is developer, system, user, assistant, tool or function",
            |b| b["messages"][0]["role"] = "narrator".into(),
            |b| b["messages"][0]["role"] = "developer".into(),
        ),
        Example(
            "a message has a content; a function's may be null, and an assistant's when it calls a tool",
            |b| b["messages"][5]["content"] = Value::Null,
            |b| push(b, "messages", json!({ "role": "function", "name": "f", "content": null })),
        ),
        Example(
            "a list of parts is not empty",
            |b| b["messages"][1]["content"] = json!([]),
            |b| b["messages"][1]["content"] = json!([{ "type": "text", "text": "" }]),
        ),
        Example(
            "a part is of a type that its role may have",
            |b| {
                b["messages"][4]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "https://x.org/a.png" } }]);
            },
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "https://x.org/a.png" } }]);
            },
        ),
        Example(
            "a part of text has a text",
            |b| b["messages"][1]["content"][0]["text"] = 7.into(),
            |b| b["messages"][1]["content"][0]["text"] = "7".into(),
        ),
        Example(
            "an assistant's parts are texts, or one refusal alone",
            |b| {
                b["messages"][5]["content"] =
                    json!([{ "type": "text", "text": "No." }, { "type": "refusal", "refusal": "No." }]);
            },
            |b| b["messages"][5]["content"] = json!([{ "type": "refusal", "refusal": "No." }]),
        ),
        Example(
            "an image has the address of a picture or its data",
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "a.png" } }]);
            },
            |b| {
                b["messages"][1]["content"] =
                    json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }]);
            },
        ),
        Example(
            "a name has no spaces, `<`, `|`, `\\`, `/` or `>`, and at most 64 letters",
            |b| b["messages"][1]["name"] = "a b".into(),
            |b| b["messages"][1]["name"] = repeat("ä", 64).into(),
        ),
        Example(
            "only an assistant calls tools",
            |b| {
                b["messages"][2]["role"] = "developer".into();
                b["messages"][2]["content"] = "Let me see.".into();
            },
            |b| b["messages"][2]["content"] = "Let me see.".into(),
        ),
        Example(
            "a list of calls has 1 to 128 of them",
            |b| b["messages"][5]["tool_calls"] = json!([]),
            |b| b["messages"][5]["tool_calls"] = Value::Null,
        ),
        Example("a list of calls has 1 to 128 of them", |b| many_calls(b, 129), |b| many_calls(b, 128)),
        Example(
            "a call has an id of at most 40 letters",
            |b| {
                b["messages"][2]["tool_calls"][0]["id"] = repeat("x", 41).into();
                b["messages"][4]["tool_call_id"] = repeat("x", 41).into();
            },
            |b| {
                b["messages"][2]["tool_calls"][0]["id"] = repeat("x", 40).into();
                b["messages"][4]["tool_call_id"] = repeat("x", 40).into();
            },
        ),
        Example(
            "a call is of a function or of a custom tool",
            |b| b["messages"][2]["tool_calls"][0]["type"] = "tool".into(),
            |b| b["messages"][2]["tool_calls"][0]["type"] = "function".into(),
        ),
        Example(
            "a called tool has a name of at most 64 letters, digits, `_` and `-`",
            |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = "a.b".into(),
            |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = repeat("a", 64).into(),
        ),
        Example(
            "arguments are a text",
            |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}),
            |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = "".into(),
        ),
        Example(
            "calls of one message have different ids",
            |b| {
                b["messages"][2]["tool_calls"][1]["id"] = "a".into();
                b["messages"].as_array_mut().unwrap().remove(3);
            },
            // Another message may use an id again.
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(5);
                let again = json!([b["messages"][2], b["messages"][3], b["messages"][4]]);
                b["messages"].as_array_mut().unwrap().extend(again.as_array().unwrap().clone());
            },
        ),
        Example(
            "every call is answered by a tool message right behind it",
            |b| b["messages"].as_array_mut().unwrap().truncate(4),
            |b| b["messages"].as_array_mut().unwrap().truncate(5),
        ),
        Example(
            "a tool message answers a call of the assistant message before it",
            |b| push(b, "messages", json!({ "role": "tool", "tool_call_id": "a", "content": "late" })),
            |b| push(b, "messages", json!({ "role": "user", "content": "late" })),
        ),
        Example(
            "a call is answered once",
            |b| {
                let again = b["messages"][4].clone();
                b["messages"].as_array_mut().unwrap().insert(5, again);
            },
            |b| b["messages"].as_array_mut().unwrap().swap(3, 4),
        ),
        Example(
            "a function message has the function's name",
            |b| push(b, "messages", json!({ "role": "function", "content": "x" })),
            |b| push(b, "messages", json!({ "role": "function", "name": "f", "content": "x" })),
        ),
        Example(
            "a message has no fields that the API does not know",
            |b| b["messages"][1]["mood"] = "good".into(),
            |b| b["messages"][5]["refusal"] = Value::Null,
        ),
        Example(
            "tools have different names of at most 64 letters, digits, `_` and `-`, and are at most 128",
            |b| push(b, "tools", json!({ "type": "function", "function": { "name": "read" } })),
            |b| push(b, "tools", json!({ "type": "function", "function": { "name": "write" } })),
        ),
        Example(
            "the parameters of a function are a schema of an object",
            |b| b["tools"][0]["function"]["parameters"] = json!({}),
            |b| drop(b["tools"][0]["function"].as_object_mut().unwrap().remove("parameters")),
        ),
        Example(
            "`tool_choice` and `parallel_tool_calls` come with tools",
            |b| {
                b["tools"] = json!([]);
                b["tool_choice"] = "auto".into();
            },
            |b| b["tool_choice"] = "auto".into(),
        ),
    ];
    check(Kind::Chat, &base, &examples);
}

/// An assistant message with so many calls, and their answers.
fn many_calls(body: &mut Value, n: usize) {
    let call = |i| json!({ "id": format!("c{i}"), "type": "function", "function": { "name": "read", "arguments": "{}" } });
    let calls: Vec<Value> = (0..n).map(call).collect();
    push(body, "messages", json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    for i in 0..n {
        push(body, "messages", json!({ "role": "tool", "tool_call_id": format!("c{i}"), "content": "x" }));
    }
}
