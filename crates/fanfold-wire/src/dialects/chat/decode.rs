//! Decodes chat messages into entries.

use std::borrow::Cow;

use fanfold_core::{Body, Call, Outcome, Speaker, Step};

use super::{Layout, MessageRole, ParsedMessage, REASONING, call_fields};
use crate::content::Content;
use crate::conversation::change::Oddity;
use crate::conversation::entry_map::{Anchor, EntryMap, EntryRole, Portion, PortionRole};

use crate::content::text_calls::TextReply;
use crate::content::text_results::{self, ResultSegment};
use crate::conversation::outgoing::is_note;
use crate::conversation::pairing::Ids;
use crate::json::{self, Object};

/// Decodes one message.
pub(crate) fn decode(map: &mut EntryMap, layout: Layout, raw: &str) {
    map.begin_message();
    let Some(message) = ParsedMessage::parse(layout, raw) else {
        map.add_unknown(raw, Oddity::NotAMessage);
        return;
    };
    let content = Content::read(message.content);
    map.report_broken(0, &content);
    if matches!(message.content, Some("null" | "[]")) {
        map.require_encoding();
    }
    match &message.role {
        MessageRole::System => {
            map.set_role(EntryRole::System);
            let media = content.media(map.message());
            map.add_prompt(0, Speaker::System, content.body(), media);
        }
        MessageRole::User => user(map, &message, &content),
        MessageRole::Assistant => assistant(map, &message, &content),
        MessageRole::Call => single_call(map, &message, &content),
        MessageRole::Tool => tool(map, layout, &message, &content),
        MessageRole::Unknown(role) => map.add_unknown(raw, Oddity::UnknownRole(role.clone())),
    }
}

fn user(map: &mut EntryMap, message: &ParsedMessage<'_>, content: &Content<'_>) {
    if read_text_results(map, content, Speaker::User) {
        return;
    }
    // Notes of older versions had a name.
    let is_named = matches!(message.object.text("name").as_deref(), Some("harness" | "fanfold"));
    let is_note = is_named || is_note(&content.text);
    let segments = text_results::segments(&content.text);
    let is_all_results =
        !segments.is_empty() && segments.iter().all(|segment| matches!(segment, ResultSegment::Result(..)));
    let speaker = if is_note || is_all_results { Speaker::Harness } else { Speaker::User };
    let media = content.media(map.message());
    map.add_prompt(0, speaker, content.body(), media);
}

fn tool(map: &mut EntryMap, layout: Layout, message: &ParsedMessage<'_>, content: &Content<'_>) {
    map.set_role(EntryRole::Tool);
    if read_text_results(map, content, Speaker::Harness) {
        return;
    }
    let id = message.object.text("tool_call_id").filter(|id| !id.is_empty());
    let is_legacy = message.object.text("role").as_deref() == Some("function");
    let should_be_named = layout != Layout::ShareGpt && !is_legacy;
    if id.is_none() && should_be_named {
        map.repair(0, Oddity::UnnamedResult);
        map.require_encoding();
    }
    let is_error = message.object.get("is_error") == Some("true");
    map.add_result(0, id.as_deref(), content, is_error);
}

/// Gives results in a text to calls in a text. Returns whether there were any.
fn read_text_results(map: &mut EntryMap, content: &Content<'_>, speaker: Speaker) -> bool {
    let is_string = content.raw.starts_with('"');
    if !is_string || !map.pairing.awaits_unnamed() {
        return false;
    }
    let segments = text_results::segments(&content.text);
    if segments.is_empty() {
        return false;
    }
    let body =
        |text: &str| if content.is_broken { Body::with_raw(text, &*content.raw) } else { Body::text(text) };
    map.set_portions(segments.len());
    for (part, segment) in segments.iter().enumerate() {
        match segment {
            ResultSegment::Result(span, inner) => match map.pairing.take_unnamed() {
                Some(call) => {
                    let origin = map.origin(part);
                    let body = body(&content.text[inner.clone()]);
                    map.add_outcome(call, Outcome { body, is_error: false, media: Vec::new(), origin });
                }
                None => {
                    map.repair(part, Oddity::OrphanResult("in text".to_owned()));
                    map.add_prompt(part, Speaker::Harness, body(&content.text[span.clone()]), Vec::new());
                }
            },
            ResultSegment::Text(span) => {
                map.add_prompt(part, speaker, body(&content.text[span.clone()]), Vec::new());
            }
        }
    }
    true
}

fn assistant(map: &mut EntryMap, message: &ParsedMessage<'_>, content: &Content<'_>) {
    map.set_role(EntryRole::Assistant);
    let native = message.calls();
    let is_string = content.raw.starts_with('"');
    let reply = if is_string { TextReply::read(&content.text) } else { TextReply::default() };
    if native.is_empty() && !reply.calls.is_empty() {
        add_text_step(map, message, content, &reply);
        return;
    }
    let (calls, ids) = read_calls(map, &native, message.is_legacy());
    let reply = TextReply { calls: Vec::new(), ..reply };
    let text = if reply.is_special() { Body::text(prose(&reply, &content.text)) } else { content.body() };
    let step = Step { text, reasoning: reasoning(message, content, &reply), calls, origin: map.origin(0) };
    add_step(map, step, &ids).is_legacy = message.is_legacy();
}

