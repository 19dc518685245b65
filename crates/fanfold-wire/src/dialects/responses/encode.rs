//! Encodes items.

use std::borrow::Cow;

use fanfold_core::{CallId, Place, Step, Voice};

use super::{ItemKind, arguments, kind};
use crate::content::ContentEdit;
use crate::conversation::entry_map::{EntryRole, PortionRole};
use crate::conversation::outgoing::{
    EncodeSource, NO_RESULT, OutMessage, OutPortion, SendItem, open_with_user,
};
use crate::dialects::chat::{EMPTY, arguments_value, set_text};
use crate::json::Splices;
use crate::json::{self, Object};

/// Encodes items.
pub(crate) fn encode<'a>(
    source: &EncodeSource<'a, '_>,
    items_to_send: &[SendItem<'_>],
) -> Vec<OutMessage<'a>> {
    let mut outs: Vec<(OutMessage<'a>, ItemOrigin)> = Vec::with_capacity(items_to_send.len());
    for send in items_to_send {
        match send {
            SendItem::Group { message, portions, is_raw, .. } => {
                let facts = source.map.messages.get(*message).copied().unwrap_or_default();
                let origin = match (facts.role, facts.is_reasoning) {
                    (EntryRole::Assistant, true) => ItemOrigin::Thought,
                    (EntryRole::Assistant, false) => ItemOrigin::Model,
                    _ => ItemOrigin::Client,
                };
                let raw = source.raw(*message);
                let out =
                    if *is_raw { Some(OutMessage { role: facts.role, json: raw.into() }) } else { None };
                let out = out.or_else(|| render(source, raw, facts.role, portions.first()?));
                outs.extend(out.map(|out| (out, origin)));
            }
            SendItem::Note { text, voice } => outs.push((note(text, *voice), ItemOrigin::Client)),
            SendItem::Missing(call) => {
                outs.extend(missing(source, *call).map(|out| (out, ItemOrigin::Client)));
            }
            SendItem::Gap(_) => {}
        }
    }
    let mut outs = without_lone_thoughts(outs);
    if !source.is_continued {
        open_with_user(&mut outs, |text| note(text, Voice::Fanfold).json.into_owned());
    }
    outs
}

/// True if the model made an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemOrigin {
    Thought,
    Model,
    Client,
}

/// Removes thoughts without a following item of the model, because the provider rejects them.
fn without_lone_thoughts<'a>(outs: Vec<(OutMessage<'a>, ItemOrigin)>) -> Vec<OutMessage<'a>> {
    let mut is_followed = false;
    let mut kept = Vec::with_capacity(outs.len());
    for (out, origin) in outs.into_iter().rev() {
        match origin {
            ItemOrigin::Thought if !is_followed => continue,
            ItemOrigin::Thought => {}
            ItemOrigin::Model => is_followed = true,
            ItemOrigin::Client => is_followed = false,
        }
        kept.push(out);
    }
    kept.reverse();
    kept
}

fn note(text: &str, voice: Voice) -> OutMessage<'static> {
    let text = json::quote(text);
    let (role, json) = match voice {
        Voice::Fanfold => (
            EntryRole::User,
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
            ),
        ),
        Voice::Assistant => (EntryRole::Assistant, format!(r#"{{"role":"assistant","content":{text}}}"#)),
    };
    OutMessage { role, json: Cow::Owned(json) }
}

fn missing(source: &EncodeSource<'_, '_>, id: CallId) -> Option<OutMessage<'static>> {
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
    Some(OutMessage { role: EntryRole::Tool, json: Cow::Owned(json) })
}

