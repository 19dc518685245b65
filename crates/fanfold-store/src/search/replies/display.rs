//! Messages in search replies, with the same fields for every wire format.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Millis, Node};
use crate::search::text::json::parse_lenient;

/// A message in a search reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DisplayMessage {
    /// The number in the store, a value for `around_message_id`.
    pub id: u64,
    /// The role of the author.
    pub role: &'static str,
    /// The text.
    pub content: String,
    /// The time of the message, in seconds since 1970.
    pub timestamp: f64,
    /// The number of preceding messages in the session.
    pub position: u32,
    /// The model's reasoning, if the message has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// For a result, the name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The tool calls of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<Value>>,
    /// For a result, the id of its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The number of characters of the whole content, if it is truncated here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_chars: Option<usize>,
    /// True if this is the hit or the requested message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub anchor: bool,
}

impl DisplayMessage {
    /// Converts a stored message, and truncates its texts to `max_chars` characters each.
    pub(crate) fn from_node(node: &Node, max_chars: Option<usize>) -> DisplayMessage {
        let mut parts = MessageParts::default();
        match parse_lenient(&node.json) {
            Some(message) => parts.add_message(&message),
            None => parts.content.push(node.json.to_string()),
        }
        let content = parts.content.join("\n");
        let n_chars = content.chars().count();
        let content = truncate_middle(content, max_chars);
        let none_if_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        let calls = parts.calls.into_iter().map(|call| call.print(max_chars)).collect::<Vec<_>>();
        DisplayMessage {
            id: node.number,
            role: node.role.name(),
            content,
            timestamp: unix_seconds(node.at),
            position: node.depth,
            reasoning: none_if_empty(truncate_middle(parts.reasoning.join("\n"), max_chars)),
            tool_name: parts.tool_name,
            tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
            tool_call_id: parts.tool_call_id,
            content_chars: max_chars.filter(|max_chars| n_chars > *max_chars).map(|_| n_chars),
            anchor: false,
        }
    }
}

/// Converts a time to seconds.
pub(crate) fn unix_seconds(at: Millis) -> f64 {
    at.0 as f64 / 1_000.0
}

/// Truncates a long text to its first and last half.
fn truncate_middle(text: String, max_chars: Option<usize>) -> String {
    let Some(max_chars) = max_chars else { return text };
    let n_chars = if text.len() <= max_chars { text.len() } else { text.chars().count() };
    if n_chars <= max_chars {
        return text;
    }
    let head = max_chars.div_ceil(2);
    let tail = max_chars - head;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(head)], &text[at(n_chars - tail)..]);
    format!("{head}\n[… {} characters …]\n{tail}", n_chars - max_chars)
}

struct DisplayCall {
    id: Option<String>,
    name: String,
    arguments: String,
}

impl DisplayCall {
    fn print(self, max_chars: Option<usize>) -> Value {
        let function = json!({ "name": self.name, "arguments": truncate_middle(self.arguments, max_chars) });
        match self.id {
            Some(id) => json!({ "id": id, "type": "function", "function": function }),
            None => json!({ "type": "function", "function": function }),
        }
    }
}

/// The parts of a message, collected from any wire format.
#[derive(Default)]
struct MessageParts {
    content: Vec<String>,
    reasoning: Vec<String>,
    calls: Vec<DisplayCall>,
    tool_name: Option<String>,
    tool_call_id: Option<String>,
}

impl MessageParts {
    fn add_message(&mut self, message: &Value) {
        if !message.is_object() {
            return self.content.push(text_or_json(message));
        }
        let first_text = |keys: &[&str]| keys.iter().find_map(|key| message[key].as_str()).map(str::to_owned);
        self.tool_call_id = first_text(&["tool_call_id", "call_id"]);
        match message["role"].as_str() {
            Some("tool" | "function") => self.tool_name = first_text(&["name", "tool_name"]),
            _ if message["type"].as_str().is_some_and(|kind| kind.ends_with("_call")) => {
                self.add_call(message);
            }
            _ => {}
        }
        for key in ["reasoning_content", "reasoning"] {
            self.reasoning.extend(message[key].as_str().map(str::to_owned));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.add_call(call);
        }
        for key in ["content", "output", "parts", "value", "summary"] {
            match &message[key] {
                Value::Null => {}
                Value::Array(parts) => parts.iter().for_each(|part| self.add_part(part)),
                Value::Object(_) => self.add_part(&message[key]),
                text => self.add_text(&text_or_json(text)),
            }
        }
    }

