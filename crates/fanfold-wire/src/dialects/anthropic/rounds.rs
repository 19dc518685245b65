//! Joins rounds of Anthropic Messages: blocks are renumbered, one message begins and one ends.

use std::collections::BTreeMap;

use super::{BlockKind, kind_of};
use crate::json::{self, Object, Splices, with_field};
use crate::reply::reader::{ParsedReply, ReplyFailure};
use crate::reply::rounds::{ItemNumbers, JoinRounds, JoinState, RoundStep, calls_only_recalls, with_output};
use crate::reply::sse::SseEvent;
use crate::reply::usage::number;
use crate::request::RECALL_TOOL;

/// One or several messages as one.
#[derive(Default)]
pub(super) struct JoinedMessages {
    blocks: ItemNumbers,
}

impl JoinedMessages {
    /// Returns whether no block is hidden or renumbered.
    fn is_unchanged(&self, state: &JoinState) -> bool {
        state.n_rounds == 0 && self.blocks.shows_all()
    }

    fn start_block(&mut self, state: &JoinState, event: &SseEvent, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let index = object.as_ref().and_then(|object| number(object.get("index")?));
        let (Some(object), Some(index)) = (object, index) else {
            out.extend_from_slice(event.raw());
            return;
        };
        if object.some("content_block").is_some_and(is_recall) {
            self.blocks.hide(index);
            return;
        }
        self.blocks.show(index, state.n_rounds == 0);
        self.renumber(event, out);
    }

    /// Writes an event with the number of its block in the client's message.
    fn renumber(&self, event: &SseEvent, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let index = object
            .as_ref()
            .and_then(|object| Some((object.span(object.get("index")?), number(object.get("index")?)?)));
        let (Some(data), Some((span, index))) = (&data, index) else {
            out.extend_from_slice(event.raw());
            return;
        };
        match self.blocks.get(index) {
            Some(Some(shown)) if shown != index => {
                let mut splices = Splices::default();
                splices.replace(span, shown.to_string());
                out.extend(event.with_data(&splices.apply(data)));
            }
            Some(None) => {}
            Some(Some(_)) | None => out.extend_from_slice(event.raw()),
        }
    }
}

/// The `message_delta` that ends the client's message, with the output of all rounds.
fn final_delta(state: &JoinState, event: &SseEvent, stop: Option<&str>) -> Vec<u8> {
    let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
        return event.raw().to_vec();
    };
    let mut data = data.into_owned();
    if let Some(usage) = Object::parse(&data).and_then(|object| object.some("usage")).map(str::to_owned) {
        data = with_field(&data, "usage", &with_output(&usage, state.n_output));
    }
    let delta = Object::parse(&data).and_then(|object| object.some("delta")).map(str::to_owned);
    if let (Some(stop), Some(delta)) = (stop, delta) {
        data = with_field(&data, "delta", &with_field(&delta, "stop_reason", &json::quote(stop)));
    }
    event.with_data(&data)
}

impl JoinRounds for JoinedMessages {
    fn event(
        &mut self,
        state: &mut JoinState,
        event: &SseEvent,
        reply: &ParsedReply,
        out: &mut Vec<u8>,
    ) -> RoundStep {
        let data = if event.name().is_none() { event.data() } else { None };
        let kind = data.as_deref().and_then(Object::parse).and_then(|object| object.text("type"));
        match event.name().or(kind.as_deref()).unwrap_or_default() {
            "message_start" if state.n_rounds > 0 => {}
            "content_block_start" => self.start_block(state, event, out),
            "content_block_delta" | "content_block_stop" if !self.is_unchanged(state) => {
                self.renumber(event, out);
            }
            "message_delta" if calls_only_recalls(reply, self.recall_stops()) => {
                state.held.push(event.clone());
            }
            "message_delta" if state.n_rounds > 0 => out.extend(final_delta(state, event, None)),
            "message_stop" if !state.held.is_empty() => {
                state.held.push(event.clone());
                return RoundStep::Recall;
            }
            _ => out.extend_from_slice(event.raw()),
        }
        RoundStep::Continue
    }

