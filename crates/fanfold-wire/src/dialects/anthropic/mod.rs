//! Anthropic Messages: blocks, results in one message, signed thoughts, cache breakpoints.

mod decode;
mod encode;
mod blocks;
mod breakpoints;
mod request;
mod reply;
mod rounds;

use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::{Api, Facts};
use crate::json::{self, Object};

pub(crate) struct Dialect;

impl crate::dialects::Dialect for Dialect {
    fn facts(&self) -> &'static Facts {
        const {
            &Facts {
                name: "anthropic",
                system_key: Some("system"),
                has_cache_markers: true,
                ..Facts::DEFAULT
            }
        }
    }

    fn recognises_body(&self, body: &Object<'_>) -> bool {
        let has = |key: &str| body.some(key).is_some();
        let has_own_schemas = || {
            let tools = body.some("tools").and_then(json::array).unwrap_or_default();
            tools
                .iter()
                .any(|tool| Object::parse(tool).is_some_and(|tool| tool.get("input_schema").is_some()))
        };
        has("system") || has("anthropic_version") || has_own_schemas()
    }

    fn recognises_part(&self, part_type: &str) -> bool {
        matches!(
            part_type,
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image" | "document"
        )
    }

    fn decode(&self, map: &mut EntryMap, messages: &[&str]) {
        messages.iter().for_each(|message| decode::decode(map, message));
    }

    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        n_markers_outside: usize,
    ) -> Vec<OutMessage<'a>> {
        encode::encode(source, items_to_send, n_markers_outside)
    }

    fn api(&self) -> Option<&'static dyn Api> {
        Some(&request::Messages)
    }
}

/// The kinds of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    /// Text without content, which the provider rejects.
    Blank,
    Thinking,
    ToolUse,
    ToolResult,
    Other,
}

fn kind(block: &Object<'_>) -> BlockKind {
    match block.text("type").as_deref() {
        Some("text") => {
            let is_blank = block.text("text").is_none_or(|text| text.trim().is_empty());
            if is_blank { BlockKind::Blank } else { BlockKind::Text }
        }
        Some("thinking" | "redacted_thinking") => BlockKind::Thinking,
        Some("tool_use") => BlockKind::ToolUse,
        Some("tool_result") => BlockKind::ToolResult,
        // A text without a type is decoded as text, so it has to be edited as text.
        None if block.text("text").is_some_and(|text| !text.trim().is_empty()) => BlockKind::Text,
        _ => BlockKind::Other,
    }
}

fn kind_of(block: &str) -> BlockKind {
    Object::parse(block).map_or(BlockKind::Other, |block| kind(&block))
}

/// Returns whether a content is a blank text.
fn is_blank(content: &str) -> bool {
    json::string(content).is_some_and(|text| text.text.trim().is_empty())
}
