//! Append conversations message by message, like a client, and inspect each view.

use fanfold_core::{CallId, Count, Entry, EntryId, Place, Session, Step, View, ViewError};
use fanfold_testkit::generators::conversations::chat_messages;
use fanfold_wire::{Change, Conversation, Format, Memo};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cases::{Case, Verdict, fail};

/// The view, or `None` for an overflow. A broken invariant is an error.
pub(crate) fn view_of(session: &mut Session<'_>) -> Result<Option<View>, String> {
    match session.view() {
        Ok(view) => Ok(Some(view.clone())),
        Err(ViewError::Overflow(_)) => Ok(None),
        Err(ViewError::Fault(fault)) => fail(format!("the view breaks an invariant: {fault}")),
    }
}

/// Appends the entries of a case one by one and inspects each view.
pub(crate) fn drive(case: &Case, mut inspect: impl FnMut(&mut Session<'_>, &View) -> Verdict) -> Verdict {
    let mut session = case.session();
    for entry in &case.entries {
        session.append(entry.clone());
        if let Some(view) = view_of(&mut session)? {
            inspect(&mut session, &view)?;
        }
    }
    Ok(())
}

/// A view with the encoded messages.
pub(crate) struct SentView<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) conversation: &'a Conversation,
    pub(crate) view: &'a View,
    pub(crate) messages: &'a [String],
}

impl SentView<'_> {
    pub(crate) fn parsed(&self) -> Vec<Value> {
        self.messages.iter().map(|message| serde_json::from_str(message).unwrap()).collect()
    }
}

/// Appends Chat messages one by one and inspects each view that a client would send to the model.
pub(crate) fn drive_chat<'c>(
    messages: &[&RawValue],
    mut session: Session<'c>,
    mut inspect: impl FnMut(&SentView<'_>) -> Verdict,
) -> Result<Session<'c>, String> {
    let mut conversation = Conversation::empty(Format::Chat);
    let mut memo = Memo::default();
    for (i, message) in messages.iter().enumerate() {
        for change in conversation.append(&[message]) {
            apply(&mut session, change);
        }
        let is_next_reply = messages.get(i + 1).is_none_or(|next| {
            next.get().contains(r#""role":"assistant""#) || next.get().contains(r#""role": "assistant""#)
        });
        if !is_next_reply {
            continue;
        }
        if let Some(view) = view_of(&mut session)? {
            let messages = conversation.encode_messages(session.transcript(), &view);
            let messages: Vec<String> = messages.into_iter().map(std::borrow::Cow::into_owned).collect();
            let received: Vec<&str> = conversation.messages().collect();
            let encoded_with_memo = conversation.encode_with(
                session.transcript(),
                &view,
                &mut memo,
                |message| received[message].to_owned(),
                str::to_owned,
            );
            if encoded_with_memo != messages {
                return fail("encoding with a memo gives other messages".to_owned());
            }
            let (session, conversation) = (&session, &conversation);
            inspect(&SentView { session, conversation, view: &view, messages: &messages })?;
        }
    }
    Ok(session)
}

/// Runs `drive_chat` with the messages of a case.
pub(crate) fn drive_case_as_chat(case: &Case, inspect: impl FnMut(&SentView<'_>) -> Verdict) -> Verdict {
    let messages: Vec<Box<RawValue>> = case
        .entries
        .iter()
        .flat_map(chat_messages)
        .map(|message| RawValue::from_string(message.to_string()).unwrap())
        .collect();
    let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
    drive_chat(&messages, case.session(), inspect).map(drop)
}

/// Applies a change of a conversation to a session.
pub(crate) fn apply(session: &mut Session<'_>, change: Change) {
    match change {
        Change::Append(entry) => drop(session.append(entry)),
        Change::Answer(call, outcome) => drop(session.set_result(call, outcome)),
    }
}

/// Every original of an entry that a view may fold, with its place. A text of `null`, `""` or `[]` counts as empty.
pub(crate) fn originals(entry: &Entry, id: EntryId) -> Vec<(Place, &str)> {
    match entry {
        Entry::Prompt(prompt) => {
            let media = prompt.media.iter().enumerate();
            let media = media.map(|(i, media)| (Place::PromptMedia(id, i as u16), &*media.raw));
            [(Place::Text(id), &**prompt.body.original())].into_iter().chain(media).collect()
        }
        Entry::Step(step) => {
            let is_empty = matches!(step.text.original().trim(), "null" | "\"\"" | "[]");
            let text = if is_empty { "" } else { step.text.original() };
            let mut out = vec![(Place::Reasoning(id), &**step.reasoning.original()), (Place::Text(id), text)];
            for (call_id, call) in calls_of(step, id) {
                out.push((Place::Arguments(call_id), call.arguments.original()));
                let Some(outcome) = &call.result else { continue };
                out.push((Place::Result(call_id), outcome.body.original()));
                let media = outcome.media.iter().enumerate();
                out.extend(media.map(|(i, media)| (Place::ResultMedia(call_id, i as u16), &*media.raw)));
            }
            out
        }
    }
}

/// The calls of a step with their ids.
pub(crate) fn calls_of(step: &Step, id: EntryId) -> impl Iterator<Item = (CallId, &fanfold_core::Call)> {
    step.calls.iter().enumerate().map(move |(i, call)| (CallId { step: id, call: i as u16 }, call))
}

/// The tokens of messages by an independent formula: contents, names and arguments, and a frame per message and
/// call.
pub(crate) fn reference_count(messages: &[Value], counter: &dyn Count) -> u64 {
    let frame = counter.frame();
    let text = |value: &Value| value.as_str().map_or(0, |text| counter.count(text).0);
    let mut sum = 0;
    for message in messages {
        sum += frame.message.0;
        match &message["content"] {
            Value::Array(parts) => {
                for part in parts {
                    let is_media = part["type"] != "text";
                    sum += if is_media { frame.media.0 } else { text(&part["text"]) };
                }
            }
            content => sum += text(content),
        }
        sum += text(&message["reasoning_content"]);
        for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
            sum += frame.call.0 + text(&call["function"]["name"]) + text(&call["function"]["arguments"]);
        }
    }
    sum
}
