//! An answer without the fenced memory that a model may repeat: streamed or whole, in every provider's format.
//!
//! An event whose text is shown as it is leaves as the bytes it came in. One that ends in what may be the beginning of a
//! fence waits for the next one, and what comes behind it waits with it; that is over after a few letters.

use std::collections::{BTreeMap, VecDeque};

use super::said::Carried;
use super::scrub::{Scrubber, scrub};
use super::sse::{Event, Splitter};
use crate::format::Format;
use crate::json::{self, Object};
use crate::splice::Splices;

/// The longest whole answer that is looked at.
const LONGEST_BODY: usize = 32 << 20;
/// So much of what was said is remembered.
const LONGEST_SAID: usize = 64 << 10;
/// So many events wait at most. A text that stands still for so long is no fence.
const MOST_WAITING: usize = 256;

/// Takes fenced memory out of an answer as it passes.
#[derive(Debug)]
pub struct Scrubbed {
    format: Format,
    carried: Carried,
    splitter: Splitter,
    texts: BTreeMap<String, Scrubber>,
    waiting: VecDeque<Waiting>,
    body: Vec<u8>,
    /// Whether a whole answer is too long to be looked at: then it passes.
    is_too_long: bool,
    said: String,
    n_scrubbed: usize,
}

/// An event that waits.
#[derive(Debug)]
enum Waiting {
    /// For those before it.
    Ready(Vec<u8>),
    /// Until it is known whether the end of its text begins a fence.
    Undecided {
        text: String,
        raw: Vec<u8>,
        /// The event with the part of its text that is shown in any case.
        shown: Vec<u8>,
        /// The rest.
        begun: String,
    },
}

/// Where an event has text that people see.
struct Place<'d> {
    /// Which text it goes on with.
    text: String,
    /// Its JSON string.
    value: &'d str,
    is_whole: bool,
}

/// What an event says of texts.
#[derive(Default)]
struct Says<'d> {
    places: Vec<Place<'d>>,
    /// The texts that end before it.
    ended: Vec<String>,
    /// The texts that end with it.
    ending: Vec<String>,
    /// Whether all texts end before it.
    is_end: bool,
}

impl Scrubbed {
    /// An answer in a format.
    pub fn new(format: Format, carried: Carried) -> Scrubbed {
        Scrubbed {
            format,
            carried,
            splitter: Splitter::default(),
            texts: BTreeMap::new(),
            waiting: VecDeque::new(),
            body: Vec::new(),
            is_too_long: false,
            said: String::new(),
            n_scrubbed: 0,
        }
    }

