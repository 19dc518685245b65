//! The order and pairing of messages that each provider requires, written from its documentation and not from our
//! encoder.
//!
//! `api_rules` checks more, but only complete requests; this check also accepts bare lists and lines of messages.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::generators::bodies::BodyFormat;

/// Checks a body. `Err` is the reason why the provider would refuse it.
pub fn check(kind: BodyFormat, body: &str) -> Result<(), String> {
    let messages = messages(kind, body)?;
    match kind {
        BodyFormat::Chat | BodyFormat::Hermes => chat(&messages),
        BodyFormat::Responses => responses(&messages),
        BodyFormat::Anthropic => anthropic(&messages, body),
        BodyFormat::ShareGpt => sharegpt(&messages),
    }
}

fn messages(kind: BodyFormat, body: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
        values.push(value.map_err(|error| error.to_string())?);
    }
    let is_lines = values.len() != 1 || values[0].get("role").is_some();
    if is_lines {
        return Ok(values);
    }
    let key = match kind {
        BodyFormat::Chat | BodyFormat::Anthropic | BodyFormat::Hermes => "messages",
        BodyFormat::Responses => "input",
        BodyFormat::ShareGpt => "conversations",
    };
    let list = values[0].as_array().or_else(|| values[0].get(key)?.as_array());
    Ok(list.ok_or("no list")?.clone())
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn opens_with_user(roles: &[&str], system: &[&str], user: &[&str]) -> Result<(), String> {
    match roles.iter().find(|role| !system.contains(role)) {
        Some(role) if !user.contains(role) => Err(format!("the first message has the role {role}")),
        _ => Ok(()),
    }
}

fn chat(messages: &[Value]) -> Result<(), String> {
    let roles: Vec<_> = messages.iter().map(|message| text(message, "role")).collect();
    opens_with_user(&roles, &["system", "developer"], &["user"])?;
    let mut open: Vec<String> = Vec::new();
    let mut has_text_calls = false;
    for (i, message) in messages.iter().enumerate() {
        let role = roles[i];
        let content = message.get("content");
        if role == "tool" && has_text_calls {
            continue;
        }
        let reply = if role == "assistant" { text(message, "content") } else { "" };
        has_text_calls =
            ["<tool_call>", "<function=", "<invoke ", "```json"].iter().any(|mark| reply.contains(mark));
        if role == "tool" {
            let id = text(message, "tool_call_id");
            let position = open.iter().position(|open| open == id);
            open.remove(position.ok_or_else(|| format!("message {i}: a result without its call {id:?}"))?);
            if !content.is_some_and(|content| content.is_string() || content.is_array()) {
                return Err(format!("message {i}: a result without content"));
            }
            continue;
        }
        if role == "function" {
            continue;
        }
        if !open.is_empty() {
            return Err(format!("message {i}: calls without a result: {open:?}"));
        }
        let calls = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut ids = BTreeSet::new();
        for call in &calls {
            let id = text(call, "id");
            if id.is_empty() || !ids.insert(id.to_owned()) {
                return Err(format!("message {i}: the call id {id:?} is empty or not unique"));
            }
            open.push(id.to_owned());
        }
        let has_call = !calls.is_empty() || message.get("function_call").is_some();
        let has_content = content
            .is_some_and(|content| content.is_string() || content.as_array().is_some_and(|c| !c.is_empty()));
        let may_be_empty = role == "assistant" && has_call;
        if !has_content && !may_be_empty {
            return Err(format!("message {i}: no content"));
        }
    }
    Ok(())
}

fn responses(items: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut answered: BTreeSet<String> = BTreeSet::new();
    let kinds: Vec<_> = items.iter().map(|item| text(item, "type")).collect();
    let is_by_model = |i: usize| text(&items[i], "role") == "assistant" || kinds[i].ends_with("_call");
    if items.first().is_some_and(|_| is_by_model(0) || kinds[0] == "reasoning") {
        return Err("the first item is by the model".to_owned());
    }
    for (i, item) in items.iter().enumerate() {
        let has_only_id = text(item, "call_id").is_empty();
        let id = text(item, if has_only_id { "id" } else { "call_id" }).to_owned();
        if kinds[i] == "reasoning" {
            let next = (i + 1..items.len()).find(|i| kinds[*i] != "reasoning");
            // An item of an unknown type may be by the model.
            let is_unknown = |i: usize| {
                let is_listed = matches!(kinds[i], "" | "message" | "compaction");
                !is_listed && !kinds[i].ends_with("_output")
            };
            if !next.is_some_and(|next| is_by_model(next) || is_unknown(next)) {
                return Err(format!("item {i}: reasoning without the item that it belongs to"));
            }
        } else if matches!(kinds[i], "function_call" | "custom_tool_call" | "local_shell_call") {
            // A call id cannot be reused, because a second output could not be assigned to its call.
            if answered.contains(&id) || !open.insert(id.clone()) {
                return Err(format!("item {i}: the call id {id} is not unique"));
            }
        } else if kinds[i].ends_with("_output") {
            if !open.remove(&id) || !answered.insert(id.clone()) {
                return Err(format!("item {i}: an output without its call {id}"));
            }
        } else if text(item, "role") == "user" && !open.is_empty() {
            return Err(format!("item {i}: calls without an output: {open:?}"));
        }
        if kinds[i] == "message" && item.get("content").is_none_or(|content| content.is_null()) {
            return Err(format!("item {i}: no content"));
        }
    }
    Ok(())
}

