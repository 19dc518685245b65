//! OpenAI Responses as an HTTP interface, and what is edited in its requests.

use super::{reply, rounds};
use crate::dialects::api::last_span;
use crate::dialects::chat::OPENAI;
use crate::dialects::{Api, EventTexts, Provider, RecallPositions, append_to_content};
use crate::json::{self, Object, Splices};
use crate::reply::reader::Reading;
use crate::reply::rounds::JoinRounds;
use crate::reply::sse::Event;
use crate::reply::text::TextReader;
use crate::request::HiddenRecalls;
use crate::request::recall_tool::{description, parameters};

/// Events before the first one with content.
const PREAMBLE: &[&str] = &["response.created", "response.in_progress", "response.queued"];

/// The HTTP interface of OpenAI Responses.
pub(super) struct Responses;

impl Api for Responses {
    fn provider(&self) -> &'static Provider {
        &OPENAI
    }

    fn serves(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn append_text(
        &self,
        splices: &mut Splices,
        body: &str,
        _object: &Object<'_>,
        list: &str,
        text: &str,
    ) -> Option<()> {
        if list.starts_with('"') {
            return append_to_content(splices, body, list, "input_text", text);
        }
        let items = json::array(list)?;
        let last = Object::parse(items.last()?)?;
        let is_from_model = last.text("role").as_deref() == Some("assistant")
            || last.text("type").is_some_and(|kind| kind.ends_with("_call") || kind == "reasoning");
        if is_from_model {
            return None;
        }
        let end = json::span(body, list).end.checked_sub(1)?;
        let quoted = json::quote(text);
        let item = format!(
            r#",{{"type":"message","role":"user","content":[{{"type":"input_text","text":{quoted}}}]}}"#
        );
        splices.replace(end..end, item);
        Some(())
    }

    /// Functions are strict by default, and a strict function has no optional arguments.
    fn recall_tool(&self) -> &'static str {
        concat!(
            r#"{"type":"function","name":"fanfold_recall","#,
            description!(),
            r#","parameters":"#,
            parameters!(),
            r#","strict":false}"#
        )
    }

    fn print_call(&self, id: &str, name: &str, arguments: &str) -> String {
        let arguments = json::quote(arguments);
        format!(r#"{{"type":"function_call","call_id":{id},"name":"{name}","arguments":{arguments}}}"#)
    }

    fn print_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"type":"function_call_output","call_id":{id},"output":{text}}}"#)
    }

    fn recall_positions(
        &self,
        body: &str,
        messages: &[&str],
        recalls: &HiddenRecalls,
    ) -> Option<RecallPositions> {
        let is_output = |item: &Object<'_>| item.text("type").is_some_and(|kind| kind.ends_with("_output"));
        let is_named =
            |item: &Object<'_>| recalls.is_client_call(item.text("call_id").or_else(|| item.text("id")));
        let call = last_span(body, messages, |item| !is_output(item) && is_named(item));
        let result = last_span(body, messages, |item| is_output(item) && is_named(item))?;
        // If the list has no calls, the provider stores them.
        let is_in_order = call.as_ref().is_none_or(|call| call.end < result.end);
        is_in_order.then_some(RecallPositions { call: call.map(|call| call.end), result: result.end })
    }

    fn read_event(&self, reading: &mut Reading, event: &Event) {
        reply::read_event(reading, event);
    }

    fn read_whole(&self, reading: &mut Reading, body: &Object<'_>) {
        reply::read_whole(reading, body);
    }

    fn is_preamble(&self, event: &Event, _data: &str) -> bool {
        event.name().is_some_and(|name| PREAMBLE.contains(&name))
    }

    fn text_of_event(&self, reader: &mut TextReader, kind: &str, event: &Object<'_>) -> String {
        reader.ending.has_thought |= kind.starts_with("response.reasoning");
        let delta = event.text("delta").unwrap_or_default();
        match kind {
            "response.output_text.delta" => return delta.into_owned(),
            "response.refusal.delta" => reader.ending.refusal.push_str(&delta),
            "response.completed" | "response.failed" | "response.incomplete" => reader.is_done = true,
            _ => {}
        }
        String::new()
    }

    fn text_of_whole(&self, reader: &mut TextReader, body: &Object<'_>) -> String {
        let items = body.some("output").and_then(json::array).unwrap_or_default();
        let items = items.into_iter().filter_map(Object::parse);
        items.map(|item| reader.content(item.some("content"))).collect()
    }

    fn texts_of_event<'d>(&self, kind: &str, event: &Object<'d>) -> EventTexts<'d> {
        reply::texts_of_event(kind, event)
    }

    fn texts_of_whole<'d>(&self, body: &Object<'d>) -> Vec<&'d str> {
        reply::texts_of_response(body)
    }

    fn join_rounds(&self, request: &str) -> Box<dyn JoinRounds + Send> {
        Box::new(rounds::JoinedResponses::new(request))
    }
}
