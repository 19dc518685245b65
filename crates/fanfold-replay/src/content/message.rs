//! A parsed chat message: role, text and calls.

use std::hash::Hash as _;

use fanfold_core::Count;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::text::unescape;

/// Tokens of a message's role and separators.
const PER_MESSAGE: u64 = 4;
/// Tokens of a call's frame and id.
const PER_CALL: u64 = 8;

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
    Other,
}

/// A parsed message.
#[derive(Debug)]
pub(crate) struct ChatMessage {
    pub(crate) role: ChatRole,
    /// True if a program wrote it in the user's role.
    pub(crate) is_harness: bool,
    pub(crate) content: String,
    /// The texts of the parts, if the content is a list. They are counted separately.
    parts: Option<Vec<String>>,
    pub(crate) calls: Vec<ChatCall>,
    /// The id of the call whose result it is.
    pub(crate) answers: Option<String>,
}

/// A call in a message.
#[derive(Debug)]
pub(crate) struct ChatCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl ChatMessage {
    pub(crate) fn parse(value: &Value) -> ChatMessage {
        let role = match value["role"].as_str().unwrap_or_default() {
            "system" | "developer" => ChatRole::System,
            "user" => ChatRole::User,
            "assistant" => ChatRole::Assistant,
            "tool" => ChatRole::Tool,
            _ => ChatRole::Other,
        };
        let parts = value["content"].as_array().map(|parts| {
            let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
            parts.iter().filter(|part| part.is_object()).map(text).collect::<Vec<_>>()
        });
        let content = match &parts {
            Some(parts) => parts.join("\n"),
            None => value["content"].as_str().unwrap_or_default().to_owned(),
        };
        let calls = value["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        ChatMessage {
            role,
            is_harness: value["name"] == "harness",
            content,
            parts,
            calls: calls.iter().map(ChatCall::parse).collect(),
            answers: value["tool_call_id"].as_str().map(str::to_owned),
        }
    }

    /// The text: the content, then the name and argument values of each call.
    pub(crate) fn render(&self) -> String {
        let mut parts = vec![self.content.clone()];
        parts.extend(self.calls.iter().map(|call| format!("{}\n{}", call.name, call.values())));
        parts.retain(|part| !part.is_empty());
        unescape(&parts.join("\n"))
    }

    pub(crate) fn tokens(&self, counter: &dyn Count) -> u64 {
        let count = |text: &str| if text.is_empty() { 0 } else { counter.count(text).0 };
        let content = match &self.parts {
            Some(parts) => parts.iter().map(|part| count(part)).sum(),
            None => count(&self.content),
        };
        let call = |call: &ChatCall| PER_CALL + count(&call.name) + count(&call.arguments);
        PER_MESSAGE + content + self.calls.iter().map(call).sum::<u64>()
    }
}

impl ChatCall {
    fn parse(call: &Value) -> ChatCall {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &call["function"];
        ChatCall {
            id: text(&call["id"]),
            name: text(&function["name"]),
            arguments: text(&function["arguments"]),
        }
    }

    /// The values of the arguments, one per line; the arguments verbatim if they are not JSON.
    pub(crate) fn values(&self) -> String {
        let Ok(value) = serde_json::from_str::<Value>(&self.arguments) else { return self.arguments.clone() };
        let mut out = Vec::new();
        leaves(&value, &mut out);
        out.join("\n")
    }
}

fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Number(number) => out.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, out)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// JSON with a space after each comma and colon, as tool schemas are counted.
pub(crate) fn spaced(value: &Value) -> String {
    let mut out = String::new();
    write_spaced(value, &mut out);
    out
}

fn write_spaced(value: &Value, out: &mut String) {
    match value {
        Value::Array(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_spaced(value, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (key, value)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write_spaced(value, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// A hash that does not depend on the order of fields.
pub(crate) fn fingerprint(value: &Value) -> u128 {
    let mut hasher = Xxh3::new();
    hash_value(value, &mut hasher);
    hasher.digest128()
}

fn hash_value(value: &Value, hasher: &mut Xxh3) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            ('{', fields.len()).hash(hasher);
            for (key, value) in fields {
                key.hash(hasher);
                hash_value(value, hasher);
            }
        }
        Value::Array(values) => {
            ('[', values.len()).hash(hasher);
            values.iter().for_each(|value| hash_value(value, hasher));
        }
        Value::String(text) => ('"', text).hash(hasher),
        Value::Number(number) => ('0', number.to_string()).hash(hasher),
        Value::Bool(is_true) => ('?', is_true).hash(hasher),
        Value::Null => '-'.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_renders_as_content_and_argument_values() {
        let arguments = r#"{"path": "a.rs", "n": 3, "all": true}"#;
        let call = json!({"id": "1", "function": {"name": "read", "arguments": arguments}});
        let value = json!({"role": "assistant", "content": "I\\nread", "tool_calls": [call]});
        assert_eq!(ChatMessage::parse(&value).render(), "I read\nread\na.rs\n3");
    }

    #[test]
    fn the_fingerprint_ignores_the_order_of_fields() {
        assert_eq!(fingerprint(&json!({"a": 1, "b": 2})), fingerprint(&json!({"b": 2, "a": 1})));
        assert_ne!(fingerprint(&json!({"a": 1})), fingerprint(&json!({"a": 2})));
    }

    #[test]
    fn schemas_are_written_with_spaces() {
        assert_eq!(spaced(&json!([{"a": [1, null]}, "x"])), r#"[{"a": [1, null]}, "x"]"#);
    }
}
