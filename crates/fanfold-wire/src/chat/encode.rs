//! Portions of chat messages, back into messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use fanfold_core::{CallId, Place, Step, Voice};

use super::{Message, REASONING, Speaks, call_fields};
use crate::book::Role;
use crate::content::ContentEdit;
use crate::format::Format;
use crate::json::{self, Object};
use crate::memo::{Made, Memo};
use crate::outgoing::{NO_RESULT, OPENING, Out, Piece, Send, Source, open_with_user, opened_at};
use crate::splice::Splices;
use crate::textcalls::{Reply, object_of};
use crate::textresults::{self, Segment};

/// The messages to send.
pub(crate) fn encode<'a>(source: &Source<'a, '_>, sends: &[Send<'_>]) -> Vec<Out<'a>> {
    let mut outs: Vec<_> = sends.iter().filter_map(|send| written(source, send)).collect();
    open_with_user(&mut outs, |text| note(source.format, text, Voice::Fanfold).json.into_owned());
    outs
}

/// What is made of the messages to send: `came` of one that leaves as it came, `make` of what is written anew.
pub(crate) fn encode_with<T: Clone>(
    source: &Source<'_, '_>,
    sends: &[Send<'_>],
    memo: &mut Memo<T>,
    came: impl Fn(usize) -> T,
    mut make: impl FnMut(&str) -> T,
) -> Vec<T> {
    let mut made = Vec::with_capacity(sends.len() + 1);
    let mut make = |send: &Send<'_>| {
        memo.get_or_make(send, || {
            written(source, send).map(|out| Made { role: out.role, what: make(&out.json) })
        })
    };
    for send in sends {
        match send {
            Send::Group { message, is_raw: true, .. } => {
                made.push(Made { role: source.role(*message), what: came(*message) });
            }
            _ => made.extend(make(send)),
        }
    }
    if let Some(first) = opened_at(made.iter().map(|made| made.role)) {
        let opening = make(&Send::Note { text: OPENING, voice: Voice::Fanfold });
        made.splice(first..first, opening);
    }
    made.into_iter().map(|made| made.what).collect()
}

/// One message to send, if it is one.
fn written<'a>(source: &Source<'a, '_>, send: &Send<'_>) -> Option<Out<'a>> {
    match send {
        Send::Group { message, pieces, is_raw, .. } => {
            let (role, raw) = (source.role(*message), source.raw(*message));
            Some(if *is_raw { Out { role, json: raw.into() } } else { render(source, raw, role, pieces) })
        }
        Send::Note { text, voice } => Some(note(source.format, text, *voice)),
        Send::Missing(call) => missing(source, *call),
        Send::Gap(_) => None,
    }
}

