//! 1. What the user wrote is sent byte for byte, in order.
//!
//! The one last resort of `fanfold` is told in a receipt. `hermes` and `hamr` fold old user messages like everything
//! else, by design; `mask` and `window` do so only in their last stage, and `rules` only before refusing. All of them tell
//! it in a receipt, and what stands in a view stands there in order and as it was written. Where it is forbidden, none
//! of them does.

use fanfold_core::{
    Budget, Entry, EntryId, Item, OPENING, Place, Policy, Receipt, Session, Tokens, View, Voice, Words, parse,
};
use fanfold_wire::{Change, Conversation};

use crate::cases::{Case, Verdict, hold, no};
use crate::walks::{Sent, view_of, walk, walk_case_in_chat};

const LAST_STAGES: [&str; 5] =
    ["pasted blocks", "oldest user messages", "older user messages", "newest user message", "oldest out"];

/// Every user text of the view is whole, or a receipt tells of it.
pub(crate) fn check(session: &Session<'_>, view: &View) -> Verdict {
    let transcript = session.transcript();
    let takes_freely = matches!(session.policy().name, "hermes" | "hamr");
    let receipts = session.ledger().receipts();
    let is_told = |id: &EntryId| receipts.iter().any(|receipt| receipt.user_text.contains(id));
    let mut is_there = vec![false; transcript.len()];
    for item in &view.items {
        match item {
            Item::Whole(id) => is_there[id.index()] = true,
            Item::Edited(id, edits) => {
                is_there[id.index()] = true;
                let is_cut = edits.iter().any(|edit| edit.place == Place::Text(*id));
                if is_cut && transcript.entry(*id).is_user() && !is_told(id) {
                    return no(format!("user message {} is cut, and no receipt tells of it", id.0));
                }
            }
            Item::Note { .. } => {}
        }
    }
    for (i, entry) in transcript.entries().iter().enumerate() {
        if entry.is_user() && !is_there[i] && !is_told(&EntryId::from(i)) {
            return no(format!("user message {i} is gone, and no receipt tells of it"));
        }
    }
    for receipt in receipts {
        let is_last = LAST_STAGES.contains(&receipt.stage);
        if !receipt.user_text.is_empty() && !takes_freely && !is_last {
            return no(format!("stage {} touched user text", receipt.stage));
        }
        let last_user =
            transcript.entries()[..receipt.at].iter().rposition(Entry::is_user).map(EntryId::from);
        let is_newest_cut = last_user.is_some_and(|last| receipt.user_text.contains(&last));
        let is_at_the_last = receipt.stage == "newest user message";
        if is_newest_cut && session.policy().name == "fanfold" && !is_at_the_last {
            return no("the newest user message was cut");
        }
    }
    Ok(())
}

/// The messages of people that are sent are those of the view, in order and word for word, with notes of ours between them.
pub(crate) fn check_sent(sent: &Sent<'_>) -> Verdict {
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
    let of_people = messages.iter().filter(|message| message["role"] == "user" && message["name"].is_null());
    let found: Vec<&str> = of_people
        .map(|message| message["content"].as_str().or(message["content"][0]["text"].as_str()).unwrap_or(""))
        .collect();
    // Where a view begins with a reply, a word of ours comes first.
    let is_opened = found.first() == Some(&OPENING) && found.len() > expected.len();
    let found = found.get(usize::from(is_opened)..).unwrap_or_default();
    if found == expected { Ok(()) } else { no(format!("people said {expected:?} and {found:?} is sent")) }
}

#[test]
fn what_people_wrote_stands_in_every_view() {
    hold(6_000, &Policy::NAMES, |case| walk(case, |session, view| check(session, view)));
}

#[test]
fn what_people_wrote_is_sent_in_order() {
    hold(2_000, &Policy::NAMES, |case| walk_case_in_chat(case, check_sent));
}

