//! Joins rounds of Chat Completions: calls are renumbered; one role, one finish reason and one `[DONE]` remain.

use std::collections::BTreeMap;

use super::reply::{StreamedCalls, append_arguments, first_choice};
use crate::json::{self, Object, Splices, with_field, without_fields};
use crate::reply::reader::{ParsedReply, ReplyFailure, has_value};
use crate::reply::rounds::{ItemNumbers, JoinRounds, JoinState, RoundStep, calls_only_recalls, with_output};
use crate::reply::sse::SseEvent;
use crate::request::RECALL_TOOL;

/// One or several completions as one.
#[derive(Default)]
pub(super) struct JoinedCompletions {
    streamed: StreamedCalls,
    calls: ItemNumbers,
    /// True if an earlier round showed text, so that the next text begins a paragraph.
    has_text: bool,
    /// The text of earlier whole replies.
    text: String,
}

impl JoinedCompletions {
    /// A chunk as the client sees it; `None` if it has nothing to show.
    fn shown_chunk(&mut self, state: &JoinState, data: &str, is_held: bool) -> Option<String> {
        let chunk = Object::parse(data)?;
        let mut splices = Splices::default();
        if state.n_rounds > 0 {
            join_envelope(state, &chunk, &mut splices);
        }
        let Some(choice) = first_choice(&chunk) else { return Some(splices.apply(data)) };
        let delta = choice.some("delta").and_then(Object::parse);
        let mut is_emptied = false;
        if let Some(delta) = &delta {
            let shown = self.shown_delta(state, delta);
            // A delta without content is dropped, unless the provider sent it so.
            is_emptied = shown != delta.raw && Object::parse(&shown).is_some_and(|shown| is_empty(&shown));
            splices.replace(json::span(data, delta.raw), shown);
        }
        let is_stopped = choice.some("finish_reason").is_some();
        if is_held {
            let has_nothing = is_emptied || delta.is_none_or(|delta| is_empty(&delta));
            let reason = choice.some("finish_reason").filter(|_| !has_nothing)?;
            splices.replace(json::span(data, reason), "null");
        }
        let is_dropped = is_emptied && !is_stopped && chunk.some("usage").is_none();
        if is_dropped { None } else { Some(splices.apply(data)) }
    }

    fn shown_delta(&mut self, state: &JoinState, delta: &Object<'_>) -> String {
        let mut text = delta.raw.to_owned();
        if let Some(calls) = delta.some("tool_calls") {
            text = with_calls(&text, &self.shown_calls(calls));
        }
        if state.n_rounds > 0 {
            // Clients concatenate the strings of deltas, also the role.
            text = without_fields(&text, |key| key == "role");
            let content = delta.text("content").filter(|content| !content.is_empty());
            if let Some(content) = content.filter(|_| std::mem::take(&mut self.has_text)) {
                text = with_field(&text, "content", &json::quote(&format!("\n\n{content}")));
            }
        }
        text
    }

    /// The client's calls, renumbered.
    fn shown_calls(&mut self, calls: &str) -> Vec<String> {
        let mut shown = Vec::new();
        for (i, part) in json::array(calls).unwrap_or_default().into_iter().enumerate() {
            let Some(object) = Object::parse(part) else {
                shown.push(part.to_owned());
                continue;
            };
            let number = self.streamed.number_of(&object, i);
            let client_number = self.calls.add(number, is_recall(&object));
            match client_number {
                Some(_) if self.calls.shows_all() => shown.push(part.to_owned()),
                Some(number) => shown.push(with_field(part, "index", &number.to_string())),
                None => {}
            }
        }
        shown
    }