    fn recall_stops(&self) -> &'static [&'static str] {
        &["tool_use"]
    }

    fn join_whole(&self, state: &JoinState, body: &str, is_final: bool) -> Option<String> {
        let object = Object::parse(body)?;
        let blocks = json::array(object.some("content")?)?;
        let own = blocks.into_iter().filter(|block| !is_recall(block));
        let all: Vec<_> = state.shown.iter().map(String::as_str).chain(own).collect();
        let mut joined = with_field(body, "content", &format!("[{}]", all.join(",")));
        if let Some(id) = &state.id {
            joined = with_field(&joined, "id", &json::quote(id));
        }
        if let Some(usage) = object.some("usage") {
            joined = with_field(&joined, "usage", &with_output(usage, state.n_output));
        }
        if is_final {
            joined = with_field(&joined, "stop_reason", "\"end_turn\"");
        }
        Some(joined)
    }

    fn messages_of_whole(&mut self, state: &mut JoinState, body: &str, _: &str) -> Option<Vec<String>> {
        let object = Object::parse(body)?;
        state.id = state.id.take().or_else(|| object.text("id").map(Into::into));
        let blocks: Vec<_> = json::array(object.some("content")?)?.into_iter().map(str::to_owned).collect();
        state.shown.extend(blocks.iter().filter(|block| !is_recall(block)).cloned());
        Some(message_of(blocks))
    }

    fn messages_of_stream(
        &mut self,
        _state: &mut JoinState,
        events: &[SseEvent],
        _request: &str,
    ) -> Option<Vec<String>> {
        blocks_of(events).map(message_of)
    }

    fn close_stream(&mut self, state: &mut JoinState, held: &[SseEvent]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, event) in held.iter().enumerate() {
            if i == 0 {
                out.extend(final_delta(state, event, Some("end_turn")));
            } else {
                out.extend_from_slice(event.raw());
            }
        }
        if held.len() == 1 {
            out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        }
        out
    }

    fn error_event(&self, _state: &JoinState, failure: &ReplyFailure) -> String {
        let kind = json::quote(if failure.kind.is_empty() { "api_error" } else { &failure.kind });
        let message = json::quote(&failure.message);
        let error = format!(r#"{{"type":"error","error":{{"type":{kind},"message":{message}}}}}"#);
        format!("event: error\ndata: {error}\n\n")
    }

    fn next_round(&mut self) {
        self.blocks.next_round();
    }
}

fn is_recall(block: &str) -> bool {
    Object::parse(block).is_some_and(|block| {
        block.text("type").as_deref() == Some("tool_use")
            && block.text("name").as_deref() == Some(RECALL_TOOL)
    })
}

/// The message of some blocks, without blank texts, which the provider rejects.
fn message_of(mut blocks: Vec<String>) -> Vec<String> {
    blocks.retain(|block| kind_of(block) != BlockKind::Blank);
    vec![format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))]
}

/// The blocks of a stream. `None` if an event of unknown kind cannot be assembled.
fn blocks_of(events: &[SseEvent]) -> Option<Vec<String>> {
    let mut blocks: BTreeMap<u64, StreamedBlock> = BTreeMap::new();
    for event in events {
        let Some(data) = event.data() else { continue };
        let Some(object) = Object::parse(&data) else { continue };
        let index = object.get("index").and_then(number);
        match (object.text("type").as_deref(), index) {
            (Some("content_block_start"), Some(index)) => {
                let start = object.some("content_block")?.to_owned();
                blocks.insert(index, StreamedBlock { start, ..StreamedBlock::default() });
            }
            (Some("content_block_delta"), Some(index)) => {
                blocks.get_mut(&index)?.append(&Object::parse(object.some("delta")?)?)?;
            }
            _ => {}
        }
    }
    blocks.into_values().map(StreamedBlock::print).collect()
}

/// A block that is assembled from deltas.
#[derive(Default)]
struct StreamedBlock {
    start: String,
    texts: BTreeMap<&'static str, String>,
    citations: Vec<String>,
}

impl StreamedBlock {
    fn append(&mut self, delta: &Object<'_>) -> Option<()> {
        let key = match &*delta.text("type")? {
            "text_delta" => "text",
            "thinking_delta" => "thinking",
            "signature_delta" => "signature",
            "input_json_delta" => "partial_json",
            "citations_delta" => {
                self.citations.push(delta.some("citation")?.to_owned());
                return Some(());
            }
            _ => return None,
        };
        self.texts.entry(key).or_default().push_str(&delta.text(key)?);
        Some(())
    }

    fn print(self) -> Option<String> {
        let mut block = self.start;
        for (key, text) in self.texts {
            let (key, value) = match key {
                "partial_json" if text.trim().is_empty() => continue,
                "partial_json" => ("input", if json::is_object(&text) { text } else { "{}".to_owned() }),
                key => {
                    let start = Object::parse(&block)?.text(key).unwrap_or_default().into_owned();
                    (key, json::quote(&(start + &text)))
                }
            };
            block = with_field(&block, key, &value);
        }
        if !self.citations.is_empty() {
            block = with_field(&block, "citations", &format!("[{}]", self.citations.join(",")));
        }
        Some(block)
    }
}