    fn add_part(&mut self, part: &Value) {
        if let Some(text) = part.as_str() {
            return self.add_text(text);
        }
        if part["functionCall"].is_object() {
            return self.add_call(&part["functionCall"]);
        }
        if part["functionResponse"].is_object() {
            let response = &part["functionResponse"];
            self.tool_name = response["name"].as_str().map(str::to_owned);
            return self.add_text(&text_or_json(&response["response"]));
        }
        match part["type"].as_str().unwrap_or_default() {
            "tool_use" | "server_tool_use" => self.add_call(part),
            "tool_result" => {
                self.tool_call_id =
                    self.tool_call_id.take().or(part["tool_use_id"].as_str().map(str::to_owned));
                match &part["content"] {
                    Value::Array(parts) => parts.iter().for_each(|part| self.add_part(part)),
                    text => self.add_text(&text_or_json(text)),
                }
            }
            "thinking" | "summary_text" => {
                let text = part["thinking"].as_str().or(part["text"].as_str()).unwrap_or_default();
                self.reasoning.push(text.to_owned());
            }
            "document" if part["source"]["type"] == "text" => {
                self.add_text(&text_or_json(&part["source"]["data"]));
            }
            kind if kind.contains("image") => self.add_text("[image]"),
            kind if kind.contains("audio") => self.add_text("[audio]"),
            kind if kind.contains("file") || kind == "document" => self.add_text("[file]"),
            _ => self.add_text(part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default()),
        }
    }

    fn add_call(&mut self, call: &Value) {
        let function = if call["function"].is_object() { &call["function"] } else { call };
        let arguments = ["arguments", "input", "args", "action"].iter().map(|key| &function[key]);
        let arguments =
            arguments.into_iter().find(|value| !value.is_null()).map(text_or_json).unwrap_or_default();
        let id = call["call_id"].as_str().or(call["id"].as_str()).map(str::to_owned);
        let name = function["name"].as_str().or(call["type"].as_str()).unwrap_or_default().to_owned();
        self.calls.push(DisplayCall { id, name, arguments });
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.content.push(text.to_owned());
        }
    }
}

/// Returns a string unquoted, and any other value as JSON.
fn text_or_json(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::model::{NodeId, Role};

    fn check(json: &str, max_chars: Option<usize>, expected: &Expect) {
        let node = Node {
            id: NodeId::new(None, json),
            parent: None,
            number: 7,
            depth: 0,
            role: Role::from_message(json),
            at: Millis(1_500),
            json: json.into(),
        };
        expected.assert_eq(&serde_json::to_string(&DisplayMessage::from_node(&node, max_chars)).unwrap());
    }

    #[test]
    fn all_formats_have_the_same_fields() {
        check(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
            None,
            &expect![[
                r#"{"id":7,"role":"assistant","content":"","timestamp":1.5,"position":0,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#
            ]],
        );
        check(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"ls","input":{"a":1}}]}"#,
            None,
            &expect![[
                r#"{"id":7,"role":"assistant","content":"ok","timestamp":1.5,"position":0,"reasoning":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"ls","arguments":"{\"a\":1}"}}]}"#
            ]],
        );
        check(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"image"}]}]}"#,
            None,
            &expect![[
                r#"{"id":7,"role":"tool","content":"a\n[image]","timestamp":1.5,"position":0,"tool_call_id":"t1"}"#
            ]],
        );
        check(
            r#"{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}"#,
            None,
            &expect![[
                r#"{"id":7,"role":"assistant","content":"","timestamp":1.5,"position":0,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}],"tool_call_id":"c1"}"#
            ]],
        );
        check(
            "not JSON",
            None,
            &expect![[r#"{"id":7,"role":"other","content":"not JSON","timestamp":1.5,"position":0}"#]],
        );
    }

    #[test]
    fn long_texts_are_truncated_in_the_middle() {
        check(
            r#"{"role":"user","content":"äbcdefghijö"}"#,
            Some(4),
            &expect![[
                r#"{"id":7,"role":"user","content":"äb\n[… 7 characters …]\njö","timestamp":1.5,"position":0,"content_chars":11}"#
            ]],
        );
    }
}
