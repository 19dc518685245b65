//! Files of recorded conversations, and how they are told apart.

mod pen; //    writes chat messages
mod time; //   when something was said
mod claude; // sessions of Claude Code
mod codex; //  sessions of Codex
mod body; //   requests and lists of messages, in any format

use serde_json::Value;

use crate::record::Record;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One record per line.
    Records,
    /// A session of Claude Code.
    ClaudeCode,
    /// A session of Codex.
    Codex,
    /// One request body or list of messages.
    Body,
}

/// So many lines are looked at to tell what a file holds.
const FIRST_LINES: usize = 40;

/// What a text holds; nothing where it holds no conversation.
pub fn kind_of(text: &str) -> Option<Kind> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(FIRST_LINES);
    let of_lines =
        lines.map_while(|line| serde_json::from_str::<Value>(line).ok()).find_map(|line| kind_of_line(&line));
    of_lines.or_else(|| body::is_one(text).then_some(Kind::Body))
}

fn kind_of_line(line: &Value) -> Option<Kind> {
    let has = |key: &str| line.get(key).is_some();
    let word = line["type"].as_str().unwrap_or_default();
    let is_codex =
        has("payload") && matches!(word, "session_meta" | "response_item" | "event_msg" | "turn_context");
    if is_codex {
        Some(Kind::Codex)
    } else if matches!(word, "user" | "assistant") && has("message") && has("uuid") {
        Some(Kind::ClaudeCode)
    } else if line["messages"].is_array() && (has("id") || has("source")) {
        Some(Kind::Records)
    } else {
        None
    }
}

/// The conversations in a text. The name is the file's, for those that have none of their own.
pub fn read(text: &str, name: &str) -> Vec<Record> {
    match kind_of(text) {
        Some(Kind::Records) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.filter_map(|line| Record::parse(line, name).ok()).collect()
        }
        Some(Kind::ClaudeCode) => claude::read(text, name),
        Some(Kind::Codex) => codex::read(text, name),
        Some(Kind::Body) => body::read(text, name).into_iter().collect(),
        None => Vec::new(),
    }
}
