//! Chat Completions as an HTTP interface, and what is edited in its requests.

use std::borrow::Cow;

use crate::conversation::outgoing::is_note;
use crate::dialects::api::{is_below, last_span};
use crate::dialects::{
    Format, KeyHeader, PromptRequest, Provider, RecallPositions, Requests, append_to_content, is_version,
};
use crate::json::{self, Object, Splices};
use crate::request::HiddenRecalls;
use crate::request::recall_tool::{description, parameters};

/// OpenAI, and every provider that copies its interface.
pub(crate) static OPENAI: Provider = Provider {
    name: "openai",
    address: "https://api.openai.com/v1",
    key_variable: "OPENAI_API_KEY",
    address_variables: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
    client_path: "/v1",
    prompt_format: Format::Chat,
    version_header: None,
    print_prompt,
    key_header: |host| match host.ends_with(".azure.com") {
        true => KeyHeader { name: "api-key", prefix: "" },
        false => KeyHeader { name: "authorization", prefix: "Bearer " },
    },
    // More segments may follow the version: `/v1beta/openai`, `/v1/account/gateway/compat`.
    has_version: |path| path.split('/').any(|segment| is_version(segment) || segment == "deployments"),
    owns_address: |_| false,
    owns_model: |_| false,
    owns_program: |_| false,
    owns_path: |path| path.ends_with("/chat/completions") || path.contains("/responses"),
    owns_headers: |_| false,
    // Nothing is posted to `models`: with `/v1/models/x:generateContent` a client means Gemini.
    serves: |method, path| is_below(path, RESOURCES) && !(method == "POST" && is_below(path, "models")),
};

const RESOURCES: &str = "assistants audio batches chat chatkit completions containers conversations dashboard edits \
    embeddings engines evals files fine-tunes fine_tuning graders images models moderations \
    organization organizations realtime responses skills threads uploads usage vector_stores videos";

fn print_prompt(prompt: &PromptRequest<'_>) -> String {
    let (model, user, n) = (json::quote(prompt.model), json::quote(prompt.user), prompt.max_tokens);
    let limit = if prompt.uses_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    let system = prompt.system.map(|text| format!(r#"{{"role":"system","content":{}}},"#, json::quote(text)));
    let system = system.unwrap_or_default();
    let has_usage = prompt.is_streamed && prompt.wants_usage;
    let usage = if has_usage { r#","stream_options":{"include_usage":true}"# } else { "" };
    let stream = prompt.is_streamed;
    format!(
        r#"{{"model":{model},"{limit}":{n},"messages":[{system}{{"role":"user","content":{user}}}],"stream":{stream}{usage}}}"#
    )
}

/// The HTTP interface of Chat Completions.
pub(super) struct ChatCompletions;

impl Requests for ChatCompletions {
    fn provider(&self) -> &'static Provider {
        &OPENAI
    }

    fn route(&self) -> &'static str {
        "/chat/completions"
    }

    fn alternate_roles<'a>(&self, messages: &[&'a str]) -> Option<Vec<Cow<'a, str>>> {
        Some(alternate_roles(messages))
    }

    fn append_text(
        &self,
        splices: &mut Splices,
        body: &str,
        _object: &Object<'_>,
        list: &str,
        text: &str,
    ) -> Option<()> {
        let last = Object::parse(json::array(list)?.last()?)?;
        // After a result, too: some providers accept no user message there.
        let has_place = matches!(last.text("role").as_deref(), Some("user" | "tool" | "function"));
        let content = last.some("content").filter(|_| has_place)?;
        append_to_content(splices, body, content, "text", text)
    }

    fn recall_tool(&self) -> &'static str {
        concat!(
            r#"{"type":"function","function":{"name":"fanfold_recall","#,
            description!(),
            r#","parameters":"#,
            parameters!(),
            "}}"
        )
    }

    fn print_call(&self, id: &str, name: &str, arguments: &str) -> String {
        let arguments = json::quote(arguments);
        format!(r#"{{"id":{id},"type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}"#)
    }

    fn print_result(&self, id: &str, text: &str) -> String {
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#)
    }

    fn recall_positions(
        &self,
        body: &str,
        messages: &[&str],
        recalls: &HiddenRecalls,
    ) -> Option<RecallPositions> {
        let last_call = |message: &&str| {
            let calls = json::array(Object::parse(message)?.some("tool_calls")?)?;
            last_span(body, &calls, |call| recalls.is_client_call(call.text("id")))
        };
        let (at, call) =
            messages.iter().enumerate().find_map(|(i, message)| Some((i, last_call(message)?)))?;
        let is_result = |message: &&&str| {
            Object::parse(message).is_some_and(|message| message.text("role").as_deref() == Some("tool"))
        };
        let results: Vec<&str> = messages[at + 1..].iter().take_while(is_result).copied().collect();
        let result =
            last_span(body, &results, |message| recalls.is_client_call(message.text("tool_call_id")))?;
        Some(RecallPositions { call: Some(call.end), result: result.end })
    }
}

