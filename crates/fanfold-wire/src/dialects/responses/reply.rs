//! Replies of OpenAI Responses.

use std::borrow::Cow;

use super::request::Responses;
use super::rounds;
use crate::dialects::{EventTexts, Replies};
use crate::json::{self, Object};
use crate::reply::reader::{Reading, ReplyFailure};
use crate::reply::rounds::JoinRounds;
use crate::reply::sse::SseEvent;
use crate::reply::text::TextReader;

/// Events before the first one with content.
const PREAMBLE: &[&str] = &["response.created", "response.in_progress", "response.queued"];

impl Replies for Responses {
    fn read_event(&self, reading: &mut Reading, event: &SseEvent) {
        let is_relevant = |name: &str| {
            matches!(
                name,
                "response.created"
                    | "response.output_item.done"
                    | "response.completed"
                    | "response.incomplete"
                    | "response.failed"
                    | "error"
            )
        };
        if event.name().is_some_and(|name| !is_relevant(name)) {
            return;
        }
        let Some(data) = event.data() else { return };
        let Some(object) = Object::parse(&data) else { return };
        let kind = object.text("type");
        let kind = kind.as_deref().or(event.name()).unwrap_or_default();
        match kind {
            "response.output_item.done" => {
                if let Some(item) = object.some("item").and_then(Object::parse) {
                    read_call(reading, reading.reply.calls.len() as u64, &item);
                }
            }
            "response.created" | "response.completed" | "response.incomplete" | "response.failed" => {
                let Some(response) = object.some("response").and_then(Object::parse) else { return };
                read_response(reading, &response);
                reading.reply.is_ended = kind != "response.created";
            }
            "error" => reading.reply.failure = ReplyFailure::read(&data),
            _ => {}
        }
    }

    fn read_whole(&self, reading: &mut Reading, body: &Object<'_>) {
        read_response(reading, body);
        for (i, item) in body.some("output").and_then(json::array).unwrap_or_default().iter().enumerate() {
            if let Some(item) = Object::parse(item) {
                read_call(reading, i as u64, &item);
            }
        }
    }

    fn is_preamble(&self, event: &SseEvent, _data: &str) -> bool {
        event.name().is_some_and(|name| PREAMBLE.contains(&name))
    }

    fn text_of_event(&self, reader: &mut TextReader, kind: &str, event: &Object<'_>) -> String {
        reader.reply.has_thought |= kind.starts_with("response.reasoning");
        let delta = event.text("delta").unwrap_or_default();
        match kind {
            "response.output_text.delta" => return delta.into_owned(),
            "response.refusal.delta" => reader.reply.refusal.push_str(&delta),
            "response.completed" | "response.failed" | "response.incomplete" => reader.is_done = true,
            _ => {}
        }
        String::new()
    }

    fn text_of_whole(&self, reader: &mut TextReader, body: &Object<'_>) -> String {
        let items = body.some("output").and_then(json::array).unwrap_or_default();
        let items = items.into_iter().filter_map(Object::parse);
        items.map(|item| reader.content(item.some("content"))).collect()
    }

    fn texts_of_event<'d>(&self, kind: &str, event: &Object<'d>) -> EventTexts<'d> {
        let text = || {
            let number = |key: &str| event.get(key).unwrap_or("0");
            format!("{} {}", number("output_index"), number("content_index"))
        };
        let repeated = |value: Option<&'d str>| EventTexts {
            ended_before: vec![text()],
            ..EventTexts::repeating(value)
        };
        let inner = |key: &str| event.some(key).and_then(Object::parse);
        let all = |values: Option<Vec<&'d str>>| EventTexts {
            ends_all: true,
            ..EventTexts::repeating(values.unwrap_or_default())
        };
        match kind {
            "response.output_text.delta" => EventTexts::continuing(text(), event.some("delta")),
            "response.output_text.done" => repeated(event.some("text")),
            "response.content_part.done" => {
                repeated(event.some("part").and_then(|part| json::text_of_type(part, "output_text")))
            }
            "response.output_item.done" => all(inner("item").map(|item| texts_of_item(&item))),
            "response.completed" | "response.incomplete" | "response.failed" => {
                all(inner("response").map(|response| texts_of_response(&response)))
            }
            _ => EventTexts::default(),
        }
    }

    fn texts_of_whole<'d>(&self, body: &Object<'d>) -> Vec<&'d str> {
        texts_of_response(body)
    }

    fn join_rounds(&self, request: &str) -> Box<dyn JoinRounds + Send> {
        Box::new(rounds::JoinedResponses::new(request))
    }
}

/// Reads the fields of a `response` object, but for its items.
fn read_response(reading: &mut Reading, response: &Object<'_>) {
    if let Some(id) = response.text("id") {
        reading.reply.id = Some(id.into_owned());
    }
    if let Some(model) = response.text("model") {
        reading.reply.model = Some(model.into_owned());
    }
    if let Some(usage) = response.some("usage") {
        reading.usage.read(usage);
    }
    if response.some("error").is_some() {
        reading.reply.failure = ReplyFailure::read(response.raw);
    }
    let status = response.text("status").filter(|status| !matches!(&**status, "in_progress" | "queued"));
    let incomplete = response.some("incomplete_details").and_then(Object::parse);
    let reason = incomplete.and_then(|details| details.text("reason"));
    if let Some(stop) = reason.or(status) {
        reading.reply.stop = Some(stop.into_owned());
    }
}

fn read_call(reading: &mut Reading, index: u64, item: &Object<'_>) {
    let kind = item.text("type").unwrap_or_default();
    let (name, arguments) = match &*kind {
        "function_call" => (item.text("name"), item.text("arguments")),
        "custom_tool_call" => (item.text("name"), item.text("input")),
        // The provider runs these itself.
        "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "image_generation_call"
        | "mcp_call" => return,
        // Every other call waits for the client: its shell, its patches, its screen.
        kind if kind.ends_with("_call") || kind == "mcp_approval_request" => {
            let action = item.some("action").or_else(|| item.some("operation")).unwrap_or_default();
            (Some(Cow::Owned(kind.to_owned())), Some(Cow::Borrowed(action)))
        }
        _ => return,
    };
    let call = reading.call(index);
    call.id = item.text("call_id").or_else(|| item.text("id")).unwrap_or_default().into_owned();
    call.name = name.unwrap_or_default().into_owned();
    call.arguments = arguments.unwrap_or_default().into_owned();
}

/// The visible texts of a whole response.
pub(super) fn texts_of_response<'d>(response: &Object<'d>) -> Vec<&'d str> {
    let items = response.some("output").and_then(json::array).unwrap_or_default();
    items.into_iter().filter_map(Object::parse).flat_map(|item| texts_of_item(&item)).collect()
}

fn texts_of_item<'d>(item: &Object<'d>) -> Vec<&'d str> {
    if item.text("type").is_some_and(|kind| kind != "message") {
        return Vec::new();
    }
    let parts = item.some("content").and_then(json::array).unwrap_or_default();
    parts.into_iter().filter_map(|part| json::text_of_type(part, "output_text")).collect()
}
