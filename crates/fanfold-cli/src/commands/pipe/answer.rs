//! The answer to a line.

use fanfold_core::{EntryId, Handle, Original, Overflow, Place, Tokens, View, ViewFault};
use fanfold_engine::FoldedConversation;
use serde_json::{Value, json};

use super::sessions::{PipeSession, ReportedCounts};
use crate::commands::BodyState;
use crate::failure::Failure;
use crate::report::receipt_json;

/// The messages to send, the handles in them, and a report.
pub(super) fn view(session: &mut PipeSession, view: &View) -> String {
    let followed = &session.followed;
    let messages = followed.conversation.encode_messages(followed.session.transcript(), view).join(",");
    let handles: Value = view.handles.iter().map(|handle| handle_json(followed, *handle)).collect();
    let state = if view.is_untouched() { BodyState::Unchanged } else { BodyState::Folded };
    let report = new_report(session, state);
    format!(r#"{{"messages":[{messages}],"handles":{handles},"report":{report}}}"#)
}

/// Nothing fits: there are no messages, and the caller sends its own unchanged.
pub(super) fn overflow(overflow: &Overflow) -> String {
    json!({ "error": receipt_json::overflow(overflow), "original": true }).to_string()
}

/// The view violates an invariant: the messages are returned unchanged.
pub(super) fn fault(session: &mut PipeSession, fault: &ViewFault) -> String {
    let messages = session.followed.conversation.messages().collect::<Vec<_>>().join(",");
    let mut report = new_report(session, BodyState::Unchanged);
    report["fault"] = receipt_json::fault(fault);
    format!(r#"{{"messages":[{messages}],"handles":[],"original":true,"report":{report}}}"#)
}

/// A line that could not be answered.
pub(super) fn failure(failure: &Failure, line: usize) -> String {
    json!({ "error": { "message": failure.to_string(), "hint": failure.hint(), "line": line } }).to_string()
}

/// The report on everything since the last answer.
fn new_report(session: &mut PipeSession, state: BodyState) -> Value {
    let reported = session.reported;
    session.reported.n_folds = session.followed.session.status().n_folds;
    session.reported.n_repairs = session.followed.conversation.repairs().len();
    let mut report = report(&mut session.followed, reported, state);
    let assumed = std::mem::take(&mut session.assumed).into_iter();
    if let Some(notices) = report["notices"].as_array_mut() {
        notices.extend(assumed.map(|why| json!({ "kind": "assumed", "why": why })));
    }
    if let Some(feedback) = session.feedback.take() {
        report["feedback"] = receipt_json::feedback(&feedback);
    }
    report
}

/// The report on the whole conversation.
pub(super) fn full_report(followed: &mut FoldedConversation) -> Value {
    let is_folded = followed.view().is_ok_and(|view| !view.is_untouched());
    let state = if is_folded { BodyState::Folded } else { BodyState::Unchanged };
    report(followed, ReportedCounts::default(), state)
}

fn report(followed: &mut FoldedConversation, reported: ReportedCounts, state: BodyState) -> Value {
    let notices: Value = followed.session.take_notices().iter().map(receipt_json::notice).collect();
    let session = &*followed.session;
    let (transcript, ledger, budget) = (session.transcript(), session.ledger(), session.budget());
    let receipts = ledger.receipts().iter().skip(reported.n_folds);
    let repairs = followed.conversation.repairs().iter().skip(reported.n_repairs);
    json!({
        "format": followed.conversation.format().to_string(),
        "policy": session.policy_name(),
        "counter": session.counter().name(),
        "exact": session.counter().is_exact(),
        "window": budget.window().0,
        "room": budget.room().0,
        "tokens": session.status().tokens.0,
        "tokens_whole": transcript.total().0,
        "folds": ledger.receipts().len(),
        "receipts": receipts.map(receipt_json::receipt).collect::<Value>(),
        "notices": notices,
        "repairs": repairs.map(|repair| state.describe(repair)).collect::<Value>(),
    })
}

/// A handle and the messages that it covers. An original that would fill much of the window is marked: search in it
/// instead of recalling it whole.
fn handle_json(followed: &FoldedConversation, handle: Handle) -> Value {
    let session = &*followed.session;
    let Some(original) = session.ledger().original(session.transcript(), handle) else {
        return json!({ "id": handle.to_string(), "covers": [] });
    };
    let mut answer = json!({ "id": handle.to_string(), "covers": covered_messages(followed, &original) });
    let tokens: Tokens = original.entries().iter().map(|entry| session.transcript().tokens(*entry)).sum();
    if tokens > LARGE.max(session.budget().window().permille(250)) {
        answer["search"] = true.into();
    }
    answer
}

/// The size up to which an original is recalled whole in any window.
const LARGE: Tokens = Tokens(2_000);

fn covered_messages(followed: &FoldedConversation, original: &Original) -> Vec<u32> {
    let transcript = followed.session.transcript();
    match original {
        Original::Place(Place::Result(call)) | Original::PlaceSlice(Place::Result(call), _) => {
            transcript.call(*call).result.iter().map(|outcome| outcome.origin.message).collect()
        }
        Original::Place(place) | Original::PlaceSlice(place, _) => first_message(followed, place.entry()),
        Original::EntrySlice(entry, _) => followed.messages_of(*entry),
        Original::Entries(entries) | Original::Several(entries, _) | Original::Text(entries, _) => {
            let mut messages: Vec<u32> =
                entries.iter().flat_map(|entry| followed.messages_of(*entry)).collect();
            messages.sort_unstable();
            messages.dedup();
            messages
        }
    }
}

/// The message that contains the text of an entry.
fn first_message(followed: &FoldedConversation, entry: EntryId) -> Vec<u32> {
    followed.messages_of(entry).into_iter().take(1).collect()
}
