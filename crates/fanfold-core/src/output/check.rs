//! Checks the invariants of a view. A view that fails a check is never sent.

use crate::fold::ledger::{EntryState, Ledger};
use crate::model::budget::Budget;
use crate::model::location::{Place, original_at};
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::model::view::{Item, View};
use crate::output::recall::{Extent, recall};

/// An invariant that a view violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewFault {
    /// A user message is changed and no receipt reports that.
    #[error("user message {0} is not sent as it was written")]
    UserText(u32),
    /// Entries are out of order, or an entry occurs twice.
    #[error("entry {0} is out of order")]
    Order(u32),
    /// An entry is neither in the view nor behind one of its handles.
    #[error("entry {0} is lost")]
    Lost(u32),
    /// A step with a running call is folded.
    #[error("entry {0} has a running call and was folded")]
    Running(u32),
    /// A pinned entry is folded.
    #[error("entry {0} is pinned and was folded")]
    Pinned(u32),
    /// The view does not fit the room.
    #[error("the view costs {tokens} tokens and the room is {room}")]
    OverBudget {
        /// The cost of the view.
        tokens: Tokens,
        /// The room.
        room: Tokens,
    },
    /// A stub does not contain the handle of the original that it replaces.
    #[error("the stub of entry {0} names no original")]
    BrokenStub(u32),
    /// A handle in the view does not recall its original.
    #[error("the handle {0} does not recall its original")]
    BrokenHandle(String),
    /// The cost of the view differs from the sum in the ledger.
    #[error("the view costs {counted} tokens and the ledger records {recorded}")]
    Miscounted {
        /// The cost of the view, counted again.
        counted: Tokens,
        /// The sum in the ledger.
        recorded: Tokens,
    },
}

/// Checks a view against its transcript and ledger.
pub fn check(transcript: &Transcript, ledger: &Ledger, view: &View, budget: Budget) -> Result<(), ViewFault> {
    check_growth(view, budget)?;
    let mut next = 0;
    for item in &view.items {
        match item {
            Item::Whole(id) => next = check_order(*id, next)?,
            Item::Edited(id, edits) => {
                next = check_order(*id, next)?;
                check_may_change(transcript, ledger, *id)?;
                for edit in edits {
                    check_edit(transcript, ledger, edit.place, &edit.stub)?;
                }
            }
            Item::Note { .. } => {}
        }
    }
    check_completeness(transcript, ledger, view)?;
    match view.handles.iter().find(|handle| ledger.original(transcript, **handle).is_none()) {
        Some(handle) => Err(ViewFault::BrokenHandle(handle.to_string())),
        None => Ok(()),
    }
}

/// Checks a view to which entries were appended since the last check.
pub(crate) fn check_growth(view: &View, budget: Budget) -> Result<(), ViewFault> {
    let room = budget.room();
    if view.tokens > room {
        return Err(ViewFault::OverBudget { tokens: view.tokens, room });
    }
    Ok(())
}

/// Checks every count and every handle, which is too slow for each request. For tests and `doctor`.
pub fn check_deeply(
    transcript: &Transcript,
    ledger: &Ledger,
    view: &View,
    counter: &dyn Count,
) -> Result<(), ViewFault> {
    let counted = crate::output::recount::recount(transcript, view, counter);
    if counted != view.tokens {
        return Err(ViewFault::Miscounted { counted, recorded: view.tokens });
    }
    for &handle in &view.handles {
        let broken = || ViewFault::BrokenHandle(handle.to_string());
        let content = recall(transcript, ledger, handle, &Extent::Whole).map_err(|_| broken())?;
        let is_named_by_content = ledger.matches_content(transcript, handle, &content);
        if !is_named_by_content {
            return Err(broken());
        }
    }
    Ok(())
}

fn check_order(id: EntryId, next: u32) -> Result<u32, ViewFault> {
    if id.0 < next { Err(ViewFault::Order(id.0)) } else { Ok(id.0 + 1) }
}

fn check_may_change(transcript: &Transcript, ledger: &Ledger, id: EntryId) -> Result<(), ViewFault> {
    if transcript.is_running(id) {
        return Err(ViewFault::Running(id.0));
    }
    if ledger.pinned.contains(&id) {
        return Err(ViewFault::Pinned(id.0));
    }
    Ok(())
}

fn check_edit(transcript: &Transcript, ledger: &Ledger, place: Place, stub: &str) -> Result<(), ViewFault> {
    let id = place.entry();
    let is_user_text = matches!(place, Place::Text(_)) && transcript.entry(id).is_user();
    if is_user_text && !is_reported(ledger, id) {
        return Err(ViewFault::UserText(id.0));
    }
    let fold = ledger.fold_at(place).ok_or(ViewFault::BrokenStub(id.0))?;
    let has_handle = stub.contains(&fold.handle.to_string());
    let has_original = original_at(transcript, place).is_some();
    if has_handle && has_original { Ok(()) } else { Err(ViewFault::BrokenStub(id.0)) }
}

/// Returns whether a receipt reports that a user message was shortened.
fn is_reported(ledger: &Ledger, id: EntryId) -> bool {
    ledger.shortened_messages.contains(&id)
}

/// Checks that each entry is in the view or behind a handle.
fn check_completeness(transcript: &Transcript, ledger: &Ledger, view: &View) -> Result<(), ViewFault> {
    let mut items = view.items.iter().peekable();
    for i in 0..transcript.len() {
        let id = EntryId::from(i);
        match ledger.entry_states.get(i).unwrap_or(&EntryState::Whole) {
            EntryState::Whole | EntryState::Edited(_) => {
                while matches!(items.peek(), Some(Item::Note { .. })) {
                    items.next();
                }
                match items.next() {
                    Some(Item::Whole(found) | Item::Edited(found, _)) if *found == id => {}
                    _ => return Err(ViewFault::Lost(id.0)),
                }
            }
            EntryState::Segment(segment) => {
                let segment = &ledger.segments[*segment as usize];
                if transcript.is_running(id) {
                    return Err(ViewFault::Running(id.0));
                }
                if ledger.pinned.contains(&id) {
                    return Err(ViewFault::Pinned(id.0));
                }
                if transcript.entry(id).is_user() && !is_reported(ledger, id) {
                    return Err(ViewFault::UserText(id.0));
                }
                let is_behind_a_handle =
                    segment.entries.binary_search(&id).is_ok() && !segment.handles.is_empty();
                if !is_behind_a_handle {
                    return Err(ViewFault::Lost(id.0));
                }
            }
        }
    }
    Ok(())
}
