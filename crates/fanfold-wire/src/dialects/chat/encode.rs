//! Encodes chat messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use fanfold_core::{CallId, Place, Step, Voice};

use super::{Layout, MessageRole, ParsedMessage, REASONING, call_fields};
use crate::content::ContentEdit;
use crate::content::text_calls::{TextReply, wrap_as_object};
use crate::content::text_results::{self, ResultSegment};
use crate::conversation::entry_map::EntryRole;
use crate::conversation::outgoing::{
    EncodeSource, NO_RESULT, OutMessage, OutPortion, SendItem, open_with_user,
};
use crate::json::Splices;
use crate::json::{self, Object};

/// Encodes messages.
pub(crate) fn encode<'a>(
    layout: Layout,
    source: &EncodeSource<'a, '_>,
    items_to_send: &[SendItem<'_>],
) -> Vec<OutMessage<'a>> {
    let mut messages: Vec<_> =
        items_to_send.iter().filter_map(|item| encode_message(layout, source, item)).collect();
    open_with_user(&mut messages, |text| note(layout, text, Voice::Fanfold).json.into_owned());
    messages
}

/// Encodes one message; `None` omits it.
pub(crate) fn encode_message<'a>(
    layout: Layout,
    source: &EncodeSource<'a, '_>,
    item: &SendItem<'_>,
) -> Option<OutMessage<'a>> {
    match item {
        SendItem::Group { message, portions, is_raw, .. } => {
            let (role, raw) = (source.role(*message), source.raw(*message));
            let unchanged = OutMessage { role, json: raw.into() };
            Some(if *is_raw { unchanged } else { render(layout, source, raw, unchanged, portions) })
        }
        SendItem::Note { text, voice } => Some(note(layout, text, *voice)),
        SendItem::Missing(call) => missing(source, *call),
        SendItem::Gap(_) => None,
    }
}

