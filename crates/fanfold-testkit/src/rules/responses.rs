//! OpenAI Responses.

mod names; // the rules, and what each was taken from

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::look::{Look, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    ARGUMENTS, CALL_ID, CALL_NAME, DOUBLE_CALL, DOUBLE_ID, ID, LONE_THOUGHT, LONG, NO_CONTENT, NO_INPUT,
    NO_MODEL, NO_OUTPUT, NOT_STORED, OUTPUT, PART, PART_TEXT, REFERENCE, ROLE, SCHEMA, STRAY, SUMMARY, TOOLS,
    TWICE, TYPE, UNKNOWN,
};

/// Fields that any item may have. The last one is documented nowhere; Codex 0.166 sends it to OpenAI.
const COMMON: [&str; 3] = ["type", "id", "internal_chat_message_metadata_passthrough"];

/// Types of items: how their ids begin, and their fields beside `type` and `id`. No fields: they are not looked at.
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

const LONGEST: usize = 10_485_760;

/// Calls that the client answers, and what it answers them with.
const ANSWERED: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "computer_call",
    "shell_call",
    "apply_patch_call",
];

pub(super) fn check(body: &Value, look: &mut Look) {
    look.holds(!text(body, "model").is_empty(), NO_MODEL, "model");
    tools(body, look);
    let is_stored = body.get("store") != Some(&Value::Bool(false));
    look.holds(is_stored || !has(body, "previous_response_id"), REFERENCE, "previous_response_id");
    let items = list(body, "input");
    let goes_on = has(body, "previous_response_id") || has(body, "prompt") || has(body, "conversation");
    let is_there = !text(body, "input").is_empty() || !items.is_empty() || goes_on;
    look.holds(is_there, NO_INPUT, "input");
    look.holds(!is_long(text(body, "input")), LONG, "input");
    let mut ids = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let place = format!("input[{i}]");
        let kind = kind_of(item);
        let known = TYPES.iter().find(|(name, ..)| *name == kind);
        look.holds(known.is_some(), TYPE, format!("{place}.type"));
        if let Some((_, begin, fields)) = known {
            identity(item, begin, &mut ids, look, &place);
            if !fields.is_empty() {
                let all: Vec<&str> = COMMON.into_iter().chain(fields.iter().copied()).collect();
                look.fields(item, &all, UNKNOWN, &place);
            }
        }
        one(item, kind, is_stored, look, &place);
        if kind == "reasoning" {
            // Several thoughts in a row belong to the item behind the last of them.
            let next = items[i + 1..].iter().find(|item| kind_of(item) != "reasoning");
            look.holds(next.is_some_and(is_models), LONE_THOUGHT, &place);
        }
    }
    pairs(items, goes_on, look);
}

fn kind_of(item: &Value) -> &str {
    let is_short = item.get("type").is_none() && has(item, "role");
    if is_short { "message" } else { text(item, "type") }
}

fn is_models(item: &Value) -> bool {
    let kind = kind_of(item);
    text(item, "role") == "assistant" || kind.ends_with("_call")
}

fn identity(item: &Value, begin: &str, ids: &mut BTreeSet<String>, look: &mut Look, place: &str) {
    let Some(id) = item.get("id").filter(|id| !id.is_null()) else { return };
    let id = id.as_str().unwrap_or_default();
    let is_good = is_name(id, 64) && id.starts_with(begin);
    look.holds(is_good, ID, format!("{place}.id"));
    let is_new = id.is_empty() || ids.insert(id.to_owned());
    look.holds(is_new, DOUBLE_ID, format!("{place}.id"));
}

