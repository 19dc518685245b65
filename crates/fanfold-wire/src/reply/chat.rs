//! Answers of Chat Completions.

use super::said::{Failure, Reading, says};
use super::sse::Event;
use super::usage::number;
use crate::json::{self, Object};

pub(super) fn event(reading: &mut Reading, event: &Event) {
    let raw = event.raw();
    let is_first = !reading.is_begun;
    let is_telling = is_first
        || ["\"tool_calls\"", "\"finish_reason\"", "\"usage\"", "\"error\""].iter().any(|key| says(raw, key));
    if !is_telling && memchr::memmem::find(raw, b"[DONE]").is_none() {
        return;
    }
    let Some(data) = event.data() else { return };
    if data.trim() == "[DONE]" {
        reading.said.is_ended = true;
        return;
    }
    let Some(chunk) = Object::parse(&data) else { return };
    if is_first {
        reading.is_begun = true;
        reading.said.id = chunk.text("id").map(Into::into);
        reading.said.model = chunk.text("model").map(Into::into);
    }
    // Groq says the usage of a stream in a place of its own.
    let aside = chunk.some("x_groq").and_then(Object::parse).and_then(|aside| aside.some("usage"));
    for usage in aside.into_iter().chain(chunk.some("usage")) {
        reading.told.read(usage);
    }
    if chunk.some("error").is_some() {
        reading.said.failure = Failure::read(&data);
    }
    let Some(choice) = first_choice(&chunk) else { return };
    if let Some(delta) = choice.some("delta").and_then(Object::parse) {
        calls(reading, &delta);
    }
    stopped(reading, &choice);
}

pub(super) fn whole(reading: &mut Reading, body: &Object<'_>) {
    let Some(choice) = first_choice(body) else { return };
    if let Some(message) = choice.some("message").and_then(Object::parse) {
        calls(reading, &message);
    }
    stopped(reading, &choice);
}

/// The choice with the index 0: who asks for several looks at them alone.
pub(super) fn first_choice<'a>(chunk: &Object<'a>) -> Option<Object<'a>> {
    let choices = json::array(chunk.some("choices")?)?;
    let mut choices = choices.into_iter().filter_map(Object::parse);
    choices.find(|choice| choice.get("index").is_none_or(|index| index == "0" || index == "null"))
}

fn stopped(reading: &mut Reading, choice: &Object<'_>) {
    if let Some(stop) = choice.text("finish_reason") {
        reading.said.stop = Some(stop.into_owned());
        reading.said.is_ended = true;
    }
}

/// The calls that have begun, and which of them a part belongs to.
///
/// A part has its call's index. Some servers give all calls the same one: then each begins with another id and a name.
/// Others give each part another id: a part without a name begins nothing.
#[derive(Debug, Default)]
pub(super) struct Begun(Vec<Call>);

#[derive(Debug)]
struct Call {
    index: u64,
    id: String,
    is_named: bool,
}

impl Begun {
    /// The number of the call that a part belongs to, counted in the order in which they begin.
    pub(super) fn place(&mut self, part: &Object<'_>, i: usize) -> u64 {
        let index = part.get("index").and_then(number).unwrap_or(i as u64);
        let id = part.text("id").unwrap_or_default();
        let name = part.some("function").and_then(Object::parse).and_then(|function| function.text("name"));
        let is_named = name.is_some_and(|name| !name.is_empty());
        let last = self.0.iter().rposition(|call| call.index == index);
        let same = last.filter(|last| {
            let call = &self.0[*last];
            !is_named || !call.is_named || id.is_empty() || call.id == id
        });
        let place = same.unwrap_or_else(|| {
            self.0.push(Call { index, id: id.clone().into_owned(), is_named: false });
            self.0.len() - 1
        });
        self.0[place].is_named |= is_named;
        place as u64
    }
}

fn calls(reading: &mut Reading, message: &Object<'_>) {
    for (i, json) in message.some("tool_calls").and_then(json::array).unwrap_or_default().iter().enumerate() {
        let Some(part) = Object::parse(json) else { continue };
        let place = reading.begun.place(&part, i);
        let call = reading.call(place);
        if let Some(id) = part.text("id").filter(|id| !id.is_empty()) {
            call.id = id.into_owned();
        }
        let Some(function) = part.some("function").and_then(Object::parse) else { continue };
        if let Some(name) = function.text("name").filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        match function.some("arguments") {
            Some(text) if text.starts_with('"') => {
                call.arguments.push_str(&json::string(text).map(|text| text.text).unwrap_or_default());
            }
            // Some servers give the arguments as an object.
            Some(object) => call.arguments.push_str(object),
            None => {}
        }
    }
}
