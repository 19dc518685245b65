//! Sessions that continue others, and sessions that end.

use clap::Args;
use fanfold_store::{EndReason, SessionId};
use serde_json::{Value, json};

use super::{SessionArgs, find, print_done};
use crate::failure::Result;
use crate::settings::Options;
use crate::store;
use crate::terminal::{self, Reporter};

#[derive(Debug, Args)]
pub(super) struct ForkArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Fork after this many messages [default: all]
    #[arg(long, value_name = "N")]
    at: Option<u32>,
    /// Title of the fork
    #[arg(long)]
    title: Option<String>,
    /// End the parent session (branched), and move its goal to the fork
    #[arg(long)]
    end_parent: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct EndArgs {
    /// Session: its number in the list, its id or a prefix of it, or its title
    session: String,
    /// Reason for the end
    #[arg(long, value_enum, default_value_t = EndChoice::Reset)]
    reason: EndChoice,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why a user ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EndChoice {
    /// It is done, or was started again elsewhere
    Reset,
    /// It continues in a fork
    Branched,
    /// It was a subagent's and is done
    Subagent,
}

/// Forks a session.
pub(super) fn fork(args: &ForkArgs, options: &Options) -> Result<()> {
    let (engine, id) = find(options, &args.session)?;
    let title = args.title.as_deref();
    let fork = match args.end_parent {
        true => engine.branch(&id, args.at, title),
        false => engine.fork(&id, args.at, title),
    };
    let fork = fork?;
    print_id(&fork, args.json.then(|| json!({ "session": fork.0, "parent": id.0 })))
}

/// Ends a session and continues in a new one.
pub(super) fn rotate(args: &SessionArgs, options: &Options) -> Result<()> {
    let (engine, id) = find(options, &args.session)?;
    let next = engine.rotate(&id)?;
    print_id(&next, args.json.then(|| json!({ "session": next.0, "parent": id.0 })))
}

/// Prints the session that continues another one.
pub(super) fn resume(args: &SessionArgs, options: &Options) -> Result<()> {
    let engine = store::open_read_only(options)?;
    let id = engine.find(&args.session)?.id;
    let newest = engine.latest_rotation(&id)?.id;
    print_id(&newest, args.json.then(|| json!({ "session": newest.0, "from": id.0 })))
}

/// Ends a session.
pub(super) fn end(args: &EndArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let reason = match args.reason {
        EndChoice::Reset => EndReason::Reset,
        EndChoice::Branched => EndReason::Branched,
        EndChoice::Subagent => EndReason::Subagent,
    };
    let (engine, id) = find(options, &args.session)?;
    engine.end(&id, reason.clone())?;
    let json = || json!({ "session": id.0, "ended": reason.name() });
    print_done(args.json.then(json), &format!("{id} has ended ({})", reason.name()), reporter)
}

/// Prints the id of a session, for scripts.
fn print_id(id: &SessionId, json: Option<Value>) -> Result<()> {
    match json {
        Some(json) => terminal::print_json(&json),
        None => terminal::print_page(format!("{id}\n")),
    }
}