fn note(format: Format, text: &str, voice: Voice) -> Out<'static> {
    let text = json::quote(text);
    let (role, json) = match (format, voice) {
        (Format::ShareGpt, Voice::Fanfold) => (Role::User, format!(r#"{{"from":"human","value":{text}}}"#)),
        (Format::ShareGpt, Voice::Assistant) => {
            (Role::Assistant, format!(r#"{{"from":"gpt","value":{text}}}"#))
        }
        // Without a name: there are providers that refuse one.
        (_, Voice::Fanfold) => (Role::User, format!(r#"{{"role":"user","content":{text}}}"#)),
        (_, Voice::Assistant) => (Role::Assistant, format!(r#"{{"role":"assistant","content":{text}}}"#)),
    };
    Out { role, json: Cow::Owned(json) }
}

fn missing(source: &Source<'_, '_>, id: CallId) -> Option<Out<'static>> {
    let call = source.call(id)?;
    let is_legacy = source.book.anchors.get(id.step.index())?.is_legacy;
    let json = if is_legacy {
        format!(r#"{{"role":"function","name":{},"content":"{NO_RESULT}"}}"#, json::quote(&call.tool))
    } else {
        format!(r#"{{"role":"tool","tool_call_id":{},"content":"{NO_RESULT}"}}"#, json::quote(&call.id))
    };
    Some(Out { role: Role::Tool, json: Cow::Owned(json) })
}

fn render<'a>(source: &Source<'a, '_>, raw: &'a str, role: Role, pieces: &[Piece<'_>]) -> Out<'a> {
    let as_it_came = Out { role, json: Cow::Borrowed(raw) };
    let Some(first) = pieces.first() else { return as_it_came };
    let known =
        Message::open(source.format, raw).filter(|message| !matches!(message.speaks, Speaks::Unknown(_)));
    let Some(message) = known else {
        let stub = first.stub(Place::Text(first.entry));
        return stub.map_or(as_it_came, |stub| note(source.format, stub, Voice::Fanfold));
    };
    let mut splices = Splices::default();
    let mut role = role;
    let segments = segments(source, &message, pieces);
    if !segments.is_empty() {
        edit_segments(&mut splices, &message, &segments, pieces);
        let is_without_results = pieces.iter().all(|piece| piece.result().is_none());
        if role == Role::Tool && is_without_results {
            make_users(&mut splices, &message);
            role = Role::User;
        }
    } else if let Some(id) = first.result() {
        edit_result(source, &mut splices, &message, first, id);
    } else if let Some(step) = source.step(first.entry) {
        edit_step(&mut splices, &message, first, step);
    } else {
        let is_orphan =
            source.book.anchors.get(first.entry.index()).is_some_and(|anchor| anchor.is_orphan_result);
        if is_orphan && source.format != Format::ShareGpt {
            return Out { role: Role::User, json: Cow::Owned(as_harness(source, &message, first)) };
        }
        if let Some((value, edited)) = edited_prompt(source, &message, first) {
            splices.replace(message.object.span(value), edited);
        }
    }
    if splices.is_empty() {
        return as_it_came;
    }
    Out { role, json: Cow::Owned(splices.apply(raw)) }
}

/// Puts what is left of a tool's message, when its results are gone, into the user's role.
fn make_users(splices: &mut Splices, message: &Message<'_>) {
    let name = if message.role_key == "from" { "human" } else { "user" };
    set_text(splices, &message.object, 0, message.role_key, name);
    let members: Vec<_> = message.object.fields.iter().map(|field| field.span.clone()).collect();
    splices.cut(&members, |i| message.object.fields[i].key == "tool_call_id");
}

/// The content of a prompt as it came and as it leaves, if it changes.
fn edited_prompt<'a>(
    source: &Source<'_, '_>,
    message: &Message<'a>,
    piece: &Piece<'_>,
) -> Option<(&'a str, String)> {
    let value = message.content?;
    let media = source.prompt(piece.entry).map(|prompt| piece.prompt_media(prompt)).unwrap_or_default();
    let edit = ContentEdit { text: piece.stub(Place::Text(piece.entry)), media };
    if !edit.is_empty() {
        return Some((value, edit.apply(value, "text")));
    }
    is_refused(value).then(|| (value, "\"\"".to_owned()))
}

/// Whether no provider takes this as a content.
fn is_refused(value: &str) -> bool {
    matches!(value, "null" | "[]")
}

/// A result without its call, in the user's role, since a provider refuses it in its own.
fn as_harness(source: &Source<'_, '_>, message: &Message<'_>, piece: &Piece<'_>) -> String {
    let content = match edited_prompt(source, message, piece) {
        Some((_, edited)) => edited,
        None => message.content.unwrap_or("\"\"").to_owned(),
    };
    let is_usable = content.starts_with('"') || content.starts_with('[');
    let content = if is_usable { content } else { json::quote(&content) };
    format!(r#"{{"role":"user","name":"harness","content":{content}}}"#)
}

fn edit_result(
    source: &Source<'_, '_>,
    splices: &mut Splices,
    message: &Message<'_>,
    piece: &Piece<'_>,
    id: CallId,
) {
    let Some(call) = source.call(id) else { return };
    if let Some(value) = message.content {
        let place = message.object.span(value);
        let media = ContentEdit { text: None, media: piece.result_media(id, call) };
        if let Some(stub) = piece.stub(Place::Result(id)) {
            splices.replace(place, result_value(value, stub));
        } else if !media.is_empty() {
            splices.replace(place, media.apply(value, "text"));
        } else if is_refused(value) {
            splices.replace(place, "\"\"");
        }
    }
    let is_called_in_text =
        source.book.anchors.get(id.step.index()).is_some_and(|anchor| anchor.has_text_calls);
    let is_tool = message.object.text("role").as_deref() == Some("tool");
    if is_tool && !is_called_in_text && source.format != Format::ShareGpt {
        set_text(splices, &message.object, 0, "tool_call_id", &call.id);
    }
}

/// A stub in the place of a result: a string where it was one, else one part.
fn result_value(value: &str, stub: &str) -> String {
    if value.starts_with('[') && value != "[]" {
        format!(r#"[{{"type":"text","text":{}}}]"#, json::quote(stub))
    } else {
        json::quote(stub)
    }
}

/// Writes a text into a field of an object that stands at an offset, if it is another one.
pub(crate) fn set_text(splices: &mut Splices, object: &Object<'_>, offset: usize, key: &str, text: &str) {
    if object.text(key).as_deref() == Some(text) {
        return;
    }
    match object.get(key) {
        Some(value) => {
            let place = object.span(value);
            splices.replace(offset + place.start..offset + place.end, json::quote(text));
        }
        None => {
            let brace = object.raw.find('{').unwrap_or_default() + 1;
            let comma = if object.fields.is_empty() { "" } else { ", " };
            splices
                .replace(offset + brace..offset + brace, format!("\"{key}\": {}{comma}", json::quote(text)));
        }
    }
}

fn edit_step(splices: &mut Splices, message: &Message<'_>, piece: &Piece<'_>, step: &Step) {
    let thought = edit_words(splices, message, piece, step);
    edit_reasoning(splices, message, piece, thought);
    if let Some(value) = message.content.filter(|value| is_refused(value) && message.calls().is_empty()) {
        let is_said_elsewhere = ["refusal", "audio"].iter().any(|key| message.object.some(key).is_some());
        if !is_said_elsewhere && piece.stub(Place::Text(piece.entry)).is_none() {
            splices.replace(message.object.span(value), "\"\"");
        }
    }
    let is_legacy = message.is_legacy();
    let native = message.calls();
    for (i, call) in step.calls.iter().enumerate() {
        let Some(raw) = native.get(call.origin.part as usize) else { continue };
        let Some(object) = Object::parse(raw) else { continue };
        let offset = message.object.span(raw).start;
        if !is_legacy {
            set_text(splices, &object, offset, "id", &call.id);
        }
        let stub = piece.stub(Place::Arguments(CallId { step: piece.entry, call: i as u16 }));
        let (_, Some(value)) = call_fields(&object, is_legacy) else { continue };
        if let Some(stub) = stub.or(EMPTY.filter(|_| value == "null")) {
            splices.replace(message.object.span(value), arguments_value(value, stub));
        }
    }
}

/// What a call without arguments is sent with, since a provider refuses null.
pub(crate) const EMPTY: Option<&str> = Some("{}");

/// A stub in the place of arguments: in a string where they were in one.
pub(crate) fn arguments_value(value: &str, stub: &str) -> String {
    let is_string = value.starts_with('"') || value == "null";
    if is_string { json::quote(stub) } else { object_of(stub).into_owned() }
}

/// Edits the content of a reply. Says whether it has thoughts in it.
fn edit_words(splices: &mut Splices, message: &Message<'_>, piece: &Piece<'_>, step: &Step) -> bool {
    let Some(value) = message.content else { return false };
    let text_stub = piece.stub(Place::Text(piece.entry));
    let decoded = json::string(value).map(|text| text.text).unwrap_or_default();
    let mut reply = Reply::read(&decoded);
    if !message.calls().is_empty() {
        reply.calls.clear();
    }
    if !reply.is_special() {
        if let Some(stub) = text_stub {
            let edit = ContentEdit { text: Some(stub), media: Vec::new() };
            splices.replace(message.object.span(value), edit.apply(value, "text"));
        }
        return false;
    }
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    if let (Some((span, inner)), Some(stub)) = (&reply.thought, piece.stub(Place::Reasoning(piece.entry))) {
        let place = if stub.is_empty() { span } else { inner };
        changes.push((place.clone(), stub.to_owned()));
    }
    if let Some(stub) = text_stub {
        for (i, place) in reply.words(&decoded).into_iter().enumerate() {
            changes.push((place, if i == 0 { stub.to_owned() } else { String::new() }));
        }
    }
    for (i, call) in reply.calls.iter().enumerate().take(step.calls.len()) {
        let id = CallId { step: piece.entry, call: i as u16 };
        if let Some(stub) = piece.stub(Place::Arguments(id)) {
            changes.push((call.place.clone(), call.written(stub)));
        }
    }
    replace_in_string(splices, message, value, changes);
    reply.thought.is_some()
}

/// Changes places of a string's text where they stand in its JSON.
fn replace_in_string(
    splices: &mut Splices,
    message: &Message<'_>,
    value: &str,
    mut changes: Vec<(Range<usize>, String)>,
) {
    changes.sort_by_key(|(place, _)| place.start);
    let offsets: Vec<_> = changes.iter().flat_map(|(place, _)| [place.start, place.end]).collect();
    let found = json::locate(value, &offsets);
    let start = message.object.span(value).start;
    for ((_, text), place) in changes.iter().zip(found.chunks_exact(2)) {
        let quoted = json::quote(text);
        splices.replace(start + place[0]..start + place[1], &quoted[1..quoted.len() - 1]);
    }
}

/// Leaves the fields of thoughts out, or writes the stub into the first that is a text.
fn edit_reasoning(splices: &mut Splices, message: &Message<'_>, piece: &Piece<'_>, is_in_text: bool) {
    let Some(stub) = piece.stub(Place::Reasoning(piece.entry)) else { return };
    let fields = &message.object.fields;
    let is_thought = |i: usize| REASONING.contains(&&*fields[i].key);
    let wants_text = !stub.is_empty() && !is_in_text;
    let kept = (0..fields.len()).find(|i| wants_text && is_thought(*i) && fields[*i].value.starts_with('"'));
    if let Some(kept) = kept {
        splices.replace(message.object.span(fields[kept].value), json::quote(stub));
    }
    let members: Vec<_> = fields.iter().map(|field| field.span.clone()).collect();
    splices.cut(&members, |i| is_thought(i) && Some(i) != kept);
}

/// The pieces of a message that holds results as text; empty if it is another kind of message.
fn segments(source: &Source<'_, '_>, message: &Message<'_>, pieces: &[Piece<'_>]) -> Vec<Segment> {
    let Some(first) = pieces.first() else { return Vec::new() };
    let note = source.book.notes.get(first.portion.origin.message as usize).copied().unwrap_or_default();
    let result = first.result().and_then(|id| source.call(id)?.result.as_ref());
    if note.n_parts == 1 && result.is_none() {
        return Vec::new();
    }
    let Some(text) = message.content.and_then(json::string) else { return Vec::new() };
    let segments = textresults::segments(&text.text);
    let is_lone_whole = match (result, segments.as_slice()) {
        (Some(result), [Segment::Result(_, inner)]) => result.body.as_str() != &text.text[inner.clone()],
        _ => false,
    };
    let is_cut_up = segments.len() == note.n_parts as usize && !is_lone_whole;
    if is_cut_up { segments } else { Vec::new() }
}

fn edit_segments(splices: &mut Splices, message: &Message<'_>, segments: &[Segment], pieces: &[Piece<'_>]) {
    let Some(value) = message.object.get(message.content_key) else { return };
    let by_part: BTreeMap<_, _> =
        pieces.iter().map(|piece| (piece.portion.origin.part as usize, piece)).collect();
    let mut changes = Vec::new();
    for (part, segment) in segments.iter().enumerate() {
        match (segment, by_part.get(&part)) {
            (segment, None) => changes.push((segment.span(), String::new())),
            (Segment::Result(_, inner), Some(piece)) => {
                // One without a call is a prompt of its own.
                let place = piece.result().map_or(Place::Text(piece.entry), Place::Result);
                let stub = piece.stub(place);
                changes.extend(stub.map(|stub| (inner.clone(), stub.to_owned())));
            }
            (Segment::Words(span), Some(piece)) => {
                let stub = piece.stub(Place::Text(piece.entry));
                changes.extend(stub.map(|stub| (span.clone(), stub.to_owned())));
            }
        }
    }
    replace_in_string(splices, message, value, changes);
}
