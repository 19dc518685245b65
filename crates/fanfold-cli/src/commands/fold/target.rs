//! The session that `fold --session` stores a conversation in, and whether the conversation belongs there.

use fanfold_engine::{OpError, SessionEngine};
use fanfold_store::{EndReason, SessionId, SessionRow};
use fanfold_wire::Conversation;

use super::FoldArgs;
use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::store;
use crate::terminal::Reporter;

/// The session to store in, in the store or in a copy for a dry run.
pub(super) struct Target {
    pub(super) engine: SessionEngine,
    pub(super) id: SessionId,
}

impl Target {
    /// Opens the session of a name. A conversation from a file is folded in memory if the store cannot be used, because
    /// a client may be waiting for it.
    pub(super) fn open(args: &FoldArgs, name: &str, options: &Options, reporter: Reporter) -> Result<Target> {
        // An invalid profile name is not a failure of the store.
        store::address(options)?;
        if args.dry_run {
            return Target::open_copy(name, options, reporter);
        }
        let engine = match store::open(options) {
            Ok(engine) => engine.continuing_in_memory(),
            // A stored session is continued if it can be read.
            Err(failure) if args.file.is_some() => match store::open_read_only(options) {
                Ok(reading) => reading.without_writing(&failure.to_store_error()),
                Err(_) => store::without_store(&failure),
            },
            Err(failure) => return Err(failure),
        };
        let id = match session_to_fold(&engine, name, reporter) {
            Err(OpError::Store(error)) if error.is_outage() && args.file.is_some() => match name {
                "new" => engine.new_id(),
                name => SessionId(name.to_owned()),
            },
            id => id?,
        };
        // While the store cannot be read, this makes the session a new one in memory.
        engine.is_new(&id)?;
        Ok(Target { engine, id })
    }

    /// A copy of a session in memory.
    fn open_copy(name: &str, options: &Options, reporter: Reporter) -> Result<Target> {
        if !store::exists(options)? {
            let id = SessionId(name.to_owned());
            return Ok(Target { engine: store::copy_in_memory(None, &id)?, id });
        }
        let engine = store::open_read_only(options)?;
        let id = session_to_fold(&engine, name, reporter)?;
        Ok(Target { engine: store::copy_in_memory(Some(&engine), &id)?, id })
    }

    /// Refuses a conversation that shares no message with the session, because it would replace the session's messages.
    pub(super) fn refuse_unrelated(&self, conversation: &Conversation, source: &str) -> Result<()> {
        let Target { engine, id } = self;
        // If the store fails here, the request reports why.
        if engine.is_related(id, conversation).unwrap_or(true) {
            return Ok(());
        }
        Err(Failure::new(
            format!("{source} has no message of session {id}: it is another conversation"),
            format!(
                "store it in a session of its own (--session new, or an unused name); \
                 to replace the messages of this session: fanfold sessions rewind {id} --to 0"
            ),
        ))
    }
}

/// The session to continue, or the id of a new one.
fn session_to_fold(engine: &SessionEngine, name: &str, reporter: Reporter) -> Result<SessionId, OpError> {
    if name == "new" {
        return Ok(engine.new_id());
    }
    // An unknown name becomes the id of a new session, so that scripts can choose ids.
    let Some(row) = engine.find_to_continue(name)? else { return Ok(SessionId(name.to_owned())) };
    let newest = match &row.ended {
        Some((_, EndReason::Compression)) => engine.latest_rotation(&row.id)?,
        _ => row.clone(),
    };
    report_ended(&row, &newest, reporter);
    Ok(newest.id)
}

fn report_ended(named: &SessionRow, newest: &SessionRow, reporter: Reporter) {
    if named.id != newest.id {
        reporter.note(&format!("session {} was rotated, and continues as {}", named.id, newest.id));
    }
    if let Some((_, reason)) = &newest.ended {
        reporter.note(&format!("session {} had ended ({}), and continues", newest.id, reason.name()));
    }
}