fn note(layout: Layout, text: &str, voice: Voice) -> OutMessage<'static> {
    let text = json::quote(text);
    let (role, json) = match (layout, voice) {
        (Layout::ShareGpt, Voice::Fanfold) => {
            (EntryRole::User, format!(r#"{{"from":"human","value":{text}}}"#))
        }
        (Layout::ShareGpt, Voice::Assistant) => {
            (EntryRole::Assistant, format!(r#"{{"from":"gpt","value":{text}}}"#))
        }
        // Without a name, because some providers reject one.
        (Layout::OpenAi, Voice::Fanfold) => {
            (EntryRole::User, format!(r#"{{"role":"user","content":{text}}}"#))
        }
        (Layout::OpenAi, Voice::Assistant) => {
            (EntryRole::Assistant, format!(r#"{{"role":"assistant","content":{text}}}"#))
        }
    };
    OutMessage { role, json: Cow::Owned(json) }
}

fn missing(source: &EncodeSource<'_, '_>, id: CallId) -> Option<OutMessage<'static>> {
    let call = source.call(id)?;
    let is_legacy = source.map.anchors.get(id.step.index())?.is_legacy;
    let json = if is_legacy {
        format!(r#"{{"role":"function","name":{},"content":"{NO_RESULT}"}}"#, json::quote(&call.tool))
    } else {
        format!(r#"{{"role":"tool","tool_call_id":{},"content":"{NO_RESULT}"}}"#, json::quote(&call.id))
    };
    Some(OutMessage { role: EntryRole::Tool, json: Cow::Owned(json) })
}

fn render<'a>(
    layout: Layout,
    source: &EncodeSource<'a, '_>,
    raw: &'a str,
    unchanged: OutMessage<'a>,
    portions: &[OutPortion<'_>],
) -> OutMessage<'a> {
    let Some(first) = portions.first() else { return unchanged };
    let known =
        ParsedMessage::parse(layout, raw).filter(|message| !matches!(message.role, MessageRole::Unknown(_)));
    let Some(message) = known else {
        let stub = first.stub(Place::Text(first.entry));
        return stub.map_or(unchanged, |stub| note(layout, stub, Voice::Fanfold));
    };
    let mut splices = Splices::default();
    let mut role = unchanged.role;
    let segments = segments(source, &message, portions);
    if !segments.is_empty() {
        edit_segments(&mut splices, &message, &segments, portions);
        let has_no_results = portions.iter().all(|portion| portion.result().is_none());
        if role == EntryRole::Tool && has_no_results {
            change_role_to_user(&mut splices, &message);
            role = EntryRole::User;
        }
    } else if let Some(id) = first.result() {
        edit_result(layout, source, &mut splices, &message, first, id);
    } else if let Some(step) = source.step(first.entry) {
        edit_step(&mut splices, &message, first, step);
    } else {
        let is_orphan =
            source.map.anchors.get(first.entry.index()).is_some_and(|anchor| anchor.is_orphan_result);
        if is_orphan && layout != Layout::ShareGpt {
            return OutMessage {
                role: EntryRole::User,
                json: Cow::Owned(orphan_as_user(source, &message, first)),
            };
        }
        if let Some((value, edited)) = edited_prompt(source, &message, first) {
            splices.replace(message.object.span(value), edited);
        }
    }
    if splices.is_empty() {
        return unchanged;
    }
    OutMessage { role, json: Cow::Owned(splices.apply(raw)) }
}

/// Gives the rest of a tool message without results the user's role.
fn change_role_to_user(splices: &mut Splices, message: &ParsedMessage<'_>) {
    let name = if message.role_key == "from" { "human" } else { "user" };
    set_text(splices, &message.object, 0, message.role_key, name);
    splices.cut_fields(&message.object, 0, |key| key == "tool_call_id");
}

/// The original and the edited content of a prompt, if it changes.
fn edited_prompt<'a>(
    source: &EncodeSource<'_, '_>,
    message: &ParsedMessage<'a>,
    portion: &OutPortion<'_>,
) -> Option<(&'a str, String)> {
    let value = message.content?;
    let media = source.prompt(portion.entry).map(|prompt| portion.prompt_media(prompt)).unwrap_or_default();
    let edit = ContentEdit { text: portion.stub(Place::Text(portion.entry)), media };
    if !edit.is_empty() {
        return Some((value, edit.apply(value, "text")));
    }
    is_refused(value).then(|| (value, "\"\"".to_owned()))
}

/// Returns whether providers reject this content.
fn is_refused(value: &str) -> bool {
    matches!(value, "null" | "[]")
}

/// A result without its call as a user message, because providers reject it as a result.
fn orphan_as_user(
    source: &EncodeSource<'_, '_>,
    message: &ParsedMessage<'_>,
    portion: &OutPortion<'_>,
) -> String {
    let content = match edited_prompt(source, message, portion) {
        Some((_, edited)) => edited,
        None => message.content.unwrap_or("\"\"").to_owned(),
    };
    let is_usable = content.starts_with('"') || content.starts_with('[');
    let content = if is_usable { content } else { json::quote(&content) };
    format!(r#"{{"role":"user","name":"harness","content":{content}}}"#)
}

fn edit_result(
    layout: Layout,
    source: &EncodeSource<'_, '_>,
    splices: &mut Splices,
    message: &ParsedMessage<'_>,
    portion: &OutPortion<'_>,
    id: CallId,
) {
    let Some(call) = source.call(id) else { return };
    if let Some(value) = message.content {
        let place = message.object.span(value);
        let media = ContentEdit { text: None, media: portion.result_media(id, call) };
        if let Some(stub) = portion.stub(Place::Result(id)) {
            splices.replace(place, result_value(value, stub));
        } else if !media.is_empty() {
            splices.replace(place, media.apply(value, "text"));
        } else if is_refused(value) {
            splices.replace(place, "\"\"");
        }
    }
    let is_called_in_text =
        source.map.anchors.get(id.step.index()).is_some_and(|anchor| anchor.has_text_calls);
    let is_tool = message.object.text("role").as_deref() == Some("tool");
    if is_tool && !is_called_in_text && layout != Layout::ShareGpt {
        set_text(splices, &message.object, 0, "tool_call_id", &call.id);
    }
}

/// A stub in place of a result: a string, or a list of one part if the result was a list.
fn result_value(value: &str, stub: &str) -> String {
    if value.starts_with('[') && value != "[]" {
        format!(r#"[{{"type":"text","text":{}}}]"#, json::quote(stub))
    } else {
        json::quote(stub)
    }
}

/// Sets a field of an object at an offset to a text, if it differs.
pub(crate) fn set_text(splices: &mut Splices, object: &Object<'_>, offset: usize, key: &str, text: &str) {
    if object.text(key).as_deref() == Some(text) {
        return;
    }
    match object.get(key) {
        Some(value) => {
            let span = object.span(value);
            splices.replace(offset + span.start..offset + span.end, json::quote(text));
        }
        None => {
            let brace = object.raw.find('{').unwrap_or_default() + 1;
            let comma = if object.fields.is_empty() { "" } else { ", " };
            splices
                .replace(offset + brace..offset + brace, format!("\"{key}\": {}{comma}", json::quote(text)));
        }
    }
}

fn edit_step(splices: &mut Splices, message: &ParsedMessage<'_>, portion: &OutPortion<'_>, step: &Step) {
    let thought = edit_text(splices, message, portion, step);
    edit_reasoning(splices, message, portion, thought);
    if let Some(value) = message.content.filter(|value| is_refused(value) && message.calls().is_empty()) {
        let has_other_content = ["refusal", "audio"].iter().any(|key| message.object.some(key).is_some());
        if !has_other_content && portion.stub(Place::Text(portion.entry)).is_none() {
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
        let stub = portion.stub(Place::Arguments(CallId { step: portion.entry, call: i as u16 }));
        let (_, Some(value)) = call_fields(&object, is_legacy) else { continue };
        if let Some(stub) = stub.or(EMPTY.filter(|_| value == "null")) {
            splices.replace(message.object.span(value), arguments_value(value, stub));
        }
    }
}

/// The arguments of a call without any, because providers reject null.
pub(crate) const EMPTY: Option<&str> = Some("{}");

/// A stub in place of arguments: a string if they were one.
pub(crate) fn arguments_value(value: &str, stub: &str) -> String {
    let is_string = value.starts_with('"') || value == "null";
    if is_string { json::quote(stub) } else { wrap_as_object(stub).into_owned() }
}

/// Edits the text of a reply. Returns whether the text has thoughts.
fn edit_text(
    splices: &mut Splices,
    message: &ParsedMessage<'_>,
    portion: &OutPortion<'_>,
    step: &Step,
) -> bool {
    let Some(value) = message.content else { return false };
    let text_stub = portion.stub(Place::Text(portion.entry));
    let decoded = json::string(value).map(|text| text.text).unwrap_or_default();
    let mut reply = TextReply::read(&decoded);
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
    if let (Some((span, inner)), Some(stub)) = (&reply.thought, portion.stub(Place::Reasoning(portion.entry)))
    {
        let range = if stub.is_empty() { span } else { inner };
        changes.push((range.clone(), stub.to_owned()));
    }
    if let Some(stub) = text_stub {
        for (i, range) in reply.prose(&decoded).into_iter().enumerate() {
            changes.push((range, if i == 0 { stub.to_owned() } else { String::new() }));
        }
    }
    for (i, call) in reply.calls.iter().enumerate().take(step.calls.len()) {
        let id = CallId { step: portion.entry, call: i as u16 };
        if let Some(stub) = portion.stub(Place::Arguments(id)) {
            changes.push((call.arguments_range.clone(), call.format_arguments(stub)));
        }
    }
    replace_in_string(splices, message, value, changes);
    reply.thought.is_some()
}

/// Changes ranges of a string's text in its JSON.
fn replace_in_string(
    splices: &mut Splices,
    message: &ParsedMessage<'_>,
    value: &str,
    mut changes: Vec<(Range<usize>, String)>,
) {
    changes.sort_by_key(|(range, _)| range.start);
    let offsets: Vec<_> = changes.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    let found = json::locate(value, &offsets);
    let start = message.object.span(value).start;
    for ((_, text), range) in changes.iter().zip(found.chunks_exact(2)) {
        let quoted = json::quote(text);
        splices.replace(start + range[0]..start + range[1], &quoted[1..quoted.len() - 1]);
    }
}

/// Removes the fields with thoughts, or puts the stub into the first one that is a text.
fn edit_reasoning(
    splices: &mut Splices,
    message: &ParsedMessage<'_>,
    portion: &OutPortion<'_>,
    is_in_text: bool,
) {
    let Some(stub) = portion.stub(Place::Reasoning(portion.entry)) else { return };
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

/// The segments of a message with results as text; empty for other messages.
fn segments(
    source: &EncodeSource<'_, '_>,
    message: &ParsedMessage<'_>,
    portions: &[OutPortion<'_>],
) -> Vec<ResultSegment> {
    let Some(first) = portions.first() else { return Vec::new() };
    let facts = source.map.messages.get(first.source.origin.message as usize).copied().unwrap_or_default();
    let result = first.result().and_then(|id| source.call(id)?.result.as_ref());
    if facts.n_portions == 1 && result.is_none() {
        return Vec::new();
    }
    let Some(text) = message.content.and_then(json::string) else { return Vec::new() };
    let segments = text_results::segments(&text.text);
    let is_lone_whole = match (result, segments.as_slice()) {
        (Some(result), [ResultSegment::Result(_, inner)]) => {
            result.body.as_str() != &text.text[inner.clone()]
        }
        _ => false,
    };
    let is_split = segments.len() == facts.n_portions as usize && !is_lone_whole;
    if is_split { segments } else { Vec::new() }
}

fn edit_segments(
    splices: &mut Splices,
    message: &ParsedMessage<'_>,
    segments: &[ResultSegment],
    portions: &[OutPortion<'_>],
) {
    let Some(value) = message.object.get(message.content_key) else { return };
    let by_part: BTreeMap<_, _> =
        portions.iter().map(|portion| (portion.source.origin.part as usize, portion)).collect();
    let mut changes = Vec::new();
    for (part, segment) in segments.iter().enumerate() {
        match (segment, by_part.get(&part)) {
            (segment, None) => changes.push((segment.span(), String::new())),
            (ResultSegment::Result(_, inner), Some(portion)) => {
                // A result without a call is a prompt.
                let place = portion.result().map_or(Place::Text(portion.entry), Place::Result);
                let stub = portion.stub(place);
                changes.extend(stub.map(|stub| (inner.clone(), stub.to_owned())));
            }
            (ResultSegment::Text(span), Some(portion)) => {
                let stub = portion.stub(Place::Text(portion.entry));
                changes.extend(stub.map(|stub| (span.clone(), stub.to_owned())));
            }
        }
    }
    replace_in_string(splices, message, value, changes);
}
