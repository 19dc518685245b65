//! Removes fenced memory that a model repeats from its reply, streamed or whole.
//!
//! An event with unchanged text passes byte for byte. An event that ends with what may be the start of a fence is
//! delayed, together with all events after it, until a few more letters decide.

use std::collections::{BTreeMap, VecDeque};

use crate::dialects::{EventTexts, Format, TextFragment};
use crate::json::{self, Object, Splices};
use crate::reply::memory_scrubber::{Scrubber, scrub};
use crate::reply::reader::Transport;
use crate::reply::sse::{Event, Splitter};

/// The longest whole reply that is scrubbed.
const MAX_BODY: usize = 32 << 20;
/// The number of bytes of the shown text that are kept.
const MAX_SHOWN_TEXT: usize = 64 << 10;
/// The number of events that are delayed at most. A longer start of a fence is not one.
const MAX_DELAYED: usize = 256;

/// Removes fenced memory from a reply while it passes.
#[derive(Debug)]
pub struct ReplyScrubber {
    format: Format,
    transport: Transport,
    splitter: Splitter,
    texts: BTreeMap<String, Scrubber>,
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
    /// Waits until the end of its text is known to begin a fence or not.
    Undecided {
        text: String,
        raw: Vec<u8>,
        /// The event with the part of its text that is shown in any case.
        shown: Vec<u8>,
        /// The rest of its text.
        begun: String,
    },
}

impl ReplyScrubber {
    /// A scrubber for one reply.
    pub fn new(format: Format, transport: Transport) -> ReplyScrubber {
        ReplyScrubber {
            format,
            transport,
            splitter: Splitter::default(),
            texts: BTreeMap::new(),
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
                    self.event(&event);
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
            return self.whole(&body).map_or(body, String::into_bytes);
        }
        // An event without its blank line may be incomplete. Clients ignore it.
        if let Some(last) = self.splitter.end() {
            self.delayed.push_back(DelayedEvent::Ready(last.into_raw()));
        }
        self.end_all();
        self.release()
    }

    /// The text that was shown, up to a limit.
    pub fn shown_text(&self) -> &str {
        &self.shown_text
    }

    /// The number of fragments that were changed.
    pub fn n_scrubbed(&self) -> usize {
        self.n_scrubbed
    }

    fn event(&mut self, event: &Event) {
        let data = event.data();
        let texts = data.as_deref().map(|data| self.texts_of(event, data)).unwrap_or_default();
        if texts.ends_all {
            self.end_all();
        }
        texts.ended_before.iter().for_each(|text| self.end_text(text));
        if texts.fragments.is_empty() {
            self.delayed.push_back(DelayedEvent::Ready(event.raw().to_vec()));
        } else {
            self.scrub_event(event, data.as_deref().unwrap_or_default(), &texts.fragments);
        }
        texts.ended_after.iter().for_each(|text| self.end_text(text));
        if self.delayed.len() > MAX_DELAYED {
            self.end_all();
        }
    }

    fn texts_of<'d>(&self, event: &Event, data: &'d str) -> EventTexts<'d> {
        if data.trim() == "[DONE]" {
            return EventTexts::end_all();
        }
        let (Some(api), Some(object)) = (self.format.api(), Object::parse(data)) else {
            return EventTexts::default();
        };
        let kind = object.text("type");
        api.texts_of_event(kind.as_deref().or(event.name()).unwrap_or_default(), &object)
    }

    fn scrub_event(&mut self, event: &Event, data: &str, fragments: &[TextFragment<'_>]) {
        let mut shown_parts = Splices::default();
        let mut undecided = None;
        for fragment in fragments {
            let Some(text) = json::string(fragment.value).map(|text| text.text) else { continue };
            let shown = if fragment.is_whole {
                scrub(&text)
            } else {
                let scrubber = self.texts.entry(fragment.text.clone()).or_default();
                let before = scrubber.begun().to_owned();
                let fed = scrubber.feed(&text);
                let begun = scrubber.begun().to_owned();
                // The start of a fence grew, and no other text arrived.
                let is_undecided = fed.is_empty() && !before.is_empty() && begun == format!("{before}{text}");
                let (own, begun) = if is_undecided {
                    (fed, text.clone().into_owned())
                } else {
                    let was_text = fed.starts_with(&before);
                    self.decide(&fragment.text, was_text);
                    (if was_text { fed[before.len()..].to_owned() } else { fed }, begun)
                };
                append_shown(&mut self.shown_text, &own);
                if !begun.is_empty() {
                    undecided = Some((fragment.text.clone(), begun));
                }
                own
            };
            if shown != text {
                shown_parts.replace(json::span(data, fragment.value), json::quote(&shown));
            }
        }
        let raw = event.raw().to_vec();
        let shown =
            if shown_parts.is_empty() { raw.clone() } else { event.with_data(&shown_parts.apply(data)) };
        match undecided {
            Some((text, begun)) => {
                self.delayed.push_back(DelayedEvent::Undecided { text, raw, shown, begun });
            }
            None => {
                self.n_scrubbed += usize::from(shown != raw);
                self.delayed.push_back(DelayedEvent::Ready(shown));
            }
        }
    }

    /// Releases the delayed events of a text, whose end was text or the start of a fence.
    fn decide(&mut self, name: &str, was_text: bool) {
        for delayed in &mut self.delayed {
            if let DelayedEvent::Undecided { text, raw, shown, begun } = delayed
                && text == name
            {
                if was_text {
                    append_shown(&mut self.shown_text, begun);
                } else {
                    self.n_scrubbed += 1;
                }
                let bytes = std::mem::take(if was_text { raw } else { shown });
                *delayed = DelayedEvent::Ready(bytes);
            }
        }
    }

    fn end_text(&mut self, text: &str) {
        if self.texts.remove(text).is_some() {
            self.decide(text, true);
            if !self.shown_text.is_empty() && !self.shown_text.ends_with('\n') {
                append_shown(&mut self.shown_text, "\n");
            }
        }
    }

    fn end_all(&mut self) {
        for text in self.texts.keys().cloned().collect::<Vec<_>>() {
            self.end_text(&text);
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

    fn whole(&mut self, body: &[u8]) -> Option<String> {
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
