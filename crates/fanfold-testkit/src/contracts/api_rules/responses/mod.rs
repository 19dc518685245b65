//! OpenAI Responses.

mod names; // the names of the rules, with their sources

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::findings::{Findings, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    ARGUMENTS, CALL_ID, CALL_NAME, DOUBLE_CALL, DOUBLE_ID, ID, LONE_THOUGHT, LONG, NO_CONTENT, NO_INPUT,
    NO_MODEL, NO_OUTPUT, NOT_STORED, OUTPUT, PART, PART_TEXT, REFERENCE, ROLE, SCHEMA, STRAY, SUMMARY, TOOLS,
    TWICE, TYPE, UNKNOWN,
};

/// Fields that any item may have. The last one is undocumented; Codex 0.166 sends it to OpenAI.
const COMMON: [&str; 3] = ["type", "id", "internal_chat_message_metadata_passthrough"];

/// Item types with the prefix of their ids and their fields except `type` and `id`. Without a list, fields are not
/// checked.
const TYPES: &[(&str, &str, &[&str])] = &[
    ("message", "msg", &["role", "content", "status", "phase"]),
    ("function_call", "fc", &["call_id", "name", "arguments", "status", "namespace", "caller"]),
    ("function_call_output", "", &["call_id", "output", "status", "name", "namespace", "caller"]),
    ("custom_tool_call", "ctc", &["call_id", "name", "input", "status", "namespace", "caller"]),
    ("custom_tool_call_output", "", &["call_id", "output", "status", "name", "caller"]),
    ("local_shell_call", "", &["call_id", "action", "status"]),
    ("local_shell_call_output", "", &["call_id", "output", "status"]),
    ("reasoning", "rs", &["summary", "content", "encrypted_content", "status"]),
    ("web_search_call", "ws", &["action", "status"]),
    ("item_reference", "", &[]),
    ("file_search_call", "", &[]),
    ("computer_call", "", &[]),
    ("computer_call_output", "", &[]),
    ("image_generation_call", "", &[]),
    ("code_interpreter_call", "", &[]),
    ("shell_call", "", &[]),
    ("shell_call_output", "", &[]),
    ("apply_patch_call", "", &[]),
    ("apply_patch_call_output", "", &[]),
    ("mcp_call", "", &[]),
    ("mcp_list_tools", "", &[]),
    ("mcp_approval_request", "", &[]),
    ("mcp_approval_response", "", &[]),
    ("tool_search_call", "", &[]),
    ("tool_search_output", "", &[]),
    ("compaction", "", &[]),
    ("compaction_trigger", "", &[]),
    ("additional_tools", "", &[]),
    ("program", "", &[]),
    ("program_output", "", &[]),
];

/// The maximum length of a text in characters.
const MAX_CHARS: usize = 10_485_760;

/// Types of calls that the client answers with an output.
const ANSWERED_CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "computer_call",
    "shell_call",
    "apply_patch_call",
];

pub(super) fn check(body: &Value, findings: &mut Findings) {
    findings.require(!text(body, "model").is_empty(), NO_MODEL, "model");
    tools(body, findings);
    let is_stored = body.get("store") != Some(&Value::Bool(false));
    findings.require(is_stored || !has(body, "previous_response_id"), REFERENCE, "previous_response_id");
    let items = list(body, "input");
    let has_earlier_items =
        has(body, "previous_response_id") || has(body, "prompt") || has(body, "conversation");
    let has_input = !text(body, "input").is_empty() || !items.is_empty() || has_earlier_items;
    findings.require(has_input, NO_INPUT, "input");
    findings.require(!is_long(text(body, "input")), LONG, "input");
    let mut ids = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let position = format!("input[{i}]");
        let kind = kind_of(item);
        let known = TYPES.iter().find(|(name, ..)| *name == kind);
        findings.require(known.is_some(), TYPE, format!("{position}.type"));
        if let Some((_, prefix, fields)) = known {
            check_id(item, prefix, &mut ids, findings, &position);
            if !fields.is_empty() {
                let all: Vec<&str> = COMMON.into_iter().chain(fields.iter().copied()).collect();
                findings.require_known_fields(item, &all, UNKNOWN, &position);
            }
        }
        check_item(item, kind, is_stored, findings, &position);
        if kind == "reasoning" {
            // Adjacent reasoning items belong to the item after the last of them.
            let next = items[i + 1..].iter().find(|item| kind_of(item) != "reasoning");
            findings.require(next.is_some_and(is_by_model), LONE_THOUGHT, &position);
        }
    }
    pairs(items, has_earlier_items, findings);
}

fn kind_of(item: &Value) -> &str {
    let is_short = item.get("type").is_none() && has(item, "role");
    if is_short { "message" } else { text(item, "type") }
}

fn is_by_model(item: &Value) -> bool {
    let kind = kind_of(item);
    text(item, "role") == "assistant" || kind.ends_with("_call")
}

