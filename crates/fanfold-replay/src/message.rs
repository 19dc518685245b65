//! A chat message as it is measured: its role, its words, its calls.

use std::hash::Hash as _;

use fanfold_core::Count;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::text::plain;

/// What a message's role and separators cost beside its text, in tokens.
const PER_MESSAGE: u64 = 4;
/// What the frame and the id of a call cost.
const PER_CALL: u64 = 8;

/// In whose role a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
    Other,
}

/// A message taken apart.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) role: Role,
    /// Whether a program wrote it in the user's role.
    pub(crate) is_harness: bool,
    pub(crate) content: String,
    /// The texts of the content's parts where it is a list: they are counted one by one.
    parts: Option<Vec<String>>,
    pub(crate) calls: Vec<MessageCall>,
    /// The call that it is the result of.
    pub(crate) answers: Option<String>,
}

/// A call as a message has it.
#[derive(Debug)]
pub(crate) struct MessageCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Message {
    pub(crate) fn read(value: &Value) -> Message {
        let role = match value["role"].as_str().unwrap_or_default() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::Other,
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
        Message {
            role,
            is_harness: value["name"] == "harness",
            content,
            parts,
            calls: calls.iter().map(MessageCall::read).collect(),
            answers: value["tool_call_id"].as_str().map(str::to_owned),
        }
    }

    /// The readable text: the content, then each call's name and the values of its arguments.
    pub(crate) fn render(&self) -> String {
        let mut parts = vec![self.content.clone()];
        parts.extend(self.calls.iter().map(|call| format!("{}\n{}", call.name, call.values())));
        parts.retain(|part| !part.is_empty());
        plain(&parts.join("\n"))
    }

    pub(crate) fn tokens(&self, counter: &dyn Count) -> u64 {
        let count = |text: &str| if text.is_empty() { 0 } else { counter.count(text).0 };
        let content = match &self.parts {
            Some(parts) => parts.iter().map(|part| count(part)).sum(),
            None => count(&self.content),
        };
        let call = |call: &MessageCall| PER_CALL + count(&call.name) + count(&call.arguments);
        PER_MESSAGE + content + self.calls.iter().map(call).sum::<u64>()
    }
}

impl MessageCall {
    fn read(call: &Value) -> MessageCall {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &call["function"];
        MessageCall {
            id: text(&call["id"]),
            name: text(&function["name"]),
            arguments: text(&function["arguments"]),
        }
    }

    /// The values of the arguments, one per line; the arguments themselves where they are no JSON.
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

/// JSON with a blank after each comma and colon: the way in which tool schemas are counted.
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

/// A number by which a message is known again, whatever the order of its fields.
pub(crate) fn print_of(value: &Value) -> u128 {
    let mut print = Xxh3::new();
    take_print(value, &mut print);
    print.digest128()
}

fn take_print(value: &Value, print: &mut Xxh3) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            ('{', fields.len()).hash(print);
            for (key, value) in fields {
                key.hash(print);
                take_print(value, print);
            }
        }
        Value::Array(values) => {
            ('[', values.len()).hash(print);
            values.iter().for_each(|value| take_print(value, print));
        }
        Value::String(text) => ('"', text).hash(print),
        Value::Number(number) => ('0', number.to_string()).hash(print),
        Value::Bool(is_true) => ('?', is_true).hash(print),
        Value::Null => '-'.hash(print),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_its_words_and_the_values_of_its_arguments() {
        let arguments = r#"{"path": "a.rs", "n": 3, "all": true}"#;
        let call = json!({"id": "1", "function": {"name": "read", "arguments": arguments}});
        let value = json!({"role": "assistant", "content": "I\\nread", "tool_calls": [call]});
        assert_eq!(Message::read(&value).render(), "I read\nread\na.rs\n3");
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        assert_eq!(print_of(&json!({"a": 1, "b": 2})), print_of(&json!({"b": 2, "a": 1})));
        assert_ne!(print_of(&json!({"a": 1})), print_of(&json!({"a": 2})));
    }

    #[test]
    fn schemas_are_written_with_blanks() {
        assert_eq!(spaced(&json!([{"a": [1, null]}, "x"])), r#"[{"a": [1, null]}, "x"]"#);
    }
}