fn anthropic(messages: &[Value], body: &str) -> Result<(), String> {
    let n_marks = serde_json::from_str(body).map_or(0, |body: Value| n_marks(&body));
    if n_marks > 4 {
        return Err(format!("{n_marks} cache breakpoints, more than 4"));
    }
    let mut waiting: Vec<String> = Vec::new();
    let mut used = BTreeSet::new();
    let roles: Vec<_> = messages.iter().map(|message| text(message, "role")).collect();
    let mut last = "assistant";
    for (i, message) in messages.iter().enumerate() {
        let role = roles[i];
        let content = message.get("content").cloned().unwrap_or_default();
        if role == "system" {
            if !content.is_string() && !content.is_array() {
                return Err(format!("message {i}: no content"));
            }
            check_late_system(&roles, i)?;
            continue;
        }
        // The provider joins adjacent user messages.
        let is_in_order = role == "user" || (role == "assistant" && last == "user");
        if !is_in_order {
            return Err(format!("message {i}: {role} after {last}"));
        }
        last = role;
        let blocks = match &content {
            Value::Array(blocks) => blocks.clone(),
            Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
            _ => return Err(format!("message {i}: no content")),
        };
        if blocks.is_empty() {
            return Err(format!("message {i}: no blocks"));
        }
        let mut has_other_blocks = false;
        let is_all_thinking = blocks.iter().all(|block| text(block, "type").contains("thinking"));
        if is_all_thinking {
            return Err(format!("message {i}: only thinking blocks"));
        }
        for block in &blocks {
            match text(block, "type") {
                "tool_result" => {
                    let id = text(block, "tool_use_id");
                    let position = waiting.iter().position(|waiting| waiting == id);
                    let position =
                        position.ok_or_else(|| format!("message {i}: a result without its call {id:?}"))?;
                    waiting.remove(position);
                    if has_other_blocks {
                        return Err(format!("message {i}: a result after other blocks"));
                    }
                }
                "text" => {
                    has_other_blocks = true;
                    if text(block, "text").trim().is_empty() {
                        return Err(format!("message {i}: an empty text"));
                    }
                }
                _ => has_other_blocks = true,
            }
        }
        // Calls of the last reply may still be running if the last message has only results.
        let may_still_run = i + 1 == messages.len() && !has_other_blocks;
        if role == "user" && !waiting.is_empty() && !may_still_run {
            return Err(format!("message {i}: calls without a result: {waiting:?}"));
        }
        for block in blocks.iter().filter(|block| text(block, "type") == "tool_use") {
            let id = text(block, "id").to_owned();
            if id.is_empty() || !used.insert(id.clone()) {
                return Err(format!("message {i}: the call id {id:?} is empty or not unique"));
            }
            if !block.get("input").is_some_and(Value::is_object) {
                return Err(format!("message {i}: an input that is not an object"));
            }
            waiting.push(id);
        }
    }
    Ok(())
}

/// A system message in the list directly follows a user message and precedes a reply or the end.
fn check_late_system(roles: &[&str], i: usize) -> Result<(), String> {
    let follows_user = i > 0 && roles[i - 1] == "user";
    let is_answered = roles.get(i + 1).is_none_or(|next| *next == "assistant");
    match (follows_user, is_answered) {
        (false, _) => Err(format!("message {i}: a system message that does not follow a user message")),
        (true, false) => {
            Err(format!("message {i}: a system message before a message with the role {}", roles[i + 1]))
        }
        (true, true) => Ok(()),
    }
}

/// The number of cache breakpoints on the request, on tools and on blocks.
///
/// Fields of the same name in arguments, schemas or thinking blocks do not count.
fn n_marks(body: &Value) -> usize {
    let direct = |value: &Value| usize::from(value.get("cache_control").is_some_and(|mark| !mark.is_null()));
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let in_blocks = |blocks: Vec<Value>| -> usize {
        let nested = |block: &Value| list(block, "content").iter().map(direct).sum::<usize>();
        blocks.iter().map(|block| direct(block) + nested(block)).sum()
    };
    let in_messages =
        list(body, "messages").iter().map(|message| in_blocks(list(message, "content"))).sum::<usize>();
    direct(body)
        + list(body, "tools").iter().map(direct).sum::<usize>()
        + in_blocks(list(body, "system"))
        + in_messages
}

fn sharegpt(messages: &[Value]) -> Result<(), String> {
    let roles: Vec<_> = messages.iter().map(|message| text(message, "from")).collect();
    opens_with_user(&roles, &["system"], &["human", "user"])?;
    match messages.iter().position(|message| !message.get("value").is_some_and(Value::is_string)) {
        Some(i) => Err(format!("message {i}: no value")),
        None => Ok(()),
    }
}
