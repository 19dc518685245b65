//! Anthropic Messages.

mod names; //  the names of the rules, with their sources
mod blocks; // single blocks
mod marks; //  cache markers

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::{Findings, has, is_name, is_object_schema, list, text};
pub(super) use names::RULES;
use names::{
    BUDGET, DOUBLE_ID, EMPTY, EMPTY_TEXT, FIRST, FORCED, LAST_THOUGHT, MAX_TOKENS, N_MESSAGES, NO_MODEL,
    NO_TOOLS, NOT_FIRST, ROLE, SCHEMA, SERVER_PAIR, SERVER_STRAY, STRAY, SYSTEM, THOUGHT_FIRST, TOOLS,
    TRAILING, TWICE, UNANSWERED, UNKNOWN,
};

pub(super) fn check(body: &Value, findings: &mut Findings) {
    findings.require(!text(body, "model").is_empty(), NO_MODEL, "model");
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64);
    findings.require(max_tokens.is_some(), MAX_TOKENS, "max_tokens");
    system(body, findings);
    tools(body, findings);
    marks::check(body, findings);
    let messages = list(body, "messages");
    findings.require((1..=100_000).contains(&messages.len()), N_MESSAGES, "messages");
    check_roles(messages, findings);
    let mut ids = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let position = format!("messages[{i}]");
        findings.require_known_fields(message, &["role", "content"], UNKNOWN, &position);
        check_message(message, &mut ids, findings, &position);
    }
    pairs(messages, findings);
    check_ending(messages, findings);
    let thinking = body.get("thinking").unwrap_or(&Value::Null);
    if text(thinking, "type") == "enabled" {
        let budget = thinking.get("budget_tokens").and_then(Value::as_u64).unwrap_or(0);
        let is_within = budget >= 1024 && max_tokens.is_none_or(|most| budget < most);
        findings.require(is_within, BUDGET, "thinking.budget_tokens");
        check_first_block(messages, findings);
    }
    let is_forced =
        body.get("tool_choice").is_some_and(|choice| matches!(text(choice, "type"), "any" | "tool"));
    let is_thinking = matches!(text(thinking, "type"), "enabled" | "adaptive");
    findings.require(!is_forced || !is_thinking, FORCED, "tool_choice");
    let is_calling = messages
        .iter()
        .flat_map(blocks_of)
        .any(|block| matches!(text(block, "type"), "tool_use" | "tool_result"));
    findings.require(!is_calling || !list(body, "tools").is_empty(), NO_TOOLS, "tools");
}

/// The blocks of a message; empty if its content is a string.
fn blocks_of(message: &Value) -> &[Value] {
    list(message, "content")
}

fn check_roles(messages: &[Value], findings: &mut Findings) {
    let roles: Vec<&str> = messages.iter().map(|message| text(message, "role")).collect();
    for (i, role) in roles.iter().enumerate() {
        let is_valid = match *role {
            "user" | "assistant" => true,
            "system" => {
                let is_after_user =
                    i > 0 && (roles[i - 1] == "user" || ends_in_server_tool(&messages[i - 1]));
                is_after_user && roles.get(i + 1).is_none_or(|next| *next == "assistant")
            }
            _ => false,
        };
        findings.require(is_valid, ROLE, format!("messages[{i}].role"));
    }
    findings.require(roles.first().is_none_or(|first| *first != "assistant"), FIRST, "messages[0]");
}

/// True if a reply ends with a call of a server tool or its result.
fn ends_in_server_tool(message: &Value) -> bool {
    let kind = blocks_of(message).last().map_or("", |block| text(block, "type"));
    kind == "server_tool_use" || blocks::is_server_result(kind)
}

fn check_message(message: &Value, ids: &mut BTreeSet<String>, findings: &mut Findings, position: &str) {
    let role = text(message, "role");
    match message.get("content") {
        Some(Value::String(text)) if text.is_empty() => findings.report(EMPTY, position),
        Some(Value::String(text)) => findings.require(!text.trim().is_empty(), EMPTY_TEXT, position),
        Some(Value::Array(blocks)) if !blocks.is_empty() => {
            let is_past_results = blocks.iter().scan(false, |is_past, block| {
                let before = *is_past;
                *is_past |= text(block, "type") != "tool_result";
                Some(before)
            });
            for ((i, block), is_past_results) in blocks.iter().enumerate().zip(is_past_results) {
                let position = format!("{position}.content[{i}]");
                blocks::check(block, role, findings, &position);
                let kind = text(block, "type");
                findings.require(kind != "tool_result" || !is_past_results, NOT_FIRST, &position);
                if kind == "tool_use" {
                    let is_new = ids.insert(text(block, "id").to_owned());
                    findings.require(is_new, DOUBLE_ID, format!("{position}.id"));
                }
                if kind == "server_tool_use" {
                    let id = text(block, "id");
                    let is_answered = blocks[i + 1..].iter().any(|block| text(block, "tool_use_id") == id);
                    findings.require(is_answered, SERVER_PAIR, &position);
                }
                if blocks::is_server_result(kind) {
                    let id = text(block, "tool_use_id");
                    let has_call = blocks[..i]
                        .iter()
                        .any(|block| text(block, "id") == id && text(block, "type").ends_with("tool_use"));
                    findings.require(has_call, SERVER_STRAY, &position);
                }
            }
            let is_thought_last =
                blocks.last().is_some_and(|block| blocks::is_thinking_block(text(block, "type")));
            findings.require(!is_thought_last, LAST_THOUGHT, position);
        }
        _ => findings.report(EMPTY, position),
    }
}

