//! Chat Completions: calls are renumbered, one role, one finish reason, one `[DONE]`.

use std::collections::BTreeMap;

use super::{Join, Then, is_all_ours, with_field, with_output, without_fields};
use crate::json::{self, Object};
use crate::reply::chat::{Begun, first_choice};
use crate::reply::said::{Said, says};
use crate::reply::sse::Event;
use crate::reply::tool::{RECALL_TOOL, is_ours};
use crate::splice::Splices;

/// An answer of one or several completions, as one.
#[derive(Default)]
pub(super) struct Joined {
    n_round: usize,
    begun: Begun,
    /// Which call of the client's message each call of this round is; none for one of ours.
    calls: BTreeMap<u64, Option<u64>>,
    n_shown: u64,
    n_output: u64,
    id: Option<String>,
    /// Whether text has been shown in an earlier round, so that the next one begins a paragraph.
    has_text: bool,
    held: Vec<Event>,
    /// Of whole answers: the text of earlier ones, and the last one.
    text: String,
    last: Option<String>,
}

/// Whether a model stopped in a way that lets its calls be answered.
fn can_answer(said: &Said) -> bool {
    is_all_ours(said) && matches!(said.stop.as_deref(), Some("tool_calls" | "stop" | "function_call"))
}

impl Joined {
    fn is_plain(&self) -> bool {
        self.n_round == 0 && self.calls.values().all(Option::is_some)
    }

    /// What the client sees of a chunk; none if that is nothing.
    fn shown(&mut self, data: &str, is_held: bool) -> Option<String> {
        let chunk = Object::parse(data)?;
        let mut splices = Splices::default();
        if self.n_round > 0 {
            if let (Some(id), Some(there)) = (&self.id, chunk.get("id")) {
                splices.replace(chunk.span(there), json::quote(id));
            }
            if let Some(usage) = chunk.some("usage") {
                splices.replace(chunk.span(usage), with_output(usage, self.n_output));
            }
        }
        let Some(choice) = first_choice(&chunk) else { return Some(splices.apply(data)) };
        let delta = choice.some("delta").and_then(Object::parse);
        let mut is_empty = false;
        if let Some(delta) = &delta {
            let shown = self.shown_delta(delta);
            // A delta that says nothing more says nothing at all, unless it came so.
            is_empty = shown != delta.raw && Object::parse(&shown).is_some_and(|shown| says_nothing(&shown));
            splices.replace(json::span(data, delta.raw), shown);
        }
        let is_stopped = choice.some("finish_reason").is_some();
        if is_held {
            let is_nothing = is_empty || delta.is_none_or(|delta| says_nothing(&delta));
            let reason = choice.some("finish_reason").filter(|_| !is_nothing)?;
            splices.replace(json::span(data, reason), "null");
        }
        let is_silent = is_empty && !is_stopped && chunk.some("usage").is_none();
        if is_silent { None } else { Some(splices.apply(data)) }
    }

    fn shown_delta(&mut self, delta: &Object<'_>) -> String {
        let mut text = delta.raw.to_owned();
        if let Some(calls) = delta.some("tool_calls") {
            let kept = self.shown_calls(calls);
            text = match kept {
                Some(kept) => with_field(&text, "tool_calls", &kept),
                None => without_fields(&text, |key| key == "tool_calls"),
            };
        }
        if self.n_round > 0 {
            // Clients put the strings of deltas together, and a role is one.
            text = without_fields(&text, |key| key == "role");
            let content = delta.text("content").filter(|content| !content.is_empty());
            if let Some(content) = content.filter(|_| std::mem::take(&mut self.has_text)) {
                text = with_field(&text, "content", &json::quote(&format!("\n\n{content}")));
            }
        }
        text
    }

