//! Messages of Anthropic.

use serde_json::{Value, json};

use super::{IMAGE, RequestSequence, ToolCall};

pub(super) fn system(sequence: &mut RequestSequence, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut tools: Vec<Value> = ["read", "run", "patch"]
        .iter()
        .map(|name| json!({ "name": name, "description": "does it", "input_schema": schema }))
        .collect();
    tools.push(json!({ "type": "web_search_20250305", "name": "web_search" }));
    if sequence.has_cache_marks && sequence.rng.percent(50) {
        tools[3]["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
    }
    sequence.frame["max_tokens"] = 8192.into();
    sequence.frame["system"] = system.into();
    if sequence.rng.percent(60) {
        let mut block = json!({ "type": "text", "text": system });
        if sequence.has_cache_marks {
            block["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" });
        }
        sequence.frame["system"] = json!([{ "type": "text", "text": "You are careful." }, block]);
    }
    sequence.frame["tools"] = tools.into();
    if sequence.has_reasoning {
        sequence.frame["thinking"] = json!({ "type": "enabled", "budget_tokens": 2048 });
    }
    sequence.frame["stream"] = true.into();
}

pub(super) fn user(sequence: &mut RequestSequence, text: &str, has_image: bool) {
    // The API refuses empty texts and texts of white space, which `words` never returns.
    let mut blocks = vec![json!({ "type": "text", "text": text })];
    if has_image {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": IMAGE });
        blocks.push(json!({ "type": "image", "source": source }));
    }
    if sequence.rng.percent(20) {
        let more = sequence.words(1, 9);
        blocks.insert(0, json!({ "type": "text", "text": format!("<reminder>{more}</reminder>") }));
    }
    let is_text = blocks.len() == 1 && sequence.rng.percent(40);
    let content = if is_text { text.into() } else { Value::from(blocks) };
    sequence.messages.push(json!({ "role": "user", "content": content }));
}

pub(super) fn step(sequence: &mut RequestSequence, calls: &[ToolCall]) {
    let mut blocks = Vec::new();
    if sequence.has_reasoning {
        blocks.push(thinking_block(sequence));
    }
    if sequence.rng.percent(8) {
        let id = sequence.id("srvtoolu");
        blocks.push(json!({ "type": "server_tool_use", "id": id, "name": "web_search",
            "input": { "query": "fold a letter" } }));
        blocks.push(json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [
            { "type": "web_search_result", "title": "Letters", "url": "https://example.org/letters",
              "encrypted_content": "c2VhbGVk".repeat(20) }] }));
    }
    if sequence.rng.percent(50) {
        let text = sequence.words(1, 20);
        blocks.push(json!({ "type": "text", "text": text }));
    }
    for call in calls {
        blocks.push(json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments }));
    }
    sequence.messages.push(json!({ "role": "assistant", "content": blocks }));
    let mut results = Vec::new();
    for i in sequence.shuffled(calls.len()) {
        results.push(result(&calls[i]));
    }
    if sequence.rng.percent(10) {
        results.push(json!({ "type": "text", "text": "Mind the time." }));
    }
    sequence.messages.push(json!({ "role": "user", "content": results }));
}

fn result(call: &ToolCall) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": call.id, "content": call.result });
    if call.is_error {
        result["is_error"] = true.into();
    } else if call.has_image {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": IMAGE });
        result["content"] =
            json!([{ "type": "text", "text": call.result }, { "type": "image", "source": source }]);
    }
    result
}

fn thinking_block(sequence: &mut RequestSequence) -> Value {
    if sequence.rng.percent(10) {
        return json!({ "type": "redacted_thinking", "data": "EmwKAhgB".repeat(12) });
    }
    let text = sequence.words(3, 60);
    json!({ "type": "thinking", "thinking": text, "signature": "EqQBCkYI".repeat(12) })
}

pub(super) fn answer(sequence: &mut RequestSequence, answer: &str) {
    let mut blocks = vec![json!({ "type": "text", "text": answer })];
    if sequence.has_reasoning && sequence.rng.percent(50) {
        blocks.insert(0, thinking_block(sequence));
    }
    sequence.messages.push(json!({ "role": "assistant", "content": blocks }));
}

/// Marks the last message and the user message before it for caching. Later requests mark later messages instead.
pub(super) fn add_cache_marks(messages: &mut [Value]) {
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
