//! Messages of the chat kind, into entries.

use std::borrow::Cow;

use fanfold_core::{Body, Call, Outcome, Speaker, Step};

use super::{Message, REASONING, Speaks, call_fields};
use crate::book::{Anchor, Book, Portion, Role, What};
use crate::change::Oddity;
use crate::content::Content;
use crate::format::Format;
use crate::json::{self, Object};
use crate::outgoing::is_note;
use crate::pairing::Ids;
use crate::textcalls::Reply;
use crate::textresults::{self, Segment};

/// Reads one message.
pub(crate) fn decode(book: &mut Book, format: Format, raw: &str) {
    book.begin_message();
    let Some(message) = Message::open(format, raw) else {
        book.strange(raw, Oddity::NotAMessage);
        return;
    };
    let content = Content::read(message.content);
    if content.is_broken {
        book.repair(0, Oddity::LoneSurrogate);
    }
    if matches!(message.content, Some("null" | "[]")) {
        book.mark_odd();
    }
    match &message.speaks {
        Speaks::System => {
            book.set_role(Role::System);
            let media = content.media(book.message());
            book.prompt(0, Speaker::System, content.body(), media);
        }
        Speaks::User => user(book, &message, &content),
        Speaks::Assistant => assistant(book, &message, &content),
        Speaks::Call => call_alone(book, &message, &content),
        Speaks::Tool => tool(book, format, &message, &content),
        Speaks::Unknown(role) => book.strange(raw, Oddity::UnknownRole(role.clone())),
    }
}

fn user(book: &mut Book, message: &Message<'_>, content: &Content<'_>) {
    if results_in_text(book, content, Speaker::User) {
        return;
    }
    // Notes of ours had a name once.
    let is_named = matches!(message.object.text("name").as_deref(), Some("harness" | "fanfold"));
    let is_programs = is_named || is_note(&content.text);
    let segments = textresults::segments(&content.text);
    let is_all_results =
        !segments.is_empty() && segments.iter().all(|segment| matches!(segment, Segment::Result(..)));
    let speaker = if is_programs || is_all_results { Speaker::Harness } else { Speaker::User };
    let media = content.media(book.message());
    book.prompt(0, speaker, content.body(), media);
}

fn tool(book: &mut Book, format: Format, message: &Message<'_>, content: &Content<'_>) {
    book.set_role(Role::Tool);
    if results_in_text(book, content, Speaker::Harness) {
        return;
    }
    let id = message.object.text("tool_call_id").filter(|id| !id.is_empty());
    let is_legacy = message.object.text("role").as_deref() == Some("function");
    let should_be_named = format != Format::ShareGpt && !is_legacy;
    if id.is_none() && should_be_named {
        book.repair(0, Oddity::UnnamedResult);
        book.mark_odd();
    }
    let is_error = message.object.get("is_error") == Some("true");
    book.result(0, id.as_deref(), content, is_error);
}

/// Gives results that stand in a text to the calls that stood in one.
fn results_in_text(book: &mut Book, content: &Content<'_>, speaker: Speaker) -> bool {
    let is_string = content.raw.starts_with('"');
    if !is_string || !book.pairing.awaits_unnamed() {
        return false;
    }
    let segments = textresults::segments(&content.text);
    if segments.is_empty() {
        return false;
    }
    let body =
        |text: &str| if content.is_broken { Body::with_raw(text, &*content.raw) } else { Body::text(text) };
    book.set_parts(segments.len());
    for (part, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Result(span, inner) => match book.pairing.take_unnamed() {
                Some(call) => {
                    let origin = book.origin(part);
                    let body = body(&content.text[inner.clone()]);
                    book.answer(call, Outcome { body, is_error: false, media: Vec::new(), origin });
                }
                None => {
                    book.repair(part, Oddity::OrphanResult("in text".to_owned()));
                    book.prompt(part, Speaker::Harness, body(&content.text[span.clone()]), Vec::new());
                }
            },
            Segment::Words(span) => {
                book.prompt(part, speaker, body(&content.text[span.clone()]), Vec::new());
            }
        }
    }
    true
}

fn assistant(book: &mut Book, message: &Message<'_>, content: &Content<'_>) {
    book.set_role(Role::Assistant);
    let native = message.calls();
    let is_string = content.raw.starts_with('"');
    let reply = if is_string { Reply::read(&content.text) } else { Reply::default() };
    if native.is_empty() && !reply.calls.is_empty() {
        text_step(book, message, content, &reply);
        return;
    }
    let (calls, ids) = read_calls(book, &native, message.is_legacy());
    let reply = Reply { calls: Vec::new(), ..reply };
    let text = if reply.is_special() { Body::text(words(&reply, &content.text)) } else { content.body() };
    let step = Step { text, reasoning: reasoning(message, content, &reply), calls, origin: book.origin(0) };
    push_step(book, step, &ids).is_legacy = message.is_legacy();
}

