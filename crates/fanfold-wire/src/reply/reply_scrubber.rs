//! Removes memory blocks that a model repeated in its reply, streamed or whole.
//!
//! An event with unchanged text passes byte for byte. An event that ends with what may be the start of a fence is
//! delayed, together with all events after it, until later text shows whether it is a fence, its text ends, or
//! `MAX_DELAYED` events are waiting.

use std::collections::{BTreeMap, VecDeque};

use crate::dialects::{EventTexts, Format, TextFragment};
use crate::json::{self, Object, Splices};
use crate::reply::memory_scrubber::{Scrubber, scrub};
use crate::reply::reader::Transport;
use crate::reply::sse::{Splitter, SseEvent};

/// Maximum size in bytes of a whole reply; a larger one passes unchanged.
const MAX_BODY: usize = 32 << 20;
/// Maximum size in bytes of `shown_text`.
const MAX_SHOWN_TEXT: usize = 64 << 10;
/// Maximum number of delayed events. Beyond it, undecided text is passed on as text.
const MAX_DELAYED: usize = 256;

/// Removes memory blocks from a reply while it passes.
#[derive(Debug)]
pub struct ReplyScrubber {
    format: Format,
    transport: Transport,
    splitter: Splitter,
    /// The scrubber of each text that has not ended, by the name of the text.
    scrubbers: BTreeMap<String, Scrubber>,
    delayed: VecDeque<DelayedEvent>,
    body: Vec<u8>,
    /// True if a whole reply exceeds the limit, so that it passes unchanged.
    is_too_long: bool,
    shown_text: String,
    n_scrubbed: usize,
}

/// An event that has not been passed on.
#[derive(Debug)]
enum DelayedEvent {
    /// Waits only for the events before it.
    Ready(Vec<u8>),
    /// The last characters of its text may begin a fence; waits for the text that decides.
    Undecided {
        text_name: String,
        /// The event without memory blocks, with the undecided characters.
        with_undecided: Vec<u8>,
        /// The event without the undecided characters.
        shown: Vec<u8>,
        /// The undecided characters.
        undecided: String,
        /// True if memory blocks were removed from it.
        is_scrubbed: bool,
    },
}

impl ReplyScrubber {
    /// A scrubber for one reply.
    pub fn new(format: Format, transport: Transport) -> ReplyScrubber {
        ReplyScrubber {
            format,
            transport,
            splitter: Splitter::default(),
            scrubbers: BTreeMap::new(),
            delayed: VecDeque::new(),
            body: Vec::new(),
            is_too_long: false,
            shown_text: String::new(),
            n_scrubbed: 0,
        }
    }

