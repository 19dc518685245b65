//! 10. Fields and parts we do not know pass through unchanged.

use std::collections::BTreeSet;

use fanfold_core::{Budget, Entry, EntryId, Item, Origin, Policy, Session, Tokens, View, Words};
use fanfold_testkit::bodies::{Kind, rich};
use fanfold_wire::Conversation;
use rayon::prelude::*;
use serde_json::Value;

use crate::cases::{Verdict, is_fast, no, quietly};
use crate::harmless::format_of;
use crate::walks::{Sent, apply};

/// Every message whose entries are all as they came leaves byte for byte, in order.
fn check_body(kind: Kind, body: &str, seed: u64) -> Result<bool, String> {
    let policy = Policy::named(Policy::NAMES[seed as usize % 6]).unwrap();
    let Ok((conversation, changes)) = Conversation::decode(body, Some(format_of(kind))) else {
        return Ok(false);
    };
    let window = Tokens([30, 60, 120][seed as usize % 3]);
    let mut session = Session::new(policy, Budget::with_reserve(window, Tokens::ZERO), &Words);
    changes.into_iter().for_each(|change| apply(&mut session, change));
    let Ok(view) = session.view().cloned() else { return Ok(false) };
    if view.is_untouched() {
        return Ok(false);
    }
    let sent: Vec<String> = conversation
        .encode_messages(session.transcript(), &view)
        .into_iter()
        .map(|message| message.into_owned())
        .collect();
    check_messages(&Leaving {
        kind,
        conversation: &conversation,
        session: &session,
        view: &view,
        sent: &sent,
    })?;
    check_around(body, &conversation.encode(session.transcript(), &view))?;
    Ok(true)
}

/// What a client wrote, and what is sent of it.
struct Leaving<'a> {
    kind: Kind,
    conversation: &'a Conversation,
    session: &'a Session<'a>,
    view: &'a View,
    sent: &'a [String],
}

/// Every message whose entries are all as they came is sent byte for byte, in order.
fn check_messages(leaving: &Leaving<'_>) -> Verdict {
    let Leaving { kind, conversation, session, view, sent } = *leaving;
    let mut touched: BTreeSet<u32> =
        conversation.repairs().iter().map(|repair| repair.origin.message).collect();
    // What is repaired at a call is repaired at its results, too.
    let odd = touched.clone();
    let whole: BTreeSet<EntryId> = view.items.iter().filter_map(whole_entry).collect();
    let is_whole = |id: EntryId| whole.contains(&id);
    for (i, entry) in session.transcript().entries().iter().enumerate() {
        let is_odd = origins(entry).iter().any(|origin| odd.contains(&origin.message));
        if is_odd || !is_whole(EntryId::from(i)) {
            touched.extend(origins(entry).into_iter().map(|origin| origin.message));
            // A reply may be several items: all of them up to the next entry.
            let next =
                session.transcript().entries().get(i + 1).and_then(|next| origins(next).first().copied());
            if let (Entry::Step(step), Kind::Responses) = (entry, kind) {
                touched.extend(step.origin.message..next.map_or(u32::MAX, |next| next.message).min(1_000));
            }
        }
    }
    let mut rest = sent.iter();
    for (i, raw) in conversation.messages().enumerate() {
        let message = serde_json::from_str::<Value>(raw).unwrap_or_default();
        // People's words that are none are repaired, and so is a reply that should have a list.
        let is_reply = kind == Kind::Responses && message["role"] == "assistant";
        let is_empty = match &message["content"] {
            Value::Null => true,
            Value::Array(parts) => parts.is_empty() && !is_reply,
            _ => false,
        };
        let is_as_it_came = !touched.contains(&(i as u32)) && !is_empty;
        if is_as_it_came && !rest.any(|message| message == raw) {
            return no(format!(
                "message {i} did not leave as it came, or not in order: {raw}\n\nsent: {sent:#?}"
            ));
        }
    }
    Ok(())
}

/// The entry that an item sends as it came.
fn whole_entry(item: &Item) -> Option<EntryId> {
    match item {
        Item::Whole(id) => Some(*id),
        Item::Edited(..) | Item::Note { .. } => None,
    }
}

/// What is sent of a followed conversation: all of it where nothing was touched, else what was not.
pub(crate) fn check_sent(sent: &Sent<'_>) -> Verdict {
    let Sent { session, conversation, view, messages } = *sent;
    if !view.is_untouched() {
        return check_messages(&Leaving { kind: Kind::Chat, conversation, session, view, sent: messages });
    }
    let is_as_it_came = conversation.messages().eq(messages.iter().map(String::as_str));
    if is_as_it_came { Ok(()) } else { no("nothing was touched, and something else is sent") }
}

