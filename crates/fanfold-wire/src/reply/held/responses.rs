//! Responses: items and events are renumbered, one response is created and one completed.

use std::collections::BTreeMap;

use super::{Join, Then, is_all_ours, results, with_field, with_output, without_fields};
use crate::format::Format;
use crate::json::{self, Object};
use crate::reply::said::{Failure, Said};
use crate::reply::sse::Event;
use crate::reply::tool::{RECALL_TOOL, Wanted, is_ours};
use crate::reply::usage::number;
use crate::splice::Splices;

/// An answer of one or several responses, as one.
pub(super) struct Joined {
    n_round: usize,
    /// Whether the provider keeps nothing: then the client goes on by what it has, and the first id stays.
    is_unstored: bool,
    /// Which item of the client's response each item of this round is; none for a call of ours.
    items: BTreeMap<u64, Option<u64>>,
    n_shown: u64,
    /// The number of the next event, once they are renumbered.
    next_event: Option<u64>,
    n_output: u64,
    id: Option<String>,
    /// What the client has seen of earlier rounds.
    shown: Vec<String>,
    held: Option<Event>,
    last: Option<String>,
}

impl Joined {
    pub(super) fn of(request: &str) -> Joined {
        let store = Object::parse(request).and_then(|request| request.get("store"));
        Joined {
            n_round: 0,
            is_unstored: store == Some("false"),
            items: BTreeMap::new(),
            n_shown: 0,
            next_event: None,
            n_output: 0,
            id: None,
            shown: Vec::new(),
            held: None,
            last: None,
        }
    }

    /// Whether events pass as they are: nothing is hidden and nothing renumbered.
    fn is_plain(&self) -> bool {
        self.n_round == 0 && self.items.values().all(Option::is_some)
    }

    /// An event with the numbers that the client expects.
    fn moved(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let Some(object) = Object::parse(&data) else { return };
        let mut splices = Splices::default();
        let place = object.get("output_index").and_then(|index| Some((index, number(index)?)));
        if let Some((index, place)) = place {
            match self.items.get(&place) {
                Some(Some(shown)) if *shown != place => {
                    splices.replace(object.span(index), shown.to_string());
                }
                Some(None) => return self.hide(&object),
                Some(Some(_)) | None => {}
            }
        }
        self.number(&object, &mut splices);
        if splices.is_empty() {
            out.extend_from_slice(event.raw());
        } else {
            out.extend(event.with_data(&splices.apply(&data)));
        }
    }

    /// Gives an event the next number, if they are renumbered.
    fn number(&mut self, object: &Object<'_>, splices: &mut Splices) {
        if let (Some(next), Some(there)) = (&mut self.next_event, object.get("sequence_number")) {
            if *there != next.to_string() {
                splices.replace(object.span(there), next.to_string());
            }
            *next += 1;
        }
    }

    /// Takes note of an event that the client does not see: the next one gets its number.
    fn hide(&mut self, object: &Object<'_>) {
        if self.next_event.is_none() {
            self.next_event = object.get("sequence_number").and_then(number);
        }
    }

    fn added(&mut self, event: &Event, out: &mut Vec<u8>) {
        let data = event.data();
        let object = data.as_deref().and_then(Object::parse);
        let place = object.as_ref().and_then(|object| number(object.get("output_index")?));
        if let (Some(object), Some(place)) = (&object, place) {
            if object.some("item").is_some_and(is_our_item) {
                self.items.insert(place, None);
                return self.hide(object);
            }
            // As long as nothing was hidden an item keeps its number, also behind one that could not be read.
            let shown = if self.is_plain() { place } else { self.n_shown };
            self.items.insert(place, Some(shown));
            self.n_shown = self.n_shown.max(shown.saturating_add(1));
        }
        self.moved(event, out);
    }

    /// A response as the client sees it: the items of all rounds but ours, and what all of them wrote.
    fn joined(&self, response: &str) -> String {
        let Some(object) = Object::parse(response).filter(|object| object.some("output").is_some()) else {
            return response.to_owned();
        };
        let mut joined = response.to_owned();
        let items = object.some("output").and_then(json::array).unwrap_or_default();
        // Some providers leave the list empty and let the events speak.
        let is_left_empty = items.is_empty() && !self.items.is_empty();
        if !is_left_empty {
            let own = items.into_iter().filter(|item| !is_our_item(item)).map(str::to_owned);
            let all: Vec<_> = self.shown.iter().cloned().chain(own).collect();
            joined = with_field(&joined, "output", &format!("[{}]", all.join(",")));
        }
        if let Some(usage) = object.some("usage") {
            joined = with_field(&joined, "usage", &with_output(usage, self.n_output));
        }
        match &self.id {
            Some(id) if self.is_unstored => with_field(&joined, "id", &json::quote(id)),
            _ => joined,
        }
    }

    fn completed(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Some(data) = event.data().filter(|data| json::is_valid(data)) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let Some(object) = Object::parse(&data) else { return };
        let mut splices = Splices::default();
        if let Some(response) = object.some("response") {
            splices.replace(object.span(response), self.joined(response));
        }
        self.number(&object, &mut splices);
        out.extend(event.with_data(&splices.apply(&data)));
    }
}

