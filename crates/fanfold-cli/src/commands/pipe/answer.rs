//! What a line is answered with.

use fanfold_core::{EntryId, Fault, Handle, Original, Overflow, Place, View};
use fanfold_engine::Followed;
use serde_json::{Value, json};

use super::held::{Held, Told};
use crate::commands::Leaves;
use crate::failure::Failure;
use crate::report_json;

/// The messages to send, the handles in them, and what was done.
pub(crate) fn view(held: &mut Held, view: &View) -> String {
    let followed = &held.followed;
    let messages = followed.conversation.encode_messages(followed.session.transcript(), view);
    let handles: Value = view.handles.iter().map(|handle| self::handle(followed, *handle)).collect();
    let messages = messages.join(",");
    let leaves = if view.is_untouched() { Leaves::AsItCame } else { Leaves::Folded };
    let report = news(held, leaves);
    format!(r#"{{"messages":[{messages}],"handles":{handles},"report":{report}}}"#)
}

/// Nothing fits: there are no messages, and the caller sends what it has.
pub(crate) fn overflow(overflow: &Overflow) -> String {
    json!({ "error": report_json::overflow(overflow), "original": true }).to_string()
}

/// The view broke a promise: the messages go back as they came.
pub(crate) fn fault(held: &mut Held, fault: &Fault) -> String {
    let messages = held.followed.conversation.messages().collect::<Vec<_>>().join(",");
    let mut report = news(held, Leaves::AsItCame);
    report["fault"] = report_json::fault(fault);
    format!(r#"{{"messages":[{messages}],"handles":[],"original":true,"report":{report}}}"#)
}

/// A line that could not be answered.
pub(crate) fn failure(failure: &Failure, line: usize) -> String {
    json!({ "error": { "message": failure.to_string(), "hint": failure.hint(), "line": line } }).to_string()
}

/// How full it is, and the folds since the last answer.
fn news(held: &mut Held, leaves: Leaves) -> Value {
    let told = held.told;
    held.told.n_folds = held.followed.session.status().n_folds;
    held.told.n_repairs = held.followed.conversation.repairs().len();
    let mut report = report(&mut held.followed, told, leaves);
    let assumed = std::mem::take(&mut held.assumed).into_iter();
    if let Some(notices) = report["notices"].as_array_mut() {
        notices.extend(assumed.map(|why| json!({ "kind": "assumed", "why": why })));
    }
    if let Some(feedback) = held.feedback.take() {
        report["feedback"] = report_json::feedback(&feedback);
    }
    report
}

/// How full it is, and every fold there was.
pub(crate) fn whole_report(followed: &mut Followed) -> Value {
    let is_folded = followed.view().is_ok_and(|view| !view.is_untouched());
    report(followed, Told::default(), if is_folded { Leaves::Folded } else { Leaves::AsItCame })
}

fn report(followed: &mut Followed, told: Told, leaves: Leaves) -> Value {
    let notices: Value = followed.session.take_notices().iter().map(report_json::notice).collect();
    let session = &*followed.session;
    let (transcript, ledger, budget) = (session.transcript(), session.ledger(), session.budget());
    let receipts = ledger.receipts().iter().skip(told.n_folds);
    let repairs = followed.conversation.repairs().iter().skip(told.n_repairs).map(|repair| match leaves {
        Leaves::AsItCame => repair.describe_unchanged(),
        Leaves::Folded => repair.to_string(),
    });
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
        "receipts": receipts.map(report_json::receipt).collect::<Value>(),
        "notices": notices,
        "repairs": repairs.collect::<Value>(),
    })
}

/// A handle and the messages behind it.
fn handle(followed: &Followed, handle: Handle) -> Value {
    let covers = followed
        .session
        .ledger()
        .original(handle)
        .map_or_else(Vec::new, |original| covers(followed, original));
    json!({ "id": handle.to_string(), "covers": covers })
}

fn covers(followed: &Followed, original: &Original) -> Vec<u32> {
    let transcript = followed.session.transcript();
    match original {
        Original::Place(Place::Result(call)) | Original::PlaceSlice(Place::Result(call), _) => {
            transcript.call(*call).result.iter().map(|outcome| outcome.origin.message).collect()
        }
        Original::Place(place) | Original::PlaceSlice(place, _) => first_message(followed, place.entry()),
        Original::EntrySlice(entry, _) => followed.messages_of(*entry),
        Original::Entries(entries) | Original::Several(entries, _) | Original::Words(entries, _) => {
            let mut messages: Vec<u32> =
                entries.iter().flat_map(|entry| followed.messages_of(*entry)).collect();
            messages.sort_unstable();
            messages.dedup();
            messages
        }
    }
}

/// The message that an entry's own words came in.
fn first_message(followed: &Followed, entry: EntryId) -> Vec<u32> {
    followed.messages_of(entry).into_iter().take(1).collect()
}
