//! Each rule has a body that breaks it alone, and one that just keeps it.

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::rules::{broken, rules};
use serde_json::{Value, json};

type Change = fn(&mut Value);

/// A rule, what breaks it, and what is as near to that as can be and keeps it.
struct Example(&'static str, Change, Change);

fn check(kind: Kind, base: &Value, examples: &[Example]) {
    assert_eq!(broken(kind, base.to_string().as_bytes()), [], "the body that all is made of");
    for Example(rule, breaks, keeps) in examples {
        assert!(rules(kind).contains(rule), "there is no rule {rule:?}");
        let (mut bad, mut good) = (base.clone(), base.clone());
        breaks(&mut bad);
        keeps(&mut good);
        let found = broken(kind, bad.to_string().as_bytes());
        let is_it_alone = !found.is_empty() && found.iter().all(|broken| broken.rule == *rule);
        assert!(is_it_alone, "{rule:?} should be broken alone: {found:?} in {bad}");
        assert_eq!(broken(kind, good.to_string().as_bytes()), [], "{rule:?} should be kept: {good}");
    }
    let untried: Vec<_> =
        rules(kind).iter().filter(|rule| examples.iter().all(|Example(name, ..)| name != *rule)).collect();
    assert!(untried.is_empty(), "nobody tries {untried:?}");
}

#[test]
fn a_body_that_is_no_object_is_told() {
    for kind in [Kind::Chat, Kind::Responses, Kind::Anthropic] {
        for body in ["", "[]", "{\"model\":", "\u{0}"] {
            let found = broken(kind, body.as_bytes());
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].to_string(), "the body: a request is an object of JSON");
        }
    }
}

fn push(body: &mut Value, key: &str, message: Value) {
    body[key].as_array_mut().unwrap().push(message);
}

fn repeat(letter: &str, n: usize) -> String {
    letter.repeat(n)
}

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
            "a message has a content; an assistant's may be null when it calls a tool",
            |b| b["messages"][5]["content"] = Value::Null,
            |b| b["messages"][5]["content"] = "".into(),
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
            "a list of calls is not empty",
            |b| b["messages"][5]["tool_calls"] = json!([]),
            |b| b["messages"][5]["tool_calls"] = Value::Null,
        ),
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

