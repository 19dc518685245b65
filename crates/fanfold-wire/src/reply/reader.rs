//! Reads a reply while it passes: whole or streamed, in chunks of any size.
//!
//! The bytes are not delayed or changed. Most events have a few words of text. They are skipped after a search in their
//! bytes, without being parsed.

use crate::dialects::{Format, StreamedCalls};
use crate::json::{self, Object};
use crate::reply::refusal;
use crate::reply::sse::{Splitter, SseEvent};
use crate::reply::usage::{Usage, UsageCounts};

/// How a reply is transported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One JSON value.
    Whole,
    /// Server-sent events.
    Stream,
}

impl Transport {
    /// The transport of a reply with this content type.
    pub fn from_content_type(content_type: Option<&str>) -> Transport {
        let kind = content_type.unwrap_or_default().trim_start().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") { Transport::Stream } else { Transport::Whole }
    }
}

/// The parts of a reply that fanfold uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// The provider's id of the reply.
    pub id: Option<String>,
    /// The model that replied.
    pub model: Option<String>,
    /// The usage, if the provider reports it.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the provider's words.
    pub stop: Option<String>,
    /// The calls in order, with complete arguments.
    pub calls: Vec<ToolCall>,
    /// The error that was sent instead of a reply, or in the middle of one.
    pub failure: Option<ReplyFailure>,
    /// True if the reply is complete.
    pub is_ended: bool,
}

impl ParsedReply {
    /// The refusal for length, if the reply is one. In a stream it is an event.
    pub fn refusal(&self) -> Option<refusal::Refusal> {
        let by_error = self.failure.as_ref().and_then(|failure| refusal::refusal_in_error(&failure.raw));
        let is_full = matches!(self.stop.as_deref(), Some("model_context_window_exceeded"));
        let is_empty = self.calls.is_empty() && self.usage.is_none_or(|usage| usage.output <= 1);
        by_error.or_else(|| (is_full && is_empty).then(refusal::Refusal::default))
    }
}

/// A tool call in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// The id that its result has to name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, unchanged.
    pub arguments: String,
}

/// An error in the provider's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyFailure {
    /// Its kind: `overloaded_error`, `context_length_exceeded`.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// Its JSON.
    pub raw: String,
}

impl ReplyFailure {
    /// Reads an object that is an error, or has one under `error`.
    pub fn read(json: &str) -> Option<ReplyFailure> {
        let outer = Object::parse(json)?;
        let inner = outer.some("error").unwrap_or(json);
        let raw = json.to_owned();
        let Some(inner) = Object::parse(inner) else {
            let message = json::string(inner)?.text.into_owned();
            return Some(ReplyFailure { kind: String::new(), message, raw });
        };
        let text = |key: &str| inner.text(key).filter(|text| !text.is_empty());
        let kind = text("code").or_else(|| text("type")).unwrap_or_default().into_owned();
        Some(ReplyFailure { kind, message: text("message").unwrap_or_default().into_owned(), raw })
    }
}

/// The longest whole reply that is read.
const MAX_BODY: usize = 64 << 20;

/// Reads a reply while it passes.
#[derive(Debug)]
pub struct ReplyReader {
    format: Format,
    transport: Transport,
    splitter: Splitter,
    body: Vec<u8>,
    reading: Reading,
}

/// The state of a reply that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) reply: ParsedReply,
    pub(crate) usage: UsageCounts,
    /// The index of each call in the provider's numbering.
    call_indexes: Vec<u64>,
    /// The numbering of streamed calls in Chat Completions.
    pub(crate) chat_calls: StreamedCalls,
    /// True if the first event was read, which has the id and the model.
    pub(crate) has_begun: bool,
}

impl Reading {
    pub(crate) fn has_call(&self, index: u64) -> bool {
        self.call_indexes.contains(&index)
    }

    /// The call with an index of the provider, created on first use.
    pub(crate) fn call(&mut self, index: u64) -> &mut ToolCall {
        let found = self.call_indexes.iter().position(|known| *known == index);
        let i = found.unwrap_or_else(|| {
            self.call_indexes.push(index);
            self.reply.calls.push(ToolCall::default());
            self.call_indexes.len() - 1
        });
        &mut self.reply.calls[i]
    }
}

impl ReplyReader {
    /// A reader of one reply.
    pub fn new(format: Format, transport: Transport) -> ReplyReader {
        ReplyReader {
            format,
            transport,
            splitter: Splitter::default(),
            body: Vec::new(),
            reading: Reading::default(),
        }
    }

    /// Reads the next bytes of the reply.
    pub fn feed(&mut self, bytes: &[u8]) {
        match self.transport {
            Transport::Stream => {
                for event in self.splitter.feed(bytes) {
                    self.event(&event);
                }
            }
            Transport::Whole if self.body.len() <= MAX_BODY => self.body.extend_from_slice(bytes),
            Transport::Whole => {}
        }
    }

    /// Reads an event that was split off by the caller.
    pub(crate) fn event(&mut self, event: &SseEvent) {
        if let Some(api) = self.format.api() {
            api.read_event(&mut self.reading, event);
        }
    }

    /// The parts of the reply read until now, without the usage.
    pub(crate) fn reply(&self) -> &ParsedReply {
        &self.reading.reply
    }

    /// The parts of the reply read until now. A whole reply is read at its end.
    pub fn so_far(&self) -> ParsedReply {
        let mut reply = self.reading.reply.clone();
        let input_excludes_cache = self.format.api().is_some_and(|api| api.counts_cache_separately());
        reply.usage = self.reading.usage.usage(input_excludes_cache);
        reply
    }

    /// Ends the reply.
    pub fn end(mut self) -> ParsedReply {
        // An event without its blank line may be incomplete.
        let last = self.splitter.end();
        let is_complete = |data: &str| data.trim() == "[DONE]" || json::is_valid(data);
        if let Some(event) = last.filter(|event| event.data().is_some_and(|data| is_complete(&data))) {
            self.event(&event);
        }
        let body = std::mem::take(&mut self.body);
        let text =
            std::str::from_utf8(&body).ok().filter(|text| body.len() <= MAX_BODY && json::is_valid(text));
        if let Some(text) = text {
            self.whole(text);
        }
        self.so_far()
    }

    fn whole(&mut self, body: &str) {
        let Some(object) = Object::parse(body) else { return };
        let reading = &mut self.reading;
        reading.reply.id = object.text("id").map(Into::into);
        reading.reply.model = object.text("model").map(Into::into);
        if let Some(usage) = object.some("usage") {
            reading.usage.read(usage);
        }
        if object.some("error").is_some() {
            reading.reply.failure = ReplyFailure::read(body);
        }
        reading.reply.is_ended = true;
        if let Some(api) = self.format.api() {
            api.read_whole(reading, &object);
        }
    }
}

/// Returns whether a key occurs in a JSON text with a value other than null. Only the bytes are searched.
pub(crate) fn has_value(json: &[u8], quoted_key: &str) -> bool {
    memchr::memmem::find_iter(json, quoted_key).any(|at| {
        let rest = &json[at + quoted_key.len()..];
        let value = rest.iter().find(|byte| !matches!(byte, b' ' | b':' | b'\t'));
        value.is_some_and(|byte| *byte != b'n')
    })
}