/// Checks that the message after calls has exactly one result for each of them.
fn pairs(messages: &[Value], findings: &mut Findings) {
    let mut open: Vec<(String, String)> = Vec::new();
    let turns = messages.iter().enumerate().filter(|(_, message)| text(message, "role") != "system");
    for (i, message) in turns {
        let mut answered: Vec<&str> = Vec::new();
        for (n, block) in blocks_of(message).iter().enumerate() {
            if text(block, "type") != "tool_result" {
                continue;
            }
            let position = format!("messages[{i}].content[{n}]");
            let id = text(block, "tool_use_id");
            match open.iter().position(|(open, _)| open == id) {
                Some(at) => {
                    open.remove(at);
                    answered.push(id);
                }
                None if answered.contains(&id) => findings.report(TWICE, position),
                None => findings.report(STRAY, position),
            }
        }
        for (_, position) in open.drain(..) {
            findings.report(UNANSWERED, position);
        }
        for (n, block) in blocks_of(message).iter().enumerate() {
            if text(block, "type") == "tool_use" {
                open.push((text(block, "id").to_owned(), format!("messages[{i}].content[{n}]")));
            }
        }
    }
    for (_, position) in open {
        findings.report(UNANSWERED, position);
    }
}

fn check_ending(messages: &[Value], findings: &mut Findings) {
    let Some(last) = messages.last().filter(|last| text(last, "role") == "assistant") else { return };
    let ending = match last.get("content") {
        Some(Value::String(text)) => text,
        _ => blocks_of(last).last().map_or("", |block| text(block, "text")),
    };
    let is_trailing = !ending.trim().is_empty() && ending.ends_with(char::is_whitespace);
    findings.require(!is_trailing, TRAILING, format!("messages[{}]", messages.len() - 1));
}

fn check_first_block(messages: &[Value], findings: &mut Findings) {
    let is_answered = messages.last().is_some_and(|last| {
        blocks_of(last).first().is_some_and(|block| text(block, "type") == "tool_result")
    });
    let Some(at) = messages.iter().rposition(|message| text(message, "role") == "assistant") else { return };
    let is_calling = blocks_of(&messages[at]).iter().any(|block| text(block, "type") == "tool_use");
    let is_last = at + 1 == messages.len();
    let first = blocks_of(&messages[at]).first().map_or("", |block| text(block, "type"));
    let is_required = is_last || (is_answered && is_calling);
    findings.require(
        !is_required || blocks::is_thinking_block(first),
        THOUGHT_FIRST,
        format!("messages[{at}].content[0]"),
    );
}

fn system(body: &Value, findings: &mut Findings) {
    let is_valid = match body.get("system") {
        None | Some(Value::String(_)) => true,
        Some(Value::Array(blocks)) => {
            let mut is_text = blocks.iter().map(|block| text(block, "type") == "text");
            for (i, block) in blocks.iter().enumerate() {
                let is_empty = text(block, "text").trim().is_empty();
                findings.require(!is_empty, EMPTY_TEXT, format!("system[{i}]"));
            }
            is_text.all(|is_text| is_text)
        }
        Some(_) => false,
    };
    findings.require(is_valid, SYSTEM, "system");
}

fn tools(body: &Value, findings: &mut Findings) {
    let mut names: Vec<&str> = Vec::new();
    for (i, tool) in list(body, "tools").iter().enumerate() {
        let name = text(tool, "name");
        // Tools of the provider have their own type and no schema.
        let is_server_tool = has(tool, "type") && text(tool, "type") != "custom";
        let schema = tool.get("input_schema").unwrap_or(&Value::Null);
        let has_schema = is_server_tool || is_object_schema(schema);
        let has_choice = ["oneOf", "allOf", "anyOf"].iter().any(|key| has(schema, key));
        findings.require(!has_choice, SCHEMA, format!("tools[{i}]"));
        let is_named = is_name(name, 128) && !names.contains(&name);
        let is_set = text(tool, "type") == "mcp_toolset";
        findings.require(is_set || (is_named && has_schema), TOOLS, format!("tools[{i}]"));
        names.push(name);
    }
}
