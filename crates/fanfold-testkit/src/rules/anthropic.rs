//! Anthropic Messages.

mod names; //  the rules, and what each was taken from
mod blocks; // what each block must be
mod marks; //  where caches may end

use std::collections::BTreeSet;

use serde_json::Value;

use super::look::{Look, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    BUDGET, DOUBLE_ID, EMPTY, EMPTY_TEXT, FIRST, FORCED, LAST_THOUGHT, MAX_TOKENS, N_MESSAGES, NO_MODEL,
    NO_TOOLS, NOT_FIRST, ROLE, SCHEMA, SERVER_PAIR, SERVER_STRAY, STRAY, SYSTEM, THOUGHT_FIRST, TOOLS,
    TRAILING, TWICE, UNANSWERED, UNKNOWN,
};

pub(super) fn check(body: &Value, look: &mut Look) {
    look.holds(!text(body, "model").is_empty(), NO_MODEL, "model");
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64);
    look.holds(max_tokens.is_some(), MAX_TOKENS, "max_tokens");
    system(body, look);
    tools(body, look);
    marks::check(body, look);
    let messages = list(body, "messages");
    look.holds((1..=100_000).contains(&messages.len()), N_MESSAGES, "messages");
    roles(messages, look);
    let mut ids = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        look.fields(message, &["role", "content"], UNKNOWN, &place);
        one(message, &mut ids, look, &place);
    }
    pairs(messages, look);
    last(messages, look);
    let thinking = body.get("thinking").unwrap_or(&Value::Null);
    if text(thinking, "type") == "enabled" {
        let budget = thinking.get("budget_tokens").and_then(Value::as_u64).unwrap_or(0);
        let is_within = budget >= 1024 && max_tokens.is_none_or(|most| budget < most);
        look.holds(is_within, BUDGET, "thinking.budget_tokens");
        thought_first(messages, look);
    }
    let is_forced =
        body.get("tool_choice").is_some_and(|choice| matches!(text(choice, "type"), "any" | "tool"));
    let is_thinking = matches!(text(thinking, "type"), "enabled" | "adaptive");
    look.holds(!is_forced || !is_thinking, FORCED, "tool_choice");
    let is_calling = messages
        .iter()
        .flat_map(blocks_of)
        .any(|block| matches!(text(block, "type"), "tool_use" | "tool_result"));
    look.holds(!is_calling || !list(body, "tools").is_empty(), NO_TOOLS, "tools");
}

/// The blocks of a message; none of a content that is a text.
fn blocks_of(message: &Value) -> &[Value] {
    list(message, "content")
}

fn roles(messages: &[Value], look: &mut Look) {
    let roles: Vec<&str> = messages.iter().map(|message| text(message, "role")).collect();
    for (i, role) in roles.iter().enumerate() {
        let is_good = match *role {
            "user" | "assistant" => true,
            "system" => {
                let is_behind = i > 0 && (roles[i - 1] == "user" || ends_in_server_tool(&messages[i - 1]));
                is_behind && roles.get(i + 1).is_none_or(|next| *next == "assistant")
            }
            _ => false,
        };
        look.holds(is_good, ROLE, format!("messages[{i}].role"));
    }
    look.holds(roles.first().is_none_or(|first| *first != "assistant"), FIRST, "messages[0]");
}

/// Whether a reply ends in a call of a server's tool, or its result.
fn ends_in_server_tool(message: &Value) -> bool {
    let kind = blocks_of(message).last().map_or("", |block| text(block, "type"));
    kind == "server_tool_use" || blocks::is_server_result(kind)
}

fn one(message: &Value, ids: &mut BTreeSet<String>, look: &mut Look, place: &str) {
    let role = text(message, "role");
    match message.get("content") {
        Some(Value::String(text)) if text.is_empty() => look.breaks(EMPTY, place),
        Some(Value::String(text)) => look.holds(!text.trim().is_empty(), EMPTY_TEXT, place),
        Some(Value::Array(blocks)) if !blocks.is_empty() => {
            let is_past_results = blocks.iter().scan(false, |is_past, block| {
                let before = *is_past;
                *is_past |= text(block, "type") != "tool_result";
                Some(before)
            });
            for ((i, block), is_past_results) in blocks.iter().enumerate().zip(is_past_results) {
                let place = format!("{place}.content[{i}]");
                blocks::check(block, role, look, &place);
                let kind = text(block, "type");
                look.holds(kind != "tool_result" || !is_past_results, NOT_FIRST, &place);
                if kind == "tool_use" {
                    let is_new = ids.insert(text(block, "id").to_owned());
                    look.holds(is_new, DOUBLE_ID, format!("{place}.id"));
                }
                if kind == "server_tool_use" {
                    let id = text(block, "id");
                    let is_answered = blocks[i + 1..].iter().any(|block| text(block, "tool_use_id") == id);
                    look.holds(is_answered, SERVER_PAIR, &place);
                }
                if blocks::is_server_result(kind) {
                    let id = text(block, "tool_use_id");
                    let has_call = blocks[..i]
                        .iter()
                        .any(|block| text(block, "id") == id && text(block, "type").ends_with("tool_use"));
                    look.holds(has_call, SERVER_STRAY, &place);
                }
            }
            let is_thought_last = blocks.last().is_some_and(|block| blocks::is_thought(text(block, "type")));
            look.holds(!is_thought_last, LAST_THOUGHT, place);
        }
        _ => look.breaks(EMPTY, place),
    }
}

