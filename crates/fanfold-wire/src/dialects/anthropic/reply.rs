//! Replies of Anthropic Messages.

use super::request::Messages;
use super::rounds;
use crate::dialects::{EventTexts, Replies};
use crate::json::{self, Object};
use crate::reply::reader::{Reading, ReplyFailure};
use crate::reply::rounds::JoinRounds;
use crate::reply::sse::SseEvent;
use crate::reply::text::TextReader;
use crate::reply::usage::number;

impl Replies for Messages {
    fn read_event(&self, reading: &mut Reading, event: &SseEvent) {
        let raw = event.raw();
        let contains = |text: &str| memchr::memmem::find(raw, text.as_bytes()).is_some();
        let is_relevant = match event.name() {
            Some("content_block_delta") => contains("input_json_delta"),
            Some("content_block_start") => contains("tool_use"),
            Some("content_block_stop" | "ping") => false,
            _ => true,
        };
        if !is_relevant {
            return;
        }
        let Some(data) = event.data() else { return };
        let Some(object) = Object::parse(&data) else { return };
        let kind = object.text("type");
        let kind = kind.as_deref().or(event.name()).unwrap_or_default();
        let inner = |key: &str| object.some(key).and_then(Object::parse);
        let index = || object.get("index").and_then(number);
        match kind {
            "message_start" => {
                let Some(message) = inner("message") else { return };
                reading.reply.id = message.text("id").map(Into::into);
                reading.reply.model = message.text("model").map(Into::into);
                if let Some(usage) = message.some("usage") {
                    reading.usage.read(usage);
                }
            }
            "content_block_start" => {
                if let (Some(index), Some(block)) = (index(), inner("content_block")) {
                    begin_call(reading, index, &block);
                }
            }
            "content_block_delta" => {
                let part = inner("delta").and_then(|delta| delta.text("partial_json"));
                if let (Some(index), Some(part)) = (index().filter(|index| reading.has_call(*index)), part) {
                    reading.call(index).arguments.push_str(&part);
                }
            }
            "message_delta" => {
                if let Some(usage) = object.some("usage") {
                    reading.usage.read(usage);
                }
                if let Some(stop) = inner("delta").and_then(|delta| delta.text("stop_reason")) {
                    reading.reply.stop = Some(stop.into_owned());
                }
            }
            "message_stop" => reading.reply.is_ended = true,
            "error" => reading.reply.failure = ReplyFailure::read(&data),
            _ => {}
        }
    }

    fn read_whole(&self, reading: &mut Reading, body: &Object<'_>) {
        reading.reply.stop = body.text("stop_reason").map(Into::into);
        for (i, block) in body.some("content").and_then(json::array).unwrap_or_default().iter().enumerate() {
            if let Some(block) = Object::parse(block) {
                begin_call(reading, i as u64, &block);
            }
        }
    }

    fn is_preamble(&self, event: &SseEvent, _data: &str) -> bool {
        matches!(event.name(), Some("message_start" | "ping"))
    }

    fn counts_cache_separately(&self) -> bool {
        true
    }

    fn text_of_event(&self, reader: &mut TextReader, kind: &str, event: &Object<'_>) -> String {
        let key = match kind {
            "content_block_start" => "content_block",
            "content_block_delta" => "delta",
            "message_stop" => {
                reader.is_done = true;
                return String::new();
            }
            _ => return String::new(),
        };
        event.some(key).map_or_else(String::new, |part| reader.part(part))
    }

    fn text_of_whole(&self, reader: &mut TextReader, body: &Object<'_>) -> String {
        reader.content(body.some("content"))
    }

    fn texts_of_event<'d>(&self, kind: &str, event: &Object<'d>) -> EventTexts<'d> {
        let text = || event.get("index").unwrap_or("0").to_owned();
        match kind {
            "content_block_delta" => {
                let value = event.some("delta").and_then(|delta| json::text_of_type(delta, "text_delta"));
                EventTexts::continuing(text(), value)
            }
            "content_block_stop" => EventTexts { ended_before: vec![text()], ..EventTexts::default() },
            "message_delta" | "message_stop" | "error" => EventTexts::end_all(),
            _ => EventTexts::default(),
        }
    }

    fn texts_of_whole<'d>(&self, body: &Object<'d>) -> Vec<&'d str> {
        let blocks = body.some("content").and_then(json::array).unwrap_or_default();
        blocks.into_iter().filter_map(|block| json::text_of_type(block, "text")).collect()
    }

    fn join_rounds(&self, _request: &str) -> Box<dyn JoinRounds + Send> {
        Box::new(rounds::JoinedMessages::default())
    }
}

/// Begins a call. In a stream its block has an empty input, and the input follows in deltas.
fn begin_call(reading: &mut Reading, index: u64, block: &Object<'_>) {
    if block.text("type").as_deref() != Some("tool_use") {
        return;
    }
    let call = reading.call(index);
    call.id = block.text("id").unwrap_or_default().into_owned();
    call.name = block.text("name").unwrap_or_default().into_owned();
    let input =
        block.some("input").filter(|input| Object::parse(input).is_some_and(|o| !o.fields.is_empty()));
    call.arguments = input.unwrap_or_default().to_owned();
}