    /// Takes some bytes of the answer, and gives those that people may see now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self.carried {
            Carried::Stream => {
                for event in self.splitter.feed(bytes) {
                    self.event(&event);
                }
                self.leave()
            }
            Carried::Whole if self.is_too_long => bytes.to_vec(),
            Carried::Whole => {
                self.body.extend_from_slice(bytes);
                self.is_too_long = self.body.len() > LONGEST_BODY;
                if self.is_too_long { std::mem::take(&mut self.body) } else { Vec::new() }
            }
        }
    }

    /// Takes the end of the answer, and gives the rest of it.
    pub fn end(&mut self) -> Vec<u8> {
        if self.carried == Carried::Whole {
            let body = std::mem::take(&mut self.body);
            return self.whole(&body).map_or(body, String::into_bytes);
        }
        // An event without its blank line may be half of one: what it says is nothing that a person sees.
        if let Some(last) = self.splitter.end() {
            self.waiting.push_back(Waiting::Ready(last.into_raw()));
        }
        self.end_all();
        self.leave()
    }

    /// What people saw of the texts, up to a limit.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// How many pieces of text were changed.
    pub fn n_scrubbed(&self) -> usize {
        self.n_scrubbed
    }

    fn event(&mut self, event: &Event) {
        let data = event.data();
        let says = data.as_deref().map(|data| says(self.format, event, data)).unwrap_or_default();
        if says.is_end {
            self.end_all();
        }
        says.ended.iter().for_each(|text| self.end_text(text));
        if says.places.is_empty() {
            self.waiting.push_back(Waiting::Ready(event.raw().to_vec()));
        } else {
            self.texts_of(event, data.as_deref().unwrap_or_default(), &says.places);
        }
        says.ending.iter().for_each(|text| self.end_text(text));
        if self.waiting.len() > MOST_WAITING {
            self.end_all();
        }
    }

    fn texts_of(&mut self, event: &Event, data: &str, places: &[Place<'_>]) {
        let mut shown_parts = Splices::default();
        let mut undecided = None;
        for place in places {
            let Some(text) = json::string(place.value).map(|text| text.text) else { continue };
            let shown = if place.is_whole {
                scrub(&text)
            } else {
                let scrubber = self.texts.entry(place.text.clone()).or_default();
                let before = scrubber.begun().to_owned();
                let fed = scrubber.feed(&text);
                let begun = scrubber.begun().to_owned();
                // The beginning of a fence has become longer, and nothing else.
                let is_still = fed.is_empty() && !before.is_empty() && begun == format!("{before}{text}");
                let (own, begun) = if is_still {
                    (fed, text.clone().into_owned())
                } else {
                    let was_none = fed.starts_with(&before);
                    self.decide(&place.text, was_none);
                    (if was_none { fed[before.len()..].to_owned() } else { fed }, begun)
                };
                keep(&mut self.said, &own);
                if !begun.is_empty() {
                    undecided = Some((place.text.clone(), begun));
                }
                own
            };
            if shown != text {
                shown_parts.replace(json::span(data, place.value), json::quote(&shown));
            }
        }
        let raw = event.raw().to_vec();
        let shown =
            if shown_parts.is_empty() { raw.clone() } else { event.with_data(&shown_parts.apply(data)) };
        match undecided {
            Some((text, begun)) => {
                self.waiting.push_back(Waiting::Undecided { text, raw, shown, begun });
            }
            None => {
                self.n_scrubbed += usize::from(shown != raw);
                self.waiting.push_back(Waiting::Ready(shown));
            }
        }
    }

    /// It is known now whether what waits of a text was no fence.
    fn decide(&mut self, of: &str, was_none: bool) {
        for waiting in &mut self.waiting {
            if let Waiting::Undecided { text, raw, shown, begun } = waiting
                && text == of
            {
                if was_none {
                    keep(&mut self.said, begun);
                } else {
                    self.n_scrubbed += 1;
                }
                let bytes = std::mem::take(if was_none { raw } else { shown });
                *waiting = Waiting::Ready(bytes);
            }
        }
    }

    fn end_text(&mut self, text: &str) {
        if self.texts.remove(text).is_some() {
            self.decide(text, true);
            if !self.said.is_empty() && !self.said.ends_with('\n') {
                keep(&mut self.said, "\n");
            }
        }
    }

    fn end_all(&mut self) {
        for text in self.texts.keys().cloned().collect::<Vec<_>>() {
            self.end_text(&text);
        }
    }

    fn leave(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(Waiting::Ready(bytes)) = self.waiting.front() {
            out.extend_from_slice(bytes);
            self.waiting.pop_front();
        }
        out
    }

    fn whole(&mut self, body: &[u8]) -> Option<String> {
        let body = std::str::from_utf8(body).ok().filter(|body| json::is_valid(body))?;
        let object = Object::parse(body)?;
        let mut splices = Splices::default();
        for value in texts_of_whole(self.format, &object) {
            let Some(text) = json::string(value).map(|text| text.text) else { continue };
            let shown = scrub(&text);
            keep(&mut self.said, &shown);
            if shown != text {
                self.n_scrubbed += 1;
                splices.replace(json::span(body, value), json::quote(&shown));
            }
        }
        (!splices.is_empty()).then(|| splices.apply(body))
    }
}

/// Adds to what was said, up to a limit.
fn keep(said: &mut String, text: &str) {
    let room = LONGEST_SAID.saturating_sub(said.len());
    said.push_str(&text[..text.floor_char_boundary(room)]);
}

fn says<'d>(format: Format, event: &Event, data: &'d str) -> Says<'d> {
    if data.trim() == "[DONE]" {
        return Says { is_end: true, ..Says::default() };
    }
    let Some(object) = Object::parse(data) else { return Says::default() };
    match format {
        Format::Anthropic => says_anthropic(event, &object),
        Format::Responses => says_responses(event, &object),
        Format::Chat | Format::ShareGpt | Format::Hermes => says_chat(&object),
    }
}

