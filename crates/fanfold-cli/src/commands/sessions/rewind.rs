//! Moves a session back and forth: rewind, redo, checkpoints.

use clap::Args;
use fanfold_engine::{MoveOutcome, OpError, RewindTarget, SessionEngine};
use fanfold_store::SessionId;
use serde_json::{Value, json};

use super::{SessionArgs, TextArgs, find, print_done};
use crate::failure::Result;
use crate::settings::Options;
use crate::store;
use crate::terminal::{self, Reporter, count};

#[derive(Debug, Args)]
pub(super) struct RewindArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Rewind to before the last N user messages
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "to")]
    turns: u32,
    /// Rewind to this number of messages
    #[arg(long, value_name = "N")]
    to: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Sets a checkpoint; without a name, lists the checkpoints.
pub(super) fn checkpoint(args: &TextArgs, options: &Options, reporter: Reporter) -> Result<()> {
    if args.words.is_empty() {
        return list(args, options);
    }
    let engine = store::open(options)?;
    let row = engine.find(&args.session)?;
    let name = args.words.join(" ");
    engine.checkpoint(&row.id, &name)?;
    let (id, name) = (&row.id.0, fanfold_engine::clean_title(&name));
    let json = || json!({ "session": id, "checkpoint": name, "messages": row.n_messages });
    print_done(args.json.then(json), "", reporter)
}

fn list(args: &TextArgs, options: &Options) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let id = engine.find(&args.session)?.id;
    let checkpoints = engine.checkpoints(&id)?;
    if args.json {
        let all: Value = checkpoints
            .iter()
            .map(|checkpoint| {
                json!({ "name": checkpoint.name, "auto": checkpoint.is_auto, "messages": checkpoint.n_messages,
                    "at": checkpoint.at.0 })
            })
            .collect();
        return terminal::print_json(&json!({ "session": id.0, "checkpoints": all }));
    }
    let mut page = String::new();
    for checkpoint in checkpoints {
        let auto = if checkpoint.is_auto { "  (automatic)" } else { "" };
        let (at, n_messages, name) = (checkpoint.at, checkpoint.n_messages, checkpoint.name);
        page.push_str(&format!("{at}  {n_messages:>6} messages  {name}{auto}\n"));
    }
    terminal::print_page(page)
}

/// Restores a checkpoint.
pub(super) fn restore(args: &TextArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let target = MoveTarget { name: &args.session, is_json: args.json };
    move_session(&target, options, reporter, |engine, id| engine.restore(id, &args.words.join(" ")))
}

/// Rewinds a session.
pub(super) fn rewind(args: &RewindArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let back = args.to.map_or(RewindTarget::TurnsBack(args.turns), RewindTarget::Length);
    let target = MoveTarget { name: &args.session, is_json: args.json };
    move_session(&target, options, reporter, |engine, id| engine.rewind(id, back))
}

/// Undoes the last rewind, restore, or edit by the client.
pub(super) fn redo(args: &SessionArgs, options: &Options, reporter: Reporter) -> Result<()> {
    move_session(
        &MoveTarget { name: &args.session, is_json: args.json },
        options,
        reporter,
        SessionEngine::redo,
    )
}

/// The session to move, and whether to print JSON.
struct MoveTarget<'a> {
    name: &'a str,
    is_json: bool,
}

fn move_session(
    target: &MoveTarget<'_>,
    options: &Options,
    reporter: Reporter,
    go: impl FnOnce(&SessionEngine, &SessionId) -> Result<MoveOutcome, OpError>,
) -> Result<()> {
    let (engine, id) = find(options, target.name)?;
    let MoveOutcome { n_before, n_after, n_undone } = go(&engine, &id)?;
    let undone = match n_undone {
        0 => String::new(),
        n => format!("; {} undone, so their originals are sent again", count(n, "fold")),
    };
    let line = format!("{id}: {n_after} messages, before {n_before}{undone}");
    let json = || json!({ "session": id.0, "messages": n_after, "messages_before": n_before, "folds_undone": n_undone });
    print_done(target.is_json.then(json), &line, reporter)
}
