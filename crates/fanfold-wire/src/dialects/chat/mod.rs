//! Chat Completions, and the message layout shared with ShareGPT trajectories and Hermes sessions.

mod decode;
mod encode;
mod request;
mod reply;
mod rounds;

pub(crate) use decode::{decode, read_arguments};
pub(crate) use encode::{EMPTY, arguments_value, encode, encode_message, set_text};
pub(crate) use reply::StreamedCalls;
pub(crate) use request::OPENAI;

use std::borrow::Cow;

use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::{Api, Facts, MessageEncoder};
use crate::json::{self, Object};

/// OpenAI Chat Completions.
pub(crate) struct Dialect;

impl crate::dialects::Dialect for Dialect {
    fn facts(&self) -> &'static Facts {
        const { &Facts { name: "chat", has_cache_markers: true, ..Facts::DEFAULT } }
    }

    fn recognises_message(&self, message: &Object<'_>) -> bool {
        let has_calls =
            ["tool_calls", "function_call", "tool_call_id"].into_iter().any(|key| message.get(key).is_some());
        has_calls || matches!(message.text("role").as_deref(), Some("tool" | "function"))
    }

    fn recognises_part(&self, part_type: &str) -> bool {
        matches!(part_type, "image_url" | "input_audio" | "file" | "refusal")
    }

    fn decode(&self, map: &mut EntryMap, messages: &[&str]) {
        messages.iter().for_each(|message| decode(map, Layout::OpenAi, message));
    }

    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        _: usize,
    ) -> Vec<OutMessage<'a>> {
        encode(Layout::OpenAi, source, items_to_send)
    }

    fn message_encoder(&self) -> Option<MessageEncoder> {
        Some(|source, send| encode_message(Layout::OpenAi, source, send))
    }

    fn api(&self) -> Option<&'static dyn Api> {
        Some(&request::ChatCompletions)
    }
}

/// The names of a message's fields and roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `role` and `content`.
    OpenAi,
    /// `from` and `value`.
    ShareGpt,
}

/// The fields with the thoughts of a reply, in the order of preference.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_details", "codex_reasoning_items"];

/// The role of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MessageRole {
    System,
    User,
    Assistant,
    /// A reply that consists of one call.
    Call,
    Tool,
    Unknown(String),
}

/// A message with its usual fields.
struct ParsedMessage<'a> {
    object: Object<'a>,
    role_key: &'static str,
    role: MessageRole,
    content_key: &'static str,
    content: Option<&'a str>,
}

impl<'a> ParsedMessage<'a> {
    fn parse(layout: Layout, raw: &'a str) -> Option<ParsedMessage<'a>> {
        let object = Object::parse(raw)?;
        let is_share_gpt = layout == Layout::ShareGpt;
        let role_key = if is_share_gpt && object.get("from").is_some() { "from" } else { "role" };
        let content_key = if is_share_gpt && object.get("value").is_some() { "value" } else { "content" };
        let role = parse_role(object.text(role_key).as_deref().unwrap_or_default());
        let content = object.get(content_key);
        Some(ParsedMessage { object, role_key, role, content_key, content })
    }

    /// The calls in `tool_calls`, or the one in the older `function_call`.
    fn calls(&self) -> Vec<&'a str> {
        let calls = self.object.some("tool_calls").and_then(json::array).unwrap_or_default();
        if !calls.is_empty() {
            return calls;
        }
        self.object.some("function_call").filter(|call| call.starts_with('{')).into_iter().collect()
    }

    /// Returns whether its call, if any, is a `function_call`, which has no id.
    fn is_legacy(&self) -> bool {
        self.object.some("tool_calls").and_then(json::array).is_none_or(|calls| calls.is_empty())
    }
}

fn parse_role(role: &str) -> MessageRole {
    match role {
        "system" | "developer" => MessageRole::System,
        "user" | "human" => MessageRole::User,
        "assistant" | "gpt" | "model" | "chatgpt" | "bing" | "bard" => MessageRole::Assistant,
        "function_call" | "tool_call" => MessageRole::Call,
        "tool" | "function" | "observation" | "function_response" | "tool_response" | "ipython" => {
            MessageRole::Tool
        }
        other => MessageRole::Unknown(other.chars().take(60).collect()),
    }
}

/// The name and the arguments of a call of any kind.
fn call_fields<'a>(call: &Object<'a>, is_legacy: bool) -> (Option<Cow<'a, str>>, Option<&'a str>) {
    if is_legacy {
        return (call.text("name"), call.get("arguments"));
    }
    let custom = call.some("custom").and_then(Object::parse);
    match call.some("function").and_then(Object::parse).or(custom) {
        Some(inner) => (inner.text("name"), inner.get("arguments").or_else(|| inner.get("input"))),
        None => (call.text("name"), call.get("arguments")),
    }
}
