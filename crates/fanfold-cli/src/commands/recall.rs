//! `fanfold recall`: opens a fold again.

use std::path::Path;

use fanfold_core::{Engine, Extent, Handle, RecallError, find_by_content};
use fanfold_engine::Wishes;
use serde_json::json;

use super::{Say, open, stored};
use crate::failure::Failure;
use crate::flags::RecallArgs;
use crate::settings::Options;
use crate::terminal;

/// How many handles an error names.
const MOST_NAMED: usize = 5;

pub(crate) fn run(args: &RecallArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    if let Some(session) = &args.session {
        return stored::recall(args, session, options, say);
    }
    let extent = extent(args)?;
    let Some(handle) = args.handle else {
        return Err(Failure::new("there is no handle", "give the conversation and the handle").into());
    };
    let quiet = Say { is_quiet: true };
    let mut followed = open(Path::new(&args.first), options, &Wishes::default(), quiet)?;
    // Asking for the view takes the last step, so that the newest folds are known, too.
    let _ = followed.view();
    let content = content(&*followed.session, handle, &extent)?;
    tell_if_nothing(&content, &extent, say);
    print(args, handle, &content)
}

/// Prints what a handle opened.
pub(super) fn print(args: &RecallArgs, handle: Handle, content: &str) -> anyhow::Result<()> {
    if args.json {
        let told = json!({ "handle": handle.to_string(), "content": content });
        return terminal::data(&format!("{told:#}\n"));
    }
    terminal::data(content)
}

/// Tells that a search in an original found nothing.
pub(super) fn tell_if_nothing(content: &str, extent: &Extent, say: Say) {
    let is_nothing_found = content.is_empty() && matches!(extent, Extent::Search { .. });
    if is_nothing_found {
        say.note("no line has this text\n");
    }
}

/// What a handle opens: by the folds as they were made, or else by its content alone.
pub(crate) fn content(session: &dyn Engine, handle: Handle, extent: &Extent) -> Result<String, Failure> {
    match session.recall(handle, extent) {
        Ok(content) => Ok(content),
        Err(RecallError::Unknown(_)) => match find_by_content(session.transcript(), handle) {
            Some(original) => extent.of(original.to_string(), handle).map_err(|error| no_such_lines(&error)),
            None => Err(unknown(session, handle)),
        },
        Err(error @ RecallError::NoSuchLines { .. }) => Err(no_such_lines(&error)),
    }
}

fn no_such_lines(error: &RecallError) -> Failure {
    Failure::new(error.to_string(), "leave out the lines to get all of it")
}

fn unknown(session: &dyn Engine, handle: Handle) -> Failure {
    let wanted = handle.to_string();
    let mut known: Vec<String> = session.ledger().originals().map(|(handle, _)| handle.to_string()).collect();
    if known.is_empty() {
        return Failure::new(
            format!("no original has the handle {handle}: with these settings nothing is folded"),
            "pass the same --window and --policy as for the fold",
        );
    }
    // Nearest is what begins alike for longest: handles are mistyped or cut off, not misheard.
    let common = |known: &str| known.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    known.sort_by_key(|known| (std::cmp::Reverse(common(known)), known.clone()));
    let n_more = known.len().saturating_sub(MOST_NAMED);
    known.truncate(MOST_NAMED);
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    Failure::new(
        format!("no original has the handle {handle}; there are {}{more}", known.join(", ")),
        "pass the same --window and --policy as for the fold; `fanfold inspect --ledger` lists all handles",
    )
}

pub(super) fn extent(args: &RecallArgs) -> Result<Extent, Failure> {
    if let Some(text) = &args.search {
        return Ok(Extent::Search { text: text.clone(), around: args.around });
    }
    let Some(lines) = &args.lines else { return Ok(Extent::Whole) };
    Extent::of_lines(lines).ok_or_else(|| {
        Failure::new(format!("`{lines}` are no lines"), "write --lines 40, --lines 1-40 or --lines 40-")
    })
}
