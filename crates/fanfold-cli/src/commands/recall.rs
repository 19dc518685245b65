//! `fanfold recall`: prints the original behind a handle.

use std::path::Path;

use clap::Args;
use fanfold_core::{Engine, Extent, Handle, RecallError};
use fanfold_engine::{FoldOptions, OpenError, nearest_handles};
use serde_json::json;

use super::conversation::open;
use crate::failure::{Failure, Result};
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::store;
use crate::terminal::{self, Reporter};

/// Print a folded part of a conversation, byte for byte
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold recall chat.json 291227 --lines 1-40\n\n\
    Pass the same --window and --policy as for the fold: they determine what was folded.")]
pub(crate) struct RecallArgs {
    /// The conversation before it was folded; `-` is stdin; left out with --session
    #[arg(value_name = "FILE")]
    first: String,
    /// The handle, as it appears in the folded conversation
    #[arg(required_unless_present = "session")]
    handle: Option<Handle>,
    /// Recall from a stored session
    #[arg(long, value_name = "ID", conflicts_with = "handle")]
    session: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreFlags,
    /// Print only these lines, counted from 1: 40, 1-40, 40-
    #[arg(long, value_name = "A-B", conflicts_with = "search")]
    lines: Option<String>,
    /// Print only lines that contain this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Lines of context around each match
    #[arg(long, value_name = "N", default_value_t = 0, requires = "search")]
    around: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
}

pub(crate) fn run(args: &RecallArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let extent = extent(args)?;
    let (handle, content) = match (&args.session, args.handle) {
        (Some(session), _) => recall_stored(args, session, &extent, options)?,
        (None, Some(handle)) => {
            let quiet = Reporter { is_quiet: true };
            let mut followed = open(Path::new(&args.first), options, &FoldOptions::default(), quiet)?;
            // Requesting the view runs the last step, so that the newest folds are included.
            let _ = followed.view();
            (handle, recall(&*followed.session, handle, &extent)?)
        }
        (None, None) => {
            return Err(Failure::new("there is no handle", "give the conversation and the handle"));
        }
    };
    if content.is_empty() && matches!(extent, Extent::Search { .. }) {
        reporter.line("no line contains this text");
    }
    if args.json {
        return terminal::print_json(&json!({ "handle": handle.to_string(), "content": content }));
    }
    terminal::print_data(&content)
}

/// Recalls from a stored session, where the handle is the only positional argument.
fn recall_stored(
    args: &RecallArgs,
    session: &str,
    extent: &Extent,
    options: &Options,
) -> Result<(Handle, String)> {
    let handle: Handle = args.first.parse().map_err(|error| {
        Failure::new(
            format!("{error}"),
            "with --session, give only the handle: fanfold recall --session ID HANDLE",
        )
    })?;
    let engine = store::open_read_only(options)?;
    let id = engine.find(session)?.id;
    let content = engine.recall(&id, handle, extent).map_err(|error| match &error {
        OpenError::Store(cause) => Failure::from(cause),
        OpenError::Unknown { near, .. } if near.is_empty() => Failure::new(
            format!("{error}: nothing in this session was ever folded"),
            "`fanfold sessions list` shows the other sessions",
        ),
        OpenError::Unknown { near, .. } => Failure::new(
            format!("{error}; similar handles: {}", near.join(", ")),
            format!("`fanfold inspect --session {id} --ledger` lists all handles"),
        ),
        OpenError::Broken(_) => Failure::new(error.to_string(), "`fanfold doctor` shows what is damaged"),
        OpenError::Extent(_) => Failure::new(error.to_string(), "leave out the lines to print all of it"),
    })?;
    Ok((handle, content))
}

/// The original behind a handle. If the session has no fold with this handle, it is looked up by content.
pub(crate) fn recall(session: &dyn Engine, handle: Handle, extent: &Extent) -> Result<String> {
    session.recall_or_find(handle, extent).map_err(|error| match error {
        RecallError::Unknown(_) => unknown_handle(session, handle),
        RecallError::NoSuchLines { .. } => {
            Failure::new(error.to_string(), "leave out the lines to print all of it")
        }
    })
}

fn unknown_handle(session: &dyn Engine, handle: Handle) -> Failure {
    let known: Vec<String> = session.ledger().originals().map(|(handle, _)| handle.to_string()).collect();
    if known.is_empty() {
        return Failure::new(
            format!("no original has the handle {handle}: with these settings nothing is folded"),
            "pass the same --window and --policy as for the fold",
        );
    }
    let n_known = known.len();
    let near = nearest_handles(handle, known);
    let n_more = n_known - near.len();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    Failure::new(
        format!("no original has the handle {handle}; similar handles: {}{more}", near.join(", ")),
        "pass the same --window and --policy as for the fold; `fanfold inspect --ledger` lists all handles",
    )
}

fn extent(args: &RecallArgs) -> Result<Extent> {
    if let Some(text) = &args.search {
        return Ok(Extent::Search { text: text.clone(), around: args.around });
    }
    let Some(lines) = &args.lines else { return Ok(Extent::Whole) };
    Extent::parse_lines(lines).ok_or_else(|| {
        Failure::new(
            format!("`{lines}` is not a range of lines"),
            "write --lines 40, --lines 1-40 or --lines 40-",
        )
    })
}