fn add_text_step(map: &mut EntryMap, message: &ParsedMessage<'_>, content: &Content<'_>, reply: &TextReply) {
    let entry = map.next_entry();
    let calls = reply.calls.iter().take(usize::from(u16::MAX)).enumerate().map(|(i, call)| Call {
        id: format!("call_{}_{i}", entry.0),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        result: None,
        origin: map.origin(i),
    });
    let calls: Vec<_> = calls.collect();
    let text = Body::text(prose(reply, &content.text));
    let step = Step { text, reasoning: reasoning(message, content, reply), calls, origin: map.origin(0) };
    add_step(map, step, &[]).has_text_calls = true;
}

/// A message that consists of a call, as in some trajectories.
fn single_call(map: &mut EntryMap, message: &ParsedMessage<'_>, content: &Content<'_>) {
    let reply = TextReply::read(&content.text);
    let is_call = content.raw.starts_with('"') && !reply.calls.is_empty();
    if is_call {
        map.set_role(EntryRole::Assistant);
        add_text_step(map, message, content, &reply);
    } else {
        assistant(map, message, content);
    }
}

fn add_step<'b>(map: &'b mut EntryMap, step: Step, ids: &[Option<String>]) -> &'b mut Anchor {
    let portion = Portion { origin: step.origin, role: PortionRole::Own };
    map.add_step(step, vec![portion], ids)
}

/// The text of a reply without its thought and its calls.
fn prose(reply: &TextReply, text: &str) -> String {
    reply.prose(text).into_iter().map(|range| &text[range]).collect()
}

fn read_calls(map: &mut EntryMap, native: &[&str], is_legacy: bool) -> (Vec<Call>, Vec<Option<String>>) {
    if native.len() > usize::from(u16::MAX) {
        map.repair(0, Oddity::TooManyCalls);
    }
    let step = map.next_entry();
    let (mut calls, mut raw_ids, mut used) = (Vec::new(), Vec::new(), Ids::default());
    for (part, raw) in native.iter().enumerate().take(usize::from(u16::MAX)) {
        let object = Object::parse(raw);
        let (name, arguments) = object.as_ref().map_or((None, None), |call| call_fields(call, is_legacy));
        let raw_id = object.as_ref().and_then(|call| call.text("id")).filter(|id| !id.is_empty());
        let id = used.claim(raw_id.as_deref(), step, part);
        let tool = name.unwrap_or_default().into_owned();
        if raw_id.is_none() && !is_legacy {
            map.repair(part, Oddity::MissingId(id.clone()));
            map.require_encoding();
        } else if raw_id.as_ref().is_some_and(|raw| *raw != id) {
            map.repair(part, Oddity::DuplicateId(id.clone()));
            map.require_encoding();
        }
        if tool.is_empty() {
            map.repair(part, Oddity::NamelessCall);
        }
        let arguments = read_arguments(map, part, &tool, arguments);
        calls.push(Call { id, tool, arguments, result: None, origin: map.origin(part) });
        raw_ids.push(raw_id.map(Cow::into_owned));
    }
    (calls, raw_ids)
}

/// The arguments of a call: JSON in a string, or any other value unchanged.
pub(crate) fn read_arguments(map: &mut EntryMap, part: usize, tool: &str, value: Option<&str>) -> Body {
    let Some(value) = value else { return Body::text("") };
    if value == "null" {
        map.repair(part, Oddity::NoArguments(tool.to_owned()));
        map.require_encoding();
        return Body::with_raw("", value);
    }
    let Some(text) = json::string(value) else { return Body::text(value) };
    if !text.text.trim().is_empty() && !json::is_valid(&text.text) {
        map.repair(part, Oddity::ArgumentsNotJson(tool.to_owned()));
    }
    if text.is_exact { Body::text(&*text.text) } else { Body::with_raw(&*text.text, value) }
}

fn reasoning(message: &ParsedMessage<'_>, content: &Content<'_>, reply: &TextReply) -> Body {
    let thought = reply.thought.as_ref().map(|(_, inner)| &content.text[inner.clone()]);
    let fields: Vec<_> = REASONING.iter().filter_map(|key| Some((*key, message.object.some(key)?))).collect();
    if fields.is_empty() {
        return Body::text(thought.unwrap_or_default());
    }
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    if let Some(text) = fields.iter().find_map(|(_, value)| field_text(value)) {
        texts.push(text);
    }
    texts.extend(thought.map(Cow::Borrowed));
    let text = texts.join("\n");
    let only =
        fields.first().filter(|_| fields.len() == 1 && thought.is_none()).and_then(|(_, v)| json::string(v));
    if only.is_some_and(|only| only.is_exact) {
        return Body::text(text);
    }
    let mut members: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    members.extend(thought.map(|thought| format!("\"think\":{}", json::quote(thought))));
    Body::with_raw(text, format!("{{{}}}", members.join(",")))
}

/// The text of a field with thoughts: a string, or a list of parts with texts or summaries.
fn field_text(value: &str) -> Option<Cow<'_, str>> {
    if let Some(text) = json::string(value) {
        return Some(text.text).filter(|text| !text.is_empty());
    }
    let parts = json::array(value)?;
    let texts = parts.iter().filter_map(|part| {
        let part = Object::parse(part)?;
        part.text("text").or_else(|| part.text("summary"))
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() { None } else { Some(Cow::Owned(text)) }
}
