//! Anthropic Messages: blocks are renumbered, one message begins and one ends.

use std::collections::BTreeMap;

use super::{Join, Then, is_all_ours, results, with_field, with_output};
use crate::format::Format;
use crate::json::{self, Object};
use crate::reply::said::{Failure, Said};
use crate::reply::sse::Event;
use crate::reply::tool::{RECALL_TOOL, Wanted};
use crate::reply::usage::number;
use crate::splice::Splices;

/// An answer of one or several messages, as one.
#[derive(Default)]
pub(super) struct Joined {
    n_round: usize,
    /// Which block of the client's message each block of this round is; none for a call of ours.
    blocks: BTreeMap<u64, Option<u64>>,
    n_shown: u64,
    n_output: u64,
    /// The end of the message that is being held back, as it came.
    held: Vec<Event>,
    /// Of whole answers: the first one's id, what the client sees of earlier ones, and the last one.
    id: Option<String>,
    shown: Vec<String>,
    last: Option<String>,
}

impl Joined {
    /// Whether events pass as they are: nothing is hidden and nothing renumbered.
    fn is_plain(&self) -> bool {
        self.n_round == 0 && self.blocks.values().all(Option::is_some)
    }

    fn started(&mut self, event: &Event, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let place = object.as_ref().and_then(|object| number(object.get("index")?));
        let (Some(object), Some(place)) = (object, place) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let block = object.some("content_block").and_then(Object::parse);
        let is_ours = block.is_some_and(|block| is_our_block(&block));
        if is_ours {
            self.blocks.insert(place, None);
            return;
        }
        // As long as nothing was hidden a block keeps its number, also behind one that could not be read.
        let shown = if self.is_plain() { place } else { self.n_shown };
        self.blocks.insert(place, Some(shown));
        self.n_shown = self.n_shown.max(shown.saturating_add(1));
        self.moved(event, out);
    }

    /// An event of a block, with the block's number in the client's message.
    fn moved(&self, event: &Event, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let index = object
            .as_ref()
            .and_then(|object| Some((object.span(object.get("index")?), number(object.get("index")?)?)));
        let (Some(data), Some((span, place))) = (&data, index) else {
            out.extend_from_slice(event.raw());
            return;
        };
        match self.blocks.get(&place) {
            Some(Some(shown)) if *shown == place => out.extend_from_slice(event.raw()),
            Some(Some(shown)) => {
                let mut splices = Splices::default();
                splices.replace(span, shown.to_string());
                out.extend(event.with_data(&splices.apply(data)));
            }
            Some(None) => {}
            None => out.extend_from_slice(event.raw()),
        }
    }

    /// The `message_delta` that ends the client's message, with the output of all rounds.
    fn ended(&self, event: &Event, stop: Option<&str>) -> Vec<u8> {
        let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
            return event.raw().to_vec();
        };
        let mut data = data.into_owned();
        if let Some(usage) = Object::parse(&data).and_then(|object| object.some("usage")).map(str::to_owned) {
            data = with_field(&data, "usage", &with_output(&usage, self.n_output));
        }
        let delta = Object::parse(&data).and_then(|object| object.some("delta")).map(str::to_owned);
        if let (Some(stop), Some(delta)) = (stop, delta) {
            data = with_field(&data, "delta", &with_field(&delta, "stop_reason", &json::quote(stop)));
        }
        event.with_data(&data)
    }

    fn joined(&self, body: &str, stop: Option<&str>) -> Option<String> {
        let object = Object::parse(body)?;
        let blocks = json::array(object.some("content")?)?;
        let own = blocks.into_iter().filter(|block| !is_ours(block)).map(str::to_owned);
        let all: Vec<_> = self.shown.iter().cloned().chain(own).collect();
        let mut joined = with_field(body, "content", &format!("[{}]", all.join(",")));
        if let Some(id) = &self.id {
            joined = with_field(&joined, "id", &json::quote(id));
        }
        if let Some(usage) = object.some("usage") {
            joined = with_field(&joined, "usage", &with_output(usage, self.n_output));
        }
        if let Some(stop) = stop {
            joined = with_field(&joined, "stop_reason", &json::quote(stop));
        }
        Some(joined)
    }
}

