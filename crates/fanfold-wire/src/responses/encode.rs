//! Items as they leave.

use std::borrow::Cow;

use fanfold_core::{CallId, Place, Step, Voice};

use super::{Kind, arguments, kind};
use crate::book::{Role, What};
use crate::chat::{EMPTY, arguments_value, set_text};
use crate::content::ContentEdit;
use crate::json::{self, Object};
use crate::outgoing::{NO_RESULT, Out, Piece, Send, Source, open_with_user};
use crate::splice::Splices;

/// The items to send.
pub(crate) fn encode<'a>(source: &Source<'a, '_>, sends: &[Send<'_>]) -> Vec<Out<'a>> {
    let mut outs: Vec<(Out<'a>, Made)> = Vec::with_capacity(sends.len());
    for send in sends {
        match send {
            Send::Group { message, pieces, is_raw, .. } => {
                let note = source.book.notes.get(*message).copied().unwrap_or_default();
                let made = match (note.role, note.is_reasoning) {
                    (Role::Assistant, true) => Made::Thought,
                    (Role::Assistant, false) => Made::Item,
                    _ => Made::Not,
                };
                let raw = source.raw(*message);
                let out = if *is_raw { Some(Out { role: note.role, json: raw.into() }) } else { None };
                let out = out.or_else(|| render(source, raw, note.role, pieces.first()?));
                outs.extend(out.map(|out| (out, made)));
            }
            Send::Note { text, voice } => outs.push((note(text, *voice), Made::Not)),
            Send::Missing(call) => outs.extend(missing(source, *call).map(|out| (out, Made::Not))),
            Send::Gap(_) => {}
        }
    }
    let mut outs = without_lone_thoughts(outs);
    if !source.is_continued {
        open_with_user(&mut outs, |text| note(text, Voice::Fanfold).json.into_owned());
    }
    outs
}

/// What the model made of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Thought,
    Item,
    Not,
}

/// Drops the thoughts whose item is not there: the provider refuses them.
fn without_lone_thoughts<'a>(outs: Vec<(Out<'a>, Made)>) -> Vec<Out<'a>> {
    let mut is_followed = false;
    let mut kept = Vec::with_capacity(outs.len());
    for (out, made) in outs.into_iter().rev() {
        match made {
            Made::Thought if !is_followed => continue,
            Made::Thought => {}
            Made::Item => is_followed = true,
            Made::Not => is_followed = false,
        }
        kept.push(out);
    }
    kept.reverse();
    kept
}

fn note(text: &str, voice: Voice) -> Out<'static> {
    let text = json::quote(text);
    let (role, json) = match voice {
        Voice::Fanfold => (
            Role::User,
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
            ),
        ),
        Voice::Assistant => (Role::Assistant, format!(r#"{{"role":"assistant","content":{text}}}"#)),
    };
    Out { role, json: Cow::Owned(json) }
}

fn missing(source: &Source<'_, '_>, id: CallId) -> Option<Out<'static>> {
    let call = source.call(id)?;
    let object = Object::parse(source.raw(call.origin.message as usize))?;
    let kind = match &*object.text("type")? {
        "function_call" => "function_call_output",
        "custom_tool_call" => "custom_tool_call_output",
        "local_shell_call" => "local_shell_call_output",
        _ => return None,
    };
    let id = json::quote(&call.id);
    let json = format!(r#"{{"type":"{kind}","call_id":{id},"output":"{NO_RESULT}"}}"#);
    Some(Out { role: Role::Tool, json: Cow::Owned(json) })
}