impl Join for Joined {
    fn event(&mut self, event: &Event, said: &Said, out: &mut Vec<u8>) -> Then {
        let data = if event.name().is_none() { event.data() } else { None };
        let kind = data.as_deref().and_then(Object::parse).and_then(|object| object.text("type"));
        let kind = event.name().or(kind.as_deref()).unwrap_or_default();
        let is_plain = self.is_plain();
        match kind {
            "response.created" | "response.in_progress" | "response.queued" if self.n_round > 0 => {}
            "response.output_item.added" => self.added(event, out),
            "response.completed" if is_all_ours(said) => {
                self.held = Some(event.clone());
                return Then::Recall;
            }
            _ if is_plain => out.extend_from_slice(event.raw()),
            "response.completed" | "response.incomplete" | "response.failed" => self.completed(event, out),
            _ => self.moved(event, out),
        }
        Then::GoOn
    }

    fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    fn whole(&mut self, body: &str, said: &Said) -> (Option<String>, Then) {
        if is_all_ours(said) && said.stop.as_deref() == Some("completed") {
            self.last = Some(body.to_owned());
            return (None, Then::Recall);
        }
        let is_plain = self.n_round == 0 && !said.calls.iter().any(is_ours);
        (if is_plain { None } else { Some(self.joined(body)) }, Then::GoOn)
    }

    fn spoken(&mut self, kept: &[Event], request: &str) -> Option<Vec<String>> {
        let (id, items) = match self.last.take() {
            Some(body) => {
                let object = Object::parse(&body)?;
                let items = json::array(object.some("output")?)?.into_iter().map(str::to_owned).collect();
                (object.text("id").map(Into::into), items)
            }
            None => items_of(kept),
        };
        self.id = self.id.take().or(id);
        self.shown.extend(items.iter().filter(|item| !is_our_item(item)).cloned());
        Some(sendable(items, request))
    }

    fn results(&self, wanted: &[Wanted], answers: &[String]) -> Vec<String> {
        results(Format::Responses, wanted, answers)
    }

    fn close(&mut self) -> Vec<u8> {
        if let Some(body) = self.last.take() {
            return self.joined(&body).into_bytes();
        }
        let mut out = Vec::new();
        if let Some(event) = self.held.take() {
            self.completed(&event, &mut out);
        }
        out
    }

    fn fail(&mut self, failure: &Failure) -> Vec<u8> {
        let kind = json::quote(if failure.kind.is_empty() { "server_error" } else { &failure.kind });
        let id = json::quote(self.id.as_deref().unwrap_or("resp_failed"));
        let number = self.next_event.unwrap_or(0);
        let error = format!(r#"{{"code":{kind},"message":{}}}"#, json::quote(&failure.message));
        let response =
            format!(r#"{{"id":{id},"object":"response","status":"failed","error":{error},"output":[]}}"#);
        let data =
            format!(r#"{{"type":"response.failed","sequence_number":{number},"response":{response}}}"#);
        format!("event: response.failed\ndata: {data}\n\n").into_bytes()
    }

    fn next_round(&mut self, n_output: u64) {
        self.n_round += 1;
        self.n_output += n_output;
        self.items.clear();
        self.held = None;
    }
}

fn is_our_item(item: &str) -> bool {
    Object::parse(item).is_some_and(|item| {
        item.text("type").as_deref() == Some("function_call")
            && item.text("name").as_deref() == Some(RECALL_TOOL)
    })
}

/// The id of a streamed response, and its items in the order of their numbers.
fn items_of(events: &[Event]) -> (Option<String>, Vec<String>) {
    let mut id = None;
    let mut items: BTreeMap<u64, String> = BTreeMap::new();
    for event in events {
        let Some(data) = event.data() else { continue };
        let Some(object) = Object::parse(&data) else { continue };
        if id.is_none() {
            id = object
                .some("response")
                .and_then(Object::parse)
                .and_then(|r| Some(r.text("id")?.into_owned()));
        }
        if object.text("type").as_deref() == Some("response.output_item.done") {
            let place = object.get("output_index").and_then(number).unwrap_or(items.len() as u64);
            if let Some(item) = object.some("item") {
                items.insert(place, item.to_owned());
            }
        }
    }
    (id, items.into_values().collect())
}

/// Items as a request may hold them.
///
/// A thought that neither the provider keeps nor the item holds can't be sent back, and then the ids of what followed
/// it can't either: they would be looked for.
fn sendable(mut items: Vec<String>, request: &str) -> Vec<String> {
    let is_thought = |item: &String| {
        Object::parse(item).is_some_and(|item| item.text("type").as_deref() == Some("reasoning"))
    };
    // A thought is taken back only with what came of it.
    while items.last().is_some_and(is_thought) {
        items.pop();
    }
    let is_unstored = Object::parse(request).and_then(|request| request.get("store")) == Some("false");
    let is_lost = |item: &String| {
        is_thought(item) && Object::parse(item).is_some_and(|item| item.some("encrypted_content").is_none())
    };
    if !is_unstored || !items.iter().any(is_lost) {
        return items;
    }
    let kept = items.into_iter().filter(|item| !is_lost(item));
    kept.map(|item| without_fields(&item, |key| key == "id")).collect()
}
