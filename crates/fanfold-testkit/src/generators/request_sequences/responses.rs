//! Items of Responses.

use serde_json::{Value, json};

use super::{IMAGE, RequestSequence, ToolCall};

pub(super) fn system(sequence: &mut RequestSequence, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut tools: Vec<Value> = ["read", "run"]
        .iter()
        .map(|name| json!({ "type": "function", "name": name, "parameters": schema, "strict": false }))
        .collect();
    tools.push(json!({ "type": "custom", "name": "patch" }));
    tools.push(json!({ "type": "web_search" }));
    sequence.frame["instructions"] = system.into();
    sequence.frame["tools"] = tools.into();
    sequence.frame["store"] = false.into();
    sequence.frame["stream"] = true.into();
    sequence.frame["include"] = json!(["reasoning.encrypted_content"]);
    if sequence.rng.percent(40) {
        let text = sequence.words(5, 20);
        sequence.messages.push(json!({ "type": "message", "role": "developer", "content": [
            { "type": "input_text", "text": text }] }));
    }
}

pub(super) fn user(sequence: &mut RequestSequence, text: &str, has_image: bool) {
    let mut content = Value::from(text);
    if has_image || sequence.rng.percent(60) {
        content = json!([{ "type": "input_text", "text": text }]);
    }
    if has_image {
        let url = format!("data:image/png;base64,{IMAGE}");
        content
            .as_array_mut()
            .expect("it is a list")
            .push(json!({ "type": "input_image", "image_url": url }));
    }
    let mut item = json!({ "type": "message", "role": "user", "content": content });
    if sequence.rng.percent(30) {
        item.as_object_mut().expect("it is an object").remove("type");
    }
    sequence.messages.push(item);
}

pub(super) fn step(sequence: &mut RequestSequence, calls: &[ToolCall]) {
    if sequence.has_reasoning && sequence.rng.percent(70) {
        reasoning(sequence);
    }
    if sequence.rng.percent(8) {
        let id = sequence.id("ws");
        sequence.messages.push(json!({ "type": "web_search_call", "id": id, "status": "completed",
            "action": { "type": "search", "query": "fold a letter" } }));
    }
    if sequence.rng.percent(30) {
        let text = sequence.words(1, 20);
        message(sequence, &text);
    }
    for call in calls {
        let number = sequence.id("");
        let arguments = call.arguments.to_string();
        sequence.messages.push(match call.tool {
            "patch" => json!({ "type": "custom_tool_call", "id": format!("ctc{number}"), "call_id": call.id,
                "name": "patch", "input": arguments }),
            "run" if call.has_image => json!({ "type": "local_shell_call", "id": format!("lsh{number}"),
                "call_id": call.id, "status": "completed",
                "action": { "type": "exec", "command": ["cargo", "test"] } }),
            name => json!({ "type": "function_call", "id": format!("fc{number}"), "call_id": call.id,
                "name": name, "arguments": arguments, "status": "completed" }),
        });
    }
    for i in sequence.shuffled(calls.len()) {
        let call = &calls[i];
        let kind = match call.tool {
            "patch" => "custom_tool_call_output",
            "run" if call.has_image => "local_shell_call_output",
            _ => "function_call_output",
        };
        let mut output = Value::from(call.result.as_str());
        if call.has_image && kind == "function_call_output" {
            let url = format!("data:image/png;base64,{IMAGE}");
            output = json!([{ "type": "input_text", "text": call.result }, { "type": "input_image", "image_url": url }]);
        }
        sequence.messages.push(json!({ "type": kind, "call_id": call.id, "output": output }));
    }
}

pub(super) fn answer(sequence: &mut RequestSequence, answer: &str) {
    if sequence.has_reasoning && sequence.rng.percent(50) {
        reasoning(sequence);
    }
    message(sequence, answer);
}

fn reasoning(sequence: &mut RequestSequence) {
    let (id, text) = (sequence.id("rs"), sequence.words(3, 40));
    sequence.messages.push(json!({ "type": "reasoning", "id": id, "summary": [
        { "type": "summary_text", "text": text }], "encrypted_content": "gAAAAABsealed".repeat(9) }));
}

fn message(sequence: &mut RequestSequence, text: &str) {
    let id = sequence.id("msg");
    sequence.messages.push(json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] }));
}
