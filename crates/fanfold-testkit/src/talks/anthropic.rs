//! Messages of Anthropic.

use serde_json::{Value, json};

use super::{Made, PICTURE, Talk};

pub(super) fn begin(talk: &mut Talk, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut tools: Vec<Value> = ["read", "run", "patch"]
        .iter()
        .map(|name| json!({ "name": name, "description": "does it", "input_schema": schema }))
        .collect();
    tools.push(json!({ "type": "web_search_20250305", "name": "web_search" }));
    if talk.is_marking && talk.rng.percent(50) {
        tools[3]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
    }
    talk.frame["max_tokens"] = 8192.into();
    talk.frame["system"] = system.into();
    if talk.rng.percent(60) {
        let mut block = json!({ "type": "text", "text": system });
        if talk.is_marking {
            block["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
        }
        talk.frame["system"] = json!([{ "type": "text", "text": "You are careful." }, block]);
    }
    talk.frame["tools"] = tools.into();
    if talk.is_thinking {
        talk.frame["thinking"] = json!({ "type": "enabled", "budget_tokens": 2048 });
    }
    talk.frame["stream"] = true.into();
}

pub(super) fn user(talk: &mut Talk, said: &str, has_picture: bool) {
    // A text of white space alone is refused, and so is one that is empty.
    let mut blocks = vec![json!({ "type": "text", "text": said })];
    if has_picture {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": PICTURE });
        blocks.push(json!({ "type": "image", "source": source }));
    }
    if talk.rng.percent(20) {
        let more = talk.words(1, 9);
        blocks.insert(0, json!({ "type": "text", "text": format!("<reminder>{more}</reminder>") }));
    }
    let is_text = blocks.len() == 1 && talk.rng.percent(40);
    let content = if is_text { said.into() } else { Value::from(blocks) };
    talk.messages.push(json!({ "role": "user", "content": content }));
}

pub(super) fn step(talk: &mut Talk, made: &[Made]) {
    let mut blocks = Vec::new();
    if talk.is_thinking {
        blocks.push(thought(talk));
    }
    if talk.rng.percent(8) {
        let id = talk.id("srvtoolu");
        blocks.push(json!({ "type": "server_tool_use", "id": id, "name": "web_search",
            "input": { "query": "fold a letter" } }));
        blocks.push(json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [
            { "type": "web_search_result", "title": "Letters", "url": "https://example.org/letters",
              "encrypted_content": "c2VhbGVk".repeat(20) }] }));
    }
    if talk.rng.percent(50) {
        let text = talk.words(1, 20);
        blocks.push(json!({ "type": "text", "text": text }));
    }
    for call in made {
        blocks.push(json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments }));
    }
    talk.messages.push(json!({ "role": "assistant", "content": blocks }));
    let mut results = Vec::new();
    for i in talk.shuffled(made.len()) {
        results.push(result(&made[i]));
    }
    if talk.rng.percent(10) {
        results.push(json!({ "type": "text", "text": "Mind the time." }));
    }
    talk.messages.push(json!({ "role": "user", "content": results }));
}

fn result(call: &Made) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": call.id, "content": call.result });
    if call.is_error {
        result["is_error"] = true.into();
    } else if call.has_picture {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": PICTURE });
        result["content"] =
            json!([{ "type": "text", "text": call.result }, { "type": "image", "source": source }]);
    }
    result
}

fn thought(talk: &mut Talk) -> Value {
    if talk.rng.percent(10) {
        return json!({ "type": "redacted_thinking", "data": "EmwKAhgB".repeat(12) });
    }
    let text = talk.words(3, 60);
    json!({ "type": "thinking", "thinking": text, "signature": "EqQBCkYI".repeat(12) })
}

pub(super) fn answer(talk: &mut Talk, answer: &str) {
    let mut blocks = vec![json!({ "type": "text", "text": answer })];
    if talk.is_thinking && talk.rng.percent(50) {
        blocks.insert(0, thought(talk));
    }
    talk.messages.push(json!({ "role": "assistant", "content": blocks }));
}

/// Marks on the newest message and on the user's before it, which older ones of the same conversation no longer have.
pub(super) fn mark(messages: &mut [Value]) {
    let newest = messages.len().saturating_sub(1);
    let before = (0..newest).rev().find(|&i| messages[i]["role"] == "user");
    for i in before.into_iter().chain([newest]) {
        let Some(message) = messages.get_mut(i) else { return };
        if let Some(text) = message["content"].as_str() {
            message["content"] = json!([{ "type": "text", "text": text }]);
        }
        let blocks = message["content"].as_array_mut().into_iter().flatten();
        if let Some(block) = blocks.last() {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}
