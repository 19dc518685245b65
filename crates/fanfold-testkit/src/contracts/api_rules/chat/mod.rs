//! OpenAI Chat Completions.

mod names; // the names of the rules, with their sources

use serde_json::Value;

use super::findings::{Findings, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    ARGUMENTS, CALL_ID, CALL_NAME, CALL_TYPE, CALLS_ROLE, CHOICE, DOUBLE_ID, EMPTY_PARTS, FUNCTION, IMAGE,
    N_CALLS, NAME, NO_CONTENT, NO_MESSAGES, NO_MODEL, PART, PART_TEXT, REFUSED, ROLE, SCHEMA, STRAY, TOOLS,
    TWICE, UNANSWERED, UNKNOWN,
};

const ROLES: [&str; 6] = ["developer", "system", "user", "assistant", "tool", "function"];
/// The fields of the API, and the reasoning fields of other providers with the same API.
const FIELDS: [&str; 13] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "cache_control",
];

pub(super) fn check(body: &Value, findings: &mut Findings) {
    findings.require(!text(body, "model").is_empty(), NO_MODEL, "model");
    let messages = list(body, "messages");
    findings.require(!messages.is_empty(), NO_MESSAGES, "messages");
    tools(body, findings);
    let mut pairs = CallPairs::default();
    for (i, message) in messages.iter().enumerate() {
        let position = format!("messages[{i}]");
        let role = text(message, "role");
        findings.require(ROLES.contains(&role), ROLE, format!("{position}.role"));
        findings.require_known_fields(message, &FIELDS, UNKNOWN, &position);
        content(message, role, findings, &position);
        if let Some(name) = message.get("name").and_then(Value::as_str) {
            let is_valid = !name.is_empty()
                && name.chars().count() <= 64
                && !name.contains(|c: char| c.is_whitespace() || "<|\\/>".contains(c));
            findings.require(is_valid, NAME, format!("{position}.name"));
        }
        if role == "tool" {
            pairs.answer(text(message, "tool_call_id"), findings, &position);
            continue;
        }
        pairs.end(findings);
        if role == "function" {
            findings.require(has(message, "name"), FUNCTION, &position);
        }
        if has(message, "tool_calls") {
            findings.require(role == "assistant", CALLS_ROLE, &position);
            calls(message, &mut pairs, findings, &position);
        }
    }
    pairs.end(findings);
}

fn content(message: &Value, role: &str, findings: &mut Findings, position: &str) {
    let calls = has(message, "tool_calls")
        || has(message, "function_call")
        || has(message, "refusal")
        || has(message, "audio");
    match message.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            findings.require(!parts.is_empty(), EMPTY_PARTS, format!("{position}.content"));
            let allowed: &[&str] = match role {
                "user" => &["text", "image_url", "input_audio", "file"],
                "assistant" => &["text", "refusal"],
                _ => &["text"],
            };
            let has_refusal = parts.iter().any(|part| text(part, "type") == "refusal");
            findings.require(!has_refusal || parts.len() == 1, REFUSED, format!("{position}.content"));
            for (i, part) in parts.iter().enumerate() {
                let position = format!("{position}.content[{i}]");
                let kind = text(part, "type");
                findings.require(allowed.contains(&kind), PART, format!("{position}.type"));
                let is_text = part.get("text").is_some_and(Value::is_string);
                findings.require(kind != "text" || is_text, PART_TEXT, &position);
                let url = part.get("image_url").map_or("", |image| text(image, "url"));
                let is_url =
                    ["http://", "https://", "data:image/"].iter().any(|prefix| url.starts_with(prefix));
                findings.require(kind != "image_url" || is_url, IMAGE, &position);
            }
        }
        Some(Value::Null) if role == "function" => {}
        _ => findings.require(role == "assistant" && calls, NO_CONTENT, position),
    }
}

fn calls(message: &Value, pairs: &mut CallPairs, findings: &mut Findings, position: &str) {
    let calls = list(message, "tool_calls");
    findings.require((1..=128).contains(&calls.len()), N_CALLS, format!("{position}.tool_calls"));
    for (i, call) in calls.iter().enumerate() {
        let position = format!("{position}.tool_calls[{i}]");
        let id = text(call, "id");
        findings.require((1..=40).contains(&id.chars().count()), CALL_ID, format!("{position}.id"));
        let kind = text(call, "type");
        let (body, key) = match kind {
            "custom" => (call.get("custom"), "input"),
            _ => (call.get("function"), "arguments"),
        };
        findings.require(matches!(kind, "function" | "custom"), CALL_TYPE, format!("{position}.type"));
        let body = body.unwrap_or(&Value::Null);
        findings.require(is_name(text(body, "name"), 64), CALL_NAME, &position);
        findings.require(body.get(key).is_some_and(Value::is_string), ARGUMENTS, &position);
        pairs.call(id, findings, &position);
    }
}

fn tools(body: &Value, findings: &mut Findings) {
    let tools = list(body, "tools");
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in tools.iter().enumerate() {
        let tool = tool.get("function").or(tool.get("custom")).unwrap_or(tool);
        let name = text(tool, "name");
        findings.require(is_name(name, 64) && !names.contains(&name), TOOLS, format!("tools[{i}]"));
        let parameters = tool.get("parameters").filter(|parameters| !parameters.is_null());
        findings.require(parameters.is_none_or(is_object_schema), SCHEMA, format!("tools[{i}]"));
        names.push(name);
    }
    findings.require(tools.len() <= 128, TOOLS, "tools");
    let has_choice = has(body, "tool_choice") || has(body, "parallel_tool_calls");
    findings.require(!has_choice || !tools.is_empty(), CHOICE, "tool_choice");
}

/// The calls of the last assistant message: open ones with their positions, and answered ones.
#[derive(Default)]
struct CallPairs {
    open: Vec<(String, String)>,
    answered: Vec<String>,
}

impl CallPairs {
    fn call(&mut self, id: &str, findings: &mut Findings, position: &str) {
        let is_new = self.open.iter().all(|(known, _)| known != id);
        findings.require(is_new, DOUBLE_ID, position);
        if is_new {
            self.open.push((id.to_owned(), position.to_owned()));
        }
    }

    fn answer(&mut self, id: &str, findings: &mut Findings, position: &str) {
        match self.open.iter().position(|(open, _)| open == id) {
            Some(at) => self.answered.push(self.open.remove(at).0),
            None if self.answered.iter().any(|answered| answered == id) => findings.report(TWICE, position),
            None => findings.report(STRAY, position),
        }
    }

    fn end(&mut self, findings: &mut Findings) {
        for (_, position) in self.open.drain(..) {
            findings.report(UNANSWERED, position);
        }
        self.answered.clear();
    }
}