fn render<'a>(
    source: &EncodeSource<'a, '_>,
    raw: &'a str,
    role: EntryRole,
    portion: &OutPortion<'_>,
) -> Option<OutMessage<'a>> {
    let stub = portion.stub(Place::Text(portion.entry));
    if raw.starts_with('"') {
        let content = stub.map_or(Cow::Borrowed(raw), |stub| Cow::Owned(json::quote(stub)));
        return Some(OutMessage {
            role,
            json: Cow::Owned(format!(r#"{{"role":"user","content":{content}}}"#)),
        });
    }
    let unchanged = OutMessage { role, json: Cow::Borrowed(raw) };
    if portion.source.role == PortionRole::Attached || is_always_sent(source, portion) {
        return Some(unchanged);
    }
    let Some(object) = Object::parse(raw) else {
        return Some(stub.map_or(unchanged, |stub| note(stub, Voice::Fanfold)));
    };
    let mut splices = Splices::default();
    if let Some(id) = portion.result() {
        edit_result(source, &mut splices, &object, portion, id);
    } else if let Some(step) = source.step(portion.entry) {
        let is_kept = edit_step(source, &mut splices, &object, portion, step);
        if !is_kept {
            return None;
        }
    } else if source.map.anchors.get(portion.entry.index()).is_some_and(|anchor| anchor.is_orphan_result) {
        if source.is_continued {
            return Some(unchanged);
        }
        return Some(OutMessage {
            role: EntryRole::User,
            json: Cow::Owned(orphan_as_message(source, &object, portion)),
        });
    } else if !is_plain_message(&object) {
        return Some(stub.map_or(unchanged, |stub| note(stub, Voice::Fanfold)));
    } else {
        edit_prompt(source, &mut splices, &object, portion);
    }
    if splices.is_empty() {
        return Some(unchanged);
    }
    Some(OutMessage { role, json: Cow::Owned(splices.apply(raw)) })
}

/// Returns whether a stub can replace the item's content.
fn is_plain_message(object: &Object<'_>) -> bool {
    let is_known = matches!(object.text("role").as_deref(), Some("user" | "system" | "developer"));
    kind(object) == ItemKind::Message && is_known && object.get("content").is_some()
}

/// Returns whether the entry is always sent unchanged.
fn is_always_sent(source: &EncodeSource<'_, '_>, portion: &OutPortion<'_>) -> bool {
    source.map.anchors.get(portion.entry.index()).is_some_and(|anchor| anchor.is_always_sent)
}

fn edit_prompt(
    source: &EncodeSource<'_, '_>,
    splices: &mut Splices,
    object: &Object<'_>,
    portion: &OutPortion<'_>,
) {
    let Some(value) = object.get("content") else { return };
    let media = source.prompt(portion.entry).map(|prompt| portion.prompt_media(prompt)).unwrap_or_default();
    let edit = ContentEdit { text: portion.stub(Place::Text(portion.entry)), media };
    if !edit.is_empty() {
        splices.replace(object.span(value), edit.apply(value, "input_text"));
    } else if matches!(value, "null" | "[]") {
        splices.replace(object.span(value), "\"\"");
    }
}

fn edit_result(
    source: &EncodeSource<'_, '_>,
    splices: &mut Splices,
    object: &Object<'_>,
    portion: &OutPortion<'_>,
    id: CallId,
) {
    let Some(call) = source.call(id) else { return };
    if let Some(value) = object.get("output") {
        let media = ContentEdit { text: None, media: portion.result_media(id, call) };
        if let Some(stub) = portion.stub(Place::Result(id)) {
            splices.replace(object.span(value), json::quote(stub));
        } else if !media.is_empty() {
            splices.replace(object.span(value), media.apply(value, "input_text"));
        }
    }
    set_call_id(splices, object, &call.id);
}

/// Sets the id under the key that the item uses.
fn set_call_id(splices: &mut Splices, object: &Object<'_>, id: &str) {
    let is_under_id = object.text("call_id").is_none() && object.text("id").as_deref() == Some(id);
    if !is_under_id {
        set_text(splices, object, 0, "call_id", id);
    }
}

/// Edits an item of a step. Returns whether it is still sent.
fn edit_step(
    source: &EncodeSource<'_, '_>,
    splices: &mut Splices,
    object: &Object<'_>,
    portion: &OutPortion<'_>,
    step: &Step,
) -> bool {
    let Some(anchor) = source.map.anchors.get(portion.entry.index()) else { return true };
    let is_thoughtless = portion.stub(Place::Reasoning(portion.entry)).is_some() && !anchor.has_attached;
    match kind(object) {
        ItemKind::Reasoning if is_thoughtless => return false,
        ItemKind::Message => {
            let Some(value) = object.get("content") else { return true };
            if let Some(stub) = portion.stub(Place::Text(portion.entry)) {
                if anchor.first_text != Some(portion.source.origin) {
                    return false;
                }
                let edit = ContentEdit { text: Some(stub), media: Vec::new() };
                splices.replace(object.span(value), edit.apply(value, "output_text"));
            } else if value == "null" {
                // Its neighbours may need an empty message. The provider requires a list in it.
                splices.replace(object.span(value), "[]");
            }
        }
        ItemKind::Call => {
            let found = step.calls.binary_search_by_key(&portion.source.origin, |call| call.origin);
            if let Ok(i) = found {
                let stub = portion.stub(Place::Arguments(CallId { step: portion.entry, call: i as u16 }));
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
    // For an item with an id the provider requires its thoughts.
    if is_thoughtless {
        let has_call_id = object.text("call_id").is_some() || kind(object) == ItemKind::Message;
        splices.cut_fields(object, 0, |key| has_call_id && key == "id");
    }
    true
}

/// A result without its call as a message, because the provider rejects it as an output.
fn orphan_as_message(source: &EncodeSource<'_, '_>, object: &Object<'_>, portion: &OutPortion<'_>) -> String {
    let body = source.prompt(portion.entry).map(|prompt| prompt.body.as_str()).unwrap_or_default();
    let text = portion.stub(Place::Text(portion.entry)).unwrap_or(body);
    let is_list = object.get("output").is_some_and(|output| output.starts_with('[') && output != "[]");
    let content = match object.get("output") {
        Some(output) if is_list && portion.stub(Place::Text(portion.entry)).is_none() => output.to_owned(),
        _ => json::quote(text),
    };
    format!(r#"{{"type":"message","role":"user","content":{content}}}"#)
}