#[test]
fn every_rule_of_responses_is_tried() {
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
        Example("`model` is a text", |b| b["model"] = Value::Null, |b| b["model"] = "x".into()),
        Example(
            "`input` is a text or a list, and not empty",
            |b| b["input"] = "".into(),
            |b| b["input"] = "Read.".into(),
        ),
        Example(
            "an item is of a type that the API knows",
            |b| push(b, "input", json!({ "type": "hologram" })),
            |b| push(b, "input", json!({ "type": "compaction", "encrypted_content": "sealed" })),
        ),
        Example(
            "a role is user, assistant, system or developer",
            |b| b["input"][7]["role"] = "tool".into(),
            |b| b["input"][7]["role"] = "developer".into(),
        ),
        Example(
            "a message has a content",
            |b| b["input"][7]["content"] = Value::Null,
            |b| b["input"][7]["content"] = "".into(),
        ),
        Example(
            "a part is of a type that its role may have",
            |b| b["input"][6]["content"][0]["type"] = "input_text".into(),
            |b| b["input"][6]["content"][0] = json!({ "type": "refusal", "refusal": "No." }),
        ),
        Example(
            "a part of text has a text",
            |b| b["input"][0]["content"][0]["text"] = Value::Null,
            |b| b["input"][0]["content"][0]["text"] = "".into(),
        ),
        Example(
            "an id begins as its type wants it, and has at most 64 letters",
            |b| b["input"][2]["id"] = "call_1".into(),
            |b| b["input"][2]["id"] = format!("fc_{}", repeat("x", 61)).into(),
        ),
        Example(
            "no two items have one id",
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
        Example(
            "a call has a `call_id` of at most 64 letters",
            |b| {
                b["input"][2]["call_id"] = repeat("x", 65).into();
                b["input"][4]["call_id"] = repeat("x", 65).into();
            },
            |b| {
                b["input"][2]["call_id"] = repeat("x", 64).into();
                b["input"][4]["call_id"] = repeat("x", 64).into();
            },
        ),
        Example(
            "a called tool has a name of at most 128 letters, digits, `_` and `-`",
            |b| b["input"][2]["name"] = "".into(),
            |b| b["input"][2]["name"] = repeat("n", 128).into(),
        ),
        Example(
            "arguments and inputs are texts",
            |b| b["input"][3]["input"] = json!({}),
            |b| b["input"][3]["input"] = "".into(),
        ),
        Example(
            "an output is a text or a list of parts",
            |b| b["input"][4]["output"] = Value::Null,
            |b| b["input"][4]["output"] = "".into(),
        ),
        Example(
            "every call has its output",
            |b| drop(b["input"].as_array_mut().unwrap().remove(4)),
            |b| b["input"].as_array_mut().unwrap().swap(4, 5),
        ),
        Example(
            "an output has its call before it, of its own kind",
            |b| push(b, "input", json!({ "type": "function_call_output", "call_id": "c", "output": "" })),
            |b| {
                let call = json!({ "type": "local_shell_call", "call_id": "c", "action": {} });
                push(b, "input", call);
                push(b, "input", json!({ "type": "local_shell_call_output", "call_id": "c", "output": "" }));
            },
        ),
        Example(
            "a call is answered once",
            |b| {
                let again = b["input"][4].clone();
                push(b, "input", again);
            },
            |b| {
                let late = b["input"].as_array_mut().unwrap().remove(4);
                push(b, "input", late);
            },
        ),
        Example(
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
        Example(
            "a thought has its summary",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("summary")),
            |b| b["input"][1]["summary"] = json!([{ "type": "summary_text", "text": "hm" }]),
        ),
        Example(
            "a thought is followed by its item",
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(7, thought);
            },
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(2, thought);
            },
        ),
        Example(
            "with `store: false` a thought comes with its sealed content",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("encrypted_content")),
            |b| {
                b["store"] = true.into();
                b["input"][1].as_object_mut().unwrap().remove("encrypted_content");
            },
        ),
        Example(
            "with `store: false` nothing is named that the provider would have to keep",
            |b| push(b, "input", json!({ "type": "item_reference", "id": "msg_9" })),
            |b| {
                b["store"] = true.into();
                b["previous_response_id"] = "resp_1".into();
                push(b, "input", json!({ "type": "item_reference", "id": "msg_9" }));
                push(b, "input", json!({ "type": "function_call_output", "call_id": "z", "output": "" }));
            },
        ),
        Example(
            "an item has no fields that the API does not know",
            |b| b["input"][4]["mood"] = "good".into(),
            |b| b["input"][4]["status"] = "completed".into(),
        ),
        Example(
            "functions have different names of at most 128 letters, digits, `_` and `-`, and a schema",
            |b| push(b, "tools", json!({ "type": "function", "name": "write" })),
            |b| push(b, "tools", json!({ "type": "web_search" })),
        ),
    ];
    check(Kind::Responses, &base, &examples);
}

