//! What each block must be, and where it may stand.

use serde_json::Value;

use super::names::{
    CALL_NAME, EMPTY_TEXT, ERROR_TEXT, INPUT, PLACE, RESULT, SIGNATURE, SOURCE, TOOL_ID, TYPE, UNKNOWN,
};
use crate::rules::look::{Look, has, is_name, list, text};

/// Types of blocks: the roles that may have them, and their fields beside `type` and `cache_control`. No fields: they
/// are not looked at.
const TYPES: &[(&str, &[&str], &[&str])] = &[
    ("text", &["user", "assistant", "system"], &["text", "citations"]),
    ("image", &["user"], &["source"]),
    ("document", &["user"], &["source", "title", "context", "citations"]),
    ("search_result", &["user"], &["source", "title", "content", "citations"]),
    ("tool_use", &["assistant"], &["id", "name", "input", "caller"]),
    ("tool_result", &["user"], &["tool_use_id", "content", "is_error"]),
    ("thinking", &["assistant"], &["thinking", "signature"]),
    ("redacted_thinking", &["assistant"], &["data"]),
    ("server_tool_use", &["assistant"], &["id", "name", "input", "caller"]),
    ("web_search_tool_result", &["assistant"], &["tool_use_id", "content", "caller"]),
    ("web_fetch_tool_result", &["assistant"], &[]),
    ("code_execution_tool_result", &["assistant"], &[]),
    ("bash_code_execution_tool_result", &["assistant"], &[]),
    ("text_editor_code_execution_tool_result", &["assistant"], &[]),
    ("tool_search_tool_result", &["assistant"], &[]),
    ("advisor_tool_result", &["assistant"], &[]),
    ("mcp_tool_use", &["assistant"], &[]),
    ("mcp_tool_result", &["assistant"], &[]),
    ("container_upload", &["user", "assistant"], &[]),
    ("compaction", &["user", "assistant"], &[]),
    ("fallback", &["assistant"], &[]),
    ("tool_addition", &["user", "system"], &[]),
    ("tool_removal", &["user", "system"], &[]),
    ("mid_conv_system", &["user", "assistant", "system"], &[]),
];

/// Whether a block is the result of a tool that the provider runs.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

pub(super) fn is_thought(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking")
}

/// Checks a block by itself.
pub(super) fn check(block: &Value, role: &str, look: &mut Look, place: &str) {
    let kind = text(block, "type");
    let known = TYPES.iter().find(|(name, ..)| *name == kind);
    look.holds(known.is_some(), TYPE, format!("{place}.type"));
    if let Some((_, roles, fields)) = known {
        look.holds(roles.contains(&role), PLACE, place);
        if !fields.is_empty() {
            let all: Vec<&str> =
                ["type", "cache_control"].into_iter().chain(fields.iter().copied()).collect();
            look.fields(block, &all, UNKNOWN, place);
        }
    }
    match kind {
        "text" => look.holds(!text(block, "text").trim().is_empty(), EMPTY_TEXT, place),
        "image" => image(block, look, place),
        "document" => document(block, look, place),
        "tool_use" | "server_tool_use" => {
            look.holds(is_name(text(block, "id"), usize::MAX), TOOL_ID, format!("{place}.id"));
            look.holds(is_name(text(block, "name"), 200), CALL_NAME, format!("{place}.name"));
            look.holds(block.get("input").is_some_and(Value::is_object), INPUT, format!("{place}.input"));
        }
        "tool_result" => result(block, look, place),
        "thinking" => {
            let is_whole =
                block.get("thinking").is_some_and(Value::is_string) && !text(block, "signature").is_empty();
            look.holds(is_whole, SIGNATURE, place);
        }
        "redacted_thinking" => look.holds(!text(block, "data").is_empty(), SIGNATURE, place),
        _ => {}
    }
}

fn image(block: &Value, look: &mut Look, place: &str) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let is_good = match text(source, "type") {
        "base64" => {
            let kind = text(source, "media_type");
            let is_picture = ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&kind);
            is_picture && !text(source, "data").is_empty()
        }
        "url" => text(source, "url").starts_with("http"),
        "file" => !text(source, "file_id").is_empty(),
        _ => false,
    };
    look.holds(is_good, SOURCE, place);
}

fn document(block: &Value, look: &mut Look, place: &str) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let is_good = match text(source, "type") {
        "base64" => text(source, "media_type") == "application/pdf" && !text(source, "data").is_empty(),
        "text" => text(source, "media_type") == "text/plain" && !text(source, "data").is_empty(),
        "content" => has(source, "content"),
        "url" => text(source, "url").starts_with("http"),
        "file" => !text(source, "file_id").is_empty(),
        _ => false,
    };
    look.holds(is_good, SOURCE, place);
}

fn result(block: &Value, look: &mut Look, place: &str) {
    let is_text = block.get("content").is_some_and(Value::is_string);
    let is_good = is_text || !has(block, "content") || block["content"].is_array();
    look.holds(is_good, RESULT, place);
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    for (i, part) in list(block, "content").iter().enumerate() {
        let place = format!("{place}.content[{i}]");
        let kind = text(part, "type");
        let may_stand = ["text", "image", "document", "search_result", "tool_reference"].contains(&kind);
        look.holds(may_stand, RESULT, &place);
        look.holds(!is_error || kind == "text", ERROR_TEXT, &place);
        match kind {
            "text" => look.holds(!text(part, "text").trim().is_empty(), EMPTY_TEXT, &place),
            "image" => image(part, look, &place),
            "document" => document(part, look, &place),
            _ => {}
        }
    }
}
