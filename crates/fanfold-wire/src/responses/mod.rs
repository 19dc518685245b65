//! Responses: a flat list of items, several of which make one reply.

mod decode;
mod encode;

pub(crate) use decode::decode;
pub(crate) use encode::encode;

use std::borrow::Cow;

use crate::json::Object;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A message of somebody's.
    Message,
    /// Thoughts, which belong to the item that follows.
    Reasoning,
    /// A call that the client answers.
    Call,
    /// The client's answer.
    Output,
    /// What the provider made of an earlier part of the conversation.
    Compaction,
    /// Something that the model made and that needs no answer.
    Made,
    /// Anything else.
    Unknown,
}

fn kind(item: &Object<'_>) -> Kind {
    let Some(name) = item.text("type") else {
        let is_message = item.get("role").is_some() && item.get("content").is_some();
        return if is_message { Kind::Message } else { Kind::Unknown };
    };
    match &*name {
        "message" => Kind::Message,
        "reasoning" => Kind::Reasoning,
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" | "apply_patch_call"
        | "computer_call" => Kind::Call,
        "compaction" | "compaction_summary" | "context_compaction" => Kind::Compaction,
        "mcp_list_tools" | "mcp_approval_request" => Kind::Made,
        name if name.ends_with("_output") => Kind::Output,
        name if name.ends_with("_call") => Kind::Made,
        _ => Kind::Unknown,
    }
}

/// The id that pairs a call with its output.
fn call_id<'a>(item: &Object<'a>) -> Option<Cow<'a, str>> {
    item.text("call_id").or_else(|| item.text("id")).filter(|id| !id.is_empty())
}

/// The value that holds a call's arguments, whichever its kind has.
fn arguments<'a>(item: &Object<'a>) -> Option<&'a str> {
    ["arguments", "input", "action", "operation"].into_iter().find_map(|key| item.get(key))
}
