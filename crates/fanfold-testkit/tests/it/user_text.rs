//! 1. User messages are sent byte for byte and in order.
//!
//! `fanfold` folds them only as a last resort, `mask` and `window` only in their last stage, `rules` only before an
//! overflow; `hermes` and `hamr` fold old user messages like everything else. Every such fold is listed in a
//! receipt, and the other user messages are sent unchanged and in order. A policy can forbid folds of user text
//! altogether.

use fanfold_core::{
    Budget, Entry, EntryId, Item, OPENING, Place, Policy, Receipt, Session, Tokens, View, Voice, Words, parse,
};
use fanfold_wire::{Change, Conversation};

use crate::cases::{Case, Verdict, check_cases, fail};
use crate::drivers::{SentView, drive, drive_case_as_chat, view_of};

const LAST_STAGES: [&str; 5] =
    ["pasted blocks", "oldest user messages", "older user messages", "newest user message", "oldest out"];

/// Every user message is whole, or a receipt lists it.
pub(crate) fn check(session: &Session<'_>, view: &View) -> Verdict {
    let transcript = session.transcript();
    let may_fold_freely = matches!(session.policy().name, "hermes" | "hamr");
    let receipts = session.ledger().receipts();
    let is_reported = |id: &EntryId| receipts.iter().any(|receipt| receipt.user_text.contains(id));
    let mut is_present = vec![false; transcript.len()];
    for item in &view.items {
        match item {
            Item::Whole(id) => is_present[id.index()] = true,
            Item::Edited(id, edits) => {
                is_present[id.index()] = true;
                let is_cut = edits.iter().any(|edit| edit.place == Place::Text(*id));
                if is_cut && transcript.entry(*id).is_user() && !is_reported(id) {
                    return fail(format!("user message {} is cut, but no receipt lists it", id.0));
                }
            }
            Item::Note { .. } => {}
        }
    }
    for (i, entry) in transcript.entries().iter().enumerate() {
        if entry.is_user() && !is_present[i] && !is_reported(&EntryId::from(i)) {
            return fail(format!("user message {i} is missing, but no receipt lists it"));
        }
    }
    for receipt in receipts {
        let is_last = LAST_STAGES.contains(&receipt.stage);
        if !receipt.user_text.is_empty() && !may_fold_freely && !is_last {
            return fail(format!("stage {} folded user text", receipt.stage));
        }
        let last_user =
            transcript.entries()[..receipt.at].iter().rposition(Entry::is_user).map(EntryId::from);
        let is_newest_cut = last_user.is_some_and(|last| receipt.user_text.contains(&last));
        let is_last_stage = receipt.stage == "newest user message";
        if is_newest_cut && session.policy().name == "fanfold" && !is_last_stage {
            return fail("the newest user message was cut");
        }
    }
    Ok(())
}

/// The sent user messages are those of the view and its notes, unchanged and in order.
pub(crate) fn check_sent(sent: &SentView<'_>) -> Verdict {
    let transcript = sent.session.transcript();
    let mut expected: Vec<&str> = Vec::new();
    for item in &sent.view.items {
        let (id, edits) = match item {
            Item::Whole(id) => (*id, &[][..]),
            Item::Edited(id, edits) => (*id, edits.as_slice()),
            Item::Note { text, voice: Voice::Fanfold } => {
                expected.push(text);
                continue;
            }
            Item::Note { voice: Voice::Assistant, .. } => continue,
        };
        let Some(prompt) = transcript.entry(id).prompt().filter(|_| transcript.entry(id).is_user()) else {
            continue;
        };
        let stub = edits.iter().find(|edit| edit.place == Place::Text(id)).map(|edit| &*edit.stub);
        expected.push(stub.unwrap_or(prompt.body.as_str()));
    }
    let messages = sent.parsed();
    let from_user = messages.iter().filter(|message| message["role"] == "user" && message["name"].is_null());
    let found: Vec<&str> = from_user
        .map(|message| message["content"].as_str().or(message["content"][0]["text"].as_str()).unwrap_or(""))
        .collect();
    // Before a view that begins with a reply, an opening is sent.
    let is_opened = found.first() == Some(&OPENING) && found.len() > expected.len();
    let found = found.get(usize::from(is_opened)..).unwrap_or_default();
    if found == expected {
        Ok(())
    } else {
        fail(format!("the user messages are {expected:?}, but {found:?} is sent"))
    }
}

#[test]
fn user_messages_are_in_every_view() {
    check_cases(6_000, &Policy::NAMES, |case| drive(case, |session, view| check(session, view)));
}

#[test]
fn user_messages_are_sent_in_order() {
    check_cases(2_000, &Policy::NAMES, |case| drive_case_as_chat(case, check_sent));
}

/// User text is first folded when the view would overflow otherwise.
#[test]
fn user_text_is_cut_only_to_avoid_an_overflow() {
    check_cases(6_000, &["fanfold", "rules"], |case| {
        let (mut session, mut strict) = (case.session(), strict(case));
        for entry in &case.entries {
            session.append(entry.clone());
            strict.append(entry.clone());
            let view = view_of(&mut session)?;
            let refused = view_of(&mut strict)?.is_none();
            let is_cut = session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty());
            if is_cut && !refused {
                return fail(format!(
                    "user text was cut at entry {}, but the view fits without that",
                    session.transcript().len()
                ));
            }
            if refused || is_cut || view.is_none() {
                return Ok(());
            }
        }
        Ok(())
    });
}

