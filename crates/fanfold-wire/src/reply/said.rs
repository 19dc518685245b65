//! What an answer says, read as it passes: whole or streamed, in pieces of any size.
//!
//! Nothing is held back and nothing is changed here. Most events of a stream are a few words of text: they are told
//! from the others by a search in their bytes, and never taken apart.

use super::sse::{Event, Splitter};
use super::usage::{Told, Usage};
use super::{anthropic, chat, refusal, responses};
use crate::format::Format;
use crate::json::{self, Object};

/// How an answer travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// As one JSON value.
    Whole,
    /// As server-sent events.
    Stream,
}

impl Carried {
    /// How an answer with this content type travels.
    pub fn of(content_type: Option<&str>) -> Carried {
        let kind = content_type.unwrap_or_default().trim_start().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") { Carried::Stream } else { Carried::Whole }
    }
}

/// What an answer said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The provider's name for the answer.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// What it cost, if the provider says so.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the provider's word.
    pub stop: Option<String>,
    /// The calls it makes, with complete arguments, in order.
    pub calls: Vec<Called>,
    /// The error that came instead of an answer, or in the middle of one.
    pub failure: Option<Failure>,
    /// Whether the answer came to its end: what breaks off did not.
    pub is_ended: bool,
}

impl Said {
    /// The refusal for length that the answer is, if it is one: it may also come as an event of a stream.
    pub fn refusal(&self) -> Option<refusal::Refusal> {
        let told = self.failure.as_ref().and_then(|failure| refusal::told(&failure.raw));
        let is_full = matches!(self.stop.as_deref(), Some("model_context_window_exceeded"));
        let is_empty = self.calls.is_empty() && self.usage.is_none_or(|usage| usage.output <= 1);
        told.or_else(|| (is_full && is_empty).then(refusal::Refusal::default))
    }
}

/// A call that a model makes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Called {
    /// The id that its result has to name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as they came.
    pub arguments: String,
}

/// An error in the provider's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its kind: `overloaded_error`, `context_length_exceeded`.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// Its JSON.
    pub raw: String,
}

impl Failure {
    /// The error that an object holds under `error`, or is.
    pub fn read(json: &str) -> Option<Failure> {
        let outer = Object::parse(json)?;
        let inner = outer.some("error").unwrap_or(json);
        let raw = json.to_owned();
        let Some(inner) = Object::parse(inner) else {
            let message = json::string(inner)?.text.into_owned();
            return Some(Failure { kind: String::new(), message, raw });
        };
        let text = |key: &str| inner.text(key).filter(|text| !text.is_empty());
        let kind = text("code").or_else(|| text("type")).unwrap_or_default().into_owned();
        Some(Failure { kind, message: text("message").unwrap_or_default().into_owned(), raw })
    }
}

/// The longest whole answer that is read. A longer one passes unread.
const LONGEST_BODY: usize = 64 << 20;

/// Reads an answer as it passes.
#[derive(Debug)]
pub struct Reply {
    format: Format,
    carried: Carried,
    splitter: Splitter,
    body: Vec<u8>,
    reading: Reading,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) said: Said,
    pub(super) told: Told,
    /// Where the calls stand in the provider's numbering.
    pub(super) places: Vec<u64>,
    /// Which part of a call belongs to which, in Chat Completions.
    pub(super) begun: chat::Begun,
    /// Whether the first event has been read, which names the answer.
    pub(super) is_begun: bool,
}

impl Reading {
    /// The call at a place of the provider's numbering; it is begun if it is new.
    pub(super) fn call(&mut self, place: u64) -> &mut Called {
        let found = self.places.iter().position(|there| *there == place);
        let i = found.unwrap_or_else(|| {
            self.places.push(place);
            self.said.calls.push(Called::default());
            self.places.len() - 1
        });
        &mut self.said.calls[i]
    }
}

impl Reply {
    /// A reader of an answer in this format.
    pub fn new(format: Format, carried: Carried) -> Reply {
        Reply {
            format,
            carried,
            splitter: Splitter::default(),
            body: Vec::new(),
            reading: Reading::default(),
        }
    }

    /// Takes some bytes of the answer.
    pub fn feed(&mut self, bytes: &[u8]) {
        match self.carried {
            Carried::Stream => {
                for event in self.splitter.feed(bytes) {
                    self.event(&event);
                }
            }
            Carried::Whole if self.body.len() <= LONGEST_BODY => self.body.extend_from_slice(bytes),
            Carried::Whole => {}
        }
    }

    /// Takes an event that has been split off already.
    pub(super) fn event(&mut self, event: &Event) {
        match self.format {
            Format::Anthropic => anthropic::event(&mut self.reading, event),
            Format::Responses => responses::event(&mut self.reading, event),
            Format::Chat | Format::ShareGpt | Format::Hermes => chat::event(&mut self.reading, event),
        }
    }

    /// What has been said so far, but for the usage.
    pub(super) fn said(&self) -> &Said {
        &self.reading.said
    }

    /// What has been said so far; of a whole answer nothing, before its end.
    pub fn so_far(&self) -> Said {
        let mut said = self.reading.said.clone();
        said.usage = self.reading.told.usage(self.format);
        said
    }

    /// What was said, now that there is no more.
    pub fn end(mut self) -> Said {
        // An event without its blank line may be half of one.
        let last = self.splitter.end();
        let is_whole = |data: &str| data.trim() == "[DONE]" || json::is_valid(data);
        if let Some(event) = last.filter(|event| event.data().is_some_and(|data| is_whole(&data))) {
            self.event(&event);
        }
        let body = std::mem::take(&mut self.body);
        let text =
            std::str::from_utf8(&body).ok().filter(|text| body.len() <= LONGEST_BODY && json::is_valid(text));
        if let Some(text) = text {
            self.whole(text);
        }
        self.so_far()
    }

    fn whole(&mut self, body: &str) {
        let Some(object) = Object::parse(body) else { return };
        let reading = &mut self.reading;
        reading.said.id = object.text("id").map(Into::into);
        reading.said.model = object.text("model").map(Into::into);
        if let Some(usage) = object.some("usage") {
            reading.told.read(usage);
        }
        if object.some("error").is_some() {
            reading.said.failure = Failure::read(body);
        }
        reading.said.is_ended = true;
        match self.format {
            Format::Anthropic => anthropic::whole(reading, &object),
            Format::Responses => responses::whole(reading, &object),
            Format::Chat | Format::ShareGpt | Format::Hermes => chat::whole(reading, &object),
        }
    }
}

/// Whether a JSON text says something under a key: whether the key stands in it with a value other than null.
pub(super) fn says(json: &[u8], quoted_key: &str) -> bool {
    memchr::memmem::find_iter(json, quoted_key).any(|at| {
        let rest = &json[at + quoted_key.len()..];
        let value = rest.iter().find(|byte| !matches!(byte, b' ' | b':' | b'\t'));
        value.is_some_and(|byte| *byte != b'n')
    })
}
