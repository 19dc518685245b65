//! What a client sent beside what left for its provider: no rule is broken that was kept, and nothing of a person's is gone.

use std::collections::BTreeMap;

use serde_json::Value;

use super::broken;
use crate::bodies::Kind;

/// What is worse in what left than in what came, if anything is: a rule that was kept and no longer is, an item of
/// Responses without the thought that the provider knows it with, or a thought of Anthropic that is another one.
pub fn worse(kind: Kind, came: &str, left: &str) -> Option<String> {
    let before = broken(kind, came.as_bytes());
    let after = broken(kind, left.as_bytes());
    if let Some(new) = after.iter().find(|new| before.iter().all(|old| old.rule != new.rule)) {
        return Some(format!("broken by folding: {new}"));
    }
    if kind == Kind::Anthropic {
        return changed_thought(came, left);
    }
    if kind != Kind::Responses {
        return None;
    }
    let (known, kept) = (thoughts(came), thoughts(left));
    let is_other =
        |(id, thought): &(&String, &Option<String>)| known.get(*id).is_some_and(|known| known != *thought);
    kept.iter().find(is_other).map(|(id, _)| format!("{id} is sent without the thought that it had"))
}

/// The first thought that is not as the provider wrote it, where it stood: they are signed.
///
/// "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified", and of older messages
/// they may be left out, but are no others and in no other order. Replies that follow one another are one turn to the
/// provider, so they may leave as one message, with the thoughts of all.
fn changed_thought(came: &str, left: &str) -> Option<String> {
    let (before, after) = (replies(came), replies(left));
    let mut rest = before.iter().flat_map(|reply| signed(reply));
    let changed =
        after.iter().flat_map(|reply| signed(reply)).find(|thought| !rest.any(|known| known == *thought));
    if let Some(changed) = changed {
        return Some(format!("a thought was never written so, or not there: {changed}"));
    }
    let (newest, sent) = (before.last()?, after.last()?);
    let is_same = !calls(newest).is_empty() && calls(newest) == calls(sent);
    let n_before = signed(sent).count().saturating_sub(signed(newest).count());
    let is_whole = signed(sent).skip(n_before).eq(signed(newest));
    (is_same && !is_whole).then(|| "the newest reply is sent without all its thoughts".to_owned())
}

/// The blocks of each reply.
fn replies(body: &str) -> Vec<Vec<Value>> {
    let is_reply = |message: &Value| message["role"] == "assistant";
    let replies = list(Kind::Anthropic, body).into_iter().filter(is_reply);
    replies.map(|mut reply| serde_json::from_value(reply["content"].take()).unwrap_or_default()).collect()
}

fn signed(reply: &[Value]) -> impl Iterator<Item = &Value> {
    reply.iter().filter(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")))
}

/// The ids of a reply's calls: those of no other reply.
fn calls(reply: &[Value]) -> Vec<&Value> {
    reply.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]).collect()
}

/// The first text of a person's that was sent and did not leave byte for byte, or not in its order.
pub fn missing_words(kind: Kind, came: &str, left: &str) -> Option<String> {
    let sent = user_texts(kind, left);
    let mut rest = sent.iter();
    user_texts(kind, came).into_iter().find(|text| !rest.any(|sent| sent == text))
}

/// What people wrote, in order. A user message with a name is a harness's, not a person's.
pub fn user_texts(kind: Kind, body: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let is_persons = |message: &&Value| message["role"] == "user" && message["name"].is_null();
    for message in list(kind, body).iter().filter(is_persons) {
        texts.extend(message["content"].as_str().map(str::to_owned));
        for part in message["content"].as_array().into_iter().flatten() {
            let is_text = matches!(part["type"].as_str(), Some("text" | "input_text"));
            texts.extend(part["text"].as_str().filter(|_| is_text).map(str::to_owned));
        }
    }
    texts
}

fn list(kind: Kind, body: &str) -> Vec<Value> {
    let mut body: Value = serde_json::from_str(body).unwrap_or_default();
    let key = if kind == Kind::Responses { "input" } else { "messages" };
    match body.get_mut(key).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The thought right before each item that the provider knows by its id.
fn thoughts(body: &str) -> BTreeMap<String, Option<String>> {
    let mut before: Option<String> = None;
    let mut all = BTreeMap::new();
    for item in list(Kind::Responses, body) {
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