    /// The client's calls among some, renumbered; none where all are ours.
    fn shown_calls(&mut self, calls: &str) -> Option<String> {
        let parts = json::array(calls)?;
        let mut shown = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let Some(object) = Object::parse(part) else {
                shown.push((*part).to_owned());
                continue;
            };
            let place = self.begun.place(&object, i);
            let n_shown = &mut self.n_shown;
            let there = *self.calls.entry(place).or_insert_with(|| {
                let is_ours = is_our_call(&object);
                *n_shown += u64::from(!is_ours);
                (!is_ours).then(|| *n_shown - 1)
            });
            let is_moved = self.calls.values().any(Option::is_none);
            match there {
                Some(there) if is_moved => shown.push(with_field(part, "index", &there.to_string())),
                Some(_) => shown.push((*part).to_owned()),
                None => {}
            }
        }
        if shown.is_empty() { None } else { Some(format!("[{}]", shown.join(","))) }
    }

    /// A whole answer as the client sees it.
    fn joined(&self, body: &str, stop: Option<&str>) -> Option<String> {
        let object = Object::parse(body)?;
        let choice = first_choice(&object)?;
        let message = Object::parse(choice.some("message")?)?;
        let mut shown = message.raw.to_owned();
        let calls = message.some("tool_calls").and_then(json::array).unwrap_or_default();
        let kept: Vec<_> = calls
            .iter()
            .filter(|call| !Object::parse(call).is_some_and(|call| is_our_call(&call)))
            .copied()
            .collect();
        if kept.len() < calls.len() {
            shown = match kept.is_empty() {
                true => without_fields(&shown, |key| key == "tool_calls"),
                false => with_field(&shown, "tool_calls", &format!("[{}]", kept.join(","))),
            };
        }
        let own = message.text("content").unwrap_or_default();
        let text = joined_text(&self.text, &own);
        if *text != *own {
            shown = with_field(&shown, "content", &json::quote(&text));
        }
        let mut splices = Splices::default();
        splices.replace(json::span(body, message.raw), shown);
        if let (Some(stop), Some(reason)) = (stop, choice.get("finish_reason")) {
            splices.replace(json::span(body, reason), json::quote(stop));
        }
        if let Some(usage) = object.some("usage") {
            splices.replace(json::span(body, usage), with_output(usage, self.n_output));
        }
        if let (Some(id), Some(there)) = (&self.id, object.get("id")) {
            splices.replace(object.span(there), json::quote(id));
        }
        Some(splices.apply(body))
    }
}

