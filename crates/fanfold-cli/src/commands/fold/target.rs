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
    /// Opens the session of a name. The inner error means that the store cannot be used, which need not stop the
    /// caller.
    pub(super) fn open(
        args: &FoldArgs,
        name: &str,
        options: &Options,
        reporter: Reporter,
    ) -> Result<Result<Target>> {
        // An invalid profile name is not a failure of the store.
        store::address(options)?;
        let opened = match args.dry_run {
            true if !store::exists(options)? => {
                let id = SessionId(name.to_owned());
                return Ok(Ok(Target { engine: store::copy_in_memory(None, &id)?, id }));
            }
            true => store::open_read_only(options),
            false => store::open(options),
        };
        let engine = match opened {
            Ok(engine) => engine,
            Err(failure) => return Ok(Err(failure)),
        };
        let id = match session_to_fold(&engine, name, reporter) {
            Ok(id) => id,
            Err(OpError::Store(error)) => return Ok(Err(error.into())),
            Err(error) => return Err(error.into()),
        };
        let engine = if args.dry_run { store::copy_in_memory(Some(&engine), &id)? } else { engine };
        Ok(Ok(Target { engine, id }))
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
