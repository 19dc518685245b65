//! What each provider accepts, written from its documentation and not from our encoder.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bodies::Kind;

/// Says why a body would be refused.
pub fn check(kind: Kind, body: &str) -> Result<(), String> {
    let messages = messages(kind, body)?;
    match kind {
        Kind::Chat | Kind::Hermes => chat(&messages),
        Kind::Responses => responses(&messages),
        Kind::Anthropic => anthropic(&messages, body),
        Kind::ShareGpt => sharegpt(&messages),
    }
}

fn messages(kind: Kind, body: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
        values.push(value.map_err(|error| error.to_string())?);
    }
    let is_lines = values.len() != 1 || values[0].get("role").is_some();
    if is_lines {
        return Ok(values);
    }
    let key = match kind {
        Kind::Chat | Kind::Anthropic | Kind::Hermes => "messages",
        Kind::Responses => "input",
        Kind::ShareGpt => "conversations",
    };
    let list = values[0].as_array().or_else(|| values[0].get(key)?.as_array());
    Ok(list.ok_or("no list")?.clone())
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn opens_with_user(roles: &[&str], system: &[&str], user: &[&str]) -> Result<(), String> {
    match roles.iter().find(|role| !system.contains(role)) {
        Some(role) if !user.contains(role) => Err(format!("the first message is of {role}")),
        _ => Ok(()),
    }
}

fn chat(messages: &[Value]) -> Result<(), String> {
    let roles: Vec<_> = messages.iter().map(|message| text(message, "role")).collect();
    opens_with_user(&roles, &["system", "developer"], &["user"])?;
    let mut open: Vec<String> = Vec::new();
    let mut is_called_in_text = false;
    for (i, message) in messages.iter().enumerate() {
        let role = roles[i];
        let content = message.get("content");
        if role == "tool" && is_called_in_text {
            continue;
        }
        let reply = if role == "assistant" { text(message, "content") } else { "" };
        is_called_in_text =
            ["<tool_call>", "<function=", "<invoke ", "```json"].iter().any(|mark| reply.contains(mark));
        if role == "tool" {
            let id = text(message, "tool_call_id");
            let place = open.iter().position(|open| open == id);
            open.remove(place.ok_or_else(|| format!("message {i}: no call waits for the result of {id:?}"))?);
            if !content.is_some_and(|content| content.is_string() || content.is_array()) {
                return Err(format!("message {i}: a result without a content"));
            }
            continue;
        }
        if role == "function" {
            continue;
        }
        if !open.is_empty() {
            return Err(format!("message {i}: {open:?} have no result"));
        }
        let calls = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut ids = BTreeSet::new();
        for call in &calls {
            let id = text(call, "id");
            if id.is_empty() || !ids.insert(id.to_owned()) {
                return Err(format!("message {i}: the id {id:?} is missing or doubled"));
            }
            open.push(id.to_owned());
        }
        let has_call = !calls.is_empty() || message.get("function_call").is_some();
        let says = content
            .is_some_and(|content| content.is_string() || content.as_array().is_some_and(|c| !c.is_empty()));
        let is_call_alone = role == "assistant" && has_call;
        if !says && !is_call_alone {
            return Err(format!("message {i}: no content"));
        }
    }
    Ok(())
}