fn check_id(item: &Value, prefix: &str, ids: &mut BTreeSet<String>, findings: &mut Findings, position: &str) {
    let Some(id) = item.get("id").filter(|id| !id.is_null()) else { return };
    let id = id.as_str().unwrap_or_default();
    let is_valid = is_name(id, 64) && id.starts_with(prefix);
    findings.require(is_valid, ID, format!("{position}.id"));
    let is_new = id.is_empty() || ids.insert(id.to_owned());
    findings.require(is_new, DOUBLE_ID, format!("{position}.id"));
}

fn check_item(item: &Value, kind: &str, is_stored: bool, findings: &mut Findings, position: &str) {
    match kind {
        "message" => message(item, findings, position),
        "function_call" | "custom_tool_call" => {
            let key = if kind == "function_call" { "arguments" } else { "input" };
            findings.require(
                item.get(key).is_some_and(Value::is_string),
                ARGUMENTS,
                format!("{position}.{key}"),
            );
            findings.require(is_name(text(item, "name"), 128), CALL_NAME, format!("{position}.name"));
        }
        "reasoning" => {
            findings.require(item.get("summary").is_some_and(Value::is_array), SUMMARY, position);
            let is_whole = has(item, "encrypted_content") || !has(item, "id");
            findings.require(is_stored || is_whole, NOT_STORED, position);
        }
        "item_reference" => findings.require(is_stored, REFERENCE, position),
        "function_call_output" | "custom_tool_call_output" => {
            let output = item.get("output").unwrap_or(&Value::Null);
            let is_valid = output.is_string() || output.is_array();
            findings.require(is_valid, OUTPUT, format!("{position}.output"));
            findings.require(!is_long(text(item, "output")), LONG, format!("{position}.output"));
            parts(output, "user", findings, &format!("{position}.output"));
        }
        _ => {}
    }
    let is_paired =
        ANSWERED_CALLS.contains(&kind) || ANSWERED_CALLS.iter().any(|call| output_type(call) == kind);
    if is_paired {
        let id = text(item, "call_id");
        findings.require((1..=64).contains(&id.chars().count()), CALL_ID, format!("{position}.call_id"));
    }
}

fn message(item: &Value, findings: &mut Findings, position: &str) {
    let role = text(item, "role");
    let is_known = matches!(role, "user" | "assistant" | "system" | "developer");
    findings.require(is_known, ROLE, format!("{position}.role"));
    let content = item.get("content").unwrap_or(&Value::Null);
    findings.require(content.is_string() || content.is_array(), NO_CONTENT, position);
    parts(content, role, findings, &format!("{position}.content"));
}

fn parts(content: &Value, role: &str, findings: &mut Findings, position: &str) {
    let allowed: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        _ => &["input_text", "input_image", "input_file", "input_audio"],
    };
    for (i, part) in content.as_array().into_iter().flatten().enumerate() {
        let kind = text(part, "type");
        findings.require(allowed.contains(&kind), PART, format!("{position}[{i}].type"));
        let is_text = part.get("text").is_some_and(Value::is_string);
        findings.require(!kind.ends_with("_text") || is_text, PART_TEXT, format!("{position}[{i}]"));
        findings.require(!is_long(text(part, "text")), LONG, format!("{position}[{i}]"));
    }
}

fn is_long(text: &str) -> bool {
    // Compare the bytes first, because counting characters is slow.
    text.len() > MAX_CHARS && text.chars().count() > MAX_CHARS
}

fn output_type(call: &str) -> String {
    format!("{call}_output")
}

fn pairs(items: &[Value], has_earlier_items: bool, findings: &mut Findings) {
    // By call id: the type and the index of the call, and whether it has an output.
    let mut calls: BTreeMap<&str, (&str, usize, bool)> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        let (kind, id) = (kind_of(item), text(item, "call_id"));
        let position = format!("input[{i}]");
        if ANSWERED_CALLS.contains(&kind) && !id.is_empty() {
            findings.require(calls.insert(id, (kind, i, false)).is_none(), DOUBLE_CALL, position);
        } else if let Some(call) = ANSWERED_CALLS.iter().find(|call| output_type(call) == kind) {
            match calls.get_mut(id) {
                Some((known, _, is_answered)) if known == call => {
                    findings.require(!*is_answered, TWICE, position);
                    *is_answered = true;
                }
                // The call may be in an earlier part that the provider has stored.
                None if has_earlier_items => {}
                _ => findings.report(STRAY, position),
            }
        }
    }
    for (_, i, _) in calls.values().filter(|(_, _, is_answered)| !is_answered) {
        findings.report(NO_OUTPUT, format!("input[{i}]"));
    }
}

fn tools(body: &Value, findings: &mut Findings) {
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        if text(tool, "type") != "function" {
            continue;
        }
        let name = text(tool, "name");
        findings.require(is_name(name, 128) && !names.contains(&name), TOOLS, format!("tools[{i}]"));
        let parameters = tool.get("parameters").filter(|parameters| !parameters.is_null());
        findings.require(parameters.is_none_or(is_object_schema), SCHEMA, format!("tools[{i}]"));
        names.push(name);
    }
}