fn says_chat<'d>(chunk: &Object<'d>) -> Says<'d> {
    let mut says = Says::default();
    for choice in chunk.some("choices").and_then(json::array).unwrap_or_default() {
        let Some(choice) = Object::parse(choice) else { continue };
        let text = choice.get("index").unwrap_or("0").to_owned();
        let delta = choice.some("delta").and_then(Object::parse);
        if choice.some("finish_reason").is_some() {
            says.ending.push(text.clone());
        }
        if let Some(value) = delta.and_then(|delta| delta.some("content")) {
            says.places.push(Place { text, value, is_whole: false });
        } else if choice.some("finish_reason").is_some() {
            says.ended.push(text);
        }
    }
    says
}

fn says_anthropic<'d>(event: &Event, object: &Object<'d>) -> Says<'d> {
    let kind = object.text("type");
    let text = || object.get("index").unwrap_or("0").to_owned();
    let inner = |key: &str| object.some(key).and_then(Object::parse);
    match kind.as_deref().or(event.name()).unwrap_or_default() {
        "content_block_delta" => {
            let delta = inner("delta").filter(|delta| delta.text("type").as_deref() == Some("text_delta"));
            let value = delta.and_then(|delta| delta.some("text"));
            let place = value.map(|value| Place { text: text(), value, is_whole: false });
            Says { places: place.into_iter().collect(), ..Says::default() }
        }
        "content_block_stop" => Says { ended: vec![text()], ..Says::default() },
        "message_delta" | "message_stop" | "error" => Says { is_end: true, ..Says::default() },
        _ => Says::default(),
    }
}

fn says_responses<'d>(event: &Event, object: &Object<'d>) -> Says<'d> {
    let kind = object.text("type");
    let text = || {
        let number = |key: &str| object.get(key).unwrap_or("0");
        format!("{} {}", number("output_index"), number("content_index"))
    };
    let whole = |values: Vec<&'d str>| {
        let places = values.into_iter().map(|value| Place { text: String::new(), value, is_whole: true });
        places.collect::<Vec<_>>()
    };
    let inner = |key: &str| object.some(key).and_then(Object::parse);
    match kind.as_deref().or(event.name()).unwrap_or_default() {
        "response.output_text.delta" => {
            let place = object.some("delta").map(|value| Place { text: text(), value, is_whole: false });
            Says { places: place.into_iter().collect(), ..Says::default() }
        }
        "response.output_text.done" => {
            let places = whole(object.some("text").into_iter().collect());
            Says { places, ended: vec![text()], ..Says::default() }
        }
        "response.content_part.done" => {
            let part = inner("part").filter(|part| part.text("type").as_deref() == Some("output_text"));
            let places = whole(part.and_then(|part| part.some("text")).into_iter().collect());
            Says { places, ended: vec![text()], ..Says::default() }
        }
        "response.output_item.done" => {
            let places = whole(inner("item").map(|item| texts_of_item(&item)).unwrap_or_default());
            Says { places, is_end: true, ..Says::default() }
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            let response = inner("response");
            let places = whole(
                response.map(|response| texts_of_whole(Format::Responses, &response)).unwrap_or_default(),
            );
            Says { places, is_end: true, ..Says::default() }
        }
        _ => Says::default(),
    }
}

/// The JSON strings of a whole answer that people see.
fn texts_of_whole<'d>(format: Format, body: &Object<'d>) -> Vec<&'d str> {
    let list = |key: &str| body.some(key).and_then(json::array).unwrap_or_default();
    match format {
        Format::Anthropic => list("content").into_iter().filter_map(|block| text_of(block, "text")).collect(),
        Format::Responses => list("output")
            .into_iter()
            .filter_map(Object::parse)
            .flat_map(|item| texts_of_item(&item))
            .collect(),
        Format::Chat | Format::ShareGpt | Format::Hermes => list("choices")
            .into_iter()
            .filter_map(|choice| Object::parse(choice)?.some("message").and_then(Object::parse))
            .filter_map(|message| message.some("content").filter(|content| content.starts_with('"')))
            .collect(),
    }
}

fn texts_of_item<'d>(item: &Object<'d>) -> Vec<&'d str> {
    if item.text("type").is_some_and(|kind| kind != "message") {
        return Vec::new();
    }
    let parts = item.some("content").and_then(json::array).unwrap_or_default();
    parts.into_iter().filter_map(|part| text_of(part, "output_text")).collect()
}

fn text_of<'d>(part: &'d str, kind: &str) -> Option<&'d str> {
    let part = Object::parse(part)?;
    part.some("text").filter(|_| part.text("type").as_deref() == Some(kind))
}
