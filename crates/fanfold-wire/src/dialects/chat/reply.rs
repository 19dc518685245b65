//! Replies of Chat Completions.

use super::request::ChatCompletions;
use super::rounds;
use crate::dialects::{EventTexts, Replies, TextFragment};
use crate::json::{self, Object};
use crate::reply::reader::{Reading, ReplyFailure, has_value};
use crate::reply::rounds::JoinRounds;
use crate::reply::sse::SseEvent;
use crate::reply::text::TextReader;
use crate::reply::usage::number;

impl Replies for ChatCompletions {
    fn read_event(&self, reading: &mut Reading, event: &SseEvent) {
        let raw = event.raw();
        let is_first = !reading.has_begun;
        let is_relevant = is_first
            || ["\"tool_calls\"", "\"finish_reason\"", "\"usage\"", "\"error\""]
                .iter()
                .any(|key| has_value(raw, key));
        if !is_relevant && memchr::memmem::find(raw, b"[DONE]").is_none() {
            return;
        }
        let Some(data) = event.data() else { return };
        if data.trim() == "[DONE]" {
            reading.reply.is_ended = true;
            return;
        }
        let Some(chunk) = Object::parse(&data) else { return };
        if is_first {
            reading.has_begun = true;
            reading.reply.id = chunk.text("id").map(Into::into);
            reading.reply.model = chunk.text("model").map(Into::into);
        }
        // Groq has a field of its own for the usage of a stream.
        let groq = chunk.some("x_groq").and_then(Object::parse).and_then(|groq| groq.some("usage"));
        for usage in groq.into_iter().chain(chunk.some("usage")) {
            reading.usage.read(usage);
        }
        if chunk.some("error").is_some() {
            reading.reply.failure = ReplyFailure::read(&data);
        }
        let Some(choice) = first_choice(&chunk) else { return };
        if let Some(delta) = choice.some("delta").and_then(Object::parse) {
            read_calls(reading, &delta);
        }
        read_finish_reason(reading, &choice);
    }

    fn read_whole(&self, reading: &mut Reading, body: &Object<'_>) {
        let Some(choice) = first_choice(body) else { return };
        if let Some(message) = choice.some("message").and_then(Object::parse) {
            read_calls(reading, &message);
        }
        read_finish_reason(reading, &choice);
    }

    fn is_preamble(&self, _event: &SseEvent, data: &str) -> bool {
        let Some(chunk) = Object::parse(data).filter(|_| json::is_valid(data)) else { return false };
        let choices = chunk.get("choices").and_then(json::array).unwrap_or_default();
        let Some(choice) = choices.first().and_then(|choice| Object::parse(choice)) else { return false };
        let is_empty =
            |field: &json::Field<'_>| field.key == "role" || matches!(field.value, "null" | "\"\"");
        let has_no_content = choice
            .get("delta")
            .and_then(Object::parse)
            .is_some_and(|delta| delta.fields.iter().all(is_empty));
        has_no_content && choice.some("finish_reason").is_none() && chunk.some("error").is_none()
    }

    fn text_of_event(&self, reader: &mut TextReader, _kind: &str, event: &Object<'_>) -> String {
        let delta = first_choice(event)
            .and_then(|choice| choice.some("delta").or_else(|| choice.some("message")))
            .and_then(Object::parse);
        delta.map_or_else(String::new, |delta| text_of_message(reader, &delta))
    }

    fn text_of_whole(&self, reader: &mut TextReader, body: &Object<'_>) -> String {
        let message = first_choice(body).and_then(|choice| choice.some("message")).and_then(Object::parse);
        message.map_or_else(String::new, |message| text_of_message(reader, &message))
    }

