//! Writes chat messages as a session tells them, piece by piece.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Extent;
use crate::record::{Record, Reported};

/// A conversation in the writing.
#[derive(Default)]
pub(super) struct Pen {
    extent: Extent,
    messages: Vec<Value>,
    times: Vec<Option<f64>>,
    pub(super) model: Option<String>,
    pub(super) reported: Reported,
    /// What the last message was made from: pieces of one reply carry the same.
    reply: Option<String>,
}

impl Pen {
    /// Nothing is written yet, but whose replies they will be may be known.
    pub(super) fn of_model(model: Option<String>) -> Pen {
        Pen { model, ..Pen::default() }
    }

    /// Nothing is written yet, but it is known how much will be.
    pub(super) fn of_extent(extent: Extent) -> Pen {
        Pen { extent, ..Pen::default() }
    }

    /// What the model thought before it said or did something. It is no part of what is measured.
    pub(super) fn think(&mut self, reply: &str, text: &str, at: Option<f64>) {
        if self.extent == Extent::Measured || text.is_empty() {
            return;
        }
        self.reply(reply, "", Vec::new(), at);
        let Some(message) = self.messages.last_mut() else { return };
        let before = message["reasoning_content"].as_str().unwrap_or_default();
        let glue = if before.is_empty() { "" } else { "\n" };
        message["reasoning_content"] = Value::from(format!("{before}{glue}{text}"));
    }

    /// A message that is no reply.
    pub(super) fn say(&mut self, message: Value, at: Option<f64>) {
        self.messages.push(message);
        self.times.push(at);
        self.reply = None;
    }

    /// The result of a call.
    pub(super) fn answer(&mut self, call: &str, content: &str, at: Option<f64>) {
        self.say(json!({ "role": "tool", "tool_call_id": call, "content": content }), at);
    }

    /// A piece of a reply. Pieces of one reply are put together.
    pub(super) fn reply(&mut self, reply: &str, text: &str, calls: Vec<Value>, at: Option<f64>) {
        if self.reply.as_deref() != Some(reply) {
            self.say(json!({ "role": "assistant", "content": "" }), at);
            self.reply = Some(reply.to_owned());
        }
        let Some(message) = self.messages.last_mut() else { return };
        if !text.is_empty() {
            let before = message["content"].as_str().unwrap_or_default();
            let glue = if before.is_empty() { "" } else { "\n" };
            message["content"] = Value::from(format!("{before}{glue}{text}"));
        }
        if !calls.is_empty() {
            match message["tool_calls"].as_array_mut() {
                Some(known) => known.extend(calls),
                None => message["tool_calls"] = Value::from(calls),
            }
        }
    }

    /// The conversation, if anything was said and, where it is to be measured, answered.
    pub(super) fn end(self, id: String, source: &str) -> Option<Record> {
        let has_reply = self.messages.iter().skip(1).any(|message| message["role"] == "assistant");
        let is_enough = match self.extent {
            Extent::Measured => has_reply,
            Extent::Whole => !self.messages.is_empty(),
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

/// A call as a chat message has it.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

/// The text of a content: a string, or the texts of its parts, with a word for what is no text.
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
