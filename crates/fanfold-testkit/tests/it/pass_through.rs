//! 10. Unknown fields and parts pass through unchanged.

use std::collections::BTreeSet;

use fanfold_core::{Budget, Entry, EntryId, Item, Origin, Policy, Session, Tokens, View, Words};
use fanfold_testkit::generators::bodies::{BodyFormat, rich};
use fanfold_wire::Conversation;
use rayon::prelude::*;
use serde_json::Value;

use crate::cases::{Verdict, catch_panic, fail, is_fast};
use crate::drivers::{SentView, apply};
use crate::malformed_input::format_of;

/// Checks the messages and fields of a folded body. Returns false if nothing was folded.
fn check_body(kind: BodyFormat, body: &str, seed: u64) -> Result<bool, String> {
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
    check_messages(&EncodedView {
        kind,
        conversation: &conversation,
        session: &session,
        view: &view,
        sent: &sent,
    })?;
    check_other_fields(body, &conversation.encode(session.transcript(), &view))?;
    Ok(true)
}

/// A received conversation, and the messages that are sent.
struct EncodedView<'a> {
    kind: BodyFormat,
    conversation: &'a Conversation,
    session: &'a Session<'a>,
    view: &'a View,
    sent: &'a [String],
}

/// Every message whose entries are all whole is sent byte for byte and in order.
fn check_messages(encoded: &EncodedView<'_>) -> Verdict {
    let EncodedView { kind, conversation, session, view, sent } = *encoded;
    let mut touched: BTreeSet<u32> =
        conversation.repairs().iter().map(|repair| repair.origin.message).collect();
    // A repair of a call also changes its results.
    let repaired = touched.clone();
    let whole: BTreeSet<EntryId> = view.items.iter().filter_map(whole_entry).collect();
    let is_whole = |id: EntryId| whole.contains(&id);
    for (i, entry) in session.transcript().entries().iter().enumerate() {
        let is_repaired = origins(entry).iter().any(|origin| repaired.contains(&origin.message));
        if is_repaired || !is_whole(EntryId::from(i)) {
            touched.extend(origins(entry).into_iter().map(|origin| origin.message));
            // A reply may consist of several items, up to the next entry.
            let next =
                session.transcript().entries().get(i + 1).and_then(|next| origins(next).first().copied());
            if let (Entry::Step(step), BodyFormat::Responses) = (entry, kind) {
                touched.extend(step.origin.message..next.map_or(u32::MAX, |next| next.message).min(1_000));
            }
        }
    }
    let mut rest = sent.iter();
    for (i, raw) in conversation.messages().enumerate() {
        let message = serde_json::from_str::<Value>(raw).unwrap_or_default();
        // User messages without content are repaired, and so are replies whose content is not a list.
        let is_reply = kind == BodyFormat::Responses && message["role"] == "assistant";
        let is_empty = match &message["content"] {
            Value::Null => true,
            Value::Array(parts) => parts.is_empty() && !is_reply,
            _ => false,
        };
        let is_unchanged = !touched.contains(&(i as u32)) && !is_empty;
        if is_unchanged && !rest.any(|message| message == raw) {
            return fail(format!("message {i} was changed or reordered: {raw}\n\nsent: {sent:#?}"));
        }
    }
    Ok(())
}

/// The entry of a whole item.
fn whole_entry(item: &Item) -> Option<EntryId> {
    match item {
        Item::Whole(id) => Some(*id),
        Item::Edited(..) | Item::Note { .. } => None,
    }
}

/// Checks the sent messages: all of them if nothing was folded, otherwise the whole ones.
pub(crate) fn check_sent(sent: &SentView<'_>) -> Verdict {
    let SentView { session, conversation, view, messages } = *sent;
    if !view.is_untouched() {
        return check_messages(&EncodedView {
            kind: BodyFormat::Chat,
            conversation,
            session,
            view,
            sent: messages,
        });
    }
    let is_unchanged = conversation.messages().eq(messages.iter().map(String::as_str));
    if is_unchanged { Ok(()) } else { fail("nothing was folded, but the messages changed") }
}

/// All other fields of the body keep their values.
fn check_other_fields(body: &str, encoded: &str) -> Verdict {
    let (Ok(Value::Object(received)), Ok(Value::Object(sent))) =
        (serde_json::from_str(body), serde_json::from_str(encoded))
    else {
        return Ok(());
    };
    for (key, value) in &received {
        let may_change = matches!(
            key.as_str(),
            "messages"
                | "input"
                | "conversations"
                | "message_count"
                | "system"
                | "instructions"
                | "system_prompt"
        );
        if !may_change && sent.get(key) != Some(value) {
            return fail(format!("the field {key} changed"));
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

/// Without Anthropic, where adjacent messages of the same role are merged; its own contract suite checks that.
#[test]
fn unfolded_messages_are_sent_unchanged() {
    let n_cases: u64 = if is_fast() { 1_000 } else { 6_000 };
    let kinds = [BodyFormat::Chat, BodyFormat::Responses, BodyFormat::ShareGpt, BodyFormat::Hermes];
    let folded: Result<Vec<bool>, String> = (0..n_cases)
        .into_par_iter()
        .map(|seed| {
            let kind = kinds[seed as usize % kinds.len()];
            let body = rich(kind, seed);
            let verdict = catch_panic(|| check_body(kind, &body, seed))
                .unwrap_or_else(|panic| Err(format!("panicked: {panic}")));
            verdict.map_err(|message| format!("{message}\n\nseed {seed}, {kind:?}: {body}"))
        })
        .collect();
    let n_folded = folded
        .unwrap_or_else(|message| panic!("{message}"))
        .into_iter()
        .filter(|is_folded| *is_folded)
        .count();
    assert!(n_folded as u64 > n_cases / 5, "only {n_folded} bodies were folded");
}

/// A folded message changes only at the folded place.
#[test]
fn a_folded_message_keeps_its_other_fields() {
    let n_cases: u64 = if is_fast() { 500 } else { 3_000 };
    let failed = (0..n_cases).into_par_iter().find_map_first(|seed| {
        let body = rich(BodyFormat::Chat, seed);
        check_fields(&body).err().map(|message| (seed, body, message))
    });
    if let Some((seed, body, message)) = failed {
        panic!("{message}\n\nseed {seed}: {body}");
    }
}

fn check_fields(body: &str) -> Verdict {
    const MAY_CHANGE: [&str; 9] = [
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
    // `mask` folds results in place and keeps every message in the view.
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
    let repaired: BTreeSet<u32> = conversation.repairs().iter().map(|repair| repair.origin.message).collect();
    for (i, raw) in conversation.messages().enumerate() {
        let Ok(Value::Object(fields)) = serde_json::from_str(raw) else { continue };
        if repaired.contains(&(i as u32)) {
            continue;
        }
        for (key, value) in fields.iter().filter(|(key, _)| !MAY_CHANGE.contains(&key.as_str())) {
            let (bare, spaced) = (
                format!("{}:{value}", Value::from(key.as_str())),
                format!("{}: {value}", Value::from(key.as_str())),
            );
            let is_plain = raw.contains(&bare) || raw.contains(&spaced);
            if is_plain && !sent.contains(&bare) && !sent.contains(&spaced) {
                return fail(format!("message {i} lost its field {key}"));
            }
        }
    }
    Ok(())
}
