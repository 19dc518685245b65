//! OpenAI Responses as an HTTP interface, and what is edited in its requests.

use crate::dialects::api::last_span;
use crate::dialects::chat::OPENAI;
use crate::dialects::{Provider, RecallPositions, Requests, append_to_content};
use crate::json::{self, Object, Splices};
use crate::request::HiddenRecalls;
use crate::request::recall_tool::{description, parameters};

/// The HTTP interface of OpenAI Responses.
pub(super) struct Responses;

impl Requests for Responses {
    fn provider(&self) -> &'static Provider {
        &OPENAI
    }

    fn route(&self) -> &'static str {
        "/responses"
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
}
