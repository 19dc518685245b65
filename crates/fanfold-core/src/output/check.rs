//! What must hold for everything sent. A view that fails here is never used.

use crate::fold::ledger::{EntryState, Ledger};
use crate::model::budget::Budget;
use crate::model::location::{Place, original_at};
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::model::view::{Item, View};
use crate::output::recall::{Extent, recall};

/// A promise that a view breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// What a person said is not sent as it was said, and no receipt tells of it.
    #[error("user message {0} is not sent as it was written")]
    UserText(u32),
    /// Entries are not in their order, or one is there twice.
    #[error("entry {0} is out of order")]
    Order(u32),
    /// An entry is neither in the view nor behind a handle in it.
    #[error("entry {0} is lost")]
    Lost(u32),
    /// A step with a running call was touched.
    #[error("entry {0} has a running call and was folded")]
    Running(u32),
    /// A pinned entry was touched.
    #[error("entry {0} is pinned and was folded")]
    Pinned(u32),
    /// The view is longer than its room.
    #[error("the view costs {tokens} tokens and the room is {room}")]
    OverBudget {
        /// What it costs.
        tokens: Tokens,
        /// The room.
        room: Tokens,
    },
    /// A stub does not name the original it stands for.
    #[error("the stub of entry {0} names no original")]
    Nameless(u32),
    /// A handle in the view does not open to what it stands for.
    #[error("the handle {0} does not open")]
    Shut(String),
    /// The view costs something else than the ledger says.
    #[error("the view costs {counted} tokens and the ledger says {said}")]
    Miscounted {
        /// By counting again.
        counted: Tokens,
        /// By the ledger.
        said: Tokens,
    },
}

/// Checks a view against its transcript and ledger.
pub fn check(transcript: &Transcript, ledger: &Ledger, view: &View, budget: Budget) -> Result<(), Fault> {
    check_growth(view, budget)?;
    let mut next = 0;
    for item in &view.items {
        match item {
            Item::Whole(id) => next = check_order(*id, next)?,
            Item::Edited(id, edits) => {
                next = check_order(*id, next)?;
                check_touchable(transcript, ledger, *id)?;
                for edit in edits {
                    check_edit(transcript, ledger, edit.place, &edit.stub)?;
                }
            }
            Item::Note { .. } => {}
        }
    }
    check_all_there(transcript, ledger, view)?;
    let open = |handle: &&crate::model::handle::Handle| ledger.original(**handle).is_none();
    match view.handles.iter().find(open) {
        Some(handle) => Err(Fault::Shut(handle.to_string())),
        None => Ok(()),
    }
}

/// Checks a view that only grew at its end since it was checked.
pub(crate) fn check_growth(view: &View, budget: Budget) -> Result<(), Fault> {
    let room = budget.room();
    if view.tokens > room {
        return Err(Fault::OverBudget { tokens: view.tokens, room });
    }
    Ok(())
}

/// Checks what is too dear to check on every request: every count and every handle. For tests and `doctor`.
pub fn check_deeply(
    transcript: &Transcript,
    ledger: &Ledger,
    view: &View,
    counter: &dyn Count,
) -> Result<(), Fault> {
    let counted = crate::output::recount::recount(transcript, view, counter);
    if counted != view.tokens {
        return Err(Fault::Miscounted { counted, said: view.tokens });
    }
    for &handle in &view.handles {
        let shut = || Fault::Shut(handle.to_string());
        let content = recall(transcript, ledger, handle, &Extent::Whole).map_err(|_| shut())?;
        let is_named_by_content = ledger.matches_content(transcript, handle, &content);
        if !is_named_by_content {
            return Err(shut());
        }
    }
    Ok(())
}

fn check_order(id: EntryId, next: u32) -> Result<u32, Fault> {
    if id.0 < next { Err(Fault::Order(id.0)) } else { Ok(id.0 + 1) }
}

fn check_touchable(transcript: &Transcript, ledger: &Ledger, id: EntryId) -> Result<(), Fault> {
    if transcript.is_running(id) {
        return Err(Fault::Running(id.0));
    }
    if ledger.pinned.contains(&id) {
        return Err(Fault::Pinned(id.0));
    }
    Ok(())
}

fn check_edit(transcript: &Transcript, ledger: &Ledger, place: Place, stub: &str) -> Result<(), Fault> {
    let id = place.entry();
    let is_user_text = matches!(place, Place::Text(_)) && transcript.entry(id).is_user();
    if is_user_text && !is_told(ledger, id) {
        return Err(Fault::UserText(id.0));
    }
    let fold = ledger.fold_at(place).ok_or(Fault::Nameless(id.0))?;
    let is_named = fold.handles.iter().all(|handle| stub.contains(&handle.to_string()));
    let is_there = original_at(transcript, place).is_some();
    if is_named && is_there { Ok(()) } else { Err(Fault::Nameless(id.0)) }
}

/// Whether a receipt tells that a user message was shortened.
fn is_told(ledger: &Ledger, id: EntryId) -> bool {
    ledger.shortened_messages.contains(&id)
}

fn check_all_there(transcript: &Transcript, ledger: &Ledger, view: &View) -> Result<(), Fault> {
    let mut items = view.items.iter().peekable();
    for i in 0..transcript.len() {
        let id = EntryId::from(i);
        match ledger.entry_states.get(i).unwrap_or(&EntryState::Whole) {
            EntryState::Whole | EntryState::Edited(_) => {
                while matches!(items.peek(), Some(Item::Note { .. })) {
                    items.next();
                }
                match items.next() {
                    Some(Item::Whole(there) | Item::Edited(there, _)) if *there == id => {}
                    _ => return Err(Fault::Lost(id.0)),
                }
            }
            EntryState::Segment(segment) => {
                let segment = &ledger.segments[*segment as usize];
                if transcript.is_running(id) {
                    return Err(Fault::Running(id.0));
                }
                if ledger.pinned.contains(&id) {
                    return Err(Fault::Pinned(id.0));
                }
                if transcript.entry(id).is_user() && !is_told(ledger, id) {
                    return Err(Fault::UserText(id.0));
                }
                let is_behind_a_handle =
                    segment.entries.binary_search(&id).is_ok() && !segment.handles.is_empty();
                if !is_behind_a_handle {
                    return Err(Fault::Lost(id.0));
                }
            }
        }
    }
    Ok(())
}
