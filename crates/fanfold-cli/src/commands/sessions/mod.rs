//! `fanfold sessions`: stored sessions.

mod list; //     lists sessions, one session in detail, the size of the store
mod rewind; //   rewinds, checkpoints, redo
mod lineage; //  forks, rotations, ends
mod export; //   writes sessions to files
mod sharegpt; // the ShareGPT format
mod import; //   reads sessions from files
mod hermes; //   reads a Hermes state database

use clap::{Args, Subcommand};
use fanfold_engine::{Retention, SessionEngine};
use fanfold_store::{Millis, SessionId};
use serde_json::{Value, json};

use crate::failure::Result;
use crate::settings::{Options, StoreFlags};
use crate::store;
use crate::terminal::{self, Reporter, count};

const HELP: &str = "\
A session is named by its number in the list, its id, a prefix of its id, or its title.
Folds, rewinds, forks and rotations never delete messages.

Examples:
  fanfold fold --session new chat.json --window 32k     store a conversation and fold it
  fanfold sessions list
  fanfold sessions fork 1 --at 12 --title \"another way\"
  fanfold sessions import ~/.hermes/state.db";

/// List, fork, rewind, export and import stored sessions
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
    #[command(flatten)]
    pub(super) store: StoreFlags,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List sessions, most recently written first
    List(list::ListArgs),
    /// Show a session in detail
    Show(SessionArgs),
    /// Set the title of a session; without a title, remove it
    Title(TextArgs),
    /// Set the goal of a session; without a goal, remove it
    Goal(TextArgs),
    /// Keep messages unchanged in every view
    Pin(PinArgs),
    /// Set a checkpoint, or list checkpoints
    Checkpoint(TextArgs),
    /// Restore a checkpoint
    Restore(TextArgs),
    /// Rewind a session; `redo` undoes the rewind
    Rewind(rewind::RewindArgs),
    /// Undo the last rewind, restore, or edit by the client
    Redo(SessionArgs),
    /// Fork a session at any message; prints the new id
    Fork(lineage::ForkArgs),
    /// End a session and continue in a new one; prints the new id
    Rotate(SessionArgs),
    /// Print the id of the newest rotation of a session, or its own id if it was not rotated
    Resume(SessionArgs),
    /// End a session; a later request reopens it
    End(lineage::EndArgs),
    /// Export sessions
    Export(export::ExportArgs),
    /// Import sessions
    Import(import::ImportArgs),
    /// Delete sessions
    Delete(DeleteArgs),
    /// Delete old sessions
    Prune(PruneArgs),
    /// Show the size of the store
    Size(list::SizeArgs),
}

#[derive(Debug, Args)]
struct SessionArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TextArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Text: the title, the goal, or the name of the checkpoint (`restore` requires it)
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PinArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Messages, counted from 0
    #[arg(required = true)]
    messages: Vec<u32>,
    /// Allow the messages to be folded again
    #[arg(long)]
    off: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    /// Sessions: numbers in the list, ids or their prefixes, titles
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PruneArgs {
    /// Delete sessions not written to for this many days
    #[arg(long, value_name = "N", default_value_t = 90)]
    days: u32,
    /// Only sessions from this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only ended sessions
    #[arg(long)]
    ended: bool,
    /// List the sessions without deleting them
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SessionsArgs, options: &Options, reporter: Reporter) -> Result<()> {
    match &args.command {
        SessionsCommand::List(args) => list::list(args, options),
        SessionsCommand::Show(args) => list::show(args, options),
        SessionsCommand::Size(args) => list::size(args, options),
        SessionsCommand::Export(args) => export::run(args, options, reporter),
        SessionsCommand::Import(args) => import::run(args, options, reporter),
        SessionsCommand::Title(args) => set_title(args, options, reporter),
        SessionsCommand::Goal(args) => set_goal(args, options, reporter),
        SessionsCommand::Pin(args) => pin(args, options),
        SessionsCommand::Checkpoint(args) => rewind::checkpoint(args, options, reporter),
        SessionsCommand::Restore(args) => rewind::restore(args, options, reporter),
        SessionsCommand::Rewind(args) => rewind::rewind(args, options, reporter),
        SessionsCommand::Redo(args) => rewind::redo(args, options, reporter),
        SessionsCommand::Fork(args) => lineage::fork(args, options),
        SessionsCommand::Rotate(args) => lineage::rotate(args, options),
        SessionsCommand::Resume(args) => lineage::resume(args, options),
        SessionsCommand::End(args) => lineage::end(args, options, reporter),
        SessionsCommand::Delete(args) => delete(args, options, reporter),
        SessionsCommand::Prune(args) => prune(args, options, reporter),
    }
}

