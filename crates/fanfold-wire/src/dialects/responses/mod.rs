//! OpenAI Responses: a flat list of items; several of them make up one reply.

mod decode;
mod encode;
mod request;
mod reply;
mod rounds;

use std::borrow::Cow;

use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::{Api, Facts};
use crate::json::Object;

pub(crate) struct Dialect;

impl crate::dialects::Dialect for Dialect {
    fn facts(&self) -> &'static Facts {
        const {
            &Facts {
                name: "responses",
                list_key: "input",
                allows_text_for_list: true,
                system_key: Some("instructions"),
                can_continue: true,
                has_replies_of_many_messages: true,
                ..Facts::DEFAULT
            }
        }
    }

    fn recognises_message(&self, message: &Object<'_>) -> bool {
        message.text("type").is_some_and(|item_type| {
            matches!(&*item_type, "message" | "reasoning" | "item_reference" | "compaction")
                || item_type.ends_with("_call")
                || item_type.ends_with("_output")
        })
    }

    fn recognises_part(&self, part_type: &str) -> bool {
        matches!(part_type, "input_text" | "output_text" | "input_image" | "input_file")
    }

    fn is_continued(&self, body: &Object<'_>) -> bool {
        body.some("previous_response_id").or(body.some("conversation")).is_some()
    }

    fn decode(&self, map: &mut EntryMap, messages: &[&str]) {
        decode::decode(map, messages);
    }

    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        _: usize,
    ) -> Vec<OutMessage<'a>> {
        encode::encode(source, items_to_send)
    }

    fn api(&self) -> Option<&'static dyn Api> {
        Some(&request::Responses)
    }
}

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Message,
    /// Thoughts, which belong to the item that follows.
    Reasoning,
    /// A call that the client answers.
    Call,
    /// The client's answer to a call.
    Output,
    /// The provider's replacement for an earlier part of the conversation.
    Compaction,
    /// An item of the model that needs no answer.
    ModelItem,
    Unknown,
}

fn kind(item: &Object<'_>) -> ItemKind {
    let Some(name) = item.text("type") else {
        let is_message = item.get("role").is_some() && item.get("content").is_some();
        return if is_message { ItemKind::Message } else { ItemKind::Unknown };
    };
    match &*name {
        "message" => ItemKind::Message,
        "reasoning" => ItemKind::Reasoning,
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" | "apply_patch_call"
        | "computer_call" => ItemKind::Call,
        "compaction" | "compaction_summary" | "context_compaction" => ItemKind::Compaction,
        "mcp_list_tools" | "mcp_approval_request" => ItemKind::ModelItem,
        name if name.ends_with("_output") => ItemKind::Output,
        name if name.ends_with("_call") => ItemKind::ModelItem,
        _ => ItemKind::Unknown,
    }
}

/// The id that pairs a call with its output.
fn call_id<'a>(item: &Object<'a>) -> Option<Cow<'a, str>> {
    item.text("call_id").or_else(|| item.text("id")).filter(|id| !id.is_empty())
}

/// The arguments of a call of any kind.
fn arguments<'a>(item: &Object<'a>) -> Option<&'a str> {
    ["arguments", "input", "action", "operation"].into_iter().find_map(|key| item.get(key))
}
