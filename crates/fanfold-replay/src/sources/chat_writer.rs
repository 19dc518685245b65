//! Writes chat messages from the events of a session.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ReadExtent;
use crate::record::{Record, ReportedUsage};

/// A conversation under construction.
#[derive(Default)]
pub(super) struct ChatWriter {
    extent: ReadExtent,
    messages: Vec<Value>,
    times: Vec<Option<f64>>,
    pub(super) model: Option<String>,
    pub(super) reported: ReportedUsage,
    /// The id of the reply in the last message. Pieces with the same id are joined.
    reply: Option<String>,
}

impl ChatWriter {
    /// An empty conversation with the model that writes the replies.
    pub(super) fn with_model(model: Option<String>) -> ChatWriter {
        ChatWriter { model, ..ChatWriter::default() }
    }

    /// An empty conversation that is written to this extent.
    pub(super) fn with_extent(extent: ReadExtent) -> ChatWriter {
        ChatWriter { extent, ..ChatWriter::default() }
    }

    /// Adds reasoning to a reply. A replay does not measure it.
    pub(super) fn add_reasoning(&mut self, reply: &str, text: &str, at: Option<f64>) {
        if self.extent == ReadExtent::Measured || text.is_empty() {
            return;
        }
        self.add_reply(reply, "", Vec::new(), at);
        let Some(message) = self.messages.last_mut() else { return };
        let before = message["reasoning_content"].as_str().unwrap_or_default();
        let separator = if before.is_empty() { "" } else { "\n" };
        message["reasoning_content"] = Value::from(format!("{before}{separator}{text}"));
    }

    /// Adds a message that is not a reply.
    pub(super) fn add_message(&mut self, message: Value, at: Option<f64>) {
        self.messages.push(message);
        self.times.push(at);
        self.reply = None;
    }

    /// Adds the result of a call.
    pub(super) fn add_result(&mut self, call: &str, content: &str, at: Option<f64>) {
        self.add_message(json!({ "role": "tool", "tool_call_id": call, "content": content }), at);
    }

    /// Adds a piece of a reply. Pieces of one reply become one message.
    pub(super) fn add_reply(&mut self, reply: &str, text: &str, calls: Vec<Value>, at: Option<f64>) {
        if self.reply.as_deref() != Some(reply) {
            self.add_message(json!({ "role": "assistant", "content": "" }), at);
            self.reply = Some(reply.to_owned());
        }
        let Some(message) = self.messages.last_mut() else { return };
        if !text.is_empty() {
            let before = message["content"].as_str().unwrap_or_default();
            let separator = if before.is_empty() { "" } else { "\n" };
            message["content"] = Value::from(format!("{before}{separator}{text}"));
        }
        if !calls.is_empty() {
            match message["tool_calls"].as_array_mut() {
                Some(known) => known.extend(calls),
                None => message["tool_calls"] = Value::from(calls),
            }
        }
    }

    /// The conversation; `None` if it is empty or, for a replay, has no reply.
    pub(super) fn finish(self, id: String, source: &str) -> Option<Record> {
        let has_reply = self.messages.iter().skip(1).any(|message| message["role"] == "assistant");
        let is_enough = match self.extent {
            ReadExtent::Measured => has_reply,
            ReadExtent::Whole => !self.messages.is_empty(),
        };
        if !is_enough {
            return None;
        }
        let raw = |message: Value| RawValue::from_string(message.to_string()).ok();
        Some(Record {
            id,
            source: source.to_owned(),
            messages: self.messages.into_iter().filter_map(raw).collect(),
            tools: None,
            tokens: None,
            model: self.model,
            times: self.times.into_iter().collect::<Option<Vec<f64>>>().unwrap_or_default(),
            reported: self.reported,
        })
    }
}

/// A call in the form of a chat message.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

/// The text of a content: a string, or the texts of its parts with `[image]` for images.
pub(super) fn text_of(content: &Value) -> String {
    let part = |part: &Value| match part["type"].as_str().unwrap_or_default() {
        "image" | "input_image" => Some("[image]".to_owned()),
        _ => part["text"].as_str().map(str::to_owned),
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
