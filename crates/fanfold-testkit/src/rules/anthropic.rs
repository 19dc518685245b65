//! Anthropic Messages.

mod blocks; // what each block must be
mod marks; //  where caches may end

use std::collections::BTreeSet;

use serde_json::Value;

use super::look::{Look, has, is_name, list, text};

const NO_MODEL: &str = "`model` is a text";
const MAX_TOKENS: &str = "`max_tokens` is a number from 1";
const NO_MESSAGES: &str = "`messages` is a list that is not empty";
const ROLE: &str = "a role is user or assistant, or system right behind a user message and before a reply";
const FIRST: &str = "the first message is the user's";
const EMPTY: &str = "a message has a content that is not empty";
const EMPTY_TEXT: &str = "a text has more than white space";
const TRAILING: &str = "a last message of the assistant does not end in white space";
const PLACE: &str = "a block stands in a message of a role that may have it";
const TOOL_ID: &str = "a call has an id of letters, digits, `_` and `-`";
const DOUBLE_ID: &str = "calls have different ids";
const CALL_NAME: &str = "a called tool has a name of at most 200 letters, digits, `_` and `-`";
const INPUT: &str = "the input of a call is an object";
const UNANSWERED: &str = "every call has its result in the message right behind it";
const STRAY: &str = "a result answers a call of the message right before it";
const TWICE: &str = "a call has one result";
const NOT_FIRST: &str = "results come before anything else in their message";
const RESULT: &str = "a result is a text or a list of texts, images and documents";
const ERROR_TEXT: &str = "a result that is an error has texts alone";
const SIGNATURE: &str = "a thought is a text with its signature, or sealed data";
const LAST_THOUGHT: &str = "a thought is not the last block of a message";
const THOUGHT_FIRST: &str =
    "with thinking on, the reply whose calls were just answered begins with a thought";
const SERVER_PAIR: &str = "a call of a server's tool has its result behind it in the same message";
const IMAGE: &str = "an image has a source: data of a known kind, an address or a file";
const N_MARKS: &str = "there are at most 4 cache marks, in tools, system and messages together";
const MARK: &str = "a cache mark is ephemeral, for 5m or 1h";
const MARK_ORDER: &str = "cache marks for 1h come before those for 5m";
const MARKED: &str = "no cache mark stands on a thought or on an empty text";
const UNKNOWN: &str = "blocks and messages have no fields that the API does not know";
const SYSTEM: &str = "`system` is a text or a list of texts";
const TOOLS: &str =
    "tools have different names of at most 128 letters, digits, `_` and `-`, and a schema of an object";
const NO_TOOLS: &str = "a request with calls or results defines tools";

pub(super) const RULES: &[&str] = &[
    NO_MODEL,
    MAX_TOKENS,
    NO_MESSAGES,
    ROLE,
    FIRST,
    EMPTY,
    EMPTY_TEXT,
    TRAILING,
    PLACE,
    TOOL_ID,
    DOUBLE_ID,
    CALL_NAME,
    INPUT,
    UNANSWERED,
    STRAY,
    TWICE,
    NOT_FIRST,
    RESULT,
    ERROR_TEXT,
    SIGNATURE,
    LAST_THOUGHT,
    THOUGHT_FIRST,
    SERVER_PAIR,
    IMAGE,
    N_MARKS,
    MARK,
    MARK_ORDER,
    MARKED,
    UNKNOWN,
    SYSTEM,
    TOOLS,
    NO_TOOLS,
];

pub(super) fn check(body: &Value, look: &mut Look) {
    look.holds(!text(body, "model").is_empty(), NO_MODEL, "model");
    let is_bounded = body.get("max_tokens").and_then(Value::as_u64).is_some_and(|most| most > 0);
    look.holds(is_bounded, MAX_TOKENS, "max_tokens");
    system(body, look);
    tools(body, look);
    marks::check(body, look);
    let messages = list(body, "messages");
    look.holds(!messages.is_empty(), NO_MESSAGES, "messages");
    roles(messages, look);
    let mut ids = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        look.fields(message, &["role", "content"], UNKNOWN, &place);
        one(message, &mut ids, look, &place);
    }
    pairs(messages, look);
    last(messages, look);
    let is_thinking = body.get("thinking").is_some_and(|thinking| text(thinking, "type") == "enabled");
    if is_thinking {
        thought_first(messages, look);
    }
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
                i > 0 && roles[i - 1] == "user" && roles.get(i + 1).is_none_or(|next| *next == "assistant")
            }
            _ => false,
        };
        look.holds(is_good, ROLE, format!("messages[{i}].role"));
    }
    look.holds(roles.first().is_none_or(|first| *first != "assistant"), FIRST, "messages[0]");
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
    let reply = messages.iter().rposition(|message| text(message, "role") == "assistant");
    let (true, Some(at)) = (is_answered, reply) else { return };
    let is_calling = blocks_of(&messages[at]).iter().any(|block| text(block, "type") == "tool_use");
    let first = blocks_of(&messages[at]).first().map_or("", |block| text(block, "type"));
    look.holds(!is_calling || blocks::is_thought(first), THOUGHT_FIRST, format!("messages[{at}].content[0]"));
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
        let has_schema =
            is_own || tool.get("input_schema").is_some_and(|schema| text(schema, "type") == "object");
        let is_named = is_name(name, 128) && !names.contains(&name);
        let is_set = text(tool, "type") == "mcp_toolset";
        look.holds(is_set || (is_named && has_schema), TOOLS, format!("tools[{i}]"));
        names.push(name);
    }
}
