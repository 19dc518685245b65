//! Receipts, notices and errors as JSON.

use fanfold_core::summary::Flaw;
use fanfold_core::{
    Contributor, Feedback, FoldTarget, Ledger, Notice, Overflow, Place, Reason, Receipt, ViewFault,
};
use fanfold_engine::{FoldedConversation, JobOutcome};
use serde_json::{Value, json};

use crate::commands::SummaryOutcome;

/// A receipt.
pub(crate) fn receipt(receipt: &Receipt) -> Value {
    let passes: Vec<Value> = receipt
        .passes
        .iter()
        .map(|pass| json!({ "pass": pass.pass, "folded": pass.n_folded, "won": pass.saved.0 }))
        .collect();
    let left: Vec<Value> = receipt
        .folded
        .iter()
        .map(|left| {
            json!({
                "pass": left.pass,
                "what": folded_part(left.target),
                "handle": left.handle.to_string(),
                "before": left.before.0,
                "after": left.after.0,
            })
        })
        .collect();
    let user_text: Vec<u32> = receipt.user_text.iter().map(|entry| entry.0).collect();
    json!({
        "at": receipt.at,
        "reason": reason(receipt.reason),
        "why": receipt.reason.to_string(),
        "stage": receipt.stage,
        "before": receipt.before.0,
        "after": receipt.after.0,
        "won": receipt.saved().0,
        "rewritten": receipt.rewritten.0,
        "price": receipt.price.map(|price| price.0),
        "passes": passes,
        "user_text": user_text,
        "left": left,
    })
}

/// All receipts of a ledger, oldest first.
pub(crate) fn receipts(ledger: &Ledger) -> Value {
    ledger.receipts().iter().map(receipt).collect()
}

/// A summary: its model and size, whether it is in the view, which models failed and why, and the flaws of rejected
/// answers.
pub(crate) fn summary(outcome: &SummaryOutcome) -> Value {
    let written = match &outcome.ended {
        JobOutcome::Written(written) => Some(written),
        _ => None,
    };
    let missed = outcome.ended.failures().iter();
    let missed: Vec<Value> = missed
        .map(|missed| {
            json!({
                "model": missed.model(),
                "class": missed.name(),
                "why": missed.to_string(),
                "hint": missed.hint(),
            })
        })
        .collect();
    let flaws: Vec<&str> = outcome.flaws.iter().map(Flaw::name).collect();
    json!({
        "ended": outcome.ended.name(),
        "model": written.map(|written| &written.model),
        "tokens": written.map(|written| written.tokens.0),
        "answers": written.map(|written| written.n_answers),
        "placed": outcome.is_placed,
        "missed": missed,
        "flaws": flaws,
    })
}

/// A folded conversation: its sizes, its folds, its summary if one was requested, and the body to send if wanted.
pub(crate) fn folded(
    followed: &FoldedConversation,
    summary: Option<&SummaryOutcome>,
    body: Option<&str>,
) -> Value {
    let session = &*followed.session;
    let (transcript, ledger, budget) = (session.transcript(), session.ledger(), session.budget());
    let mut report = json!({
        "format": followed.conversation.format().to_string(),
        "window": budget.window().0,
        "room": budget.room().0,
        "tokens_whole": transcript.total().0,
        "tokens": session.status().tokens.0,
        "receipts": receipts(ledger),
        "body": body,
    });
    if let Some(outcome) = summary {
        report["summary"] = self::summary(outcome);
    }
    report
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Threshold(_) => "threshold",
        Reason::Window => "window",
        Reason::Economy(_) => "economy",
        Reason::Requested => "asked",
        Reason::Refused => "refused",
        Reason::Cap => "cap",
        Reason::Arrival => "arrival",
        Reason::Again => "again",
    }
}

fn folded_part(target: FoldTarget) -> Value {
    match target {
        FoldTarget::Place(place) => location(place),
        FoldTarget::Entries(first, last) => json!({ "entries": [first.0, last.0] }),
    }
}

/// A location: the entry and the part of it.
pub(crate) fn location(place: Place) -> Value {
    match place {
        Place::Text(entry) => json!({ "entry": entry.0, "part": "text" }),
        Place::Reasoning(entry) => json!({ "entry": entry.0, "part": "reasoning" }),
        Place::Arguments(call) => json!({ "entry": call.step.0, "part": "arguments", "call": call.call }),
        Place::Result(call) => json!({ "entry": call.step.0, "part": "result", "call": call.call }),
        Place::PromptMedia(entry, media) => json!({ "entry": entry.0, "part": "media", "media": media }),
        Place::ResultMedia(call, media) => {
            json!({ "entry": call.step.0, "part": "media", "call": call.call, "media": media })
        }
    }
}

/// A notice.
pub(crate) fn notice(notice: &Notice) -> Value {
    match notice {
        Notice::Pressure(level) => json!({ "kind": "pressure", "level": level.to_string() }),
        Notice::Resting { in_the_way } => {
            json!({ "kind": "resting", "in_the_way": contributors(in_the_way) })
        }
        Notice::NothingToFold(why) => json!({ "kind": "nothing_to_fold", "why": why }),
    }
}

/// The feedback on a requested fold.
pub(crate) fn feedback(feedback: &Feedback) -> Value {
    json!({
        "ended": feedback.status.name(),
        "headline": feedback.headline,
        "token_line": feedback.token_line,
        "note": feedback.note,
    })
}

fn contributors(contributors: &[Contributor]) -> Value {
    contributors.iter().map(|one| json!({ "what": one.description, "tokens": one.tokens.0 })).collect()
}

/// An overflow, as the content of an `error`.
pub(crate) fn overflow(overflow: &Overflow) -> Value {
    json!({
        "kind": "overflow",
        "message": overflow.headline(),
        "hint": overflow.remedy,
        "smallest": overflow.smallest.0,
        "room": overflow.room.0,
        "contributors": contributors(&overflow.contributors),
    })
}

/// A violated invariant.
pub(crate) fn fault(fault: &ViewFault) -> Value {
    json!({ "kind": "fault", "message": fault.to_string() })
}