/// The moment at which people's words are first touched is one at which there would be no view otherwise.
#[test]
fn people_are_cut_short_only_before_refusing() {
    hold(6_000, &["fanfold", "rules"], |case| {
        let (mut session, mut strict) = (case.session(), strict(case));
        for entry in &case.entries {
            session.append(entry.clone());
            strict.append(entry.clone());
            let view = view_of(&mut session)?;
            let refused = view_of(&mut strict)?.is_none();
            let is_cut = session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty());
            if is_cut && !refused {
                return no(format!(
                    "user text was cut at entry {} and it fits without that",
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

/// Where it is forbidden, no stage of any policy touches what people wrote.
#[test]
fn never_is_never() {
    hold(6_000, &Policy::NAMES, |case| {
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
                return no(format!("user message {at} is not whole"));
            }
            if session.ledger().receipts().iter().any(|receipt| !receipt.user_text.is_empty()) {
                return no("a receipt tells of user text");
            }
        }
        Ok(())
    });
}

/// The newest words are cut only when they do not fit beside what must stay: no image of a person's is left by then,
/// no large message of an older turn but the first, and what was cut would not fit whole.
#[test]
fn the_newest_words_are_the_last_to_go() {
    hold(6_000, &["fanfold"], |case| {
        walk(case, |session, view| {
            let transcript = session.transcript();
            let Some(newest) = transcript.last_user() else { return Ok(()) };
            let is_now = |receipt: &&Receipt| receipt.at == transcript.len();
            let is_cut_now = session
                .ledger()
                .receipts()
                .last()
                .filter(is_now)
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
                    return no(format!("the newest words are cut, and images of entry {} are not", id.0));
                }
                let is_older = id != newest && Some(id) != first && Some(id) < transcript.last_step();
                let is_whole = !edits.iter().any(|edit| edit.place == Place::Text(id));
                // A segment must cost less than what it stands for: a few words stay.
                let few = session.budget().room().permille(60) + Tokens(40);
                if is_older && is_whole && prompt.body.tokens() > few {
                    return no(format!("the newest words are cut, and those of entry {} are not", id.0));
                }
            }
            let fold = session.ledger().fold_at(Place::Text(newest)).ok_or("it is not cut")?;
            let whole = transcript.entry(newest).prompt().map_or(Tokens::ZERO, |prompt| prompt.body.tokens());
            if view.tokens - fold.tokens + whole <= session.budget().room() {
                return no("the newest words are cut and would fit");
            }
            Ok(())
        })
    });
}

/// The view of a conversation in a room of so many words.
fn view_in(room: u64, said: &str) -> View {
    let budget = Budget::with_reserve(Tokens(room), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for entry in parse(said).unwrap() {
        session.append(entry);
    }
    session.view().unwrap().clone()
}

#[test]
fn images_go_before_the_newest_words() {
    let said = format!("user    \nimage   image/png\nimage   image/png\nuser   {}\n", " word".repeat(110));
    let view = view_in(200, &said);
    assert!(view.items.contains(&Item::Whole(EntryId(1))), "{view:?}");
}

/// Also where a large system text leaves people less than half of the room.
#[test]
fn old_words_go_before_the_newest() {
    let (system, old, new) = (" rule".repeat(250), " a".repeat(80), " word".repeat(100));
    let said =
        format!("system {system}\nuser    hello\nsay     yes?\nuser   {old}\nsay     well\nuser   {new}\n");
    let view = view_in(400, &said);
    assert!(view.items.contains(&Item::Whole(EntryId(5))), "{view:?}");
    assert!(!view.items.contains(&Item::Whole(EntryId(3))), "{view:?}");
}

fn strict(case: &Case) -> Session<'static> {
    case.session_by(case.policy().without_user_text())
}

#[test]
fn a_note_that_comes_back_is_nobodys_words() {
    let body = r#"{"model":"m","messages":[
        {"role":"user","content":"Go."},
        {"role":"user","content":"<fanfold>\nEarlier steps, folded.\n</fanfold>"},
        {"role":"user","content":"<fanfold> is a tag of theirs"}]}"#;
    let (_, changes) = Conversation::decode(body, None).unwrap();
    let is_user = |change: &Change| matches!(change, Change::Append(entry) if entry.is_user());
    let users: Vec<bool> = changes.iter().map(is_user).collect();
    assert_eq!(users, [true, false, true]);
}