fn text_step(book: &mut Book, message: &Message<'_>, content: &Content<'_>, reply: &Reply) {
    let entry = book.next_entry();
    let calls = reply.calls.iter().take(usize::from(u16::MAX)).enumerate().map(|(i, call)| Call {
        id: format!("call_{}_{i}", entry.0),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        result: None,
        origin: book.origin(i),
    });
    let calls: Vec<_> = calls.collect();
    let text = Body::text(words(reply, &content.text));
    let step = Step { text, reasoning: reasoning(message, content, reply), calls, origin: book.origin(0) };
    push_step(book, step, &[]).has_text_calls = true;
}

/// A message that is nothing but a call, as some trajectories have it.
fn call_alone(book: &mut Book, message: &Message<'_>, content: &Content<'_>) {
    let reply = Reply::read(&content.text);
    let is_call = content.raw.starts_with('"') && !reply.calls.is_empty();
    if is_call {
        book.set_role(Role::Assistant);
        text_step(book, message, content, &reply);
    } else {
        assistant(book, message, content);
    }
}

fn push_step<'b>(book: &'b mut Book, step: Step, ids: &[Option<String>]) -> &'b mut Anchor {
    let portion = Portion { origin: step.origin, what: What::Own };
    book.step(step, vec![portion], ids)
}

/// The words of a reply, without its thought and its calls.
fn words(reply: &Reply, text: &str) -> String {
    reply.words(text).into_iter().map(|place| &text[place]).collect()
}

fn read_calls(book: &mut Book, native: &[&str], is_legacy: bool) -> (Vec<Call>, Vec<Option<String>>) {
    if native.len() > usize::from(u16::MAX) {
        book.repair(0, Oddity::TooManyCalls);
    }
    let step = book.next_entry();
    let (mut calls, mut raw_ids, mut used) = (Vec::new(), Vec::new(), Ids::default());
    for (part, raw) in native.iter().enumerate().take(usize::from(u16::MAX)) {
        let object = Object::parse(raw);
        let (name, arguments) = object.as_ref().map_or((None, None), |call| call_fields(call, is_legacy));
        let raw_id = object.as_ref().and_then(|call| call.text("id")).filter(|id| !id.is_empty());
        let id = used.claim(raw_id.as_deref(), step, part);
        let tool = name.unwrap_or_default().into_owned();
        if raw_id.is_none() && !is_legacy {
            book.repair(part, Oddity::MissingId(id.clone()));
            book.mark_odd();
        } else if raw_id.as_ref().is_some_and(|raw| *raw != id) {
            book.repair(part, Oddity::DoubledId(id.clone()));
            book.mark_odd();
        }
        if tool.is_empty() {
            book.repair(part, Oddity::NamelessCall);
        }
        let arguments = read_arguments(book, part, &tool, arguments);
        calls.push(Call { id, tool, arguments, result: None, origin: book.origin(part) });
        raw_ids.push(raw_id.map(Cow::into_owned));
    }
    (calls, raw_ids)
}

/// The arguments of a call: JSON in a string, as the format has it, or whatever came instead.
pub(crate) fn read_arguments(book: &mut Book, part: usize, tool: &str, value: Option<&str>) -> Body {
    let Some(value) = value else { return Body::text("") };
    if value == "null" {
        book.repair(part, Oddity::NoArguments(tool.to_owned()));
        book.mark_odd();
        return Body::with_raw("", value);
    }
    let Some(text) = json::string(value) else { return Body::text(value) };
    if !text.text.trim().is_empty() && !json::is_valid(&text.text) {
        book.repair(part, Oddity::ArgumentsNotJson(tool.to_owned()));
    }
    if text.is_exact { Body::text(&*text.text) } else { Body::with_raw(&*text.text, value) }
}

fn reasoning(message: &Message<'_>, content: &Content<'_>, reply: &Reply) -> Body {
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
    let mut shown: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    shown.extend(thought.map(|thought| format!("\"think\":{}", json::quote(thought))));
    Body::with_raw(text, format!("{{{}}}", shown.join(",")))
}

/// The readable text of a field of thoughts: a string, or a list of pieces with texts or summaries.
fn field_text(value: &str) -> Option<Cow<'_, str>> {
    if let Some(text) = json::string(value) {
        return Some(text.text).filter(|text| !text.is_empty());
    }
    let pieces = json::array(value)?;
    let texts = pieces.iter().filter_map(|piece| {
        let piece = Object::parse(piece)?;
        piece.text("text").or_else(|| piece.text("summary"))
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() { None } else { Some(Cow::Owned(text)) }
}
