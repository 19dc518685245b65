//! The rules of Anthropic Messages.

use fanfold_testkit::bodies::Kind;
use serde_json::{Value, json};

use super::{Example, check, push, repeat};

#[test]
fn every_rule_of_anthropic_is_tried() {
    let base = json!({ "model": "m", "max_tokens": 2000, "thinking": { "type": "enabled", "budget_tokens": 1024 },
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
            "`max_tokens` is a number",
            |b| b["max_tokens"] = "2000".into(),
            |b| {
                b["max_tokens"] = 0.into();
                b["thinking"] = Value::Null;
            },
        ),
        Example(
            "`messages` is a list of 1 to 100,000",
            |b| b["messages"] = json!([]),
            |b| b["messages"] = json!([{ "role": "user", "content": "x" }]),
        ),
        Example(
            "`messages` is a list of 1 to 100,000",
            |b| b["messages"] = vec![json!({ "role": "user", "content": "x" }); 100_001].into(),
            |b| b["messages"] = vec![json!({ "role": "user", "content": "x" }); 100_000].into(),
        ),
        Example(
            "a role is user or assistant, or system right behind a user message and before a reply",
            |b| push(b, "messages", json!({ "role": "tool", "content": "x" })),
            |b| push(b, "messages", json!({ "role": "system", "content": "x" })),
        ),
        Example(
            "a role is user or assistant, or system right behind a user message and before a reply",
            |b| b["messages"].as_array_mut().unwrap().insert(4, json!({ "role": "system", "content": "x" })),
            // Behind a reply that ends in a server's tool, too.
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(4);
                b["messages"][3]["content"] = json!([
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
                    { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] }]);
                push(b, "messages", json!({ "role": "system", "content": "x" }));
            },
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
                b["thinking"] = Value::Null;
                b["messages"].as_array_mut().unwrap().pop();
                b["messages"][3]["content"][0]["text"] = "Done. ".into();
            },
            |b| b["messages"][3]["content"][0]["text"] = "Done. ".into(),
        ),
        Example(
            "a block is of a type that the API knows",
            |b| b["messages"][4]["content"][0] = json!({ "type": "hologram" }),
            |b| b["messages"][4]["content"][0] = json!({ "type": "container_upload", "file_id": "file_1" }),
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
            "the schema of a tool has no choice at its top",
            |b| b["tools"][0]["input_schema"]["anyOf"] = json!([{ "required": ["path"] }]),
            |b| {
                b["tools"][0]["input_schema"]["properties"] =
                    json!({ "path": { "anyOf": [{ "type": "string" }, { "type": "null" }] } });
            },
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
            "an image or a document has a source: data of a known kind, an address or a file",
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/tiff", "data": "AA" } });
            },
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/webp", "data": "AA" } });
            },
        ),
        Example(
            "an image or a document has a source: data of a known kind, an address or a file",
            |b| b["messages"][4]["content"][0] = json!({ "type": "document", "title": "A letter" }),
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "document", "source": {
                    "type": "text", "media_type": "text/plain", "data": "Dear reader," } });
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
    let servers = [Example(
        "a result of a server's tool has its call before it",
        |b| {
            b["messages"][3]["content"] = json!([
                    { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
                    { "type": "text", "text": "Done." }]);
        },
        |b| {
            b["messages"][3]["content"] = json!([
                    { "type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {} },
                    { "type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [] }]);
        },
    )];
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
            "with thinking on, a last reply, or one whose calls were just answered, begins with a thought",
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(3);
                b["messages"][1]["content"].as_array_mut().unwrap().remove(0);
            },
            // Of older replies it is not asked.
            |b| drop(b["messages"][1]["content"].as_array_mut().unwrap().remove(0)),
        ),
        Example(
            "with thinking on, a last reply, or one whose calls were just answered, begins with a thought",
            |b| drop(b["messages"].as_array_mut().unwrap().pop()),
            |b| {
                b["messages"].as_array_mut().unwrap().pop();
                b["thinking"] = json!({ "type": "disabled" });
            },
        ),
        Example(
            "a budget of thoughts is from 1024 and less than `max_tokens`",
            |b| b["thinking"]["budget_tokens"] = 1023.into(),
            |b| b["max_tokens"] = 1025.into(),
        ),
        Example(
            "a budget of thoughts is from 1024 and less than `max_tokens`",
            |b| b["max_tokens"] = 1024.into(),
            |b| b["thinking"] = json!({ "type": "adaptive" }),
        ),
        Example(
            "with thinking on, no tool is forced",
            |b| b["tool_choice"] = json!({ "type": "tool", "name": "read" }),
            |b| b["tool_choice"] = json!({ "type": "auto" }),
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
    let examples: Vec<Example> =
        shape.into_iter().chain(calls).chain(servers).chain(thoughts).chain(marks).collect();
    check(Kind::Anthropic, &base, &examples);
}
