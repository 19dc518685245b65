//! Answers of Anthropic Messages.

use super::said::{Failure, Reading};
use super::sse::Event;
use super::usage::number;
use crate::json::{self, Object};

pub(super) fn event(reading: &mut Reading, event: &Event) {
    let raw = event.raw();
    let has = |words: &str| memchr::memmem::find(raw, words.as_bytes()).is_some();
    let is_told = match event.name() {
        Some("content_block_delta") => has("input_json_delta"),
        Some("content_block_start") => has("tool_use"),
        Some("content_block_stop" | "ping") => false,
        _ => true,
    };
    if !is_told {
        return;
    }
    let Some(data) = event.data() else { return };
    let Some(object) = Object::parse(&data) else { return };
    let kind = object.text("type");
    let kind = kind.as_deref().or(event.name()).unwrap_or_default();
    let inner = |key: &str| object.some(key).and_then(Object::parse);
    let place = || object.get("index").and_then(number);
    match kind {
        "message_start" => {
            let Some(message) = inner("message") else { return };
            reading.said.id = message.text("id").map(Into::into);
            reading.said.model = message.text("model").map(Into::into);
            if let Some(usage) = message.some("usage") {
                reading.told.read(usage);
            }
        }
        "content_block_start" => {
            if let (Some(place), Some(block)) = (place(), inner("content_block")) {
                call(reading, place, &block);
            }
        }
        "content_block_delta" => {
            let part = inner("delta").and_then(|delta| delta.text("partial_json"));
            if let (Some(place), Some(part)) = (place().filter(|place| reading.places.contains(place)), part)
            {
                reading.call(place).arguments.push_str(&part);
            }
        }
        "message_delta" => {
            if let Some(usage) = object.some("usage") {
                reading.told.read(usage);
            }
            if let Some(stop) = inner("delta").and_then(|delta| delta.text("stop_reason")) {
                reading.said.stop = Some(stop.into_owned());
            }
        }
        "message_stop" => reading.said.is_ended = true,
        "error" => reading.said.failure = Failure::read(&data),
        _ => {}
    }
}

pub(super) fn whole(reading: &mut Reading, body: &Object<'_>) {
    reading.said.stop = body.text("stop_reason").map(Into::into);
    for (i, block) in body.some("content").and_then(json::array).unwrap_or_default().iter().enumerate() {
        if let Some(block) = Object::parse(block) {
            call(reading, i as u64, &block);
        }
    }
}

/// Begins a call that a block is. A stream begins it with no input and sends the input after it.
fn call(reading: &mut Reading, place: u64, block: &Object<'_>) {
    if block.text("type").as_deref() != Some("tool_use") {
        return;
    }
    let call = reading.call(place);
    call.id = block.text("id").unwrap_or_default().into_owned();
    call.name = block.text("name").unwrap_or_default().into_owned();
    let input =
        block.some("input").filter(|input| Object::parse(input).is_some_and(|o| !o.fields.is_empty()));
    call.arguments = input.unwrap_or_default().to_owned();
}
