//! A session in the store: its terms, and its last view.

use fanfold_engine::{
    FoldOptions, FoldOutcome, FoldedConversation, RequestError, RequestInput, SessionEngine, Terms, decode,
};
use fanfold_store::SessionId;

use crate::failure::{Failure, Result, not_decoded};
use crate::settings::{FoldFlags, Options};
use crate::setup::terms::{self, restore};
use crate::store;

/// The terms of a session whose request names this model.
pub(super) fn terms(
    engine: &SessionEngine,
    id: &SessionId,
    options: &Options,
    request_model: Option<&str>,
) -> Result<Terms> {
    terms::choose_for_session(options, request_model, engine.recorded_terms(id)?.as_ref())
}

/// Reopens a session with its last view. Without a last view, or with fold flags, folds it first.
pub(super) fn reopen(
    engine: &SessionEngine,
    id: &SessionId,
    flags: &FoldFlags,
    options: &Options,
) -> Result<FoldedConversation> {
    if flags.is_given() {
        return refold(engine, id, options);
    }
    if engine.has_view(id)? {
        return Ok(engine.reopen(id, &restore)?);
    }
    let format = terms::format(options)?;
    let (conversation, changes) =
        decode(engine.body(id)?, format).map_err(|error| not_decoded(&id.0, &error))?;
    let terms = terms(engine, id, options, conversation.model())?;
    Ok(FoldedConversation::from_body(conversation, changes, &terms, &FoldOptions::default()))
}

/// Folds a copy of a session as its next request would be.
fn refold(engine: &SessionEngine, id: &SessionId, options: &Options) -> Result<FoldedConversation> {
    let copy = store::copy_in_memory(Some(engine), id)?;
    let body = copy.body(id)?;
    let (conversation, _) =
        decode(&*body, terms::format(options)?).map_err(|error| not_decoded(&id.0, &error))?;
    let terms = terms(&copy, id, options, conversation.model())?;
    let answer = copy.request(&RequestInput::new(id, &body, &terms, "cli"));
    if let FoldOutcome::Failed(RequestError::Overflow(overflow)) = &answer.fold {
        return Err(Failure::from(&**overflow));
    }
    Ok(copy.reopen(id, &restore)?)
}
