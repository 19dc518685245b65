//! Joins rounds of OpenAI Responses: items and events are renumbered, one response is created and one completed.

use std::collections::BTreeMap;

use crate::json::{self, Object, Splices, with_field, without_fields};
use crate::reply::reader::{ParsedReply, ReplyFailure};
use crate::reply::rounds::{ItemNumbers, JoinRounds, JoinState, RoundStep, is_all_recalls, with_output};
use crate::reply::sse::SseEvent;
use crate::reply::usage::number;
use crate::request::RECALL_TOOL;

/// One or several responses as one.
pub(super) struct JoinedResponses {
    /// True if the provider stores nothing. Then the client continues from its own copy, and the first id stays.
    is_unstored: bool,
    items: ItemNumbers,
    /// The number of the next event, once events are renumbered.
    next_event: Option<u64>,
}

impl JoinedResponses {
    pub(super) fn new(request: &str) -> JoinedResponses {
        JoinedResponses { is_unstored: is_unstored(request), items: ItemNumbers::default(), next_event: None }
    }

    /// Returns whether no item is hidden or renumbered.
    fn is_unchanged(&self, state: &JoinState) -> bool {
        state.n_rounds == 0 && self.items.shows_all()
    }

    /// Writes an event with the numbers that the client expects.
    fn renumber(&mut self, event: &SseEvent, out: &mut Vec<u8>) {
        let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let Some(object) = Object::parse(&data) else { return };
        let mut splices = Splices::default();
        let index = object.get("output_index").and_then(|index| Some((index, number(index)?)));
        if let Some((value, index)) = index {
            match self.items.get(index) {
                Some(Some(shown)) if shown != index => {
                    splices.replace(object.span(value), shown.to_string());
                }
                Some(None) => return self.hide(&object),
                Some(Some(_)) | None => {}
            }
        }
        self.renumber_event(&object, &mut splices);
        if splices.is_empty() {
            out.extend_from_slice(event.raw());
        } else {
            out.extend(event.with_data(&splices.apply(&data)));
        }
    }

    fn renumber_event(&mut self, object: &Object<'_>, splices: &mut Splices) {
        if let (Some(next), Some(value)) = (&mut self.next_event, object.get("sequence_number")) {
            if *value != next.to_string() {
                splices.replace(object.span(value), next.to_string());
            }
            *next += 1;
        }
    }

    /// Hides an event. The next visible event gets its number.
    fn hide(&mut self, object: &Object<'_>) {
        if self.next_event.is_none() {
            self.next_event = object.get("sequence_number").and_then(number);
        }
    }

    fn add_item(&mut self, state: &JoinState, event: &SseEvent, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let index = object.as_ref().and_then(|object| number(object.get("output_index")?));
        if let (Some(object), Some(index)) = (&object, index) {
            if object.some("item").is_some_and(is_recall) {
                self.items.hide(index);
                return self.hide(object);
            }
            self.items.show(index, state.n_rounds == 0);
        }
        self.renumber(event, out);
    }

    /// A response with the visible items and the output of all rounds.
    fn join(&self, state: &JoinState, response: &str) -> String {
        let Some(object) = Object::parse(response).filter(|object| object.some("output").is_some()) else {
            return response.to_owned();
        };
        let mut joined = response.to_owned();
        let items = object.some("output").and_then(json::array).unwrap_or_default();
        // Some providers send items as events only, and an empty list.
        let is_left_empty = items.is_empty() && !self.items.is_empty();
        if !is_left_empty {
            let own = items.into_iter().filter(|item| !is_recall(item));
            let all: Vec<_> = state.shown.iter().map(String::as_str).chain(own).collect();
            joined = with_field(&joined, "output", &format!("[{}]", all.join(",")));
        }
        if let Some(usage) = object.some("usage") {
            joined = with_field(&joined, "usage", &with_output(usage, state.n_output));
        }
        match &state.id {
            Some(id) if self.is_unstored => with_field(&joined, "id", &json::quote(id)),
            _ => joined,
        }
    }

    fn complete(&mut self, state: &JoinState, event: &SseEvent, out: &mut Vec<u8>) {
        let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let Some(object) = Object::parse(&data) else { return };
        let mut splices = Splices::default();
        if let Some(response) = object.some("response") {
            splices.replace(object.span(response), self.join(state, response));
        }
        self.renumber_event(&object, &mut splices);
        out.extend(event.with_data(&splices.apply(&data)));
    }

    fn messages(state: &mut JoinState, id: Option<String>, items: Vec<String>, request: &str) -> Vec<String> {
        state.id = state.id.take().or(id);
        state.shown.extend(items.iter().filter(|item| !is_recall(item)).cloned());
        sendable(items, request)
    }
}