/// All fields beside the messages are there, with their values.
fn check_around(body: &str, encoded: &str) -> Verdict {
    let (Ok(Value::Object(came)), Ok(Value::Object(leaves))) =
        (serde_json::from_str(body), serde_json::from_str(encoded))
    else {
        return Ok(());
    };
    for (key, value) in &came {
        let is_ours = matches!(
            key.as_str(),
            "messages"
                | "input"
                | "conversations"
                | "message_count"
                | "system"
                | "instructions"
                | "system_prompt"
        );
        if !is_ours && leaves.get(key) != Some(value) {
            return no(format!("the field {key} changed"));
        }
    }
    Ok(())
}

fn origins(entry: &Entry) -> Vec<Origin> {
    match entry {
        Entry::Prompt(prompt) => vec![prompt.origin],
        Entry::Step(step) => {
            let calls = step.calls.iter().map(|call| call.origin);
            let results =
                step.calls.iter().filter_map(|call| call.result.as_ref()).map(|outcome| outcome.origin);
            [step.origin].into_iter().chain(calls).chain(results).collect()
        }
    }
}

/// Anthropic messages are left out: neighbours of one role are merged there, which its own contract suite checks.
#[test]
fn what_is_not_folded_leaves_as_it_came() {
    let n_cases: u64 = if is_fast() { 1_000 } else { 6_000 };
    let kinds = [Kind::Chat, Kind::Responses, Kind::ShareGpt, Kind::Hermes];
    let folded: Result<Vec<bool>, String> = (0..n_cases)
        .into_par_iter()
        .map(|seed| {
            let kind = kinds[seed as usize % kinds.len()];
            let body = rich(kind, seed);
            let verdict = quietly(|| check_body(kind, &body, seed))
                .unwrap_or_else(|panic| Err(format!("panicked: {panic}")));
            verdict.map_err(|message| format!("{message}\n\nseed {seed}, {kind:?}: {body}"))
        })
        .collect();
    let n_folded = folded
        .unwrap_or_else(|message| panic!("{message}"))
        .into_iter()
        .filter(|is_folded| *is_folded)
        .count();
    assert!(n_folded as u64 > n_cases / 5, "only {n_folded} bodies were folded at all");
}

/// What is folded keeps its other fields: only the folded place is another one.
#[test]
fn a_folded_message_keeps_its_other_fields() {
    let n_cases: u64 = if is_fast() { 500 } else { 3_000 };
    let failed = (0..n_cases).into_par_iter().find_map_first(|seed| {
        let body = rich(Kind::Chat, seed);
        check_fields(&body).err().map(|message| (seed, body, message))
    });
    if let Some((seed, body, message)) = failed {
        panic!("{message}\n\nseed {seed}: {body}");
    }
}

fn check_fields(body: &str) -> Verdict {
    const OURS: [&str; 9] = [
        "content",
        "tool_calls",
        "function_call",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "role",
        "tool_call_id",
        "thinking",
    ];
    // `mask` folds results where they stand and leaves every message in the view.
    let Ok((conversation, changes)) = Conversation::decode(body, Some(fanfold_wire::Format::Chat)) else {
        return Ok(());
    };
    let mut policy = Policy::named("mask").unwrap();
    policy.tail.results = 0;
    policy.stages.truncate(1);
    let mut session = Session::new(policy, Budget::with_reserve(Tokens(1_000_000), Tokens::ZERO), &Words);
    changes.into_iter().for_each(|change| apply(&mut session, change));
    let view = session.view().cloned().map_err(|refusal| refusal.to_string())?;
    let sent = conversation.encode_messages(session.transcript(), &view).concat();
    let odd: BTreeSet<u32> = conversation.repairs().iter().map(|repair| repair.origin.message).collect();
    for (i, raw) in conversation.messages().enumerate() {
        let Ok(Value::Object(fields)) = serde_json::from_str(raw) else { continue };
        if odd.contains(&(i as u32)) {
            continue;
        }
        for (key, value) in fields.iter().filter(|(key, _)| !OURS.contains(&key.as_str())) {
            let (bare, spaced) = (
                format!("{}:{value}", Value::from(key.as_str())),
                format!("{}: {value}", Value::from(key.as_str())),
            );
            let is_plain = raw.contains(&bare) || raw.contains(&spaced);
            if is_plain && !sent.contains(&bare) && !sent.contains(&spaced) {
                return no(format!("message {i} lost its field {key}"));
            }
        }
    }
    Ok(())
}
