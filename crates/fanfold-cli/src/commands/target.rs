//! Which session `fold --session` goes to, and whether a conversation belongs there.

use fanfold_engine::{Engine, OpError};
use fanfold_store::{EndReason, SessionId, SessionRow};
use fanfold_wire::Conversation;

use super::Say;
use crate::failure::Failure;
use crate::flags::FoldArgs;
use crate::settings::Options;
use crate::store;
use crate::terminal::{paint, style};

/// The session that a conversation is to be kept in, in the store or in a copy that keeps nothing.
pub(super) struct Target {
    pub(super) engine: Engine,
    pub(super) id: SessionId,
}

impl Target {
    /// The session of a name. Where the store can't be used, why: that need not stop whoever waits.
    pub(super) fn of(
        args: &FoldArgs,
        name: &str,
        options: &Options,
        say: Say,
    ) -> Result<Result<Target, Failure>, Failure> {
        // A wrong name of a profile is no failure of the store.
        store::address(options)?;
        let opened = match args.dry_run {
            // Nothing is kept yet, so nothing is copied.
            true if !store::is_there(options)? => {
                let id = SessionId(name.to_owned());
                return Ok(Ok(Target { engine: store::copy_of(None, &id)?, id }));
            }
            true => store::engine_to_read(options),
            false => store::engine(options),
        };
        let engine = match opened {
            Ok(engine) => engine,
            Err(failure) => return Ok(Err(failure)),
        };
        let id = match session_to_fold(&engine, name, say) {
            Ok(id) => id,
            Err(OpError::Store(error)) => return Ok(Err(store::store_failed(&error))),
            Err(error) => return Err(store::failed(&error)),
        };
        let engine = if args.dry_run { store::copy_of(Some(&engine), &id)? } else { engine };
        Ok(Ok(Target { engine, id }))
    }

    /// Refuses a conversation that has nothing of what the session has: it would take the session's place.
    pub(super) fn refuse_another(&self, conversation: &Conversation, source: &str) -> Result<(), Failure> {
        let Target { engine, id } = self;
        // Whether it is related does not matter where nothing can be kept; the request tells why.
        if engine.is_related(id, conversation).unwrap_or(true) {
            return Ok(());
        }
        Err(Failure::new(
            format!("{source} has no message of session {id}: it is another conversation"),
            format!(
                "keep it in one of its own (--session new, or a name that nobody has); \
                 to have it take the place of what is there: fanfold sessions rewind {id} --to 0"
            ),
        ))
    }
}

/// The session to go on with, or the id of a new one.
fn session_to_fold(engine: &Engine, name: &str, say: Say) -> Result<SessionId, OpError> {
    if name == "new" {
        return Ok(engine.new_id());
    }
    // A name that nobody has is taken as the id of a new session, so that a script can choose its own.
    let Some(row) = engine.to_go_on_with(name)? else { return Ok(SessionId(name.to_owned())) };
    let newest = match &row.ended {
        Some((_, EndReason::Compression)) => engine.newest(&row.id)?,
        _ => row.clone(),
    };
    tell_ended(&row, &newest, say);
    Ok(newest.id)
}

fn tell_ended(named: &SessionRow, newest: &SessionRow, say: Say) {
    let note = paint(style::DIM, "note:");
    if named.id != newest.id {
        say.note(&format!("{note} session {} was rotated, and goes on as {}\n", named.id, newest.id));
    }
    if let Some((_, reason)) = &newest.ended {
        say.note(&format!("{note} session {} had ended ({}), and goes on\n", newest.id, reason.name()));
    }
}
