//! Sessions that come from others, and sessions that end.

use fanfold_store::{EndReason, SessionId};
use serde_json::{Value, json};

use super::{Say, done};
use crate::flags::{EndArgs, EndWhy, ForkArgs, OneArgs};
use crate::settings::Options;
use crate::store::{engine, engine_to_read, failed, find};
use crate::terminal;

/// Goes another way from any message.
pub(super) fn fork(args: &ForkArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    let title = args.title.as_deref();
    let fork = match args.end_parent {
        true => engine.branch(&id, args.at, title),
        false => engine.fork(&id, args.at, title),
    };
    let fork = fork.map_err(|error| failed(&error))?;
    named(&fork, args.json.then(|| json!({ "session": fork.0, "parent": id.0 })))
}

/// Goes on in a new session.
pub(super) fn rotate(args: &OneArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    let next = engine.rotate(&id).map_err(|error| failed(&error))?;
    named(&next, args.json.then(|| json!({ "session": next.0, "parent": id.0 })))
}

/// The session that goes on where another one was.
pub(super) fn resume(args: &OneArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_read(options)?;
    let id = find(&engine, &args.session)?.id;
    let newest = engine.newest(&id).map_err(|error| failed(&error))?.id;
    named(&newest, args.json.then(|| json!({ "session": newest.0, "from": id.0 })))
}

/// Ends a session.
pub(super) fn end(args: &EndArgs, options: &Options, say: Say) -> anyhow::Result<()> {
    let reason = match args.reason {
        EndWhy::Reset => EndReason::Reset,
        EndWhy::Branched => EndReason::Branched,
        EndWhy::Subagent => EndReason::Subagent,
    };
    let engine = engine(options)?;
    let id = find(&engine, &args.session)?.id;
    engine.end(&id, reason.clone()).map_err(|error| failed(&error))?;
    let json = || json!({ "session": id.0, "ended": reason.name() });
    done(args.json.then(json), &format!("{id} has ended ({})\n", reason.name()), say)
}

/// A session by its id, for a program to go on with.
fn named(id: &SessionId, json: Option<Value>) -> anyhow::Result<()> {
    match json {
        Some(json) => terminal::data(&format!("{json:#}\n")),
        None => terminal::data(&format!("{id}\n")),
    }
}
