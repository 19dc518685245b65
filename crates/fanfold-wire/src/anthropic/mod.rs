//! Anthropic Messages: blocks, results in one message, thoughts with signatures, cache breakpoints.

mod decode;
mod encode;
mod blocks;
mod cache;

pub(crate) use blocks::alternating;
pub(crate) use decode::decode;
pub(crate) use encode::encode;

use crate::json::{self, Object};

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Text that says nothing, which the provider refuses.
    Blank,
    Thinking,
    ToolUse,
    ToolResult,
    Other,
}

fn kind(block: &Object<'_>) -> Kind {
    match block.text("type").as_deref() {
        Some("text") => {
            let is_blank = block.text("text").is_none_or(|text| text.trim().is_empty());
            if is_blank { Kind::Blank } else { Kind::Text }
        }
        Some("thinking" | "redacted_thinking") => Kind::Thinking,
        Some("tool_use") => Kind::ToolUse,
        Some("tool_result") => Kind::ToolResult,
        // A text that does not say that it is one is read as one, so it is edited as one.
        None if block.text("text").is_some_and(|text| !text.trim().is_empty()) => Kind::Text,
        _ => Kind::Other,
    }
}

fn kind_of(block: &str) -> Kind {
    Object::parse(block).map_or(Kind::Other, |block| kind(&block))
}

/// Whether a content is a text that says nothing.
fn is_blank(content: &str) -> bool {
    json::string(content).is_some_and(|text| text.text.trim().is_empty())
}