/// If it is forbidden, no stage of any policy folds user text.
#[test]
fn forbidden_folds_of_user_text_never_happen() {
    check_cases(6_000, &Policy::NAMES, |case| {
        let mut session = strict(case);
        for entry in &case.entries {
            session.append(entry.clone());
            let Some(view) = view_of(&mut session)? else { continue };
            let transcript = session.transcript();
            let mut whole = vec![false; transcript.len()];
            for item in &view.items {
                match item {
                    Item::Whole(id) => whole[id.index()] = true,
                    Item::Edited(id, edits) => {
                        whole[id.index()] = !edits.iter().any(|edit| edit.place == Place::Text(*id));
                    }
                    Item::Note { .. } => {}
                }
            }
            let mut users = transcript.entries().iter().zip(&whole).filter(|(entry, _)| entry.is_user());
            if let Some(at) = users.position(|(_, is_whole)| !is_whole) {
                return fail(format!("user message {at} is not whole"));
            }
            if session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty()) {
                return fail("a receipt lists user text");
            }
        }
        Ok(())
    });
}

/// The newest user message is cut last: only after all images of users and the large messages of older turns except
/// the first, and only if it does not fit whole.
#[test]
fn the_newest_user_message_is_cut_last() {
    check_cases(6_000, &["fanfold"], |case| {
        drive(case, |session, view| {
            let transcript = session.transcript();
            let Some(newest) = transcript.last_user() else { return Ok(()) };
            let is_current = |receipt: &&Receipt| receipt.at == transcript.len();
            let is_cut_now = session
                .ledger()
                .receipts()
                .last()
                .filter(is_current)
                .is_some_and(|receipt| receipt.user_text.contains(&newest));
            if !is_cut_now {
                return Ok(());
            }
            let first = transcript.entries().iter().position(Entry::is_user).map(EntryId::from);
            for item in &view.items {
                let (id, edits) = match item {
                    Item::Whole(id) => (*id, &[][..]),
                    Item::Edited(id, edits) => (*id, edits.as_slice()),
                    Item::Note { .. } => continue,
                };
                let Some(prompt) = transcript.entry(id).prompt().filter(|_| transcript.entry(id).is_user())
                else {
                    continue;
                };
                let n_folded =
                    edits.iter().filter(|edit| matches!(edit.place, Place::PromptMedia(..))).count();
                if n_folded < prompt.media.len() {
                    return fail(format!(
                        "the newest user message is cut, but images of entry {} are left",
                        id.0
                    ));
                }
                let is_older = id != newest && Some(id) != first && Some(id) < transcript.last_step();
                let is_whole = !edits.iter().any(|edit| edit.place == Place::Text(id));
                // A segment must be shorter than its entries, so short messages may stay.
                let short = session.budget().room().permille(60) + Tokens(40);
                if is_older && is_whole && prompt.body.tokens() > short {
                    return fail(format!(
                        "the newest user message is cut, but that of entry {} is whole",
                        id.0
                    ));
                }
            }
            let fold =
                session.ledger().fold_at(Place::Text(newest)).ok_or("the newest user message has no fold")?;
            let whole = transcript.entry(newest).prompt().map_or(Tokens::ZERO, |prompt| prompt.body.tokens());
            if view.tokens - fold.tokens + whole <= session.budget().room() {
                return fail("the newest user message is cut, but would fit");
            }
            Ok(())
        })
    });
}

/// The view of a conversation with a room in words.
fn view_in(room: u64, conversation: &str) -> View {
    let budget = Budget::with_reserve(Tokens(room), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in parse(conversation).unwrap() {
        session.append(entry);
    }
    session.view().unwrap().clone()
}

#[test]
fn images_are_folded_before_the_newest_user_text() {
    let conversation =
        format!("user    \nimage   image/png\nimage   image/png\nuser   {}\n", " word".repeat(110));
    let view = view_in(200, &conversation);
    assert!(view.items.contains(&Item::Whole(EntryId(1))), "{view:?}");
}

/// Also if a large system message leaves less than half of the room.
#[test]
fn old_user_text_is_folded_before_the_newest() {
    let (system, old, new) = (" rule".repeat(250), " a".repeat(160), " word".repeat(100));
    let conversation =
        format!("system {system}\nuser    hello\nsay     yes?\nuser   {old}\nsay     well\nuser   {new}\n");
    let view = view_in(460, &conversation);
    assert!(view.items.contains(&Item::Whole(EntryId(5))), "{view:?}");
    assert!(!view.items.contains(&Item::Whole(EntryId(3))), "{view:?}");
}

fn strict(case: &Case) -> Session<'static> {
    case.session_with(case.policy().without_user_text())
}

#[test]
fn a_note_in_a_request_is_no_user_text() {
    let body = r#"{"model":"m","messages":[
        {"role":"user","content":"Go."},
        {"role":"user","content":"<fanfold>\nEarlier steps, folded.\n</fanfold>"},
        {"role":"user","content":"<fanfold> is a tag of theirs"}]}"#;
    let (_, changes) = Conversation::decode(body, None).unwrap();
    let is_user = |change: &Change| matches!(change, Change::Append(entry) if entry.is_user());
    let users: Vec<bool> = changes.iter().map(is_user).collect();
    assert_eq!(users, [true, false, true]);
}
