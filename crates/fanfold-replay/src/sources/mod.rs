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
    /// A conversation per line, as ShareGPT.
    ShareGpt,
    /// One request body or list of messages.
    Body,
}

/// How much of a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Extent {
    /// What was sent and answered, which is what a replay measures.
    #[default]
    Measured,
    /// Every word: also what the model thought, what worked for it, and what nobody has answered yet.
    Whole,
}

/// A conversation with what its file says about it.
#[derive(Debug, Clone)]
pub struct Told {
    /// The conversation.
    pub record: Record,
    /// Its own id, where its program gave it one.
    pub id: Option<String>,
    /// What its program called it.
    pub title: Option<String>,
    /// Where it came from.
    pub origin: Option<Origin>,
}

/// Where a conversation came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It goes on with the one before it in the file, which its program made shorter.
    Before,
    /// It works for the one of this id.
    WorksFor(String),
}

/// What a file tells.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Its conversations.
    pub told: Vec<Told>,
    /// So many of its lines could not be read.
    pub n_bad_lines: usize,
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
    } else if line["conversations"].is_array() {
        Some(Kind::ShareGpt)
    } else if line["messages"].is_array() && (has("id") || has("source")) {
        Some(Kind::Records)
    } else {
        None
    }
}

/// The conversations in a text. The name is the file's, for those that have none of their own.
pub fn read(text: &str, name: &str) -> Vec<Record> {
    contents(text, name, Extent::Measured).told.into_iter().map(|told| told.record).collect()
}

/// The conversations in a text with every word of them, and what else it tells.
pub fn read_whole(text: &str, name: &str) -> Contents {
    contents(text, name, Extent::Whole)
}

fn contents(text: &str, name: &str, extent: Extent) -> Contents {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let of = |records: Vec<Option<Record>>| {
        let n_bad_lines = records.iter().filter(|record| record.is_none()).count();
        let told = |record| Told { record, id: None, title: None, origin: None };
        Contents { told: records.into_iter().flatten().map(told).collect(), n_bad_lines }
    };
    let Some(kind) = kind_of(text) else { return Contents::default() };
    match kind {
        Kind::Records => of(lines().map(|line| Record::parse(line, name).ok()).collect()),
        Kind::ShareGpt => {
            let n_lines = lines().count();
            let id = |n: usize| if n_lines > 1 { format!("{name}#{n}") } else { name.to_owned() };
            of(lines().enumerate().map(|(n, line)| body::read(line, &id(n))).collect())
        }
        Kind::Body => of(body::read(text, name).into_iter().map(Some).collect()),
        Kind::ClaudeCode | Kind::Codex => {
            let all: Vec<Option<Value>> = lines().map(|line| serde_json::from_str(line).ok()).collect();
            let n_bad_lines = all.iter().filter(|line| line.is_none()).count();
            let lines: Vec<Value> = all.into_iter().flatten().collect();
            let told = match kind {
                Kind::Codex => codex::read(&lines, name, extent),
                _ => claude::read(&lines, name, extent),
            };
            Contents { told, n_bad_lines }
        }
    }
}