    /// A held chunk with the stop reason of a reply without calls.
    fn stopped_chunk(state: &JoinState, data: &str) -> Option<String> {
        let chunk = Object::parse(data)?;
        let mut splices = Splices::default();
        join_envelope(state, &chunk, &mut splices);
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

/// Sets the id and the usage of a reply or a chunk.
fn join_envelope(state: &JoinState, object: &Object<'_>, splices: &mut Splices) {
    if let (Some(id), Some(value)) = (&state.id, object.get("id")) {
        splices.replace(object.span(value), json::quote(id));
    }
    if let Some(usage) = object.some("usage") {
        splices.replace(object.span(usage), with_output(usage, state.n_output));
    }
}

impl JoinRounds for JoinedCompletions {
    fn event(
        &mut self,
        state: &mut JoinState,
        event: &SseEvent,
        reply: &ParsedReply,
        out: &mut Vec<u8>,
    ) -> RoundStep {
        let is_unchanged = state.n_rounds == 0 && self.calls.shows_all();
        let has_calls = has_value(event.raw(), "\"tool_calls\"");
        let Some(data) = event.data().filter(|_| !is_unchanged || has_calls) else {
            out.extend_from_slice(event.raw());
            return RoundStep::Continue;
        };
        let is_done = data.trim() == "[DONE]";
        if is_done && !state.held.is_empty() {
            state.held.push(event.clone());
            return RoundStep::Recall;
        }
        if is_done || !json::is_valid(&data) || has_value(event.raw(), "\"error\"") {
            out.extend_from_slice(event.raw());
            return RoundStep::Continue;
        }
        let is_held = calls_only_recalls(reply, self.recall_stops());
        if let Some(shown) = self.shown_chunk(state, &data, is_held).filter(|_| state.held.is_empty()) {
            if shown == *data {
                out.extend_from_slice(event.raw());
            } else {
                out.extend(event.with_data(&shown));
            }
        }
        if is_held {
            state.held.push(event.clone());
        }
        RoundStep::Continue
    }

    fn recall_stops(&self) -> &'static [&'static str] {
        &["tool_calls", "stop", "function_call"]
    }

    fn join_whole(&self, state: &JoinState, body: &str, is_final: bool) -> Option<String> {
        let object = Object::parse(body)?;
        let choice = first_choice(&object)?;
        let message = Object::parse(choice.some("message")?)?;
        let mut shown = message.raw.to_owned();
        let calls = message.some("tool_calls").and_then(json::array).unwrap_or_default();
        let is_visible = |call: &&&str| !Object::parse(call).is_some_and(|call| is_recall(&call));
        let kept: Vec<_> = calls.iter().filter(is_visible).map(|call| (*call).to_owned()).collect();
        if kept.len() < calls.len() {
            shown = with_calls(&shown, &kept);
        }
        let own = message.text("content").unwrap_or_default();
        let text = join_texts(&self.text, &own);
        if *text != *own {
            shown = with_field(&shown, "content", &json::quote(&text));
        }
        let mut splices = Splices::default();
        splices.replace(json::span(body, message.raw), shown);
        if let Some(reason) = choice.get("finish_reason").filter(|_| is_final) {
            splices.replace(json::span(body, reason), "\"stop\"");
        }
        join_envelope(state, &object, &mut splices);
        Some(splices.apply(body))
    }

    fn messages_of_whole(&mut self, state: &mut JoinState, body: &str, _: &str) -> Option<Vec<String>> {
        let object = Object::parse(body)?;
        state.id = state.id.take().or_else(|| object.text("id").map(Into::into));
        let message = Object::parse(first_choice(&object)?.some("message")?)?;
        self.text = join_texts(&self.text, &message.text("content").unwrap_or_default());
        Some(vec![message.raw.to_owned()])
    }

    fn messages_of_stream(
        &mut self,
        state: &mut JoinState,
        events: &[SseEvent],
        _: &str,
    ) -> Option<Vec<String>> {
        let mut message = StreamedMessage::default();
        for event in events {
            let Some(data) = event.data() else { continue };
            let Some(chunk) = Object::parse(&data) else { continue };
            state.id = state.id.take().or_else(|| chunk.text("id").map(Into::into));
            let delta = first_choice(&chunk).and_then(|choice| Object::parse(choice.some("delta")?));
            if let Some(delta) = delta {
                message.append(&delta);
            }
        }
        self.has_text = self.has_text || !message.content.is_empty();
        Some(vec![message.print()])
    }

    fn close_stream(&mut self, state: &mut JoinState, held: &[SseEvent]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut is_done = false;
        for event in held {
            let Some(data) = event.data() else { continue };
            if data.trim() == "[DONE]" {
                is_done = true;
                out.extend_from_slice(event.raw());
                continue;
            }
            let stopped = JoinedCompletions::stopped_chunk(state, &data);
            out.extend(event.with_data(stopped.as_deref().unwrap_or(&data)));
        }
        if !out.is_empty() && !is_done {
            out.extend_from_slice(b"data: [DONE]\n\n");
        }
        out
    }

    fn error_event(&self, _state: &JoinState, failure: &ReplyFailure) -> String {
        let kind = json::quote(if failure.kind.is_empty() { "server_error" } else { &failure.kind });
        let message = json::quote(&failure.message);
        let error = format!(
            r#"{{"error":{{"message":{message},"type":"server_error","param":null,"code":{kind}}}}}"#
        );
        format!("data: {error}\n\n")
    }

    fn next_round(&mut self) {
        self.streamed = StreamedCalls::default();
        self.calls.next_round();
    }
}

/// A message or a delta with these calls. Without calls it has no such field.
fn with_calls(message: &str, calls: &[String]) -> String {
    match calls.is_empty() {
        true => without_fields(message, |key| key == "tool_calls"),
        false => with_field(message, "tool_calls", &format!("[{}]", calls.join(","))),
    }
}

fn join_texts(before: &str, own: &str) -> String {
    let gap = if before.is_empty() || own.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{own}")
}

fn is_recall(call: &Object<'_>) -> bool {
    let function = call.some("function").and_then(Object::parse);
    function.is_some_and(|function| function.text("name").as_deref() == Some(RECALL_TOOL))
}

/// Returns whether all fields of a delta are empty.
fn is_empty(delta: &Object<'_>) -> bool {
    delta.fields.iter().all(|field| matches!(field.value, "null" | "\"\"" | "[]" | "{}"))
}

/// A message that is assembled from deltas.
#[derive(Default)]
struct StreamedMessage {
    content: String,
    reasoning: String,
    details: Vec<String>,
    streamed: StreamedCalls,
    calls: BTreeMap<u64, AssembledCall>,
}

#[derive(Default)]
struct AssembledCall {
    /// The first part of the call, with fields of the provider's own.
    first_part: String,
    name: String,
    arguments: String,
}

impl StreamedMessage {
    fn append(&mut self, delta: &Object<'_>) {
        self.content.push_str(&delta.text("content").unwrap_or_default());
        self.reasoning.push_str(&delta.text("reasoning_content").unwrap_or_default());
        let details = delta.some("reasoning_details").and_then(json::array).unwrap_or_default();
        self.details.extend(details.into_iter().map(str::to_owned));
        let parts = delta.some("tool_calls").and_then(json::array).unwrap_or_default();
        for (i, part) in parts.iter().enumerate() {
            let Some(object) = Object::parse(part) else { continue };
            let call = self.calls.entry(self.streamed.number_of(&object, i)).or_default();
            if call.first_part.is_empty() {
                call.first_part = without_fields(part, |key| matches!(key, "index" | "function"));
            }
            let Some(function) = object.some("function").and_then(Object::parse) else { continue };
            if call.name.is_empty() {
                call.name = function.text("name").unwrap_or_default().into_owned();
            }
            append_arguments(&mut call.arguments, &function);
        }
    }

    fn print(&self) -> String {
        let content = if self.content.is_empty() { "null".to_owned() } else { json::quote(&self.content) };
        let mut message = format!(r#"{{"role":"assistant","content":{content}}}"#);
        // Models expect their thoughts back until the turn ends.
        if !self.reasoning.is_empty() {
            message = with_field(&message, "reasoning_content", &json::quote(&self.reasoning));
        }
        if !self.details.is_empty() {
            message = with_field(&message, "reasoning_details", &format!("[{}]", self.details.join(",")));
        }
        let print_call = |call: &AssembledCall| {
            let arguments = if json::is_object(&call.arguments) { &*call.arguments } else { "{}" };
            let (name, arguments) = (json::quote(&call.name), json::quote(arguments));
            with_field(&call.first_part, "function", &format!(r#"{{"name":{name},"arguments":{arguments}}}"#))
        };
        let calls: Vec<_> = self.calls.values().map(print_call).collect();
        with_field(&message, "tool_calls", &format!("[{}]", calls.join(",")))
    }
}
