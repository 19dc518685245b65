//! Which sessions there are, all about one, and how large the store is.

use std::fmt::Write as _;

use fanfold_core::thousands;
use fanfold_engine::{Engine, Note, store_words};
use fanfold_store::{EventRow, Millis, ReadableSessions, Relation, Role, SessionFilter, SessionRow};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::{ListArgs, OneArgs, SizeArgs};
use crate::settings::Options;
use crate::store::{engine_to_read, find, store_failed};
use crate::terminal::{self, count, paint, style};

/// How much of a session's first words is shown.
const PREVIEW: usize = 60;
/// So much of a text is looked at for it, secrets and all.
const SHOWN: usize = 1000;

pub(crate) fn list(args: &ListArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let filter =
        SessionFilter { source: args.source.clone(), limit: Some(args.limit), ..SessionFilter::default() };
    let ReadableSessions { rows, broken } = engine.readable(&filter);
    match broken.first() {
        Some(error) if rows.is_empty() => return Err(store_failed(error).into()),
        _ => print(&engine, &rows, args)?,
    }
    if broken.is_empty() {
        return Ok(());
    }
    let why: Vec<String> = broken.iter().map(store_words).collect();
    let message = format!("{} not listed: {}", count(broken.len(), "session"), why.join("; "));
    Err(Failure::new(message, "`fanfold doctor` tells what is wrong with the store").into())
}

fn print(engine: &Engine, rows: &[SessionRow], args: &ListArgs) -> anyhow::Result<()> {
    if args.json {
        let all: Value = rows.iter().map(row_json).collect();
        return terminal::data(&format!("{all:#}\n"));
    }
    let mut page = String::new();
    for (i, row) in rows.iter().enumerate() {
        let words = match &row.title {
            Some(title) => paint(style::BOLD, title),
            None => paint(style::DIM, preview(engine, row)),
        };
        let ended = row.ended.as_ref().map_or_else(String::new, |(_, why)| format!(" ({})", why.name()));
        // A number counts in the whole list, so with a filter there is none.
        let number = if args.source.is_none() { format!("{:>3}  ", i + 1) } else { String::new() };
        let _ = writeln!(
            page,
            "{number}{}  {}  {:>15}  {:<8} {words}{ended}",
            row.id,
            &row.updated_at.to_string()[..16],
            count(row.n_messages as usize, "message"),
            row.source
        );
    }
    if rows.is_empty() {
        page.push_str("no session is kept yet; `fanfold fold --session new chat.json` keeps one\n");
    }
    terminal::page(&page)
}

/// How a session begins: the first words of its user.
fn preview(engine: &Engine, row: &SessionRow) -> String {
    const FIRST: u32 = 8;
    let nodes = row.tip.and_then(|tip| engine.store().chain(tip, 0..FIRST).ok()).unwrap_or_default();
    let users = nodes.iter().filter(|node| node.role == Role::User);
    let line = users.map(|node| first_words(&node.json)).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(PREVIEW).collect()
}

/// The first words of a person in a message, on one line; none if all of it is what an agent puts there.
fn first_words(json: &str) -> String {
    let message: Value = serde_json::from_str(json).unwrap_or_default();
    let content = if message.is_string() { &message } else { &message["content"] };
    let whole = content.as_str().or(message["value"].as_str());
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let words = whole.into_iter().chain(parts).find_map(fanfold_engine::opening_words);
    // A key that somebody pasted is not for a screen.
    let shown: String = words.unwrap_or_default().chars().take(SHOWN).collect();
    fanfold_engine::clean_title(&fanfold_redact::redact(&shown))
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

pub(crate) fn show(args: &OneArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let row = find(&engine, &args.session)?;
    let events = engine.store().events(&row.id, 0).map_err(|error| store_failed(&error))?;
    if args.json {
        let mut all = row_json(&row);
        all["happened"] = events.iter().map(event_json).collect();
        return terminal::data(&format!("{all:#}\n"));
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
        ("came as", parent),
        ("begun", Some(row.started_at.to_string())),
        ("written to", Some(row.updated_at.to_string())),
        ("ended", ended),
        ("messages", Some(row.n_messages.to_string())),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(page, "{name:<11}{value}");
        }
    }
    let handles = engine.handles(&row.id).map_err(|error| store_failed(&error))?.len();
    let _ = writeln!(page, "{:<11}{handles} handles were given", "folds");
    let children = SessionFilter { parent: Some(row.id.clone()), ..SessionFilter::default() };
    for child in engine.readable(&children).rows {
        let Some((_, relation)) = child.parent else { continue };
        let how = match relation {
            Relation::Rotation | Relation::Fork => "went on as",
            Relation::Subagent => "helped by",
        };
        let _ = writeln!(page, "{how:<11}{} ({})", child.id, relation.name());
    }
    for event in events.iter().rev().take(20).rev() {
        let _ = writeln!(page, "  {}  {}", event.at, event_words(event));
    }
    terminal::page(&page)
}