fn render<'a>(source: &Source<'a, '_>, raw: &'a str, role: Role, piece: &Piece<'_>) -> Option<Out<'a>> {
    let stub = piece.stub(Place::Text(piece.entry));
    if raw.starts_with('"') {
        let content = stub.map_or(Cow::Borrowed(raw), |stub| Cow::Owned(json::quote(stub)));
        return Some(Out { role, json: Cow::Owned(format!(r#"{{"role":"user","content":{content}}}"#)) });
    }
    let as_it_came = Out { role, json: Cow::Borrowed(raw) };
    if piece.portion.what == What::Loose || is_kept(source, piece) {
        return Some(as_it_came);
    }
    let Some(object) = Object::parse(raw) else {
        return Some(stub.map_or(as_it_came, |stub| note(stub, Voice::Fanfold)));
    };
    let mut splices = Splices::default();
    if let Some(id) = piece.result() {
        edit_result(source, &mut splices, &object, piece, id);
    } else if let Some(step) = source.step(piece.entry) {
        let is_left = edit_step(source, &mut splices, &object, piece, step);
        if !is_left {
            return None;
        }
    } else if source.book.anchors.get(piece.entry.index()).is_some_and(|anchor| anchor.is_orphan_result) {
        if source.is_continued {
            return Some(as_it_came);
        }
        return Some(Out { role: Role::User, json: Cow::Owned(as_harness(source, &object, piece)) });
    } else if !is_plain_message(&object) {
        return Some(stub.map_or(as_it_came, |stub| note(stub, Voice::Fanfold)));
    } else {
        edit_prompt(source, &mut splices, &object, piece);
    }
    if splices.is_empty() {
        return Some(as_it_came);
    }
    Some(Out { role, json: Cow::Owned(splices.apply(raw)) })
}

/// Whether a stub can stand in the item's own content.
fn is_plain_message(object: &Object<'_>) -> bool {
    let is_known = matches!(object.text("role").as_deref(), Some("user" | "system" | "developer"));
    kind(object) == Kind::Message && is_known && object.get("content").is_some()
}

/// Whether the entry is sent as it is, whatever the view says.
fn is_kept(source: &Source<'_, '_>, piece: &Piece<'_>) -> bool {
    source.book.anchors.get(piece.entry.index()).is_some_and(|anchor| anchor.is_kept)
}

fn edit_prompt(source: &Source<'_, '_>, splices: &mut Splices, object: &Object<'_>, piece: &Piece<'_>) {
    let Some(value) = object.get("content") else { return };
    let media = source.prompt(piece.entry).map(|prompt| piece.prompt_media(prompt)).unwrap_or_default();
    let edit = ContentEdit { text: piece.stub(Place::Text(piece.entry)), media };
    if !edit.is_empty() {
        splices.replace(object.span(value), edit.apply(value, "input_text"));
    } else if matches!(value, "null" | "[]") {
        splices.replace(object.span(value), "\"\"");
    }
}

fn edit_result(
    source: &Source<'_, '_>,
    splices: &mut Splices,
    object: &Object<'_>,
    piece: &Piece<'_>,
    id: CallId,
) {
    let Some(call) = source.call(id) else { return };
    if let Some(value) = object.get("output") {
        let media = ContentEdit { text: None, media: piece.result_media(id, call) };
        if let Some(stub) = piece.stub(Place::Result(id)) {
            splices.replace(object.span(value), json::quote(stub));
        } else if !media.is_empty() {
            splices.replace(object.span(value), media.apply(value, "input_text"));
        }
    }
    set_call_id(splices, object, &call.id);
}

/// Writes the id under the key that the item has it under.
fn set_call_id(splices: &mut Splices, object: &Object<'_>, id: &str) {
    let is_under_id = object.text("call_id").is_none() && object.text("id").as_deref() == Some(id);
    if !is_under_id {
        set_text(splices, object, 0, "call_id", id);
    }
}

/// Edits an item of a step. Says whether anything is left of it.
fn edit_step(
    source: &Source<'_, '_>,
    splices: &mut Splices,
    object: &Object<'_>,
    piece: &Piece<'_>,
    step: &Step,
) -> bool {
    let Some(anchor) = source.book.anchors.get(piece.entry.index()) else { return true };
    let is_thoughtless = piece.stub(Place::Reasoning(piece.entry)).is_some() && !anchor.has_loose;
    match kind(object) {
        Kind::Reasoning if is_thoughtless => return false,
        Kind::Message => {
            let Some(value) = object.get("content") else { return true };
            if let Some(stub) = piece.stub(Place::Text(piece.entry)) {
                if anchor.said != Some(piece.portion.origin) {
                    return false;
                }
                let edit = ContentEdit { text: Some(stub), media: Vec::new() };
                splices.replace(object.span(value), edit.apply(value, "output_text"));
            } else if value == "null" {
                // What stands around an empty message may need it; the provider wants a list in it.
                splices.replace(object.span(value), "[]");
            }
        }
        Kind::Call => {
            let found = step.calls.binary_search_by_key(&piece.portion.origin, |call| call.origin);
            if let Ok(i) = found {
                let stub = piece.stub(Place::Arguments(CallId { step: piece.entry, call: i as u16 }));
                if let Some(value) = arguments(object)
                    && let Some(stub) = stub.or(EMPTY.filter(|_| value == "null"))
                {
                    splices.replace(object.span(value), arguments_value(value, stub));
                }
                set_call_id(splices, object, &step.calls[i].id);
            }
        }
        _ => {}
    }
    // The provider knows an item by its id, and then wants the thoughts that it had with it.
    if is_thoughtless {
        let members: Vec<_> = object.fields.iter().map(|field| field.span.clone()).collect();
        let has_call_id = object.text("call_id").is_some() || kind(object) == Kind::Message;
        splices.cut(&members, |i| has_call_id && object.fields[i].key == "id");
    }
    true
}

/// A result without its call, as a message, since the provider refuses it as an output.
fn as_harness(source: &Source<'_, '_>, object: &Object<'_>, piece: &Piece<'_>) -> String {
    let body = source.prompt(piece.entry).map(|prompt| prompt.body.as_str()).unwrap_or_default();
    let text = piece.stub(Place::Text(piece.entry)).unwrap_or(body);
    let is_list = object.get("output").is_some_and(|output| output.starts_with('[') && output != "[]");
    let content = match object.get("output") {
        Some(output) if is_list && piece.stub(Place::Text(piece.entry)).is_none() => output.to_owned(),
        _ => json::quote(text),
    };
    format!(r#"{{"type":"message","role":"user","content":{content}}}"#)
}
