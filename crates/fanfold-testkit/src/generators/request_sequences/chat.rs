//! Messages of Chat Completions.

use serde_json::{Value, json};

use super::{IMAGE, RequestSequence, ToolCall};

pub(super) fn system(sequence: &mut RequestSequence, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    sequence.frame["tools"] = ["read", "run"]
        .iter()
        .map(|name| json!({ "type": "function", "function": { "name": name, "parameters": schema } }))
        .chain([json!({ "type": "custom", "custom": { "name": "patch" } })])
        .collect();
    sequence.frame["stream"] = true.into();
    if sequence.rng.percent(80) {
        let role = sequence.rng.pick(&["system", "developer"]);
        sequence.messages.push(json!({ "role": role, "content": system }));
    }
}

pub(super) fn user(sequence: &mut RequestSequence, text: &str, has_image: bool) {
    let mut content = Value::from(text);
    if has_image || sequence.rng.percent(20) {
        content = json!([{ "type": "text", "text": text }]);
    }
    if has_image {
        let url = format!("data:image/png;base64,{IMAGE}");
        content
            .as_array_mut()
            .expect("it is a list")
            .push(json!({ "type": "image_url", "image_url": { "url": url } }));
    }
    let mut message = json!({ "role": "user", "content": content });
    if sequence.rng.percent(8) {
        message["name"] = "harness".into();
    }
    sequence.messages.push(message);
    if sequence.rng.percent(5) {
        sequence.messages.push(json!({ "role": "developer", "content": "Answer in one sentence." }));
    }
}

pub(super) fn step(sequence: &mut RequestSequence, calls: &[ToolCall]) {
    let call_values: Vec<Value> = calls
        .iter()
        .map(|call| match call.tool {
            "patch" => json!({ "id": call.id, "type": "custom",
                "custom": { "name": "patch", "input": call.arguments.to_string() } }),
            name => json!({ "id": call.id, "type": "function",
                "function": { "name": name, "arguments": call.arguments.to_string() } }),
        })
        .collect();
    let mut reply = json!({ "role": "assistant", "content": null });
    if sequence.rng.percent(50) {
        reply["content"] = sequence.words(1, 20).into();
    }
    if sequence.has_reasoning && sequence.rng.percent(60) {
        reply["reasoning_content"] = sequence.words(3, 60).into();
    }
    reply["tool_calls"] = call_values.into();
    sequence.messages.push(reply);
    for i in sequence.shuffled(calls.len()) {
        let is_list = sequence.rng.percent(15);
        let result = &calls[i].result;
        let content =
            if is_list { json!([{ "type": "text", "text": result }]) } else { result.as_str().into() };
        sequence.messages.push(json!({ "role": "tool", "tool_call_id": calls[i].id, "content": content }));
    }
}

pub(super) fn answer(sequence: &mut RequestSequence, answer: &str) {
    sequence.messages.push(json!({ "role": "assistant", "content": answer }));
}