fn event_json(event: &EventRow) -> Value {
    let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
    json!({ "seq": event.seq, "at": event.at.0, "kind": event.kind, "body": body })
}

/// An event in a few words.
fn event_words(event: &EventRow) -> String {
    let Some(noted) = fanfold_engine::Noted::read(event) else { return event.kind.clone() };
    match noted.note {
        Note::Began(began) => {
            format!("folded for a window of {} tokens from here on", thousands(began.window))
        }
        Note::Budget { window, .. } => format!("a window of {} tokens", thousands(window)),
        Note::Refused { .. } => "refused for its length".to_owned(),
        Note::Corrected { permille, .. } => {
            format!("the provider counts {} for 1,000 of ours", thousands(permille.into()))
        }
        Note::Offered(offer) if offer.tool.is_some() => "folds open by a tool".to_owned(),
        Note::Offered(_) => "folds name how they open".to_owned(),
        Note::Came { overflow: true, .. } => "a body left as it came, because nothing fitted".to_owned(),
        Note::Came { .. } => "a body left as it came".to_owned(),
        Note::Cooled { .. } => "the provider's cache was cold".to_owned(),
        Note::Beside(beside) => format!("{} recalled beside calls of the client's", beside.ours.len()),
        Note::Pinned { message } => format!("message {message} pinned"),
        Note::Unpinned { message } => format!("message {message} no longer pinned"),
        Note::Focused { topic } => format!("focus on {topic:?}"),
        Note::Summarised(summary) => format!("a summary by {}", summary.model),
        Note::Rested { who, rest } => {
            format!("{who} gave no summary and rests until {}: {}", Millis(rest.until), rest.why)
        }
        Note::Tried { by, missed, flaws } => {
            let why: Vec<&str> = missed.iter().chain(&flaws).map(String::as_str).collect();
            match by {
                Some(by) => format!("{by} wrote a summary, after {}", why.join(", ")),
                None => format!("no model wrote a summary: {}", why.join(", ")),
            }
        }
        Note::FoldAsked { .. } => "a fold was asked for".to_owned(),
        Note::Unfolded { handle } => format!("{handle} unfolded"),
        Note::Fold(fold) => {
            let (before, after) = fold.tokens;
            let n_handles = fold.handles.len();
            format!(
                "fold {}: {} → {} tokens, {n_handles} handles",
                fold.n_folds,
                thousands(before),
                thousands(after)
            )
        }
        Note::Request(sent) => format!("request of {} bytes", thousands(sent.n_bytes)),
        Note::Checkpoint { name, .. } => format!("checkpoint {name:?}"),
        Note::Moved(moved) => {
            let mark = moved.mark.map_or_else(String::new, |mark| format!(" to {mark:?}"));
            format!("{}{mark}", format!("{:?}", moved.why).to_lowercase())
        }
        Note::Forked { from, .. } => format!("came from {from}"),
        Note::Inherited { .. } => "took over what a session that went left to it".to_owned(),
        Note::Imported { from, .. } => format!("brought here from {from}"),
    }
}

pub(crate) fn size(args: &SizeArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let size = engine.store().size().map_err(|error| store_failed(&error))?;
    if args.json {
        let all = json!({ "sessions": size.n_sessions, "messages": size.n_nodes, "json_bytes": size.n_json_bytes,
            "events": size.n_events, "disk_bytes": size.n_disk_bytes });
        return terminal::data(&format!("{all:#}\n"));
    }

    let mut page = String::new();
    let rows = [
        ("sessions", size.n_sessions, ""),
        ("messages", size.n_nodes, "each once, whoever shares it"),
        ("events", size.n_events, ""),
        ("JSON", size.n_json_bytes, "bytes of messages"),
        ("disk", size.n_disk_bytes, "bytes, with the index"),
    ];
    for (name, number, remark) in rows {
        let _ = writeln!(page, "{name:<9} {:>14}  {}", thousands(number), paint(style::DIM, remark));
    }
    terminal::page(&page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_what_its_person_said() {
        let reminder = "<system-reminder>\nUse the tools.\n</system-reminder>";
        let claude = json!({ "role": "user", "content": [
            { "type": "text", "text": reminder }, { "type": "text", "text": "fix the\nbuild" }] });
        assert_eq!(first_words(&claude.to_string()), "fix the build");
        let alone = json!({ "role": "user", "content": reminder });
        assert_eq!(first_words(&alone.to_string()), "");
        let before = json!({ "role": "user", "content": format!("{reminder} fix it") });
        assert_eq!(first_words(&before.to_string()), "fix it");
        assert_eq!(first_words(r#"{"from":"human","value":"hi"}"#), "hi");
        let key = format!("use ghp_{} now", "a1B2c3".repeat(6));
        assert!(!first_words(&json!({ "role": "user", "content": key }).to_string()).contains("ghp_"));
        assert_eq!(first_words("no JSON"), "");
    }
}