    fn texts_of_event<'d>(&self, _kind: &str, event: &Object<'d>) -> EventTexts<'d> {
        let mut texts = EventTexts::default();
        for choice in event.some("choices").and_then(json::array).unwrap_or_default() {
            let Some(choice) = Object::parse(choice) else { continue };
            let text = choice.get("index").unwrap_or("0").to_owned();
            let delta = choice.some("delta").and_then(Object::parse);
            if choice.some("finish_reason").is_some() {
                texts.ended_after.push(text.clone());
            }
            if let Some(value) = delta.and_then(|delta| delta.some("content")) {
                texts.fragments.push(TextFragment { text_name: text, value, is_whole: false });
            } else if choice.some("finish_reason").is_some() {
                texts.ended_before.push(text);
            }
        }
        texts
    }

    fn texts_of_whole<'d>(&self, body: &Object<'d>) -> Vec<&'d str> {
        let choices = body.some("choices").and_then(json::array).unwrap_or_default();
        let messages = choices
            .into_iter()
            .filter_map(|choice| Object::parse(choice)?.some("message").and_then(Object::parse));
        messages
            .filter_map(|message| message.some("content").filter(|content| content.starts_with('"')))
            .collect()
    }

    fn join_rounds(&self, _request: &str) -> Box<dyn JoinRounds + Send> {
        Box::new(rounds::JoinedCompletions::default())
    }
}

/// The choice with the index 0 or without an index. Other choices, which exist only if the client requested several,
/// are ignored.
pub(super) fn first_choice<'a>(chunk: &Object<'a>) -> Option<Object<'a>> {
    let choices = json::array(chunk.some("choices")?)?;
    let mut choices = choices.into_iter().filter_map(Object::parse);
    choices.find(|choice| choice.get("index").is_none_or(|index| index == "0" || index == "null"))
}

fn read_finish_reason(reading: &mut Reading, choice: &Object<'_>) {
    if let Some(reason) = choice.text("finish_reason") {
        reading.reply.stop = Some(reason.into_owned());
        reading.reply.is_ended = true;
    }
}

/// The text of a message or a delta.
pub(super) fn text_of_message(reader: &mut TextReader, message: &Object<'_>) -> String {
    let has = |key: &str| message.text(key).is_some_and(|text| !text.is_empty());
    reader.reply.has_thought |= has("reasoning_content") || has("reasoning");
    reader.reply.refusal.push_str(&message.text("refusal").unwrap_or_default());
    reader.content(message.some("content"))
}

/// Finds the call that each part of a stream belongs to.
///
/// Normally a part has the index of its call. Some servers use one index for all calls; a part with a new id and a
/// name then begins the next call. Others use a new id for each part; a part without a name therefore continues the
/// last call with its index.
#[derive(Debug, Default)]
pub(crate) struct StreamedCalls(Vec<StreamedCall>);

#[derive(Debug)]
struct StreamedCall {
    index: u64,
    id: String,
    is_named: bool,
}

impl StreamedCalls {
    /// Returns the number of the call that a part belongs to. Calls are numbered in the order of their first parts.
    /// A part without an index has the index `i`, its position in the list.
    pub(super) fn number_of(&mut self, part: &Object<'_>, i: usize) -> u64 {
        let index = part.get("index").and_then(number).unwrap_or(i as u64);
        let id = part.text("id").unwrap_or_default();
        let name = part.some("function").and_then(Object::parse).and_then(|function| function.text("name"));
        let is_named = name.is_some_and(|name| !name.is_empty());
        let last = self.0.iter().rposition(|call| call.index == index);
        let same = last.filter(|last| {
            let call = &self.0[*last];
            !is_named || !call.is_named || id.is_empty() || call.id == id
        });
        let number = same.unwrap_or_else(|| {
            self.0.push(StreamedCall { index, id: id.clone().into_owned(), is_named: false });
            self.0.len() - 1
        });
        self.0[number].is_named |= is_named;
        number as u64
    }
}

fn read_calls(reading: &mut Reading, message: &Object<'_>) {
    for (i, part) in message.some("tool_calls").and_then(json::array).unwrap_or_default().iter().enumerate() {
        let Some(part) = Object::parse(part) else { continue };
        let number = reading.chat_calls.number_of(&part, i);
        let call = reading.call(number);
        if let Some(id) = part.text("id").filter(|id| !id.is_empty()) {
            call.id = id.into_owned();
        }
        let Some(function) = part.some("function").and_then(Object::parse) else { continue };
        if let Some(name) = function.text("name").filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        append_arguments(&mut call.arguments, &function);
    }
}

/// Appends the arguments in a part of a call. Some servers send them as an object instead of a string.
pub(super) fn append_arguments(arguments: &mut String, function: &Object<'_>) {
    match function.some("arguments") {
        Some(text) if text.starts_with('"') => {
            arguments.push_str(&json::string(text).map(|text| text.text).unwrap_or_default());
        }
        Some(object) => arguments.push_str(object),
        None => {}
    }
}
