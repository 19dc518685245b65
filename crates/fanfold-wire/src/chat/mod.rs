//! Chat Completions, and what is written after its fashion: ShareGPT trajectories and Hermes sessions.

mod decode;
mod encode;

pub(crate) use decode::{decode, read_arguments};
pub(crate) use encode::{EMPTY, arguments_value, encode, encode_with, set_text};

use crate::format::Format;
use crate::json::Object;

/// The fields in which a reply has its thoughts, in the order of preference.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_details", "codex_reasoning_items"];

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Speaks {
    System,
    User,
    Assistant,
    /// A reply that is nothing but a call.
    Call,
    Tool,
    Unknown(String),
}

/// A message with its usual fields found.
struct Message<'a> {
    object: Object<'a>,
    role_key: &'static str,
    speaks: Speaks,
    content_key: &'static str,
    content: Option<&'a str>,
}

impl<'a> Message<'a> {
    fn open(format: Format, raw: &'a str) -> Option<Message<'a>> {
        let object = Object::parse(raw)?;
        let is_share = format == Format::ShareGpt;
        let role_key = if is_share && object.get("from").is_some() { "from" } else { "role" };
        let content_key = if is_share && object.get("value").is_some() { "value" } else { "content" };
        let speaks = speaks(object.text(role_key).as_deref().unwrap_or_default());
        let content = object.get(content_key);
        Some(Message { object, role_key, speaks, content_key, content })
    }

    /// The reply's calls, where they are written as calls.
    fn calls(&self) -> Vec<&'a str> {
        let listed = self.object.some("tool_calls").and_then(crate::json::array).unwrap_or_default();
        if !listed.is_empty() {
            return listed;
        }
        self.object.some("function_call").filter(|call| call.starts_with('{')).into_iter().collect()
    }

    /// Whether its call is of the old kind, which has no id.
    fn is_legacy(&self) -> bool {
        self.object.some("tool_calls").and_then(crate::json::array).is_none_or(|calls| calls.is_empty())
    }
}

fn speaks(role: &str) -> Speaks {
    match role {
        "system" | "developer" => Speaks::System,
        "user" | "human" => Speaks::User,
        "assistant" | "gpt" | "model" | "chatgpt" | "bing" | "bard" => Speaks::Assistant,
        "function_call" | "tool_call" => Speaks::Call,
        "tool" | "function" | "observation" | "function_response" | "tool_response" | "ipython" => {
            Speaks::Tool
        }
        other => Speaks::Unknown(other.chars().take(60).collect()),
    }
}

/// The name and the arguments of a call, wherever its kind has them.
fn call_fields<'a>(
    call: &Object<'a>,
    is_legacy: bool,
) -> (Option<std::borrow::Cow<'a, str>>, Option<&'a str>) {
    if is_legacy {
        return (call.text("name"), call.get("arguments"));
    }
    let custom = call.some("custom").and_then(Object::parse);
    match call.some("function").and_then(Object::parse).or(custom) {
        Some(inner) => (inner.text("name"), inner.get("arguments").or_else(|| inner.get("input"))),
        None => (call.text("name"), call.get("arguments")),
    }
}
