//! The rules of Anthropic Messages.

use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::{Value, json};

use super::{RuleExample, check, push, repeat};

#[test]
fn every_rule_of_anthropic_is_tested() {
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
        RuleExample("`model` is a string", |b| b["model"] = "".into(), |b| b["model"] = "x".into()),
        RuleExample(
            "`max_tokens` is a number",
            |b| b["max_tokens"] = "2000".into(),
            |b| {
                b["max_tokens"] = 0.into();
                b["thinking"] = Value::Null;
            },
        ),
        RuleExample(
            "`messages` has 1 to 100,000 entries",
            |b| b["messages"] = json!([]),
            |b| b["messages"] = json!([{ "role": "user", "content": "x" }]),
        ),
        RuleExample(
            "`messages` has 1 to 100,000 entries",
            |b| b["messages"] = vec![json!({ "role": "user", "content": "x" }); 100_001].into(),
            |b| b["messages"] = vec![json!({ "role": "user", "content": "x" }); 100_000].into(),
        ),
        RuleExample(
            "a role is user or assistant, or system between a user message and a reply",
            |b| push(b, "messages", json!({ "role": "tool", "content": "x" })),
            |b| push(b, "messages", json!({ "role": "system", "content": "x" })),
        ),
        RuleExample(
            "a role is user or assistant, or system between a user message and a reply",
            |b| b["messages"].as_array_mut().unwrap().insert(4, json!({ "role": "system", "content": "x" })),
            // Also after a reply that ends with a server tool.
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(4);
                b["messages"][3]["content"] = json!([
                    { "type": "thinking", "thinking": "hm", "signature": "s" },
                    { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} },
                    { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] }]);
                push(b, "messages", json!({ "role": "system", "content": "x" }));
            },
        ),
        RuleExample(
            "the first message is from the user",
            |b| {
                b["messages"]
                    .as_array_mut()
                    .unwrap()
                    .insert(0, json!({ "role": "assistant", "content": "x" }));
            },
            |b| b["messages"].as_array_mut().unwrap().insert(0, json!({ "role": "user", "content": "x" })),
        ),
        RuleExample(
            "a message has non-empty content",
            |b| b["messages"][0]["content"] = "".into(),
            |b| b["messages"][0]["content"] = "x".into(),
        ),
        RuleExample(
            "a text has more than whitespace",
            |b| b["messages"][4]["content"][0]["text"] = " \n".into(),
            |b| b["messages"][4]["content"][0]["text"] = " .".into(),
        ),
        RuleExample(
            "a final assistant message does not end in whitespace",
            |b| {
                b["thinking"] = Value::Null;
                b["messages"].as_array_mut().unwrap().pop();
                b["messages"][3]["content"][0]["text"] = "Done. ".into();
            },
            |b| b["messages"][3]["content"][0]["text"] = "Done. ".into(),
        ),
        RuleExample(
            "a block has a known type",
            |b| b["messages"][4]["content"][0] = json!({ "type": "hologram" }),
            |b| b["messages"][4]["content"][0] = json!({ "type": "container_upload", "file_id": "file_1" }),
        ),
        RuleExample(
            "a block has a type that the role of its message allows",
            |b| {
                b["messages"][3]["content"][0] =
                    json!({ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } });
            },
            |b| {
                b["messages"][4]["content"][0] =
                    json!({ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } });
            },
        ),
        RuleExample(
            "blocks and messages have no unknown fields",
            |b| b["messages"][4]["content"][0]["mood"] = "good".into(),
            |b| b["messages"][4]["content"][0]["citations"] = Value::Null,
        ),
        RuleExample(
            "`system` is a string or a list of texts",
            |b| b["system"] = json!({}),
            |b| b["system"] = "Be brief.".into(),
        ),
        RuleExample(
            "tools have different names of at most 128 letters, digits, `_` and `-`, and an object schema",
            |b| push(b, "tools", json!({ "name": "write" })),
            |b| push(b, "tools", json!({ "type": "web_search_20250305", "name": "web_search" })),
        ),
        RuleExample(
            "a tool schema has no `oneOf`, `allOf` or `anyOf` at the top level",
            |b| b["tools"][0]["input_schema"]["anyOf"] = json!([{ "required": ["path"] }]),
            |b| {
                b["tools"][0]["input_schema"]["properties"] =
                    json!({ "path": { "anyOf": [{ "type": "string" }, { "type": "null" }] } });
            },
        ),
        RuleExample(
            "a request with calls or results defines tools",
            |b| b["tools"] = json!([]),
            |b| {
                b["tools"] = json!([]);
                b["messages"] = json!([{ "role": "user", "content": "x" }]);
            },
        ),
        RuleExample(
            "an image or a document has a source: data of a supported media type, a URL or a file",
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/tiff", "data": "AA" } });
            },
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "image", "source": {
                    "type": "base64", "media_type": "image/webp", "data": "AA" } });
            },
        ),
        RuleExample(
            "an image or a document has a source: data of a supported media type, a URL or a file",
            |b| b["messages"][4]["content"][0] = json!({ "type": "document", "title": "A letter" }),
            |b| {
                b["messages"][4]["content"][0] = json!({ "type": "document", "source": {
                    "type": "text", "media_type": "text/plain", "data": "Dear reader," } });
            },
        ),
    ];
    let calls = [
        RuleExample(
            "a call id has only letters, digits, `_` and `-`",
            |b| {
                b["messages"][1]["content"][2]["id"] = "a.1".into();
                b["messages"][2]["content"][1]["tool_use_id"] = "a.1".into();
            },
            |b| {
                b["messages"][1]["content"][2]["id"] = "a_-1".into();
                b["messages"][2]["content"][1]["tool_use_id"] = "a_-1".into();
            },
        ),
        RuleExample(
            "calls have different ids",
            |b| {
                let again = json!([b["messages"][1], b["messages"][2]]);
                b["messages"].as_array_mut().unwrap().truncate(4);
                b["messages"][3] = json!({ "role": "user", "content": "x" });
                b["messages"].as_array_mut().unwrap().extend(again.as_array().unwrap().clone());
            },
            |b| b["messages"].as_array_mut().unwrap().truncate(3),
        ),
        RuleExample(
            "the name of a called tool has at most 200 letters, digits, `_` and `-`",
            |b| b["messages"][1]["content"][2]["name"] = repeat("n", 201).into(),
            |b| b["messages"][1]["content"][2]["name"] = repeat("n", 200).into(),
        ),
        RuleExample(
            "the input of a call is an object",
            |b| b["messages"][1]["content"][2]["input"] = "{}".into(),
            |b| b["messages"][1]["content"][2]["input"] = json!({ "path": null }),
        ),
        RuleExample(
            "every call has a result in the next message",
            |b| drop(b["messages"][2]["content"].as_array_mut().unwrap().remove(0)),
            |b| drop(b["messages"][2]["content"].as_array_mut().unwrap().remove(2)),
        ),
        RuleExample(
            "a result belongs to a call of the previous message",
            |b| b["messages"][4]["content"] = json!([{ "type": "tool_result", "tool_use_id": "c" }]),
            |b| b["messages"][4]["content"] = json!([{ "type": "text", "text": "c" }]),
        ),
        RuleExample(
            "a call has one result",
            |b| {
                let again = b["messages"][2]["content"][0].clone();
                b["messages"][2]["content"].as_array_mut().unwrap().insert(1, again);
            },
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(0, 1),
        ),
        RuleExample(
            "results are the first blocks of a message",
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(1, 2),
            |b| b["messages"][2]["content"].as_array_mut().unwrap().swap(0, 1),
        ),
        RuleExample(
            "a result is a text or a list of texts, images and documents",
            |b| b["messages"][2]["content"][1]["content"] = json!([{ "type": "tool_use" }]),
            |b| b["messages"][2]["content"][1]["content"] = json!([]),
        ),
        RuleExample(
            "an error result has only texts",
            |b| {
                b["messages"][2]["content"][0]["content"] =
                    json!([{ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } }]);
            },
            |b| {
                b["messages"][2]["content"][1]["content"] =
                    json!([{ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } }]);
            },
        ),
        RuleExample(
            "a server tool call has its result after it in the same message",
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
    let servers = [RuleExample(
        "a server tool result has its call before it",
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
        RuleExample(
            "a thinking block has a text and a signature, or redacted data",
            |b| b["messages"][1]["content"][0]["signature"] = "".into(),
            |b| b["messages"][1]["content"][0] = json!({ "type": "redacted_thinking", "data": "x" }),
        ),
        RuleExample(
            "a thinking block is not the last block of a message",
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
        RuleExample(
            "with thinking enabled, a final reply or one with just answered calls begins with a thinking block",
            |b| {
                b["messages"].as_array_mut().unwrap().truncate(3);
                b["messages"][1]["content"].as_array_mut().unwrap().remove(0);
            },
            // Older replies need no thinking block.
            |b| drop(b["messages"][1]["content"].as_array_mut().unwrap().remove(0)),
        ),
        RuleExample(
            "with thinking enabled, a final reply or one with just answered calls begins with a thinking block",
            |b| drop(b["messages"].as_array_mut().unwrap().pop()),
            |b| {
                b["messages"].as_array_mut().unwrap().pop();
                b["thinking"] = json!({ "type": "disabled" });
            },
        ),
        RuleExample(
            "the thinking budget is at least 1024 and less than `max_tokens`",
            |b| b["thinking"]["budget_tokens"] = 1023.into(),
            |b| b["max_tokens"] = 1025.into(),
        ),
        RuleExample(
            "the thinking budget is at least 1024 and less than `max_tokens`",
            |b| b["max_tokens"] = 1024.into(),
            |b| b["thinking"] = json!({ "type": "adaptive" }),
        ),
        RuleExample(
            "with thinking enabled, no tool is forced",
            |b| b["tool_choice"] = json!({ "type": "tool", "name": "read" }),
            |b| b["tool_choice"] = json!({ "type": "auto" }),
        ),
    ];
    let marks = [
        RuleExample(
            "there are at most 4 cache markers in tools, system and messages together",
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
        RuleExample(
            "a cache marker is ephemeral with a ttl of 5m or 1h",
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "2h".into(),
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "5m".into(),
        ),
        RuleExample(
            "cache markers with a ttl of 1h come before those with 5m",
            |b| b["messages"][4]["content"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
            |b| b["messages"][2]["content"][1]["cache_control"]["ttl"] = "1h".into(),
        ),
        RuleExample(
            "thinking blocks and empty texts have no cache marker",
            |b| b["messages"][1]["content"][0]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
            |b| b["messages"][1]["content"][1]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
        ),
    ];
    let examples: Vec<RuleExample> =
        shape.into_iter().chain(calls).chain(servers).chain(thoughts).chain(marks).collect();
    check(BodyFormat::Anthropic, &base, &examples);
}
