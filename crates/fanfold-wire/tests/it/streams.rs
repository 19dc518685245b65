//! Generates replies in the documented form of each API: whole and streamed.

use fanfold_wire::Format;
use fanfold_wire::reply::RECALL_TOOL;
use serde_json::{Value, json};

/// A part of a reply.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// A thought.
    Thinking(&'static str),
    /// Text.
    Text(&'static str),
    /// A call of the recall tool, with a handle.
    RecallCall(&'static str),
    /// A call of one of the client's tools.
    ClientCall(&'static str),
}

/// A reply of the provider.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) n: usize,
    pub(crate) parts: Vec<Part>,
    /// True if the model ran into its limit of output.
    pub(crate) is_cut: bool,
}

impl Answer {
    fn has_call(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::RecallCall(_) | Part::ClientCall(_)))
    }

    fn call(&self, i: usize) -> Option<(String, &'static str, Value)> {
        let id = format!("call_{}_{i}", self.n);
        match self.parts[i] {
            Part::RecallCall(handle) => Some((id, RECALL_TOOL, json!({"handle": handle, "lines": "1-9"}))),
            Part::ClientCall(path) => Some((id, "read", json!({"path": path, "note": "é \"quoted\""}))),
            Part::Thinking(_) | Part::Text(_) => None,
        }
    }

    /// The reply in a format.
    pub(crate) fn write(&self, format: Format, is_stream: bool) -> String {
        match (format, is_stream) {
            (Format::Anthropic, true) => self.anthropic_stream(),
            (Format::Anthropic, false) => self.anthropic_whole().to_string(),
            (Format::Chat, true) => self.chat_stream(),
            (Format::Chat, false) => self.chat_whole().to_string(),
            (Format::Responses, true) => self.responses_stream(),
            (Format::Responses, false) => self.response("completed").to_string(),
            (Format::ShareGpt | Format::Hermes, _) => unreachable!("no provider's format"),
        }
    }

    fn anthropic_usage(&self) -> Value {
        json!({"input_tokens": 10 + self.n, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7, "output_tokens": 20 + self.n})
    }

    fn anthropic_stop(&self) -> &'static str {
        match (self.is_cut, self.has_call()) {
            (true, _) => "max_tokens",
            (false, true) => "tool_use",
            (false, false) => "end_turn",
        }
    }

    fn anthropic_whole(&self) -> Value {
        let blocks: Vec<_> = (0..self.parts.len()).map(|i| self.block(i)).collect();
        json!({"id": format!("msg_{}", self.n), "type": "message", "role": "assistant", "model": "m", "content": blocks, "stop_reason": self.anthropic_stop(), "stop_sequence": null, "usage": self.anthropic_usage()})
    }

    fn block(&self, i: usize) -> Value {
        match self.parts[i] {
            Part::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": format!("sig_{}_{i}", self.n)})
            }
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::RecallCall(_) | Part::ClientCall(_) => {
                let (id, name, input) = self.call(i).unwrap();
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        }
    }

    fn anthropic_stream(&self) -> String {
        let start = json!({"id": format!("msg_{}", self.n), "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": self.anthropic_usage()});
        let mut events = vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
        for i in 0..self.parts.len() {
            let mut block = self.block(i);
            let (empty, deltas) = match self.parts[i] {
                Part::Thinking(text) => {
                    block["thinking"] = json!("");
                    block["signature"] = json!("");
                    let signature =
                        json!({"type": "signature_delta", "signature": format!("sig_{}_{i}", self.n)});
                    let mut deltas: Vec<_> =
                        halves(text).map(|half| json!({"type": "thinking_delta", "thinking": half})).into();
                    deltas.push(signature);
                    (block, deltas)
                }
                Part::Text(text) => {
                    block["text"] = json!("");
                    (block, halves(text).map(|half| json!({"type": "text_delta", "text": half})).into())
                }
                Part::RecallCall(_) | Part::ClientCall(_) => {
                    let input = block["input"].take().to_string();
                    block["input"] = json!({});
                    (
                        block,
                        halves(&input)
                            .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                            .into(),
                    )
                }
            };
            events.push(json!({"type": "content_block_start", "index": i, "content_block": empty}));
            events.extend(
                deltas
                    .into_iter()
                    .map(|delta| json!({"type": "content_block_delta", "index": i, "delta": delta})),
            );
            events.push(json!({"type": "content_block_stop", "index": i}));
        }
        let usage = json!({"output_tokens": 20 + self.n});
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": self.anthropic_stop(), "stop_sequence": null}, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        named(&events)
    }

    fn chat_stop(&self) -> &'static str {
        match (self.is_cut, self.has_call()) {
            (true, _) => "length",
            (false, true) => "tool_calls",
            (false, false) => "stop",
        }
    }

    fn chat_usage(&self) -> Value {
        json!({"prompt_tokens": 100 + self.n, "completion_tokens": 20 + self.n, "total_tokens": 120 + 2 * self.n, "prompt_tokens_details": {"cached_tokens": 64}})
    }

    fn chat_whole(&self) -> Value {
        let text: String = self
            .parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(*text) } else { None })
            .collect();
        let calls: Vec<_> = (0..self.parts.len())
            .filter_map(|i| self.call(i))
            .map(|(id, name, input)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}}))
            .collect();
        let mut message = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { json!(text) }, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        json!({"id": format!("chat_{}", self.n), "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": self.chat_stop()}], "usage": self.chat_usage()})
    }

    fn chat_stream(&self) -> String {
        let chunk = |choices: Value, usage: Value| json!({"id": format!("chat_{}", self.n), "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, "usage": usage});
        let delta =
            |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
        let mut chunks = vec![delta(json!({"role": "assistant", "content": ""}))];
        let mut n_calls = 0;
        for i in 0..self.parts.len() {
            match self.parts[i] {
                Part::Thinking(text) => {
                    chunks.extend(halves(text).map(|half| delta(json!({"reasoning_content": half}))));
                }
                Part::Text(text) => chunks.extend(halves(text).map(|half| delta(json!({"content": half})))),
                Part::RecallCall(_) | Part::ClientCall(_) => {
                    let (id, name, input) = self.call(i).unwrap();
                    chunks.push(delta(json!({"tool_calls": [{"index": n_calls, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})));
                    chunks.extend(halves(&input.to_string()).map(|half| {
                        delta(json!({"tool_calls": [{"index": n_calls, "function": {"arguments": half}}]}))
                    }));
                    n_calls += 1;
                }
            }
        }
        chunks
            .push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": self.chat_stop()}]), Value::Null));
        chunks.push(chunk(json!([]), self.chat_usage()));
        let mut text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        text.push_str("data: [DONE]\n\n");
        text
    }

    fn item(&self, i: usize, status: &str) -> Value {
        match self.parts[i] {
            Part::Thinking(text) => {
                json!({"id": format!("rs_{}_{i}", self.n), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "gAAA"})
            }
            Part::Text(text) => {
                json!({"id": format!("msg_{}_{i}", self.n), "type": "message", "role": "assistant", "status": status, "content": [{"type": "output_text", "text": text, "annotations": []}]})
            }
            Part::RecallCall(_) | Part::ClientCall(_) => {
                let (id, name, input) = self.call(i).unwrap();
                json!({"id": format!("fc_{}_{i}", self.n), "type": "function_call", "call_id": id, "name": name, "arguments": input.to_string(), "status": status})
            }
        }
    }

    fn response(&self, status: &str) -> Value {
        let status = if self.is_cut && status == "completed" { "incomplete" } else { status };
        let is_done = status != "in_progress";
        let items: Vec<_> =
            (0..self.parts.len()).filter(|_| is_done).map(|i| self.item(i, "completed")).collect();
        let usage = json!({"input_tokens": 100 + self.n, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 20 + self.n, "total_tokens": 120 + 2 * self.n});
        let details =
            if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        json!({"id": format!("resp_{}", self.n), "object": "response", "created_at": 1, "status": status, "error": null, "incomplete_details": details, "model": "m", "output": items, "usage": if is_done { usage } else { Value::Null }})
    }

    fn responses_stream(&self) -> String {
        let mut events = vec![
            json!({"type": "response.created", "response": self.response("in_progress")}),
            json!({"type": "response.in_progress", "response": self.response("in_progress")}),
        ];
        for i in 0..self.parts.len() {
            let item = self.item(i, "completed");
            let id = item["id"].clone();
            let mut begun = self.item(i, "in_progress");
            match self.parts[i] {
                Part::Thinking(text) => {
                    begun["summary"] = json!([]);
                    events.push(
                        json!({"type": "response.output_item.added", "output_index": i, "item": begun}),
                    );
                    events.extend(halves(text).map(|half| json!({"type": "response.reasoning_summary_text.delta", "item_id": id, "output_index": i, "summary_index": 0, "delta": half})));
                }
                Part::Text(text) => {
                    begun["content"] = json!([]);
                    events.push(
                        json!({"type": "response.output_item.added", "output_index": i, "item": begun}),
                    );
                    events.extend(halves(text).map(|half| json!({"type": "response.output_text.delta", "item_id": id, "output_index": i, "content_index": 0, "delta": half})));
                }
                Part::RecallCall(_) | Part::ClientCall(_) => {
                    begun["arguments"] = json!("");
                    let arguments = item["arguments"].as_str().unwrap();
                    events.push(
                        json!({"type": "response.output_item.added", "output_index": i, "item": begun}),
                    );
                    events.extend(halves(arguments).map(|half| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": i, "delta": half})));
                    events.push(json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": i, "arguments": arguments}));
                }
            }
            events.push(json!({"type": "response.output_item.done", "output_index": i, "item": item}));
        }
        let kind = if self.is_cut { "response.incomplete" } else { "response.completed" };
        events.push(json!({"type": kind, "response": self.response("completed")}));
        for (i, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(i);
        }
        named(&events)
    }
}

fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    [&text[..middle], &text[middle..]]
}

fn named(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}