#[test]
fn every_rule_of_anthropic_is_tried() {
    let base = json!({ "model": "m", "max_tokens": 100, "thinking": { "type": "enabled", "budget_tokens": 1024 },
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral", "ttl": "1h" } }],
        "tools": [{ "name": "read", "input_schema": { "type": "object" } }],
        "messages": [
            { "role": "user", "content": "Read." },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "text", "text": "Yes." },
                { "type": "tool_use", "id": "a", "name": "read", "input": {} },
                { "type": "tool_use", "id": "b", "name": "read", "input": {} }] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": true },
                { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "one" }],
                  "cache_control": { "type": "ephemeral" } },
                { "type": "text", "text": "Go on." }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Done." }] },
            { "role": "user", "content": [{ "type": "text", "text": "Thanks." }] }] });
    let shape = [
        Example("`model` is a text", |b| b["model"] = "".into(), |b| b["model"] = "x".into()),
        Example(
            "`max_tokens` is a number from 1",
            |b| b["max_tokens"] = 0.into(),
            |b| b["max_tokens"] = 1.into(),
        ),
        Example(
            "`messages` is a list that is not empty",
            |b| b["messages"] = json!([]),
            |b| b["messages"] = json!([{ "role": "user", "content": "x" }]),
        ),
        Example(
            "a role is user or assistant, or system right behind a user message and before a reply",
            |b| push(b, "messages", json!({ "role": "tool", "content": "x" })),
            |b| push(b, "messages", json!({ "role": "system", "content": "x" })),
        ),
        Example(
            "the first message is the user's",
            |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .insert(0, json!({ "role": "assistant", "content": "x" }));
            },
            |b| b["messages"].as_array_mut().unwrap().insert(0, json!({ "role": "user", "content": "x" })),
        ),
        Example(
            "a message has a content that is not empty",
            |b| b["messages"][0]["content"] = "".into(),
            |b| b["messages"][0]["content"] = "x".into(),
        ),
        Example(
            "a text has more than white space",
            |b| b["messages"][4]["content"][0]["text"] = " \n".into(),
            |b| b["messages"][4]["content"][0]["text"] = " .".into(),
        ),
        Example(
            "a last message of the assistant does not end in white space",
            |b| {
                b["messages"].as_array_mut().unwrap().pop();
                b["messages"][3]["content"][0]["text"] = "Done. ".into();
            },
            |b| b["messages"][3]["content"][0]["text"] = "Done. ".into(),
        ),
        Example(
            "a block stands in a message of a role that may have it",
            |b| {
                b["messages"][3]["content"][0] =
                    json!({ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } });
            },
            |b| {
                b["messages"][4]["content"][0] =
                    json!({ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } });
            },
        ),
        Example(
            "blocks and messages have no fields that the API does not know",
            |b| b["messages"][4]["content"][0]["mood"] = "good".into(),
            |b| b["messages"][4]["content"][0]["citations"] = Value::Null,
        ),
        Example(
            "`system` is a text or a list of texts",
            |b| b["system"] = json!({}),
            |b| b["system"] = "Be brief.".into(),
        ),
        Example(
            "tools have different names of at most 128 letters, digits, `_` and `-`, and a schema of an object",
            |b| push(b, "tools", json!({ "name": "write" })),
            |b| push(b, "tools", json!({ "type": "web_search_20250305", "name": "web_search" })),
        ),
        Example(
            "a request with calls or results defines tools",
            |b| b["tools"] = json!([]),
            |b| {
                b["tools"] = json!([]);
                b["messages"] = json!([{ "role": "user", "content": "x" }]);
            },
        ),
        Example(
            "an image has a source: data of a known kind, an address or a file",
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/tiff", "data": "AA" } });
            },
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/webp", "data": "AA" } });
            },
        ),
    ];
    let calls = [
        Example(
            "a call has an id of letters, digits, `_` and `-`",
            |b| {
                b["messages"][1]["content"][2]["id"] = "a.1".into();
                b["messages"][2]["content"][1]["tool_use_id"] = "a.1".into();
            },
            |b| {
                b["messages"][1]["content"][2]["id"] = "a_-1".into();
                b["messages"][2]["content"][1]["tool_use_id"] = "a_-1".into();
            },
        ),
        Example(
            "calls have different ids",
            |b| {
                let again = json!([b["messages"][1], b["messages"][2]]);
                b["messages"].as_array_mut().unwrap().truncate(4);
                b["messages"][3] = json!({ "role": "user", "content": "x" });
                b["messages"].as_array_mut().unwrap().extend(again.as_array().unwrap().clone());
            },
            |b| b["messages"].as_array_mut().unwrap().truncate(3),
        ),
        Example(
            "a called tool has a name of at most 200 letters, digits, `_` and `-`",
            |b| b["messages"][1]["content"][2]["name"] = repeat("n", 201).into(),
            |b| b["messages"][1]["content"][2]["name"] = repeat("n", 200).into(),
        ),
        Example(
            "the input of a call is an object",
            |b| b["messages"][1]["content"][2]["input"] = "{}".into(),
            |b| b["messages"][1]["content"][2]["input"] = json!({ "path": null }),
        ),
        Example(
            "every call has its result in the message right behind it",
            |b| drop(b["messages"][2]["content"].as_array_mut().unwrap().remove(0)),
            |b| drop(b["messages"][2]["content"].as_array_mut().unwrap().remove(2)),
        ),
        Example(
            "a result answers a call of the message right before it",
            |b| b["messages"][4]["content"] = json!([{ "type": "tool_result", "tool_use_id": "c" }]),
            |b| b["messages"][4]["content"] = json!([{ "type": "text", "text": "c" }]),
        ),
        Example(
            "a call has one result",
            |b| {
                let again = b["messages"][2]["content"][0].clone();
                b["messages"][2]["content"].as_array_mut().unwrap().insert(1, again);
            },
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(0, 1),
        ),
        Example(
            "results come before anything else in their message",
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(1, 2),
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(0, 1),
        ),
        Example(
            "a result is a text or a list of texts, images and documents",
            |b| b["messages"][2]["content"][1]["content"] = json!([{ "type": "tool_use" }]),
            |b| b["messages"][2]["content"][1]["content"] = json!([]),
        ),
        Example(
            "a result that is an error has texts alone",
            |b| {
                b["messages"][2]["content"][0]["content"] =
                    json!([{ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } }]);
            },
            |b| {
                b["messages"][2]["content"][1]["content"] =
                    json!([{ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } }]);
            },
        ),
        Example(
            "a call of a server's tool has its result behind it in the same message",
            |b| {
                b["messages"][3]["content"] = json!([
                    { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
                    { "type": "text", "text": "Done." }]);
            },
            |b| {
                b["messages"][3]["content"] = json!([
                    { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
                    { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] }]);
            },
        ),
    ];
    let thoughts = [
        Example(
            "a thought is a text with its signature, or sealed data",
            |b| b["messages"][1]["content"][0]["signature"] = "".into(),
            |b| b["messages"][1]["content"][0] = json!({ "type": "redacted_thinking", "data": "x" }),
        ),
        Example(
            "a thought is not the last block of a message",
            |b| {
                push(
                    &mut b["messages"][3],
                    "content",
                    json!({ "type": "thinking", "thinking": "", "signature": "s" }),
                );
            },
            |b| {
                let thought = json!({ "type": "thinking", "thinking": "", "signature": "s" });
                b["messages"][3]["content"].as_array_mut().unwrap().insert(0, thought);
            },
        ),
        Example(
            "with thinking on, the reply whose calls were just answered begins with a thought",
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(3);
                b["messages"][1]["content"].as_array_mut().unwrap().remove(0);
            },
            // Of older replies it is not asked.
            |b| drop(b["messages"][1]["content"].as_array_mut().unwrap().remove(0)),
        ),
    ];
    let marks = [
        Example(
            "there are at most 4 cache marks, in tools, system and messages together",
            |b| {
                b["tools"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
                for i in [2, 3, 4] {
                    b["messages"][i]["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
                }
                b["messages"][2]["content"][1].as_object_mut().unwrap().remove("cache_control");
            },
            |b| {
                b["tools"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
                b["messages"][4]["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
            },
        ),
        Example(
            "a cache mark is ephemeral, for 5m or 1h",
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "2h".into(),
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "5m".into(),
        ),
        Example(
            "cache marks for 1h come before those for 5m",
            |b| b["messages"][4]["content"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "1h".into(),
        ),
        Example(
            "no cache mark stands on a thought or on an empty text",
            |b| b["messages"][1]["content"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
            |b| b["messages"][1]["content"][1]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
        ),
    ];
    let examples: Vec<Example> = shape.into_iter().chain(calls).chain(thoughts).chain(marks).collect();
    check(Kind::Anthropic, &base, &examples);
}