    /// Takes the next bytes of the reply and returns those that may be shown now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self.transport {
            Transport::Stream => {
                for event in self.splitter.feed(bytes) {
                    self.push_event(&event);
                }
                self.release()
            }
            Transport::Whole if self.is_too_long => bytes.to_vec(),
            Transport::Whole => {
                self.body.extend_from_slice(bytes);
                self.is_too_long = self.body.len() > MAX_BODY;
                if self.is_too_long { std::mem::take(&mut self.body) } else { Vec::new() }
            }
        }
    }

    /// Ends the reply and returns the rest of it.
    pub fn end(&mut self) -> Vec<u8> {
        if self.transport == Transport::Whole {
            let body = std::mem::take(&mut self.body);
            return self.scrub_whole(&body).map_or(body, String::into_bytes);
        }
        // An event without its blank line may be incomplete. Clients ignore it.
        if let Some(last) = self.splitter.end() {
            self.delayed.push_back(DelayedEvent::Ready(last.into_raw()));
        }
        self.end_all();
        self.release()
    }

    /// The shown text, up to a limit; repeats are left out, and texts are separated by line breaks.
    pub fn shown_text(&self) -> &str {
        &self.shown_text
    }

    /// The number of changed events, or of changed texts in a whole reply.
    pub fn n_scrubbed(&self) -> usize {
        self.n_scrubbed
    }

    fn push_event(&mut self, event: &SseEvent) {
        let data = event.data();
        let texts = data.as_deref().map(|data| self.texts_of(event, data)).unwrap_or_default();
        if texts.ends_all {
            self.end_all();
        }
        texts.ended_before.iter().for_each(|text_name| self.end_text(text_name));
        if texts.fragments.is_empty() {
            self.delayed.push_back(DelayedEvent::Ready(event.raw().to_vec()));
        } else {
            self.scrub_event(event, data.as_deref().unwrap_or_default(), &texts.fragments);
        }
        texts.ended_after.iter().for_each(|text_name| self.end_text(text_name));
        if self.delayed.len() > MAX_DELAYED {
            self.end_all();
        }
    }

    fn texts_of<'d>(&self, event: &SseEvent, data: &'d str) -> EventTexts<'d> {
        if data.trim() == "[DONE]" {
            return EventTexts::end_all();
        }
        let (Some(api), Some(object)) = (self.format.api(), Object::parse(data)) else {
            return EventTexts::default();
        };
        let kind = object.text("type");
        api.texts_of_event(kind.as_deref().or(event.name()).unwrap_or_default(), &object)
    }

    fn scrub_event(&mut self, event: &SseEvent, data: &str, fragments: &[TextFragment<'_>]) {
        let (mut shown_parts, mut parts_with_undecided) = (Splices::default(), Splices::default());
        let mut undecided_end = None;
        for fragment in fragments {
            let Some(text) = json::string(fragment.value).map(|text| text.text) else { continue };
            let (shown, undecided) = if fragment.is_whole {
                (scrub(&text), String::new())
            } else {
                let scrubber = self.scrubbers.entry(fragment.text_name.clone()).or_default();
                let before = scrubber.undecided().to_owned();
                let fed = scrubber.feed(&text);
                let undecided = scrubber.undecided().to_owned();
                // The start of a fence grew, and no other text arrived.
                let is_undecided =
                    fed.is_empty() && !before.is_empty() && undecided == format!("{before}{text}");
                let (own, undecided) = if is_undecided {
                    (fed, text.clone().into_owned())
                } else {
                    let was_text = fed.starts_with(&before);
                    self.decide(&fragment.text_name, was_text);
                    (if was_text { fed[before.len()..].to_owned() } else { fed }, undecided)
                };
                append_shown(&mut self.shown_text, &own);
                if !undecided.is_empty() {
                    undecided_end = Some((fragment.text_name.clone(), undecided.clone()));
                }
                (own, undecided)
            };
            let span = json::span(data, fragment.value);
            if shown != text {
                shown_parts.replace(span.clone(), json::quote(&shown));
            }
            let with_undecided = shown + &undecided;
            if with_undecided != text {
                parts_with_undecided.replace(span, json::quote(&with_undecided));
            }
        }
        let is_scrubbed = !parts_with_undecided.is_empty();
        let event_with = |parts: Splices| {
            if parts.is_empty() { event.raw().to_vec() } else { event.with_data(&parts.apply(data)) }
        };
        let shown = event_with(shown_parts);
        match undecided_end {
            Some((text_name, undecided)) => {
                let with_undecided = event_with(parts_with_undecided);
                let delayed =
                    DelayedEvent::Undecided { text_name, with_undecided, shown, undecided, is_scrubbed };
                self.delayed.push_back(delayed);
            }
            None => {
                self.n_scrubbed += usize::from(is_scrubbed);
                self.delayed.push_back(DelayedEvent::Ready(shown));
            }
        }
    }

    /// Marks the undecided events of a text as ready: with their end if it was text, without it if a fence began.
    fn decide(&mut self, decided_name: &str, was_text: bool) {
        for delayed in &mut self.delayed {
            if let DelayedEvent::Undecided { text_name, with_undecided, shown, undecided, is_scrubbed } =
                delayed
                && text_name == decided_name
            {
                if was_text {
                    append_shown(&mut self.shown_text, undecided);
                }
                self.n_scrubbed += usize::from(*is_scrubbed || !was_text);
                let bytes = std::mem::take(if was_text { with_undecided } else { shown });
                *delayed = DelayedEvent::Ready(bytes);
            }
        }
    }

    fn end_text(&mut self, text_name: &str) {
        if self.scrubbers.remove(text_name).is_some() {
            self.decide(text_name, true);
            if !self.shown_text.is_empty() && !self.shown_text.ends_with('\n') {
                append_shown(&mut self.shown_text, "\n");
            }
        }
    }

    fn end_all(&mut self) {
        for text_name in self.scrubbers.keys().cloned().collect::<Vec<_>>() {
            self.end_text(&text_name);
        }
    }

    fn release(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(DelayedEvent::Ready(bytes)) = self.delayed.front() {
            out.extend_from_slice(bytes);
            self.delayed.pop_front();
        }
        out
    }

    fn scrub_whole(&mut self, body: &[u8]) -> Option<String> {
        let body = std::str::from_utf8(body).ok().filter(|body| json::is_valid(body))?;
        let object = Object::parse(body)?;
        let mut splices = Splices::default();
        for value in self.format.api()?.texts_of_whole(&object) {
            let Some(text) = json::string(value).map(|text| text.text) else { continue };
            let shown = scrub(&text);
            append_shown(&mut self.shown_text, &shown);
            if shown != text {
                self.n_scrubbed += 1;
                splices.replace(json::span(body, value), json::quote(&shown));
            }
        }
        (!splices.is_empty()).then(|| splices.apply(body))
    }
}

/// Appends to the shown text, up to its limit.
fn append_shown(shown_text: &mut String, text: &str) {
    let room = MAX_SHOWN_TEXT.saturating_sub(shown_text.len());
    shown_text.push_str(&text[..text.floor_char_boundary(room)]);
}