/// Results stand in the message right behind their calls: all of them, each once.
fn pairs(messages: &[Value], look: &mut Look) {
    let mut open: Vec<(String, String)> = Vec::new();
    let turns = messages.iter().enumerate().filter(|(_, message)| text(message, "role") != "system");
    for (i, message) in turns {
        let mut answered: Vec<&str> = Vec::new();
        for (n, block) in blocks_of(message).iter().enumerate() {
            if text(block, "type") != "tool_result" {
                continue;
            }
            let place = format!("messages[{i}].content[{n}]");
            let id = text(block, "tool_use_id");
            match open.iter().position(|(open, _)| open == id) {
                Some(at) => {
                    open.remove(at);
                    answered.push(id);
                }
                None if answered.contains(&id) => look.breaks(TWICE, place),
                None => look.breaks(STRAY, place),
            }
        }
        for (_, place) in open.drain(..) {
            look.breaks(UNANSWERED, place);
        }
        for (n, block) in blocks_of(message).iter().enumerate() {
            if text(block, "type") == "tool_use" {
                open.push((text(block, "id").to_owned(), format!("messages[{i}].content[{n}]")));
            }
        }
    }
    for (_, place) in open {
        look.breaks(UNANSWERED, place);
    }
}

fn last(messages: &[Value], look: &mut Look) {
    let Some(last) = messages.last().filter(|last| text(last, "role") == "assistant") else { return };
    let ending = match last.get("content") {
        Some(Value::String(text)) => text,
        _ => blocks_of(last).last().map_or("", |block| text(block, "text")),
    };
    let is_trailing = !ending.trim().is_empty() && ending.ends_with(char::is_whitespace);
    look.holds(!is_trailing, TRAILING, format!("messages[{}]", messages.len() - 1));
}

fn thought_first(messages: &[Value], look: &mut Look) {
    let is_answered = messages.last().is_some_and(|last| {
        blocks_of(last).first().is_some_and(|block| text(block, "type") == "tool_result")
    });
    let Some(at) = messages.iter().rposition(|message| text(message, "role") == "assistant") else { return };
    let is_calling = blocks_of(&messages[at]).iter().any(|block| text(block, "type") == "tool_use");
    let is_last = at + 1 == messages.len();
    let first = blocks_of(&messages[at]).first().map_or("", |block| text(block, "type"));
    let is_asked = is_last || (is_answered && is_calling);
    look.holds(!is_asked || blocks::is_thought(first), THOUGHT_FIRST, format!("messages[{at}].content[0]"));
}

fn system(body: &Value, look: &mut Look) {
    let is_good = match body.get("system") {
        None | Some(Value::String(_)) => true,
        Some(Value::Array(blocks)) => {
            let mut is_text = blocks.iter().map(|block| text(block, "type") == "text");
            for (i, block) in blocks.iter().enumerate() {
                let is_empty = text(block, "text").trim().is_empty();
                look.holds(!is_empty, EMPTY_TEXT, format!("system[{i}]"));
            }
            is_text.all(|is_text| is_text)
        }
        Some(_) => false,
    };
    look.holds(is_good, SYSTEM, "system");
}

fn tools(body: &Value, look: &mut Look) {
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        let name = text(tool, "name");
        // Tools of the provider have a type of their own and no schema.
        let is_own = has(tool, "type") && text(tool, "type") != "custom";
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        let has_schema = is_own || is_object_schema(schema);
        let has_choice = ["oneOf", "allOf", "anyOf"].iter().any(|key| has(schema, key));
        look.holds(!has_choice, SCHEMA, format!("tools[{i}]"));
        let is_named = is_name(name, 128) && !names.contains(&name);
        let is_set = text(tool, "type") == "mcp_toolset";
        look.holds(is_set || (is_named && has_schema), TOOLS, format!("tools[{i}]"));
        names.push(name);
    }
}