impl Join for Joined {
    fn event(&mut self, event: &Event, said: &Said, out: &mut Vec<u8>) -> Then {
        let is_plain = self.is_plain() && !says(event.raw(), "\"tool_calls\"");
        if is_plain {
            out.extend_from_slice(event.raw());
            return Then::GoOn;
        }
        let Some(data) = event.data() else {
            out.extend_from_slice(event.raw());
            return Then::GoOn;
        };
        if data.trim() == "[DONE]" {
            if self.held.is_empty() {
                out.extend_from_slice(event.raw());
                return Then::GoOn;
            }
            self.held.push(event.clone());
            return Then::Recall;
        }
        let is_error = says(event.raw(), "\"error\"");
        if !json::is_valid(&data) || is_error {
            out.extend_from_slice(event.raw());
            return Then::GoOn;
        }
        let is_held = can_answer(said);
        if let Some(shown) = self.shown(&data, is_held).filter(|_| self.held.is_empty()) {
            if shown == *data {
                out.extend_from_slice(event.raw());
            } else {
                out.extend(event.with_data(&shown));
            }
        }
        if is_held {
            self.held.push(event.clone());
        }
        Then::GoOn
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn whole(&mut self, body: &str, said: &Said) -> (Option<String>, Then) {
        if can_answer(said) {
            self.last = Some(body.to_owned());
            return (None, Then::Recall);
        }
        let is_plain = self.n_round == 0 && !said.calls.iter().any(is_ours);
        (if is_plain { None } else { self.joined(body, None) }, Then::GoOn)
    }

    fn spoken(&mut self, kept: &[Event], _request: &str) -> Option<Vec<String>> {
        if let Some(body) = self.last.take() {
            let object = Object::parse(&body)?;
            self.id = self.id.take().or_else(|| object.text("id").map(Into::into));
            let message = Object::parse(first_choice(&object)?.some("message")?)?;
            self.text = joined_text(&self.text, &message.text("content").unwrap_or_default());
            return Some(vec![message.raw.to_owned()]);
        }
        let mut message = Message::default();
        for event in kept {
            let Some(data) = event.data() else { continue };
            let Some(chunk) = Object::parse(&data) else { continue };
            self.id = self.id.take().or_else(|| chunk.text("id").map(Into::into));
            let delta = first_choice(&chunk).and_then(|choice| Object::parse(choice.some("delta")?));
            if let Some(delta) = delta {
                message.grow(&delta);
            }
        }
        self.has_text = self.has_text || !message.content.is_empty();
        Some(vec![message.print()])
    }

    fn result(&self, call: &str, answer: &str) -> String {
        format!(r#"{{"role":"tool","tool_call_id":{call},"content":{answer}}}"#)
    }

    fn close(&mut self) -> Vec<u8> {
        if let Some(body) = self.last.take() {
            return self.joined(&body, Some("stop")).unwrap_or(body).into_bytes();
        }
        let mut out = Vec::new();
        let mut is_done = false;
        for event in std::mem::take(&mut self.held) {
            let Some(data) = event.data() else { continue };
            if data.trim() == "[DONE]" {
                is_done = true;
                out.extend_from_slice(event.raw());
                continue;
            }
            out.extend(event.with_data(&self.stopped(&data).unwrap_or_else(|| data.clone().into_owned())));
        }
        if !out.is_empty() && !is_done {
            out.extend_from_slice(b"data: [DONE]\n\n");
        }
        out
    }

    fn fail(&mut self, message: &str) -> Vec<u8> {
        let message = json::quote(message);
        let error =
            format!(r#"{{"error":{{"message":{message},"type":"server_error","param":null,"code":null}}}}"#);
        format!("data: {error}\n\n").into_bytes()
    }

    fn next_round(&mut self, n_output: u64) {
        self.n_round += 1;
        self.n_output += n_output;
        self.begun = Begun::default();
        self.calls.clear();
        self.held.clear();
    }
}

impl Joined {
    /// A chunk that was held back, with an end as if nothing had been called.
    fn stopped(&self, data: &str) -> Option<String> {
        let chunk = Object::parse(data)?;
        let mut splices = Splices::default();
        if let (Some(id), Some(there)) = (&self.id, chunk.get("id")) {
            splices.replace(chunk.span(there), json::quote(id));
        }
        if let Some(usage) = chunk.some("usage") {
            splices.replace(chunk.span(usage), with_output(usage, self.n_output));
        }
        if let Some(choice) = first_choice(&chunk) {
            if let Some(delta) = choice.get("delta") {
                splices.replace(json::span(data, delta), "{}");
            }
            if let Some(reason) = choice.some("finish_reason") {
                splices.replace(json::span(data, reason), "\"stop\"");
            }
        }
        Some(splices.apply(data))
    }
}

fn joined_text(before: &str, own: &str) -> String {
    let gap = if before.is_empty() || own.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{own}")
}

fn is_our_call(call: &Object<'_>) -> bool {
    let function = call.some("function").and_then(Object::parse);
    function.is_some_and(|function| function.text("name").as_deref() == Some(RECALL_TOOL))
}

fn says_nothing(delta: &Object<'_>) -> bool {
    delta.fields.iter().all(|field| matches!(field.value, "null" | "\"\"" | "[]" | "{}"))
}

/// A message that is being put together from deltas.
#[derive(Default)]
struct Message {
    content: String,
    reasoning: String,
    details: Vec<String>,
    begun: Begun,
    calls: BTreeMap<u64, Call>,
}

#[derive(Default)]
struct Call {
    /// The call as it began, with fields of the provider's own.
    begun: String,
    name: String,
    arguments: String,
}

impl Message {
    fn grow(&mut self, delta: &Object<'_>) {
        self.content.push_str(&delta.text("content").unwrap_or_default());
        self.reasoning.push_str(&delta.text("reasoning_content").unwrap_or_default());
        let details = delta.some("reasoning_details").and_then(json::array).unwrap_or_default();
        self.details.extend(details.into_iter().map(str::to_owned));
        let parts = delta.some("tool_calls").and_then(json::array).unwrap_or_default();
        for (i, part) in parts.iter().enumerate() {
            let Some(object) = Object::parse(part) else { continue };
            let call = self.calls.entry(self.begun.place(&object, i)).or_default();
            if call.begun.is_empty() {
                call.begun = without_fields(part, |key| matches!(key, "index" | "function"));
            }
            let Some(function) = object.some("function").and_then(Object::parse) else { continue };
            if call.name.is_empty() {
                call.name = function.text("name").unwrap_or_default().into_owned();
            }
            match function.some("arguments") {
                Some(text) if text.starts_with('"') => {
                    call.arguments.push_str(&json::string(text).map(|text| text.text).unwrap_or_default());
                }
                Some(object) => call.arguments.push_str(object),
                None => {}
            }
        }
    }

    fn print(&self) -> String {
        let content = if self.content.is_empty() { "null".to_owned() } else { json::quote(&self.content) };
        let mut message = format!(r#"{{"role":"assistant","content":{content}}}"#);
        // Models that think want their thoughts back as long as the turn lasts.
        if !self.reasoning.is_empty() {
            message = with_field(&message, "reasoning_content", &json::quote(&self.reasoning));
        }
        if !self.details.is_empty() {
            message = with_field(&message, "reasoning_details", &format!("[{}]", self.details.join(",")));
        }
        let calls: Vec<_> = self
            .calls
            .values()
            .map(|call| {
                let arguments = if json::is_object(&call.arguments) { &*call.arguments } else { "{}" };
                let function = format!(
                    r#"{{"name":{},"arguments":{}}}"#,
                    json::quote(&call.name),
                    json::quote(arguments)
                );
                with_field(&call.begun, "function", &function)
            })
            .collect();
        with_field(&message, "tool_calls", &format!("[{}]", calls.join(",")))
    }
}