impl Join for Joined {
    fn event(&mut self, event: &Event, said: &Said, out: &mut Vec<u8>) -> Then {
        let data;
        let kind = match event.name() {
            Some(name) => name,
            None => {
                data = event.data();
                let kind = data.as_deref().and_then(Object::parse).and_then(|object| object.text("type"));
                match kind.as_deref() {
                    Some("message_start") => "message_start",
                    Some("content_block_start") => "content_block_start",
                    Some("content_block_delta" | "content_block_stop") => "content_block_delta",
                    Some("message_delta") => "message_delta",
                    Some("message_stop") => "message_stop",
                    _ => "",
                }
            }
        };
        match kind {
            "message_start" if self.n_round > 0 => {}
            "content_block_start" => self.started(event, out),
            "content_block_delta" | "content_block_stop" if !self.is_plain() => self.moved(event, out),
            "message_delta" if is_all_ours(said) && said.stop.as_deref() == Some("tool_use") => {
                self.held.push(event.clone());
            }
            "message_delta" if self.n_round > 0 => out.extend(self.ended(event, None)),
            "message_stop" if !self.held.is_empty() => {
                self.held.push(event.clone());
                return Then::Recall;
            }
            _ => out.extend_from_slice(event.raw()),
        }
        Then::GoOn
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn whole(&mut self, body: &str, said: &Said) -> (Option<String>, Then) {
        if is_all_ours(said) && said.stop.as_deref() == Some("tool_use") {
            self.last = Some(body.to_owned());
            return (None, Then::Recall);
        }
        let is_plain = self.n_round == 0 && !said.calls.iter().any(crate::reply::tool::is_ours);
        (if is_plain { None } else { self.joined(body, None) }, Then::GoOn)
    }

    fn spoken(&mut self, kept: &[Event], _request: &str) -> Option<Vec<String>> {
        let blocks = match self.last.take() {
            Some(body) => {
                let object = Object::parse(&body)?;
                self.id = self.id.take().or_else(|| object.text("id").map(Into::into));
                let blocks: Vec<_> =
                    json::array(object.some("content")?)?.into_iter().map(str::to_owned).collect();
                self.shown.extend(blocks.iter().filter(|block| !is_ours(block)).cloned());
                blocks
            }
            None => blocks_of(kept)?,
        };
        let said: Vec<_> = blocks.into_iter().filter(|block| !is_blank(block)).collect();
        Some(vec![format!(r#"{{"role":"assistant","content":[{}]}}"#, said.join(","))])
    }

    fn results(&self, wanted: &[Wanted], answers: &[String]) -> Vec<String> {
        let results = results(Format::Anthropic, wanted, answers);
        vec![format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","))]
    }

    fn close(&mut self) -> Vec<u8> {
        if let Some(body) = self.last.take() {
            return self.joined(&body, Some("end_turn")).unwrap_or(body).into_bytes();
        }
        let held = std::mem::take(&mut self.held);
        let mut out = Vec::new();
        for (i, event) in held.iter().enumerate() {
            if i == 0 {
                out.extend(self.ended(event, Some("end_turn")));
            } else {
                out.extend_from_slice(event.raw());
            }
        }
        if held.len() == 1 {
            out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        }
        out
    }

    fn fail(&mut self, failure: &Failure) -> Vec<u8> {
        let kind = json::quote(if failure.kind.is_empty() { "api_error" } else { &failure.kind });
        let message = json::quote(&failure.message);
        let error = format!(r#"{{"type":"error","error":{{"type":{kind},"message":{message}}}}}"#);
        format!("event: error\ndata: {error}\n\n").into_bytes()
    }

    fn next_round(&mut self, n_output: u64) {
        self.n_round += 1;
        self.n_output += n_output;
        self.blocks.clear();
        self.held.clear();
    }
}

fn is_our_block(block: &Object<'_>) -> bool {
    block.text("type").as_deref() == Some("tool_use") && block.text("name").as_deref() == Some(RECALL_TOOL)
}

fn is_ours(block: &str) -> bool {
    Object::parse(block).is_some_and(|block| is_our_block(&block))
}

/// Whether a block is a text that says nothing, which the provider does not take back.
fn is_blank(block: &str) -> bool {
    Object::parse(block).is_some_and(|block| {
        let is_text = block.text("type").as_deref() == Some("text");
        is_text && block.text("text").is_none_or(|text| text.trim().is_empty())
    })
}

/// The blocks that a stream's events make. None where there is a kind of event that can't be put together.
fn blocks_of(events: &[Event]) -> Option<Vec<String>> {
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    for event in events {
        let Some(data) = event.data() else { continue };
        let Some(object) = Object::parse(&data) else { continue };
        let place = object.get("index").and_then(number);
        match (object.text("type").as_deref(), place) {
            (Some("content_block_start"), Some(place)) => {
                let start = object.some("content_block")?.to_owned();
                blocks.insert(place, Block { start, ..Block::default() });
            }
            (Some("content_block_delta"), Some(place)) => {
                blocks.get_mut(&place)?.grow(&Object::parse(object.some("delta")?)?)?;
            }
            _ => {}
        }
    }
    blocks.into_values().map(Block::print).collect()
}

/// A block that is being put together.
#[derive(Default)]
struct Block {
    start: String,
    grown: BTreeMap<&'static str, String>,
    citations: Vec<String>,
}

impl Block {
    fn grow(&mut self, delta: &Object<'_>) -> Option<()> {
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
        self.grown.entry(key).or_default().push_str(&delta.text(key)?);
        Some(())
    }

    fn print(self) -> Option<String> {
        let mut block = self.start;
        for (key, grown) in self.grown {
            let (key, value) = match key {
                "partial_json" if grown.trim().is_empty() => continue,
                "partial_json" => ("input", if json::is_object(&grown) { grown } else { "{}".to_owned() }),
                key => {
                    let begun = Object::parse(&block)?.text(key).unwrap_or_default().into_owned();
                    (key, json::quote(&(begun + &grown)))
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
