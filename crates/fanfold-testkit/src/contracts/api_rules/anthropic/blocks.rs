//! Checks the type, the fields and the role of each block.

use serde_json::Value;

use super::names::{
    CALL_NAME, EMPTY_TEXT, ERROR_TEXT, INPUT, PLACE, RESULT, SIGNATURE, SOURCE, TOOL_ID, TYPE, UNKNOWN,
};
use crate::contracts::api_rules::findings::{Findings, has, is_name, list, text};

/// Block types with their roles and their fields except `type` and `cache_control`. Without a list, fields are not
/// checked.
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

/// True for the result of a tool that the provider runs.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

pub(super) fn is_thinking_block(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking")
}

/// Checks a single block.
pub(super) fn check(block: &Value, role: &str, findings: &mut Findings, position: &str) {
    let kind = text(block, "type");
    let known = TYPES.iter().find(|(name, ..)| *name == kind);
    findings.require(known.is_some(), TYPE, format!("{position}.type"));
    if let Some((_, roles, fields)) = known {
        findings.require(roles.contains(&role), PLACE, position);
        if !fields.is_empty() {
            let all: Vec<&str> =
                ["type", "cache_control"].into_iter().chain(fields.iter().copied()).collect();
            findings.require_known_fields(block, &all, UNKNOWN, position);
        }
    }
    match kind {
        "text" => findings.require(!text(block, "text").trim().is_empty(), EMPTY_TEXT, position),
        "image" => image(block, findings, position),
        "document" => document(block, findings, position),
        "tool_use" | "server_tool_use" => {
            findings.require(is_name(text(block, "id"), usize::MAX), TOOL_ID, format!("{position}.id"));
            findings.require(is_name(text(block, "name"), 200), CALL_NAME, format!("{position}.name"));
            findings.require(
                block.get("input").is_some_and(Value::is_object),
                INPUT,
                format!("{position}.input"),
            );
        }
        "tool_result" => result(block, findings, position),
        "thinking" => {
            let is_whole =
                block.get("thinking").is_some_and(Value::is_string) && !text(block, "signature").is_empty();
            findings.require(is_whole, SIGNATURE, position);
        }
        "redacted_thinking" => findings.require(!text(block, "data").is_empty(), SIGNATURE, position),
        _ => {}
    }
}

fn image(block: &Value, findings: &mut Findings, position: &str) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let is_valid = match text(source, "type") {
        "base64" => {
            let kind = text(source, "media_type");
            let is_picture = ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&kind);
            is_picture && !text(source, "data").is_empty()
        }
        "url" => text(source, "url").starts_with("http"),
        "file" => !text(source, "file_id").is_empty(),
        _ => false,
    };
    findings.require(is_valid, SOURCE, position);
}

fn document(block: &Value, findings: &mut Findings, position: &str) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let is_valid = match text(source, "type") {
        "base64" => text(source, "media_type") == "application/pdf" && !text(source, "data").is_empty(),
        "text" => text(source, "media_type") == "text/plain" && !text(source, "data").is_empty(),
        "content" => has(source, "content"),
        "url" => text(source, "url").starts_with("http"),
        "file" => !text(source, "file_id").is_empty(),
        _ => false,
    };
    findings.require(is_valid, SOURCE, position);
}

fn result(block: &Value, findings: &mut Findings, position: &str) {
    let is_text = block.get("content").is_some_and(Value::is_string);
    let is_valid = is_text || !has(block, "content") || block["content"].is_array();
    findings.require(is_valid, RESULT, position);
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    for (i, part) in list(block, "content").iter().enumerate() {
        let position = format!("{position}.content[{i}]");
        let kind = text(part, "type");
        let is_allowed = ["text", "image", "document", "search_result", "tool_reference"].contains(&kind);
        findings.require(is_allowed, RESULT, &position);
        findings.require(!is_error || kind == "text", ERROR_TEXT, &position);
        match kind {
            "text" => findings.require(!text(part, "text").trim().is_empty(), EMPTY_TEXT, &position),
            "image" => image(part, findings, &position),
            "document" => document(part, findings, &position),
            _ => {}
        }
    }
}