impl JoinRounds for JoinedResponses {
    fn event(
        &mut self,
        state: &mut JoinState,
        event: &SseEvent,
        reply: &ParsedReply,
        out: &mut Vec<u8>,
    ) -> RoundStep {
        let data = if event.name().is_none() { event.data() } else { None };
        let kind = data.as_deref().and_then(Object::parse).and_then(|object| object.text("type"));
        let is_unchanged = self.is_unchanged(state);
        match event.name().or(kind.as_deref()).unwrap_or_default() {
            "response.created" | "response.in_progress" | "response.queued" if state.n_rounds > 0 => {}
            "response.output_item.added" => self.add_item(state, event, out),
            "response.completed" if is_all_recalls(reply) => {
                state.held = vec![event.clone()];
                return RoundStep::Recall;
            }
            _ if is_unchanged => out.extend_from_slice(event.raw()),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.complete(state, event, out);
            }
            _ => self.renumber(event, out),
        }
        RoundStep::Continue
    }

    fn recall_stops(&self) -> &'static [&'static str] {
        &["completed"]
    }

    fn join_whole(&self, state: &JoinState, body: &str, _is_final: bool) -> Option<String> {
        Some(self.join(state, body))
    }

    fn messages_of_whole(&mut self, state: &mut JoinState, body: &str, request: &str) -> Option<Vec<String>> {
        let object = Object::parse(body)?;
        let items = json::array(object.some("output")?)?.into_iter().map(str::to_owned).collect();
        Some(JoinedResponses::messages(state, object.text("id").map(Into::into), items, request))
    }

    fn messages_of_stream(
        &mut self,
        state: &mut JoinState,
        events: &[SseEvent],
        request: &str,
    ) -> Option<Vec<String>> {
        let (id, items) = items_of(events);
        Some(JoinedResponses::messages(state, id, items, request))
    }

    fn close_stream(&mut self, state: &mut JoinState, held: &[SseEvent]) -> Vec<u8> {
        let mut out = Vec::new();
        held.iter().for_each(|event| self.complete(state, event, &mut out));
        out
    }

    fn error_event(&self, state: &JoinState, failure: &ReplyFailure) -> String {
        let kind = json::quote(if failure.kind.is_empty() { "server_error" } else { &failure.kind });
        let id = json::quote(state.id.as_deref().unwrap_or("resp_failed"));
        let number = self.next_event.unwrap_or(0);
        let error = format!(r#"{{"code":{kind},"message":{}}}"#, json::quote(&failure.message));
        let response =
            format!(r#"{{"id":{id},"object":"response","status":"failed","error":{error},"output":[]}}"#);
        let data =
            format!(r#"{{"type":"response.failed","sequence_number":{number},"response":{response}}}"#);
        format!("event: response.failed\ndata: {data}\n\n")
    }

    fn next_round(&mut self) {
        self.items.next_round();
    }
}

fn is_unstored(request: &str) -> bool {
    Object::parse(request).and_then(|request| request.get("store")) == Some("false")
}

fn is_recall(item: &str) -> bool {
    Object::parse(item).is_some_and(|item| {
        item.text("type").as_deref() == Some("function_call")
            && item.text("name").as_deref() == Some(RECALL_TOOL)
    })
}

/// The id of a streamed response, and its items in the order of their numbers.
fn items_of(events: &[SseEvent]) -> (Option<String>, Vec<String>) {
    let mut id = None;
    let mut items: BTreeMap<u64, String> = BTreeMap::new();
    for event in events {
        let Some(data) = event.data() else { continue };
        let Some(object) = Object::parse(&data) else { continue };
        let response = object.some("response").and_then(Object::parse);
        id = id.or_else(|| response.and_then(|response| Some(response.text("id")?.into_owned())));
        if object.text("type").as_deref() == Some("response.output_item.done") {
            let index = object.get("output_index").and_then(number).unwrap_or(items.len() as u64);
            if let Some(item) = object.some("item") {
                items.insert(index, item.to_owned());
            }
        }
    }
    (id, items.into_values().collect())
}

/// Items in the form that a request may contain.
///
/// A thought that is neither stored by the provider nor encrypted in the item cannot be sent back. The ids of later
/// items must then go too, because the provider would look for the thought.
fn sendable(mut items: Vec<String>, request: &str) -> Vec<String> {
    let is_thought = |item: &String| {
        Object::parse(item).is_some_and(|item| item.text("type").as_deref() == Some("reasoning"))
    };
    // The provider rejects a thought without the item that followed it.
    while items.last().is_some_and(is_thought) {
        items.pop();
    }
    let is_lost = |item: &String| {
        is_thought(item) && Object::parse(item).is_some_and(|item| item.some("encrypted_content").is_none())
    };
    if !is_unstored(request) || !items.iter().any(is_lost) {
        return items;
    }
    let kept = items.into_iter().filter(|item| !is_lost(item));
    kept.map(|item| without_fields(&item, |key| key == "id")).collect()
}
