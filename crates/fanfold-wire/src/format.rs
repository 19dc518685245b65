//! The formats, and how they are told apart.

use std::fmt;
use std::str::FromStr;

use crate::frame;
use crate::json::{self, Object};

/// A provider's or a program's way of writing a conversation down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// ShareGPT trajectories.
    ShareGpt,
    /// Session files of Hermes.
    Hermes,
}

impl Format {
    /// Every format, in the order in which help texts list them.
    pub const ALL: [Format; 5] =
        [Format::Chat, Format::Responses, Format::Anthropic, Format::ShareGpt, Format::Hermes];

    fn name(self) -> &'static str {
        match self {
            Format::Chat => "chat",
            Format::Responses => "responses",
            Format::Anthropic => "anthropic",
            Format::ShareGpt => "sharegpt",
            Format::Hermes => "hermes",
        }
    }

    /// The key under which a body of this format has its messages.
    pub(crate) fn list_key(self) -> &'static str {
        match self {
            Format::Chat | Format::Anthropic | Format::Hermes => "messages",
            Format::Responses => "input",
            Format::ShareGpt => "conversations",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a text is not the name of a format.
#[derive(Debug, thiserror::Error)]
#[error("there is no format `{0}`: the formats are chat, responses, anthropic, sharegpt and hermes")]
pub struct FormatError(String);

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Format, FormatError> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| FormatError(name.chars().take(60).collect()))
    }
}

/// The format of a body: a whole request, a bare list, or a message per line. None where there are no messages.
pub fn detect(body: &str) -> Option<Format> {
    frame::open(body, None).ok().map(|opened| opened.format)
}

/// The format of a whole body, by its fields and, where they do not say, by its messages.
pub(crate) fn of_body(body: &Object<'_>, messages: &[&str]) -> Format {
    let has = |key: &str| body.some(key).is_some();
    let is_session = has("session_id") && ["platform", "system_prompt", "session_start"].into_iter().any(has);
    if is_session {
        return Format::Hermes;
    }
    let has_own_schemas = body.some("tools").and_then(json::array).is_some_and(|tools| {
        tools.iter().any(|tool| Object::parse(tool).is_some_and(|tool| tool.get("input_schema").is_some()))
    });
    if has("system") || has("anthropic_version") || has_own_schemas {
        return Format::Anthropic;
    }
    of_messages(messages)
}

/// The format of a bare list of messages: the first message that can only be of one decides.
pub(crate) fn of_messages(messages: &[&str]) -> Format {
    messages.iter().find_map(|message| of_message(message)).unwrap_or(Format::Chat)
}

fn of_message(message: &str) -> Option<Format> {
    let message = Object::parse(message)?;
    if message.get("from").is_some() && message.get("value").is_some() {
        return Some(Format::ShareGpt);
    }
    let is_of_chat =
        ["tool_calls", "function_call", "tool_call_id"].into_iter().any(|key| message.get(key).is_some());
    if is_of_chat || matches!(message.text("role").as_deref(), Some("tool" | "function")) {
        return Some(Format::Chat);
    }
    if let Some(kind) = message.text("type") {
        let is_item = matches!(&*kind, "message" | "reasoning" | "item_reference" | "compaction")
            || kind.ends_with("_call")
            || kind.ends_with("_output");
        if is_item {
            return Some(Format::Responses);
        }
    }
    let parts = message.get("content").and_then(json::array)?;
    parts.iter().find_map(|part| of_part(&Object::parse(part)?.text("type")?))
}

fn of_part(kind: &str) -> Option<Format> {
    match kind {
        "input_text" | "output_text" | "input_image" | "input_file" => Some(Format::Responses),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image" | "document" => {
            Some(Format::Anthropic)
        }
        "image_url" | "input_audio" | "file" | "refusal" => Some(Format::Chat),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_recognised() {
        let cases = [
            (r#"{"messages":[{"role":"user","content":"hi"}]}"#, Some(Format::Chat)),
            (r#"{"system":"be kind","messages":[{"role":"user","content":"hi"}]}"#, Some(Format::Anthropic)),
            (r#"{"messages":[],"tools":[{"name":"x","input_schema":{}}]}"#, Some(Format::Anthropic)),
            (
                r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]}]"#,
                Some(Format::Anthropic),
            ),
            (r#"{"input":"hi","model":"m"}"#, Some(Format::Responses)),
            (
                r#"[{"role":"user","content":"x"},{"type":"function_call","call_id":"1"}]"#,
                Some(Format::Responses),
            ),
            (r#"{"conversations":[]}"#, Some(Format::ShareGpt)),
            (r#"[{"from":"human","value":"hi"}]"#, Some(Format::ShareGpt)),
            (r#"{"session_id":"s","platform":"cli","messages":[]}"#, Some(Format::Hermes)),
            (
                "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"tool\",\"content\":\"b\"}\n",
                Some(Format::Chat),
            ),
            (r#"{"model":"m"}"#, None),
            ("not json", None),
        ];
        for (body, expected) in cases {
            assert_eq!(detect(body), expected, "{body}");
        }
    }

    #[test]
    fn names_read_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        assert!("gemini".parse::<Format>().is_err());
    }
}
