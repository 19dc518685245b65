//! OpenAI Chat Completions.

mod names; // the rules, and what each was taken from

use serde_json::Value;

use super::look::{Look, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    ARGUMENTS, CALL_ID, CALL_NAME, CALL_TYPE, CALLS_ROLE, CHOICE, DOUBLE_ID, EMPTY_PARTS, FUNCTION, IMAGE,
    N_CALLS, NAME, NO_CONTENT, NO_MESSAGES, NO_MODEL, PART, PART_TEXT, REFUSED, ROLE, SCHEMA, STRAY, TOOLS,
    TWICE, UNANSWERED, UNKNOWN,
};

const ROLES: [&str; 6] = ["developer", "system", "user", "assistant", "tool", "function"];
/// The API's own fields, and those of reasoning that other providers of the same API have.
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

pub(super) fn check(body: &Value, look: &mut Look) {
    look.holds(!text(body, "model").is_empty(), NO_MODEL, "model");
    let messages = list(body, "messages");
    look.holds(!messages.is_empty(), NO_MESSAGES, "messages");
    tools(body, look);
    let mut pairs = Pairs::default();
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        let role = text(message, "role");
        look.holds(ROLES.contains(&role), ROLE, format!("{place}.role"));
        look.fields(message, &FIELDS, UNKNOWN, &place);
        content(message, role, look, &place);
        if let Some(name) = message.get("name").and_then(Value::as_str) {
            let is_good = !name.is_empty()
                && name.chars().count() <= 64
                && !name.contains(|c: char| c.is_whitespace() || "<|\\/>".contains(c));
            look.holds(is_good, NAME, format!("{place}.name"));
        }
        if role == "tool" {
            pairs.answer(text(message, "tool_call_id"), look, &place);
            continue;
        }
        pairs.end(look);
        if role == "function" {
            look.holds(has(message, "name"), FUNCTION, &place);
        }
        if has(message, "tool_calls") {
            look.holds(role == "assistant", CALLS_ROLE, &place);
            calls(message, &mut pairs, look, &place);
        }
    }
    pairs.end(look);
}

fn content(message: &Value, role: &str, look: &mut Look, place: &str) {
    let calls = has(message, "tool_calls")
        || has(message, "function_call")
        || has(message, "refusal")
        || has(message, "audio");
    match message.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            look.holds(!parts.is_empty(), EMPTY_PARTS, format!("{place}.content"));
            let allowed: &[&str] = match role {
                "user" => &["text", "image_url", "input_audio", "file"],
                "assistant" => &["text", "refusal"],
                _ => &["text"],
            };
            let has_refusal = parts.iter().any(|part| text(part, "type") == "refusal");
            look.holds(!has_refusal || parts.len() == 1, REFUSED, format!("{place}.content"));
            for (i, part) in parts.iter().enumerate() {
                let place = format!("{place}.content[{i}]");
                let kind = text(part, "type");
                look.holds(allowed.contains(&kind), PART, format!("{place}.type"));
                let is_text = part.get("text").is_some_and(Value::is_string);
                look.holds(kind != "text" || is_text, PART_TEXT, &place);
                let url = part.get("image_url").map_or("", |image| text(image, "url"));
                let is_address =
                    ["http://", "https://", "data:image/"].iter().any(|begin| url.starts_with(begin));
                look.holds(kind != "image_url" || is_address, IMAGE, &place);
            }
        }
        Some(Value::Null) if role == "function" => {}
        _ => look.holds(role == "assistant" && calls, NO_CONTENT, place),
    }
}

fn calls(message: &Value, pairs: &mut Pairs, look: &mut Look, place: &str) {
    let calls = list(message, "tool_calls");
    look.holds((1..=128).contains(&calls.len()), N_CALLS, format!("{place}.tool_calls"));
    for (i, call) in calls.iter().enumerate() {
        let place = format!("{place}.tool_calls[{i}]");
        let id = text(call, "id");
        look.holds((1..=40).contains(&id.chars().count()), CALL_ID, format!("{place}.id"));
        let kind = text(call, "type");
        let (body, key) = match kind {
            "custom" => (call.get("custom"), "input"),
            _ => (call.get("function"), "arguments"),
        };
        look.holds(matches!(kind, "function" | "custom"), CALL_TYPE, format!("{place}.type"));
        let body = body.unwrap_or(&Value::Null);
        look.holds(is_name(text(body, "name"), 64), CALL_NAME, &place);
        look.holds(body.get(key).is_some_and(Value::is_string), ARGUMENTS, &place);
        pairs.call(id, look, &place);
    }
}

fn tools(body: &Value, look: &mut Look) {
    let tools = list(body, "tools");
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in tools.iter().enumerate() {
        let tool = tool.get("function").or(tool.get("custom")).unwrap_or(tool);
        let name = text(tool, "name");
        look.holds(is_name(name, 64) && !names.contains(&name), TOOLS, format!("tools[{i}]"));
        let parameters = tool.get("parameters").filter(|parameters| !parameters.is_null());
        look.holds(parameters.is_none_or(is_object_schema), SCHEMA, format!("tools[{i}]"));
        names.push(name);
    }
    look.holds(tools.len() <= 128, TOOLS, "tools");
    let is_chosen = has(body, "tool_choice") || has(body, "parallel_tool_calls");
    look.holds(!is_chosen || !tools.is_empty(), CHOICE, "tool_choice");
}

/// Calls of the last assistant message, and those of them that were answered.
#[derive(Default)]
struct Pairs {
    open: Vec<(String, String)>,
    answered: Vec<String>,
}

impl Pairs {
    fn call(&mut self, id: &str, look: &mut Look, place: &str) {
        let is_new = self.open.iter().all(|(known, _)| known != id);
        look.holds(is_new, DOUBLE_ID, place);
        if is_new {
            self.open.push((id.to_owned(), place.to_owned()));
        }
    }

    fn answer(&mut self, id: &str, look: &mut Look, place: &str) {
        match self.open.iter().position(|(open, _)| open == id) {
            Some(at) => self.answered.push(self.open.remove(at).0),
            None if self.answered.iter().any(|answered| answered == id) => look.breaks(TWICE, place),
            None => look.breaks(STRAY, place),
        }
    }

    fn end(&mut self, look: &mut Look) {
        for (_, place) in self.open.drain(..) {
            look.breaks(UNANSWERED, place);
        }
        self.answered.clear();
    }
}
