//! OpenAI Chat Completions.

use serde_json::Value;

use super::look::{Look, has, is_name, list, text};

const NO_MODEL: &str = "`model` is a text";
const NO_MESSAGES: &str = "`messages` is a list that is not empty";
const ROLE: &str = "a role is developer, system, user, assistant, tool or function";
const NO_CONTENT: &str = "a message has a content; an assistant's may be null when it calls a tool";
const EMPTY_PARTS: &str = "a list of parts is not empty";
const PART: &str = "a part is of a type that its role may have";
const PART_TEXT: &str = "a part of text has a text";
const IMAGE: &str = "an image has the address of a picture or its data";
const NAME: &str = "a name has no spaces, `<`, `|`, `\\`, `/` or `>`, and at most 64 letters";
const CALLS_ROLE: &str = "only an assistant calls tools";
const NO_CALLS: &str = "a list of calls is not empty";
const CALL_ID: &str = "a call has an id of at most 40 letters";
const CALL_TYPE: &str = "a call is of a function or of a custom tool";
const CALL_NAME: &str = "a called tool has a name of at most 64 letters, digits, `_` and `-`";
const ARGUMENTS: &str = "arguments are a text";
const DOUBLE_ID: &str = "calls of one message have different ids";
const UNANSWERED: &str = "every call is answered by a tool message right behind it";
const STRAY: &str = "a tool message answers a call of the assistant message before it";
const TWICE: &str = "a call is answered once";
const FUNCTION: &str = "a function message has the function's name";
const UNKNOWN: &str = "a message has no fields that the API does not know";
const TOOLS: &str =
    "tools have different names of at most 64 letters, digits, `_` and `-`, and are at most 128";
const CHOICE: &str = "`tool_choice` and `parallel_tool_calls` come with tools";

pub(super) const RULES: &[&str] = &[
    NO_MODEL,
    NO_MESSAGES,
    ROLE,
    NO_CONTENT,
    EMPTY_PARTS,
    PART,
    PART_TEXT,
    IMAGE,
    NAME,
    CALLS_ROLE,
    NO_CALLS,
    CALL_ID,
    CALL_TYPE,
    CALL_NAME,
    ARGUMENTS,
    DOUBLE_ID,
    UNANSWERED,
    STRAY,
    TWICE,
    FUNCTION,
    UNKNOWN,
    TOOLS,
    CHOICE,
];

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
        _ => look.holds(role == "assistant" && calls, NO_CONTENT, place),
    }
}

fn calls(message: &Value, pairs: &mut Pairs, look: &mut Look, place: &str) {
    let calls = list(message, "tool_calls");
    look.holds(!calls.is_empty(), NO_CALLS, format!("{place}.tool_calls"));
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
