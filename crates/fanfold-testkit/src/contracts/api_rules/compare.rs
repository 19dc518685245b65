//! Compares the request of a client with the folded request that is sent to the provider.

use std::collections::BTreeMap;

use serde_json::Value;

use super::violations;
use crate::generators::bodies::BodyFormat;

/// Finds a regression in a sent request: a newly broken rule, an item of Responses without the reasoning item that
/// it belongs to, or a changed thinking block of Anthropic.
pub fn find_regression(kind: BodyFormat, received: &str, sent: &str) -> Option<String> {
    let before = violations(kind, received.as_bytes());
    let after = violations(kind, sent.as_bytes());
    if let Some(new) = after.iter().find(|new| before.iter().all(|old| old.rule != new.rule)) {
        return Some(format!("broken by folding: {new}"));
    }
    if kind == BodyFormat::Anthropic {
        return find_changed_thinking(received, sent);
    }
    if kind != BodyFormat::Responses {
        return None;
    }
    let (before, after) = (reasoning_by_item(received), reasoning_by_item(sent));
    let is_changed =
        |(id, reasoning): &(&String, &Option<String>)| before.get(*id).is_some_and(|old| old != *reasoning);
    after.iter().find(is_changed).map(|(id, _)| format!("{id} is sent without its reasoning item"))
}

/// Finds a changed or moved thinking block. The blocks are signed, so the provider notices.
///
/// "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified". Those of older
/// messages may be omitted, but not changed or reordered. The provider joins adjacent replies, so they may be sent
/// as one message with all their thinking blocks.
fn find_changed_thinking(received: &str, sent: &str) -> Option<String> {
    let (before, after) = (replies(received), replies(sent));
    let mut rest = before.iter().flat_map(|reply| thinking_blocks(reply));
    let changed = after
        .iter()
        .flat_map(|reply| thinking_blocks(reply))
        .find(|block| !rest.any(|known| known == *block));
    if let Some(changed) = changed {
        return Some(format!("a thinking block was changed or moved: {changed}"));
    }
    let (newest, sent) = (before.last()?, after.last()?);
    let is_same_reply = !call_ids(newest).is_empty() && call_ids(newest) == call_ids(sent);
    let n_older = thinking_blocks(sent).count().saturating_sub(thinking_blocks(newest).count());
    let is_complete = thinking_blocks(sent).skip(n_older).eq(thinking_blocks(newest));
    (is_same_reply && !is_complete).then(|| "the newest reply lacks some of its thinking blocks".to_owned())
}

/// The blocks of each reply.
fn replies(body: &str) -> Vec<Vec<Value>> {
    let is_reply = |message: &Value| message["role"] == "assistant";
    let replies = list(BodyFormat::Anthropic, body).into_iter().filter(is_reply);
    replies.map(|mut reply| serde_json::from_value(reply["content"].take()).unwrap_or_default()).collect()
}

fn thinking_blocks(reply: &[Value]) -> impl Iterator<Item = &Value> {
    reply.iter().filter(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")))
}

/// The ids of the calls of a reply, which identify it.
fn call_ids(reply: &[Value]) -> Vec<&Value> {
    reply.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]).collect()
}

/// The first user text of a received request that the sent request does not contain byte for byte and in order.
pub fn missing_user_text(kind: BodyFormat, received: &str, sent: &str) -> Option<String> {
    let sent = user_texts(kind, sent);
    let mut rest = sent.iter();
    user_texts(kind, received).into_iter().find(|text| !rest.any(|sent| sent == text))
}

/// The texts of user messages in order. Skips user messages with a name, which belong to the harness.
pub fn user_texts(kind: BodyFormat, body: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let is_from_user = |message: &&Value| message["role"] == "user" && message["name"].is_null();
    for message in list(kind, body).iter().filter(is_from_user) {
        texts.extend(message["content"].as_str().map(str::to_owned));
        for part in message["content"].as_array().into_iter().flatten() {
            let is_text = matches!(part["type"].as_str(), Some("text" | "input_text"));
            texts.extend(part["text"].as_str().filter(|_| is_text).map(str::to_owned));
        }
    }
    texts
}

fn list(kind: BodyFormat, body: &str) -> Vec<Value> {
    let mut body: Value = serde_json::from_str(body).unwrap_or_default();
    let key = if kind == BodyFormat::Responses { "input" } else { "messages" };
    match body.get_mut(key).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// For each item with an id, the id of the reasoning item directly before it.
fn reasoning_by_item(body: &str) -> BTreeMap<String, Option<String>> {
    let mut before: Option<String> = None;
    let mut all = BTreeMap::new();
    for item in list(BodyFormat::Responses, body) {
        let id = item["id"].as_str().map(str::to_owned);
        if item["type"] == "reasoning" {
            before = id;
            continue;
        }
        if let Some(id) = id {
            all.insert(id, before.take());
        }
        before = None;
    }
    all
}
