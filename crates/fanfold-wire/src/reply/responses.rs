//! Answers of Responses.

use std::borrow::Cow;

use super::said::{Failure, Reading};
use super::sse::Event;
use crate::json::{self, Object};

pub(super) fn event(reading: &mut Reading, event: &Event) {
    let is_told = |name: &str| {
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
    if event.name().is_some_and(|name| !is_told(name)) {
        return;
    }
    let Some(data) = event.data() else { return };
    let Some(object) = Object::parse(&data) else { return };
    let kind = object.text("type");
    let kind = kind.as_deref().or(event.name()).unwrap_or_default();
    let response = || object.some("response").and_then(Object::parse);
    match kind {
        "response.output_item.done" => {
            if let Some(item) = object.some("item").and_then(Object::parse) {
                let place = reading.said.calls.len() as u64;
                call(reading, place, &item);
            }
        }
        "response.created" | "response.completed" | "response.incomplete" | "response.failed" => {
            let Some(response) = response() else { return };
            about(reading, &response);
            reading.said.is_ended = kind != "response.created";
        }
        "error" => reading.said.failure = Failure::read(&data),
        _ => {}
    }
}

pub(super) fn whole(reading: &mut Reading, body: &Object<'_>) {
    about(reading, body);
    for (i, item) in body.some("output").and_then(json::array).unwrap_or_default().iter().enumerate() {
        if let Some(item) = Object::parse(item) {
            call(reading, i as u64, &item);
        }
    }
}

/// What a `response` object says about the answer as a whole.
fn about(reading: &mut Reading, response: &Object<'_>) {
    if let Some(id) = response.text("id") {
        reading.said.id = Some(id.into_owned());
    }
    if let Some(model) = response.text("model") {
        reading.said.model = Some(model.into_owned());
    }
    if let Some(usage) = response.some("usage") {
        reading.told.read(usage);
    }
    if response.some("error").is_some() {
        reading.said.failure = Failure::read(response.raw);
    }
    let status = response.text("status").filter(|status| !matches!(&**status, "in_progress" | "queued"));
    let cut = response.some("incomplete_details").and_then(Object::parse);
    let reason = cut.and_then(|cut| cut.text("reason"));
    if let Some(stop) = reason.or(status) {
        reading.said.stop = Some(stop.into_owned());
    }
}

fn call(reading: &mut Reading, place: u64, item: &Object<'_>) {
    let kind = item.text("type").unwrap_or_default();
    let (name, arguments) = match &*kind {
        "function_call" => (item.text("name"), item.text("arguments")),
        "custom_tool_call" => (item.text("name"), item.text("input")),
        // These the provider runs itself.
        "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "image_generation_call"
        | "mcp_call" => return,
        // Whatever else is a call waits for the client: its shell, its patches, its screen.
        kind if kind.ends_with("_call") || kind == "mcp_approval_request" => {
            let action = item.some("action").or_else(|| item.some("operation")).unwrap_or_default();
            (Some(Cow::Owned(kind.to_owned())), Some(Cow::Borrowed(action)))
        }
        _ => return,
    };
    let call = reading.call(place);
    call.id = item.text("call_id").or_else(|| item.text("id")).unwrap_or_default().into_owned();
    call.name = name.unwrap_or_default().into_owned();
    call.arguments = arguments.unwrap_or_default().into_owned();
}
