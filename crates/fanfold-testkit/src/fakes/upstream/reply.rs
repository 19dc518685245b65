//! Renders a reply in the format of each API, as one body or as the events of a stream.

use serde_json::{Map, Value, json};

use super::{ScriptInput, ScriptedReply};
use crate::generators::bodies::BodyFormat;

/// The headers of a streamed response.
pub(super) const STREAM: [(&str, &str); 3] =
    [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("transfer-encoding", "chunked")];

const COMMANDS: [&str; 6] = [
    "ls -la",
    "cat notes.md",
    "grep -rn alpha . | head -50",
    "seq 1 400",
    "cat big.log | head -300",
    "python3 -c \"print('x'*2000)\"",
];
const SHELLS: [&str; 6] = ["bash", "shell", "exec_command", "shell_command", "local_shell", "terminal"];

/// The next call of the client's shell tool, or `None` if the request has no shell tool.
pub(super) fn shell_call(input: &ScriptInput<'_>) -> Option<(String, Value)> {
    let command = COMMANDS[input.n_calls % COMMANDS.len()];
    let tools = input.body["tools"].as_array()?;
    for tool in tools {
        let tool = tool.get("function").unwrap_or(tool);
        let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default();
        if !SHELLS.contains(&name.to_lowercase().as_str()) {
            continue;
        }
        let schema = tool.get("parameters").or(tool.get("input_schema")).unwrap_or(&Value::Null);
        let empty = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&empty);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut arguments = Map::new();
        for (key, field) in fields {
            if matches!(key.as_str(), "command" | "cmd") {
                let is_list = field["type"] == "array";
                arguments.insert(
                    key.clone(),
                    if is_list { json!(["bash", "-lc", command]) } else { command.into() },
                );
            } else if required.contains(&key.as_str()) {
                let is_text = field["type"] == "string";
                arguments
                    .insert(key.clone(), if is_text { format!("run {command}").into() } else { 1000.into() });
            }
        }
        return Some((name.to_owned(), arguments.into()));
    }
    None
}

/// The body of a non-streamed answer.
pub(super) fn whole(
    kind: BodyFormat,
    reply: &ScriptedReply,
    body: &Value,
    id: usize,
    n_tokens: usize,
) -> Value {
    let model = body["model"].clone();
    match kind {
        BodyFormat::Anthropic => {
            let stop = stop(reply, "end_turn", "tool_use");
            json!({ "id": format!("msg_{id:08}"), "type": "message", "role": "assistant", "model": model,
                "content": blocks(reply, id), "stop_reason": stop, "stop_sequence": null,
                "usage": { "input_tokens": n_tokens, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0, "output_tokens": 20 } })
        }
        BodyFormat::Responses => {
            json!({ "id": format!("resp_{id:08}"), "object": "response", "created_at": 1_790_000_000,
                "status": "completed", "error": null, "incomplete_details": null, "model": model,
                "output": items(reply, id), "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
                "usage": { "input_tokens": n_tokens, "input_tokens_details": { "cached_tokens": 0 },
                    "output_tokens": 20, "output_tokens_details": { "reasoning_tokens": 0 },
                    "total_tokens": n_tokens + 20 } })
        }
        _ => {
            let mut message = json!({ "role": "assistant", "content": content(reply) });
            if !reply.calls.is_empty() {
                message["tool_calls"] = tool_calls(reply, id).into();
            }
            if !reply.thought.is_empty() {
                message["reasoning_content"] = reply.thought.as_str().into();
            }
            let stop = stop(reply, "stop", "tool_calls");
            json!({ "id": format!("chatcmpl-{id:08}"), "object": "chat.completion", "created": 1_790_000_000,
                "model": model, "choices": [{ "index": 0, "message": message, "finish_reason": stop,
                    "logprobs": null }],
                "usage": chat_usage(n_tokens) })
        }
    }
}

/// The events of a streamed answer, each with its terminating empty line.
pub(super) fn events(
    kind: BodyFormat,
    reply: &ScriptedReply,
    body: &Value,
    id: usize,
    n_tokens: usize,
) -> Vec<String> {
    let answer = whole(kind, reply, body, id, n_tokens);
    match kind {
        BodyFormat::Anthropic => anthropic_events(&answer),
        BodyFormat::Responses => responses_events(&answer),
        _ => {
            let is_usage_wanted = body["stream_options"]["include_usage"] == true;
            chat_events(&answer, reply, id, is_usage_wanted)
        }
    }
}

