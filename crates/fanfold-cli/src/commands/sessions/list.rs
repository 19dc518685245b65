//! Lists sessions, shows one in detail, and shows the size of the store.

use std::fmt::Write as _;

use clap::Args;
use fanfold_core::thousands;
use fanfold_engine::{SessionEngine, SessionEvent, store_message};
use fanfold_store::{EventRow, Millis, ReadableSessions, Relation, Role, SessionFilter, SessionRow};
use serde_json::{Value, json};

use super::SessionArgs;
use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::store;
use crate::terminal::{self, Text, count, number_rows, paint, style};

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Maximum number of sessions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only sessions from this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Maximum length of a preview.
const MAX_PREVIEW: usize = 60;
/// Maximum length of the text that is redacted for a preview.
const MAX_REDACTED: usize = 1000;

pub(super) fn list(args: &ListArgs, options: &Options) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let filter =
        SessionFilter { source: args.source.clone(), limit: Some(args.limit), ..SessionFilter::default() };
    let ReadableSessions { rows, errors } = engine.readable_sessions(&filter);
    match errors.first() {
        Some(error) if rows.is_empty() => return Err(Failure::from(error)),
        _ => print(&engine, &rows, args)?,
    }
    if errors.is_empty() {
        return Ok(());
    }
    let why: Vec<String> = errors.iter().map(store_message).collect();
    let message = format!("{} not listed: {}", count(errors.len(), "session"), why.join("; "));
    Err(Failure::new(message, "`fanfold doctor` checks the store"))
}

fn print(engine: &SessionEngine, rows: &[SessionRow], args: &ListArgs) -> Result<()> {
    if args.json {
        return terminal::print_json(&rows.iter().map(row_json).collect());
    }
    let mut page = Text::default();
    for (i, row) in rows.iter().enumerate() {
        let title = match &row.title {
            Some(title) => paint(style::BOLD, title),
            None => paint(style::DIM, preview(engine, row)),
        };
        // Numbers refer to the unfiltered list.
        let number = if args.source.is_none() { format!("{:>3}  ", i + 1) } else { String::new() };
        let (id, messages) = (&row.id, count(row.n_messages as usize, "message"));
        let at = row.updated_at.to_string();
        let _ = write!(page, "{number}{id}  {}  {messages:>15}  {:<8} ", &at[..16], row.source);
        page.push(title);
        page.push_line(row.ended.as_ref().map_or_else(String::new, |(_, why)| format!(" ({})", why.name())));
    }
    if rows.is_empty() {
        page.push("no sessions yet; `fanfold fold --session new chat.json` stores one\n");
    }
    terminal::print_page(page)
}

/// The beginning of the first user message with text.
fn preview(engine: &SessionEngine, row: &SessionRow) -> String {
    const FIRST: u32 = 8;
    let nodes = row.tip.and_then(|tip| engine.store().readable_chain(tip, 0..FIRST).ok()).unwrap_or_default();
    let users = nodes.iter().filter(|node| node.role == Role::User);
    let line = users.map(|node| user_text(&node.json)).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_PREVIEW).collect()
}

/// The user's text in a message, on one line. Empty if an agent wrote all of it.
fn user_text(json: &str) -> String {
    let message: Value = serde_json::from_str(json).unwrap_or_default();
    let content = if message.is_string() { &message } else { &message["content"] };
    let whole = content.as_str().or(message["value"].as_str());
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = whole.into_iter().chain(parts).find_map(fanfold_engine::opening_words);
    // The user may have pasted a key.
    let start: String = text.unwrap_or_default().chars().take(MAX_REDACTED).collect();
    fanfold_engine::clean_title(&fanfold_redact::redact(&start))
}

fn row_json(row: &SessionRow) -> Value {
    json!({
        "id": row.id.0,
        "title": row.title,
        "goal": row.goal,
        "source": row.source,
        "format": row.format,
        "model": row.model,
        "parent": row.parent.as_ref().map(|(id, relation)| json!({ "id": id.0, "relation": relation.name() })),
        "root": row.root.0,
        "messages": row.n_messages,
        "events": row.n_events,
        "started_at": row.started_at.0,
        "updated_at": row.updated_at.0,
        "ended": row.ended.as_ref().map(|(at, why)| json!({ "at": at.0, "reason": why.name() })),
    })
}

pub(super) fn show(args: &SessionArgs, options: &Options) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let row = engine.find(&args.session)?;
    let events = engine.store().events(&row.id, 0)?;
    if args.json {
        let mut all = row_json(&row);
        all["happened"] = events.iter().map(event_json).collect();
        return terminal::print_json(&all);
    }
    let mut page = String::new();
    let parent = row.parent.as_ref().map(|(id, relation)| format!("{} of {id}", relation.name()));
    let ended = row.ended.as_ref().map(|(at, why)| format!("{} ({})", at, why.name()));
    let rows = [
        ("session", Some(row.id.0.clone())),
        ("title", row.title.clone()),
        ("goal", row.goal.clone()),
        ("source", Some(row.source.clone())),
        ("format", Some(row.format.clone())),
        ("model", row.model.clone()),
        ("origin", parent),
        ("started", Some(row.started_at.to_string())),
        ("updated", Some(row.updated_at.to_string())),
        ("ended", ended),
        ("messages", Some(row.n_messages.to_string())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(page, "{name:<11}{value}");
        }
    }
    let n_handles = engine.handles(&row.id)?.len();
    let _ = writeln!(page, "{:<11}{}", "folds", count(n_handles, "handle"));
    let children = SessionFilter { parent: Some(row.id.clone()), ..SessionFilter::default() };
    for child in engine.readable_sessions(&children).rows {
        let Some((_, relation)) = child.parent else { continue };
        let label = match relation {
            Relation::Rotation | Relation::Fork => "continued",
            Relation::Subagent => "subagent",
        };
        let _ = writeln!(page, "{label:<11}{} ({})", child.id, relation.name());
    }
    for event in events.iter().rev().take(20).rev() {
        let _ = writeln!(page, "  {}  {}", event.at, describe_event(event));
    }
    terminal::print_page(page)
}