fn one(item: &Value, kind: &str, is_stored: bool, look: &mut Look, place: &str) {
    match kind {
        "message" => message(item, look, place),
        "function_call" | "custom_tool_call" => {
            let key = if kind == "function_call" { "arguments" } else { "input" };
            look.holds(item.get(key).is_some_and(Value::is_string), ARGUMENTS, format!("{place}.{key}"));
            look.holds(is_name(text(item, "name"), 128), CALL_NAME, format!("{place}.name"));
        }
        "reasoning" => {
            look.holds(item.get("summary").is_some_and(Value::is_array), SUMMARY, place);
            let is_whole = has(item, "encrypted_content") || !has(item, "id");
            look.holds(is_stored || is_whole, NOT_STORED, place);
        }
        "item_reference" => look.holds(is_stored, REFERENCE, place),
        "function_call_output" | "custom_tool_call_output" => {
            let output = item.get("output").unwrap_or(&Value::Null);
            let is_good = output.is_string() || output.is_array();
            look.holds(is_good, OUTPUT, format!("{place}.output"));
            look.holds(!is_long(text(item, "output")), LONG, format!("{place}.output"));
            parts(output, "user", look, &format!("{place}.output"));
        }
        _ => {}
    }
    let is_paired = ANSWERED.contains(&kind) || ANSWERED.iter().any(|call| answer_of(call) == kind);
    if is_paired {
        let id = text(item, "call_id");
        look.holds((1..=64).contains(&id.chars().count()), CALL_ID, format!("{place}.call_id"));
    }
}

fn message(item: &Value, look: &mut Look, place: &str) {
    let role = text(item, "role");
    let is_known = matches!(role, "user" | "assistant" | "system" | "developer");
    look.holds(is_known, ROLE, format!("{place}.role"));
    let content = item.get("content").unwrap_or(&Value::Null);
    look.holds(content.is_string() || content.is_array(), NO_CONTENT, place);
    parts(content, role, look, &format!("{place}.content"));
}

fn parts(content: &Value, role: &str, look: &mut Look, place: &str) {
    let allowed: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        _ => &["input_text", "input_image", "input_file", "input_audio"],
    };
    for (i, part) in content.as_array().into_iter().flatten().enumerate() {
        let kind = text(part, "type");
        look.holds(allowed.contains(&kind), PART, format!("{place}[{i}].type"));
        let is_text = part.get("text").is_some_and(Value::is_string);
        look.holds(!kind.ends_with("_text") || is_text, PART_TEXT, format!("{place}[{i}]"));
        look.holds(!is_long(text(part, "text")), LONG, format!("{place}[{i}]"));
    }
}

fn is_long(text: &str) -> bool {
    // Counting letters takes time, and few texts have as many bytes.
    text.len() > LONGEST && text.chars().count() > LONGEST
}

fn answer_of(call: &str) -> String {
    format!("{call}_output")
}

fn pairs(items: &[Value], goes_on: bool, look: &mut Look) {
    // By its id: of what kind the call is, where it stands, whether it was answered.
    let mut calls: BTreeMap<&str, (&str, usize, bool)> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        let (kind, id) = (kind_of(item), text(item, "call_id"));
        let place = format!("input[{i}]");
        if ANSWERED.contains(&kind) && !id.is_empty() {
            look.holds(calls.insert(id, (kind, i, false)).is_none(), DOUBLE_CALL, place);
        } else if let Some(call) = ANSWERED.iter().find(|call| answer_of(call) == kind) {
            match calls.get_mut(id) {
                Some((known, _, is_answered)) if known == call => {
                    look.holds(!*is_answered, TWICE, place);
                    *is_answered = true;
                }
                // The provider has the beginning, and its calls.
                None if goes_on => {}
                _ => look.breaks(STRAY, place),
            }
        }
    }
    for (_, i, _) in calls.values().filter(|(_, _, is_answered)| !is_answered) {
        look.breaks(NO_OUTPUT, format!("input[{i}]"));
    }
}

fn tools(body: &Value, look: &mut Look) {
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        if text(tool, "type") != "function" {
            continue;
        }
        let name = text(tool, "name");
        look.holds(is_name(name, 128) && !names.contains(&name), TOOLS, format!("tools[{i}]"));
        let parameters = tool.get("parameters").filter(|parameters| !parameters.is_null());
        look.holds(parameters.is_none_or(is_object_schema), SCHEMA, format!("tools[{i}]"));
        names.push(name);
    }
}