/// The stop reason.
fn stop<'s>(reply: &'s ScriptedReply, default: &'s str, with_calls: &'s str) -> &'s str {
    match (reply.stop.is_empty(), reply.calls.is_empty()) {
        (false, _) => &reply.stop,
        (true, true) => default,
        (true, false) => with_calls,
    }
}

/// An error as an event of a stream.
pub(super) fn error_event(kind: BodyFormat, error: &Value) -> String {
    if kind == BodyFormat::Anthropic { named_event("error", error) } else { data_event(error) }
}

fn content(reply: &ScriptedReply) -> Value {
    if reply.text.is_empty() && !reply.calls.is_empty() { Value::Null } else { reply.text.as_str().into() }
}

fn tool_calls(reply: &ScriptedReply, id: usize) -> Vec<Value> {
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(i, (name, arguments))| {
            json!({ "id": format!("call_{id:08}_{i}"), "type": "function",
            "function": { "name": name, "arguments": arguments.to_string() } })
        })
        .collect()
}

fn chat_usage(n_tokens: usize) -> Value {
    json!({ "prompt_tokens": n_tokens, "completion_tokens": 20, "total_tokens": n_tokens + 20,
        "prompt_tokens_details": { "cached_tokens": 0 } })
}

fn chat_events(answer: &Value, reply: &ScriptedReply, id: usize, is_usage_wanted: bool) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({ "id": answer["id"], "object": "chat.completion.chunk",
            "created": answer["created"], "model": answer["model"], "choices": choices });
        if is_usage_wanted {
            chunk["usage"] = usage;
        }
        data_event(&chunk)
    };
    let choice = |delta: Value, stop: Value| json!([{ "index": 0, "delta": delta, "finish_reason": stop }]);
    let mut events =
        vec![chunk(choice(json!({ "role": "assistant", "content": "" }), Value::Null), Value::Null)];
    for piece in pieces(&reply.thought) {
        events.push(chunk(choice(json!({ "reasoning_content": piece }), Value::Null), Value::Null));
    }
    for piece in pieces(&reply.text) {
        events.push(chunk(choice(json!({ "content": piece }), Value::Null), Value::Null));
    }
    for (i, mut call) in tool_calls(reply, id).into_iter().enumerate() {
        call["index"] = i.into();
        let arguments = call["function"]["arguments"].take();
        call["function"]["arguments"] = "".into();
        events.push(chunk(choice(json!({ "tool_calls": [call] }), Value::Null), Value::Null));
        for piece in pieces(arguments.as_str().unwrap_or_default()) {
            let delta = json!({ "tool_calls": [{ "index": i, "function": { "arguments": piece } }] });
            events.push(chunk(choice(delta, Value::Null), Value::Null));
        }
    }
    let stop = answer["choices"][0]["finish_reason"].clone();
    events.push(chunk(choice(json!({}), stop), Value::Null));
    if is_usage_wanted {
        events.push(chunk(json!([]), answer["usage"].clone()));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn blocks(reply: &ScriptedReply, id: usize) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !reply.thought.is_empty() {
        blocks.push(json!({ "type": "thinking", "thinking": reply.thought, "signature": "EqQBc2lnbmVk" }));
    }
    if !reply.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": reply.text }));
    }
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        blocks.push(json!({ "type": "tool_use", "id": format!("toolu_{id:08}_{i}"), "name": name,
            "input": arguments }));
    }
    blocks
}

fn anthropic_events(answer: &Value) -> Vec<String> {
    let mut start = answer.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events =
        vec![named_event("message_start", &json!({ "type": "message_start", "message": start })), ping()];
    for (i, block) in answer["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let (deltas, key): (Vec<Value>, &str) = match block["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                empty["input"] = json!({});
                let input = block["input"].to_string();
                let deltas = pieces(&input)
                    .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
                    .collect();
                (deltas, "input")
            }
            "thinking" => {
                empty["signature"] = "".into();
                let thought = block["thinking"].as_str().unwrap_or_default();
                let mut deltas: Vec<Value> = pieces(thought)
                    .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
                    .collect();
                deltas.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
                (deltas, "thinking")
            }
            _ => {
                let text = block["text"].as_str().unwrap_or_default();
                (pieces(text).map(|piece| json!({ "type": "text_delta", "text": piece })).collect(), "text")
            }
        };
        if key != "input" {
            empty[key] = "".into();
        }
        let start = json!({ "type": "content_block_start", "index": i, "content_block": empty });
        events.push(named_event("content_block_start", &start));
        for delta in deltas {
            let delta = json!({ "type": "content_block_delta", "index": i, "delta": delta });
            events.push(named_event("content_block_delta", &delta));
        }
        events.push(named_event("content_block_stop", &json!({ "type": "content_block_stop", "index": i })));
    }
    let delta = json!({ "stop_reason": answer["stop_reason"], "stop_sequence": null });
    let end = json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 20 } });
    events.push(named_event("message_delta", &end));
    events.push(named_event("message_stop", &json!({ "type": "message_stop" })));
    events
}

