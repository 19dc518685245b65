//! Anthropic Messages as an HTTP interface, and what is edited in its requests.

use std::borrow::Cow;

use super::blocks;
use crate::dialects::api::{is_below, last_span};
use crate::dialects::{
    Format, Headers, KeyHeader, PromptRequest, Provider, RecallPositions, Requests, append_to_content,
    is_version,
};
use crate::json::{self, Object, Splices};
use crate::request::HiddenRecalls;
use crate::request::recall_tool::{description, parameters};

pub(crate) static ANTHROPIC: Provider = Provider {
    name: "anthropic",
    address: "https://api.anthropic.com",
    key_variable: "ANTHROPIC_API_KEY",
    address_variables: &["ANTHROPIC_BASE_URL"],
    client_path: "",
    prompt_format: Format::Anthropic,
    version_header: Some(("anthropic-version", "2023-06-01")),
    print_prompt,
    key_header: |_| KeyHeader { name: "x-api-key", prefix: "" },
    has_version: |path| path.rsplit('/').next().is_some_and(is_version),
    owns_address: |address| {
        address.contains("anthropic") || address.trim_end_matches('/').ends_with("/messages")
    },
    owns_model: |model| model.starts_with("claude"),
    owns_program: |program| program == "claude",
    owns_path: |path| path.contains("/v1/messages") || path.contains("/v1/complete"),
    owns_headers,
    serves: |_, path| is_below(path, RESOURCES),
};

/// `api` has the paths of Claude Code that are outside of the public API.
const RESOURCES: &str =
    "agents api batches complete environments files messages models organizations sessions skills";

/// The prefix of the provider's keys.
const KEY_PREFIX: &str = "sk-ant-";

fn owns_headers(headers: &dyn Headers) -> bool {
    let is_key = |value: &str| value.trim_start().starts_with(KEY_PREFIX);
    let (authorization, key) = (headers.get("authorization"), headers.get("x-api-key"));
    let bearer = authorization.and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    headers.get("anthropic-version").is_some()
        || bearer.is_some_and(is_key)
        || key.is_some_and(is_key)
        || (key.is_some() && authorization.is_none())
}

fn print_prompt(prompt: &PromptRequest<'_>) -> String {
    let (model, user, n) = (json::quote(prompt.model), json::quote(prompt.user), prompt.max_tokens);
    let system = prompt.system.map(|text| format!(r#","system":{}"#, json::quote(text))).unwrap_or_default();
    let stream = prompt.is_streamed;
    format!(
        r#"{{"model":{model},"max_tokens":{n}{system},"messages":[{{"role":"user","content":{user}}}],"stream":{stream}}}"#
    )
}

/// The HTTP interface of Anthropic Messages.
pub(super) struct Messages;

impl Requests for Messages {
    fn provider(&self) -> &'static Provider {
        &ANTHROPIC
    }

    fn route(&self) -> &'static str {
        "/messages"
    }

    /// A path that ends with `/messages` alone may belong to a thread of OpenAI's.
    fn serves(&self, path: &str) -> bool {
        path.ends_with("/v1/messages")
    }

    fn alternate_roles<'a>(&self, messages: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
        Some(blocks::alternate_roles(messages))
    }

    fn append_text(
        &self,
        splices: &mut Splices,
        body: &str,
        object: &Object<'_>,
        list: &str,
        text: &str,
    ) -> Option<()> {
        let last = Object::parse(json::array(list)?.last()?)?;
        let content = last.some("content").filter(|_| last.text("role").as_deref() == Some("user"))?;
        let Some(marker) = object.some("cache_control") else {
            return append_to_content(splices, body, content, "text", text);
        };
        // The provider applies a marker of the whole request to the last block. Move the marker to the client's last
        // block, because the appended one differs in each request.
        if content.starts_with('"') {
            let quoted = json::quote(text);
            let marked = format!(
                r#"[{{"type":"text","text":{content},"cache_control":{marker}}},{{"type":"text","text":{quoted}}}]"#
            );
            splices.replace(json::span(body, content), marked);
        } else {
            let block = Object::parse(json::array(content)?.last()?)?;
            if block.some("cache_control").is_none() {
                let end = json::span(body, block.raw).end.checked_sub(1)?;
                splices.replace(end..end, format!(r#","cache_control":{marker}"#));
            }
            append_to_content(splices, body, content, "text", text)?;
        }
        splices.cut_fields(object, json::span(body, object.raw).start, |key| key == "cache_control");
        Some(())
    }

    fn recall_tool(&self) -> &'static str {
        concat!(r#"{"name":"fanfold_recall","#, description!(), r#","input_schema":"#, parameters!(), "}")
    }

    fn print_call(&self, id: &str, name: &str, arguments: &str) -> String {
        format!(r#"{{"type":"tool_use","id":{id},"name":"{name}","input":{arguments}}}"#)
    }

    fn print_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text}}}"#)
    }

    /// The provider requires all results of a reply in one message.
    fn wrap_results(&self, results: Vec<String>) -> Vec<String> {
        vec![format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","))]
    }

    fn recall_positions(
        &self,
        body: &str,
        messages: &[&str],
        recalls: &HiddenRecalls,
    ) -> Option<RecallPositions> {
        let last_call = |message: &&str| {
            last_span(body, &content_blocks(message)?, |block| recalls.is_client_call(block.text("id")))
        };
        let (at, call) =
            messages.iter().enumerate().find_map(|(i, message)| Some((i, last_call(message)?)))?;
        let results = content_blocks(messages.get(at + 1)?)?;
        let result = last_span(body, &results, |block| recalls.is_client_call(block.text("tool_use_id")))?;
        Some(RecallPositions { call: Some(call.end), result: result.end })
    }
}

fn content_blocks(message: &str) -> Option<Vec<&str>> {
    json::array(Object::parse(message)?.some("content")?)
}