/// A message in a list whose roles alternate.
struct MergedTurn<'a> {
    role: String,
    json: Cow<'a, str>,
}

fn alternate_roles<'a>(messages: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut turns: Vec<MergedTurn<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let role = Object::parse(message).and_then(|object| object.text("role").map(Cow::into_owned));
        let next = MergedTurn { role: role.unwrap_or_default(), json: without_fanfold_name(message) };
        let merged = turns.last().and_then(|last| merge(last, &next));
        match (merged, turns.last_mut()) {
            (Some(merged), Some(last)) => last.json = Cow::Owned(merged),
            _ => turns.push(next),
        }
    }
    turns.into_iter().map(|turn| turn.json).collect()
}

/// A message without the name given to it by fanfold. Providers that require alternating roles often reject names.
fn without_fanfold_name(message: &str) -> Cow<'_, str> {
    let Some(object) = Object::parse(message) else { return message.into() };
    let is_named = matches!(object.text("name").as_deref(), Some("harness" | "fanfold"))
        && object.text("role").as_deref() == Some("user");
    if !is_named {
        return message.into();
    }
    Cow::Owned(json::without_fields(message, |key| key == "name"))
}

/// Two neighbours as one message, if their roles must not be adjacent.
fn merge(last: &MergedTurn<'_>, next: &MergedTurn<'_>) -> Option<String> {
    let (before, after) = (Object::parse(&last.json)?, Object::parse(&next.json)?);
    let has_calls =
        |message: &Object<'_>| ["tool_calls", "function_call"].iter().any(|key| message.some(key).is_some());
    let has_more_fields = after.fields.len() > before.fields.len();
    let frame = match (last.role.as_str(), next.role.as_str()) {
        ("user", "user") if has_more_fields => &after,
        ("user", "user") => &before,
        // A note goes into the result before it, because the model's answer has to follow the result.
        ("tool" | "function", "user") if is_note(&json::string(after.get("content")?)?.text) => &before,
        ("assistant", "assistant") if !has_calls(&before) && has_calls(&after) => &after,
        ("assistant", "assistant") if !has_calls(&before) => &before,
        _ => return None,
    };
    let content = join_contents(before.get("content"), after.get("content"))?;
    let mut splices = Splices::default();
    match frame.get("content") {
        Some(value) => splices.replace(frame.span(value), content),
        None => {
            let end = frame.raw.trim_end().len().checked_sub(1)?;
            splices.replace(end..end, format!(",\"content\":{content}"));
        }
    }
    Some(splices.apply(frame.raw))
}

/// Two contents as one; `None` if one of them is neither a text nor a list of parts.
fn join_contents(before: Option<&str>, after: Option<&str>) -> Option<String> {
    let is_empty = |value: &Option<&str>| matches!(value, None | Some("null" | "\"\"" | "[]"));
    let (before, after) = match (before, after) {
        (before, after) if is_empty(&after) => return before.map(str::to_owned),
        (before, after) if is_empty(&before) => return after.map(str::to_owned),
        (before, after) => (before?, after?),
    };
    if before.starts_with('"') && after.starts_with('"') {
        return Some(format!("{}\\n\\n{}", &before[..before.len() - 1], &after[1..]));
    }
    let parts = |value: &str| match json::array(value) {
        Some(parts) => Some(parts.join(",")),
        None => value.starts_with('"').then(|| format!(r#"{{"type":"text","text":{value}}}"#)),
    };
    Some(format!("[{},{}]", parts(before)?, parts(after)?))
}
