//! File formats of recorded conversations.

mod chat_writer; // writes chat messages
mod time; //        parses timestamps
mod claude; //      sessions of Claude Code
mod codex; //       sessions of Codex
mod body; //        request bodies and lists of messages, in any wire format

use serde_json::Value;

use crate::record::Record;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// One record per line.
    Records,
    /// A session of Claude Code.
    ClaudeCode,
    /// A session of Codex.
    Codex,
    /// One ShareGPT conversation per line.
    ShareGpt,
    /// One request body or list of messages.
    Body,
}

/// The extent to which a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ReadExtent {
    /// Messages and calls with their results, as a replay measures them.
    #[default]
    Measured,
    /// Also reasoning, subagents, and conversations without a reply.
    Whole,
}

/// A conversation and its metadata.
#[derive(Debug, Clone)]
pub struct SourceConversation {
    /// The conversation.
    pub record: Record,
    /// The id that its program gave it.
    pub id: Option<String>,
    /// The title that its program gave it.
    pub title: Option<String>,
    /// Its relation to another conversation.
    pub origin: Option<ConversationOrigin>,
}

/// The relation of a conversation to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationOrigin {
    /// It continues the previous one in the file after a compaction.
    Continuation,
    /// It is a subagent of the conversation with this id.
    SubagentOf(String),
}

/// The conversations in a file.
#[derive(Debug, Clone, Default)]
pub struct FileContents {
    /// The conversations.
    pub conversations: Vec<SourceConversation>,
    /// The number of lines that could not be parsed.
    pub n_bad_lines: usize,
}

/// The number of lines that decide the format of a file.
const FIRST_LINES: usize = 40;

/// The format of a text; `None` if it contains no conversation.
pub fn detect_kind(text: &str) -> Option<FileKind> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(FIRST_LINES);
    let by_line = lines
        .map_while(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|line| detect_kind_of_line(&line));
    by_line.or_else(|| body::is_conversation(text).then_some(FileKind::Body))
}

fn detect_kind_of_line(line: &Value) -> Option<FileKind> {
    let has = |key: &str| line.get(key).is_some();
    let word = line["type"].as_str().unwrap_or_default();
    let is_codex =
        has("payload") && matches!(word, "session_meta" | "response_item" | "event_msg" | "turn_context");
    if is_codex {
        Some(FileKind::Codex)
    } else if matches!(word, "user" | "assistant") && has("message") && has("uuid") {
        Some(FileKind::ClaudeCode)
    } else if line["conversations"].is_array() {
        Some(FileKind::ShareGpt)
    } else if line["messages"].is_array() && (has("id") || has("source")) {
        Some(FileKind::Records)
    } else {
        None
    }
}

/// Reads the conversations in a text. Conversations without a name of their own get `name`.
pub fn read(text: &str, name: &str) -> Vec<Record> {
    contents(text, name, ReadExtent::Measured).conversations.into_iter().map(|found| found.record).collect()
}

/// Reads the conversations in a text with reasoning, subagents and metadata.
pub fn read_whole(text: &str, name: &str) -> FileContents {
    contents(text, name, ReadExtent::Whole)
}

fn contents(text: &str, name: &str, extent: ReadExtent) -> FileContents {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let without_metadata = |records: Vec<Option<Record>>| {
        let n_bad_lines = records.iter().filter(|record| record.is_none()).count();
        let conversation = |record| SourceConversation { record, id: None, title: None, origin: None };
        FileContents { conversations: records.into_iter().flatten().map(conversation).collect(), n_bad_lines }
    };
    let Some(kind) = detect_kind(text) else { return FileContents::default() };
    match kind {
        FileKind::Records => without_metadata(lines().map(|line| Record::parse(line, name).ok()).collect()),
        FileKind::ShareGpt => {
            let n_lines = lines().count();
            let id = |n: usize| if n_lines > 1 { format!("{name}#{n}") } else { name.to_owned() };
            without_metadata(lines().enumerate().map(|(n, line)| body::read(line, &id(n))).collect())
        }
        FileKind::Body => without_metadata(body::read(text, name).into_iter().map(Some).collect()),
        FileKind::ClaudeCode | FileKind::Codex => {
            let all: Vec<Option<Value>> = lines().map(|line| serde_json::from_str(line).ok()).collect();
            let n_bad_lines = all.iter().filter(|line| line.is_none()).count();
            let lines: Vec<Value> = all.into_iter().flatten().collect();
            let conversations = match kind {
                FileKind::Codex => codex::read(&lines, name, extent),
                _ => claude::read(&lines, name, extent),
            };
            FileContents { conversations, n_bad_lines }
        }
    }
}
