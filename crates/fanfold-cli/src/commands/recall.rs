//! `fanfold recall`: prints the original behind a handle.

use std::path::Path;

use clap::Args;
use fanfold_core::{Engine, Extent, Handle, RecallError};
use fanfold_engine::{FoldOptions, OpenError, find_handle, nearest_handles};
use serde_json::json;

use super::conversation::open;
use crate::failure::{Failure, Result};
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::store;
use crate::terminal::{self, RawFlag, Reporter};

/// Print a folded part of a conversation, byte for byte
#[derive(Debug, Args)]
#[command(after_help = "Examples: fanfold recall chat.json '#12' --lines 1-40\n\
    \x20         fanfold recall chat.json --search parser\n\n\
    Pass the same --window and --policy as for the fold: they determine what was folded.")]
pub(crate) struct RecallArgs {
    /// The conversation before it was folded; `-` is stdin; left out with --session
    #[arg(value_name = "FILE", required_unless_present_all = ["session", "search"])]
    first: Option<String>,
    /// The handle, as it appears in the folded conversation; without it, --search looks in everything folded
    #[arg(required_unless_present_any = ["session", "search"], value_parser = parse_handle)]
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
    #[arg(long, value_name = "N", default_value_t = 2, requires = "search")]
    around: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    raw: RawFlag,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
}

pub(crate) fn run(args: &RecallArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let extent = extent(args)?;
    let (handle, content) = match (&args.session, &args.first) {
        (Some(session), _) => recall_stored(args, session, &extent, options)?,
        (None, Some(file)) => recall_from_file(args, file, &extent, options)?,
        (None, None) => {
            return Err(Failure::new("there is no conversation", "give its file, or --session"));
        }
    };
    if content.is_empty() && matches!(extent, Extent::Search { .. }) {
        reporter.line("no line contains this text");
    }
    if args.json {
        let handle = handle.map(|handle| handle.to_string());
        return terminal::print_json(&json!({ "handle": handle, "content": content }));
    }
    terminal::print_original(&content, args.raw.controls())
}

fn parse_handle(text: &str) -> std::result::Result<Handle, String> {
    find_handle(text).map_err(|error| format!("{error}: {}", error.hint()))
}

/// Recalls from a file, or searches everything folded if there is no handle.
fn recall_from_file(
    args: &RecallArgs,
    file: &str,
    extent: &Extent,
    options: &Options,
) -> Result<(Option<Handle>, String)> {
    let quiet = Reporter { is_quiet: true };
    let mut followed = open(Path::new(file), options, &FoldOptions::default(), quiet)?;
    // Requesting the view runs the last step, so that the newest folds are included.
    let _ = followed.view();
    match (args.handle, extent) {
        (Some(handle), extent) => Ok((Some(handle), recall(&*followed.session, handle, extent)?)),
        (None, Extent::Search { text, .. }) => Ok((None, followed.session.search_folded(text))),
        (None, _) => Err(Failure::new("there is no handle", "give the conversation and the handle")),
    }
}

/// Recalls from a stored session, where the handle is the only positional argument. Searches everything folded if there is
/// no handle.
fn recall_stored(
    args: &RecallArgs,
    session: &str,
    extent: &Extent,
    options: &Options,
) -> Result<(Option<Handle>, String)> {
    let handle = args.first.as_deref().map(|text| {
        find_handle(text).map_err(|error| {
            Failure::new(
                error.to_string(),
                "with --session, give only the handle: fanfold recall --session ID HANDLE",
            )
        })
    });
    let handle = handle.transpose()?;
    let engine = store::open_read_only(options)?;
    let id = engine.find(session)?.id;
    let found = match (handle, extent) {
        (Some(handle), extent) => engine.recall(&id, handle, extent),
        (None, Extent::Search { text, .. }) => engine.search_folded(&id, text),
        (None, _) => return Err(Failure::new("there is no handle", "give a handle or --search")),
    };
    let content = found.map_err(|error| match &error {
        OpenError::Store(cause) => Failure::from(cause),
        OpenError::Unknown { near, .. } if near.is_empty() => Failure::new(
            error.to_string(),
            format!("`fanfold inspect --session {id} --ledger` lists all handles"),
        ),
        OpenError::Unknown { near, .. } => Failure::new(
            format!("{error}; similar handles: {}", near.join(", ")),
            format!("`fanfold inspect --session {id} --ledger` lists all handles"),
        ),
        OpenError::Broken(_) => Failure::new(error.to_string(), "`fanfold doctor` shows what is damaged"),
        OpenError::Extent(RecallError::NoSuchPlace { .. }) => {
            Failure::new(error.to_string(), format!("`fanfold show --session {id}` prints the conversation"))
        }
        OpenError::Extent(_) => Failure::new(error.to_string(), "leave out the lines to print all of it"),
    })?;
    Ok((handle, content))
}

/// The original behind a handle. If the session has no fold with this handle, it is looked up by content.
pub(crate) fn recall(session: &dyn Engine, handle: Handle, extent: &Extent) -> Result<String> {
    session.recall_or_find(handle, extent).map_err(|error| match error {
        RecallError::Unknown(_) => unknown_handle(session, handle),
        RecallError::NoSuchPlace { .. } => {
            Failure::new(error.to_string(), "`fanfold show FILE` prints the conversation")
        }
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
    let near = nearest_handles(handle, known);
    let similar = match near.as_slice() {
        [] => String::new(),
        near => format!("; similar handles: {}", near.join(", ")),
    };
    Failure::new(
        format!("no original has the handle {handle}{similar}"),
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