fn responses(items: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut answered: BTreeSet<String> = BTreeSet::new();
    let kinds: Vec<_> = items.iter().map(|item| text(item, "type")).collect();
    let is_models = |i: usize| text(&items[i], "role") == "assistant" || kinds[i].ends_with("_call");
    if items.first().is_some_and(|_| is_models(0) || kinds[0] == "reasoning") {
        return Err("the first item is the model's".to_owned());
    }
    for (i, item) in items.iter().enumerate() {
        let is_under_id = text(item, "call_id").is_empty();
        let id = text(item, if is_under_id { "id" } else { "call_id" }).to_owned();
        if kinds[i] == "reasoning" {
            let next = (i + 1..items.len()).find(|i| kinds[*i] != "reasoning");
            // An item of an unknown kind may be the model's.
            let is_unknown = |i: usize| {
                let is_listed = matches!(kinds[i], "" | "message" | "compaction");
                !is_listed && !kinds[i].ends_with("_output")
            };
            if !next.is_some_and(|next| is_models(next) || is_unknown(next)) {
                return Err(format!("item {i}: a thought without its item"));
            }
        } else if matches!(kinds[i], "function_call" | "custom_tool_call" | "local_shell_call") {
            // An id that was answered is no longer free: nobody could tell whose a second output is.
            if answered.contains(&id) || !open.insert(id.clone()) {
                return Err(format!("item {i}: the id {id} comes twice"));
            }
        } else if kinds[i].ends_with("_output") {
            if !open.remove(&id) || !answered.insert(id.clone()) {
                return Err(format!("item {i}: an output without its call {id}"));
            }
        } else if text(item, "role") == "user" && !open.is_empty() {
            return Err(format!("item {i}: {open:?} have no output"));
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
        return Err(format!("{n_marks} cache breakpoints"));
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
            late_system(&roles, i)?;
            continue;
        }
        // User messages that follow one another are read as one turn.
        let is_good = role == "user" || (role == "assistant" && last == "user");
        if !is_good {
            return Err(format!("message {i}: {role} behind {last}"));
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
        let mut is_past_results = false;
        let is_all_thinking = blocks.iter().all(|block| text(block, "type").contains("thinking"));
        if is_all_thinking {
            return Err(format!("message {i}: nothing but thoughts"));
        }
        for block in &blocks {
            match text(block, "type") {
                "tool_result" => {
                    let id = text(block, "tool_use_id");
                    let place = waiting.iter().position(|waiting| waiting == id);
                    let place =
                        place.ok_or_else(|| format!("message {i}: a result without its call {id:?}"))?;
                    waiting.remove(place);
                    if is_past_results {
                        return Err(format!("message {i}: a result behind other blocks"));
                    }
                }
                "text" => {
                    is_past_results = true;
                    if text(block, "text").trim().is_empty() {
                        return Err(format!("message {i}: an empty text"));
                    }
                }
                _ => is_past_results = true,
            }
        }
        // Calls of the last reply may still run while nothing but results has come since.
        let may_still_run = i + 1 == messages.len() && !is_past_results;
        if role == "user" && !waiting.is_empty() && !may_still_run {
            return Err(format!("message {i}: {waiting:?} have no result"));
        }
        for block in blocks.iter().filter(|block| text(block, "type") == "tool_use") {
            let id = text(block, "id").to_owned();
            if id.is_empty() || !used.insert(id.clone()) {
                return Err(format!("message {i}: the id {id:?} is missing or doubled"));
            }
            if !block.get("input").is_some_and(Value::is_object) {
                return Err(format!("message {i}: an input that is no object"));
            }
            waiting.push(id);
        }
    }
    Ok(())
}

/// Instructions in the middle come right behind a user message, and before a reply or at the end.
fn late_system(roles: &[&str], i: usize) -> Result<(), String> {
    let follows_user = i > 0 && roles[i - 1] == "user";
    let is_answered = roles.get(i + 1).is_none_or(|next| *next == "assistant");
    match (follows_user, is_answered) {
        (false, _) => Err(format!("message {i}: system text that does not follow a user message")),
        (true, false) => Err(format!("message {i}: system text before a message of {}", roles[i + 1])),
        (true, true) => Ok(()),
    }
}

/// How many cache breakpoints there are: on the request itself, on tools and on blocks. What is called so elsewhere, in
/// arguments, schemas or thoughts, is none.
fn n_marks(body: &Value) -> usize {
    let own = |value: &Value| usize::from(value.get("cache_control").is_some_and(|mark| !mark.is_null()));
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let of_blocks = |blocks: Vec<Value>| -> usize {
        let inner = |block: &Value| list(block, "content").iter().map(own).sum::<usize>();
        blocks.iter().map(|block| own(block) + inner(block)).sum()
    };
    let of_messages =
        list(body, "messages").iter().map(|message| of_blocks(list(message, "content"))).sum::<usize>();
    own(body)
        + list(body, "tools").iter().map(own).sum::<usize>()
        + of_blocks(list(body, "system"))
        + of_messages
}

fn sharegpt(messages: &[Value]) -> Result<(), String> {
    let roles: Vec<_> = messages.iter().map(|message| text(message, "from")).collect();
    opens_with_user(&roles, &["system"], &["human", "user"])?;
    match messages.iter().position(|message| !message.get("value").is_some_and(Value::is_string)) {
        Some(i) => Err(format!("message {i}: no value")),
        None => Ok(()),
    }
}
