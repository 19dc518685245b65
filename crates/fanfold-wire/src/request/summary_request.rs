//! Recognises a client's own request for a summary of its conversation. It must not be folded, because the client
//! continues from the summary alone.
//!
//! Each client is recognised by phrases of its prompt: at the start of the system text, or at the start or the end of a
//! text in the last message.

use std::borrow::Cow;

use crate::body::Incoming;
use crate::json::{self, Object};

/// Phrases in system texts.
const IN_SYSTEM: &[&str] = &[
    "tasked with summarizing conversations", // Claude Code, opencode, Roo Code
    "anchored context summarization",        // opencode
    "context summarization assistant",       // pi
    "distilling chat history into a structured", // gemini-cli, qwen-code
    "summarizes internal chat history",      // the same, older
    "summarizing a conversation to preserve context", // crush
    "context limit was reached when a user was in a", // goose
    "summary of the entire conversation that captures", // Copilot
    "summarize this partial conversation",   // aider
    "context-aware state summary",           // OpenHands
    "context checkpoint compaction",         // Codex
];

/// Phrases in the last message.
const IN_PROMPT: &[&str] = &[
    "detailed summary of the conversation so far", // Claude Code, Cline, Roo Code
    "detailed summary of this conversation",       // Claude Code, up to a message
    "detailed summary of the recent portion",      // Claude Code, from a message on
    "context checkpoint compaction",               // Codex
    "handoff summary for another",                 // Codex and its kin
    "detailed prompt for continuing our conversation", // opencode
    "create a new anchored summary",               // opencode
    "summarization agent creating a context checkpoint", // Hermes
    "messages above are a conversation to summarize", // pi
    "conversation messages to incorporate into the existing summary", // pi, again
    "compact this conversation context",           // kimi-cli
    "context limit was reached when a user was in a", // goose
    "summarize the conversation history provided", // goose
    "summary of the entire conversation that captures", // Copilot
    "context-aware state summary",                 // OpenHands
    "*briefly* summarize this partial conversation", // aider
];

/// The length of the start of a system text that is searched.
const SYSTEM_HEAD: usize = 1000;
/// The same for a text of the last message, from both sides: some clients put the conversation before the prompt.
const PROMPT_HEAD: usize = 1500;
const PROMPT_TAIL: usize = 4000;

/// Returns whether a client requests a summary of its own conversation.
pub fn is_summary_request(incoming: &Incoming) -> bool {
    let message = |i: usize| incoming.message(i).and_then(Object::parse);
    let first = message(0);
    let first = first.filter(|first| matches!(first.text("role").as_deref(), Some("system" | "developer")));
    let within = first.and_then(|first| first.some("content"));
    let is_system = [incoming.system(), within].into_iter().flatten().any(|system| {
        // A client may put a line before its prompt.
        texts_of(system).iter().take(3).any(|text| contains_any(head(text, SYSTEM_HEAD), IN_SYSTEM))
    });
    let last = incoming.n_messages().checked_sub(1).and_then(message);
    is_system || last.is_some_and(|last| is_prompt(&last))
}

fn is_prompt(last: &Object<'_>) -> bool {
    // Codex has an item for providers that summarise themselves.
    if last.text("type").as_deref() == Some("compaction_trigger") {
        return true;
    }
    if last.text("role").as_deref() != Some("user") {
        return false;
    }
    let texts = last.some("content").map(texts_of).unwrap_or_default();
    texts.iter().any(|text| {
        contains_any(head(text, PROMPT_HEAD), IN_PROMPT) || contains_any(tail(text, PROMPT_TAIL), IN_PROMPT)
    })
}

/// The texts of a content, without results of tools.
fn texts_of(content: &str) -> Vec<Cow<'_, str>> {
    if let Some(text) = json::string(content) {
        return vec![text.text];
    }
    let parts = json::array(content).unwrap_or_default();
    let texts = parts.into_iter().filter_map(|part| {
        let part = Object::parse(part)?;
        let is_text = matches!(part.text("type").as_deref(), None | Some("text" | "input_text"));
        if is_text { part.text("text") } else { None }
    });
    texts.collect()
}

fn contains_any(text: &str, phrases: &[&str]) -> bool {
    let text = text.to_lowercase();
    phrases.iter().any(|phrase| text.contains(phrase))
}

fn head(text: &str, n: usize) -> &str {
    let end = (0..=n.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    &text[..end]
}

fn tail(text: &str, n: usize) -> &str {
    let from = text.len().saturating_sub(n);
    let start = (from..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
    &text[start..]
}