fn event_json(event: &EventRow) -> Value {
    let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
    json!({ "seq": event.seq, "at": event.at.0, "kind": event.kind, "body": body })
}

/// Describes an event.
fn describe_event(event: &EventRow) -> String {
    let Some(noted) = fanfold_engine::LoggedEvent::decode(event) else { return event.kind.clone() };
    match noted.event {
        SessionEvent::NewTerms(terms) => {
            format!("folded for a window of {} tokens from here on", thousands(terms.window))
        }
        SessionEvent::Budget { window, .. } => format!("a window of {} tokens", thousands(window)),
        SessionEvent::Refused { .. } => "refused for its length".to_owned(),
        SessionEvent::TokenRatio { permille, .. } => {
            format!("the provider counts {} tokens where fanfold counts 1,000", thousands(permille.into()))
        }
        SessionEvent::RecallOffered(offer) if offer.tool.is_some() => "recall with a tool".to_owned(),
        SessionEvent::RecallOffered(_) => "recall with the instructions in stubs".to_owned(),
        SessionEvent::SentUnchanged { overflow: true, .. } => {
            "a request sent unchanged, because nothing fitted".to_owned()
        }
        SessionEvent::SentUnchanged { .. } => "a request sent unchanged".to_owned(),
        SessionEvent::CacheExpired { .. } => "the provider's cache had expired".to_owned(),
        SessionEvent::HiddenRecalls(record) => {
            format!("{} next to calls of the client", count(record.recalls.len(), "recall"))
        }
        SessionEvent::Pinned { message } => format!("message {message} pinned"),
        SessionEvent::Unpinned { message } => format!("message {message} no longer pinned"),
        SessionEvent::Focused { topic } => format!("focus on {topic:?}"),
        SessionEvent::Summarised(summary) => format!("a summary by {}", summary.model),
        SessionEvent::ModelPaused { model, rest } => {
            let until = Millis(rest.until);
            format!("{model} failed to write a summary and is paused until {until}: {}", rest.why)
        }
        SessionEvent::SummaryAttempted { model, failures, flaws } => {
            let why = [failures, flaws].concat().join(", ");
            match model {
                Some(model) => format!("{model} wrote a summary, after {why}"),
                None => format!("no model wrote a summary: {why}"),
            }
        }
        SessionEvent::FoldRequested { .. } => "a fold was requested".to_owned(),
        SessionEvent::Unfolded { handle } => format!("{handle} unfolded"),
        SessionEvent::Fold(fold) => {
            let (before, after) = (thousands(fold.tokens.0), thousands(fold.tokens.1));
            format!("fold {}: {before} → {after} tokens, {} handles", fold.n_folds, fold.handles.len())
        }
        SessionEvent::Request(sent) => format!("request of {} bytes", thousands(sent.n_bytes)),
        SessionEvent::Checkpoint { name, .. } => format!("checkpoint {name:?}"),
        SessionEvent::Moved(moved) => {
            let checkpoint = moved.checkpoint.map_or_else(String::new, |name| format!(" to {name:?}"));
            format!("{}{checkpoint}", format!("{:?}", moved.reason).to_lowercase())
        }
        SessionEvent::Forked { from, .. } => format!("forked from {from}"),
        SessionEvent::Inherited { .. } => "inherited messages of a deleted session".to_owned(),
        SessionEvent::Imported { from, .. } => format!("imported from {from}"),
    }
}

pub(super) fn size(args: &SizeArgs, options: &Options) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let size = engine.store().size()?;
    if args.json {
        return terminal::print_json(&json!({ "sessions": size.n_sessions, "messages": size.n_nodes,
            "json_bytes": size.n_json_bytes, "events": size.n_events, "disk_bytes": size.n_disk_bytes }));
    }
    let rows = [
        ("sessions", size.n_sessions, ""),
        ("messages", size.n_nodes, "shared ones counted once"),
        ("events", size.n_events, ""),
        ("JSON", size.n_json_bytes, "bytes of messages"),
        ("disk", size.n_disk_bytes, "bytes, including the index"),
    ];
    let rows = rows.map(|(name, number, remark)| (name, thousands(number), remark.to_owned()));
    terminal::print_page(number_rows(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_skips_text_of_the_agent() {
        let reminder = "<system-reminder>\nUse the tools.\n</system-reminder>";
        let claude = json!({ "role": "user", "content": [
            { "type": "text", "text": reminder }, { "type": "text", "text": "fix the\nbuild" }] });
        assert_eq!(user_text(&claude.to_string()), "fix the build");
        let alone = json!({ "role": "user", "content": reminder });
        assert_eq!(user_text(&alone.to_string()), "");
        let before = json!({ "role": "user", "content": format!("{reminder} fix it") });
        assert_eq!(user_text(&before.to_string()), "fix it");
        assert_eq!(user_text(r#"{"from":"human","value":"hi"}"#), "hi");
        let key = format!("use ghp_{} now", "a1B2c3".repeat(6));
        assert!(!user_text(&json!({ "role": "user", "content": key }).to_string()).contains("ghp_"));
        assert_eq!(user_text("no JSON"), "");
    }
}