fn ping() -> String {
    named_event("ping", &json!({ "type": "ping" }))
}

fn items(reply: &ScriptedReply, id: usize) -> Vec<Value> {
    let mut items = Vec::new();
    if !reply.thought.is_empty() {
        items.push(json!({ "type": "reasoning", "id": format!("rs_{id:08}"), "summary": [
            { "type": "summary_text", "text": reply.thought }], "encrypted_content": "gAAAAAsealed" }));
    }
    if !reply.text.is_empty() || reply.calls.is_empty() {
        items.push(json!({ "type": "message", "id": format!("msg_{id:08}"), "status": "completed",
            "role": "assistant", "content": [
                { "type": "output_text", "annotations": [], "logprobs": [], "text": reply.text }] }));
    }
    for (i, (name, arguments)) in reply.calls.iter().enumerate() {
        items.push(json!({ "type": "function_call", "id": format!("fc_{id:08}_{i}"), "status": "completed",
            "call_id": format!("call_{id:08}_{i}"), "name": name, "arguments": arguments.to_string() }));
    }
    items
}

fn responses_events(answer: &Value) -> Vec<String> {
    let mut n_events = 0;
    let mut event = |mut data: Value| {
        data["sequence_number"] = n_events.into();
        n_events += 1;
        let name = data["type"].as_str().unwrap_or_default().to_owned();
        named_event(&name, &data)
    };
    let mut begun = answer.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![
        event(json!({ "type": "response.created", "response": begun })),
        event(json!({ "type": "response.in_progress", "response": begun })),
    ];
    for (i, item) in answer["output"].as_array().into_iter().flatten().enumerate() {
        let mut empty = item.clone();
        empty["status"] = "in_progress".into();
        let id = &item["id"];
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                empty["content"] = json!([]);
                events.push(event(item_added(i, &empty)));
                let text = item["content"][0]["text"].as_str().unwrap_or_default();
                let part = json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": "" });
                let at = json!({ "item_id": id, "output_index": i, "content_index": 0 });
                events.push(event(event_at(&at, "response.content_part.added", &[("part", part)])));
                for piece in pieces(text) {
                    let delta = [("delta", piece.into()), ("logprobs", json!([]))];
                    events.push(event(event_at(&at, "response.output_text.delta", &delta)));
                }
                let done = [("text", text.into()), ("logprobs", json!([]))];
                events.push(event(event_at(&at, "response.output_text.done", &done)));
                let part = [("part", item["content"][0].clone())];
                events.push(event(event_at(&at, "response.content_part.done", &part)));
            }
            "function_call" => {
                empty["arguments"] = "".into();
                events.push(event(item_added(i, &empty)));
                let arguments = item["arguments"].as_str().unwrap_or_default();
                let at = json!({ "item_id": id, "output_index": i });
                for piece in pieces(arguments) {
                    let delta = [("delta", piece.into())];
                    events.push(event(event_at(&at, "response.function_call_arguments.delta", &delta)));
                }
                let done = [("name", item["name"].clone()), ("arguments", arguments.into())];
                events.push(event(event_at(&at, "response.function_call_arguments.done", &done)));
            }
            _ => events.push(event(item_added(i, &empty))),
        }
        let done = json!({ "type": "response.output_item.done", "output_index": i, "item": item });
        events.push(event(done));
    }
    events.push(event(json!({ "type": "response.completed", "response": answer })));
    events
}

fn item_added(i: usize, item: &Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": i, "item": item })
}

fn event_at(at: &Value, name: &str, fields: &[(&str, Value)]) -> Value {
    let mut event = json!({ "type": name });
    for (key, value) in at.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    for (key, value) in fields {
        event[*key] = value.clone();
    }
    event
}

fn data_event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn named_event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}

/// Splits a text into pieces of about twenty characters.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    const LONGEST: usize = 21;
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(LONGEST).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}