/// Opens the store and finds a session in it.
fn find(options: &Options, name: &str) -> Result<(SessionEngine, SessionId)> {
    let engine = store::open(options)?;
    let id = engine.find(name)?.id;
    Ok((engine, id))
}

/// Prints what was done: JSON if wanted, else a line for the user unless it is empty.
fn print_done(json: Option<Value>, line: &str, reporter: Reporter) -> Result<()> {
    match json {
        Some(json) => terminal::print_json(&json),
        None if line.is_empty() => Ok(()),
        None => {
            reporter.line(line);
            Ok(())
        }
    }
}

fn set_title(args: &TextArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let (engine, id) = find(options, &args.session)?;
    let title = engine.set_title(&id, &args.words.join(" "))?;
    let line = match &title {
        Some(title) => format!("{id} has the title {title:?}"),
        None => format!("{id} has no title"),
    };
    print_done(args.json.then(|| json!({ "session": id.0, "title": title })), &line, reporter)
}

fn set_goal(args: &TextArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let (engine, id) = find(options, &args.session)?;
    engine.set_goal(&id, &args.words.join(" "))?;
    let goal = engine.row(&id)?.goal;
    print_done(args.json.then(|| json!({ "session": id.0, "goal": goal })), "", reporter)
}

fn pin(args: &PinArgs, options: &Options) -> Result<()> {
    let (engine, id) = find(options, &args.session)?;
    for message in &args.messages {
        engine.pin(&id, *message, !args.off)?;
    }
    if !args.json {
        return Ok(());
    }
    terminal::print_json(&json!({ "session": id.0, "pins": engine.session_overview(&id)?.pins }))
}

fn delete(args: &DeleteArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let engine = store::open(options)?;
    // Find all sessions before deleting the first, because that changes their numbers in the list.
    let found: Result<Vec<_>, _> = args.sessions.iter().map(|name| engine.find(name)).collect();
    let (mut deleted, mut n_messages) = (Vec::new(), 0);
    for row in found? {
        let pruned = engine.delete(&row.id)?;
        if !args.json {
            let messages = count(pruned.n_messages as usize, "message");
            reporter.line(format!("{}: deleted with {messages}", row.id));
        }
        n_messages += pruned.n_messages;
        deleted.push(row.id);
    }
    print_done(args.json.then(|| deleted_json(&deleted, n_messages)), "", reporter)
}

fn deleted_json(sessions: &[SessionId], n_messages: u64) -> Value {
    let ids: Vec<&str> = sessions.iter().map(|id| &*id.0).collect();
    json!({ "deleted": ids, "messages": n_messages })
}

fn prune(args: &PruneArgs, options: &Options, reporter: Reporter) -> Result<()> {
    const DAY_MS: i64 = 86_400_000;
    let engine = store::open(options)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let before = Millis(now.as_millis() as i64 - i64::from(args.days) * DAY_MS);
    let retention = Retention { before, source: args.source.clone(), only_ended: args.ended };
    if args.dry_run {
        let rows = engine.outdated_sessions(&retention)?;
        let ids: Vec<String> = rows.into_iter().map(|row| row.id.0).collect();
        return match args.json {
            true => terminal::print_json(&json!({ "outdated": ids })),
            false => terminal::print_page(ids.iter().map(|id| format!("{id}\n")).collect::<String>()),
        };
    }
    let pruned = engine.prune(&retention)?;
    let (n_sessions, n_messages) = (pruned.sessions.len(), pruned.n_messages);
    let (sessions, messages) = (count(n_sessions, "session"), count(n_messages as usize, "message"));
    let line = format!("deleted: {sessions}, {messages}");
    print_done(args.json.then(|| deleted_json(&pruned.sessions, n_messages)), &line, reporter)
}
