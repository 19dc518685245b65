//! Names of formats, and how the format of a body is detected.

use std::fmt;
use std::str::FromStr;

use crate::body::frame;
use crate::dialects::{Api, Format, Provider};
use crate::json::{self, Object};
use crate::reply::sse::SseEvent;

impl Format {
    pub(crate) fn api(self) -> Option<&'static dyn Api> {
        self.dialect().api()
    }

    /// The name, as flags, settings and labels have it.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The format of requests to a path; `None` if they carry no conversation.
    pub fn from_path(path: &str) -> Option<Format> {
        let path = path.trim_end_matches('/');
        let serves = |format: &&Format| format.api().is_some_and(|api| api.serves(path));
        Format::ALL.iter().find(serves).copied()
    }

    /// The format of messages without a characteristic of another format, such as a bare list of user messages.
    pub fn of_plain_messages() -> Format {
        Format::ALL[0]
    }

    /// The end of the path that conversations are posted to; `None` for file formats.
    pub fn route(self) -> Option<&'static str> {
        self.api().map(|api| api.route())
    }

    /// The provider whose format it is; `None` for file formats.
    pub fn provider(self) -> Option<&'static Provider> {
        self.api().map(|api| api.provider())
    }

    /// Returns whether the provider can store the beginning of a conversation, so that requests only continue it.
    pub fn can_continue(self) -> bool {
        self.facts().can_continue
    }

    /// Returns whether several messages can make up one reply of the model.
    pub fn has_replies_of_many_messages(self) -> bool {
        self.facts().has_replies_of_many_messages
    }

    /// Returns whether the provider reports cache writes in every usage, so that a missing count is zero.
    pub fn reports_cache_writes(self) -> bool {
        self.api().is_some_and(|api| api.counts_cache_separately())
    }

    /// Returns whether an event of a stream only announces that a reply begins.
    pub fn is_preamble(self, event: &SseEvent) -> bool {
        let (Some(data), Some(api)) = (event.data(), self.api()) else { return true };
        api.is_preamble(event, &data)
    }
}

impl Default for Format {
    fn default() -> Format {
        Format::of_plain_messages()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text is not the name of a format.
#[derive(Debug, thiserror::Error)]
#[error("no format `{name}`; the formats are {formats}", formats = names())]
pub struct FormatError {
    name: String,
}

fn names() -> String {
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
    let (last, others) = names.split_last().expect("there are formats");
    format!("{} and {last}", others.join(", "))
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Format, FormatError> {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or_else(|| FormatError { name: name.chars().take(60).collect() })
    }
}

/// The format of a body: a whole request, a bare list, or a message per line. `None` if it has no messages.
pub fn detect(body: &str) -> Option<Format> {
    frame::open(body, None).ok().map(|opened| opened.format)
}

/// The order of detection: file formats first, because they look like the dialect that they record.
fn by_specificity() -> impl Iterator<Item = Format> {
    let all = || Format::ALL.iter().copied();
    all()
        .filter(|format| format.provider().is_none())
        .chain(all().filter(|format| format.provider().is_some()))
}

/// The keys of message lists, and those last whose value may be a text.
pub(crate) fn list_keys() -> Vec<&'static str> {
    let mut all = Format::ALL.map(Format::facts);
    all.sort_by_key(|facts| facts.allows_text_for_list);
    let mut keys = Vec::new();
    for facts in all {
        if !keys.contains(&facts.list_key) {
            keys.push(facts.list_key);
        }
    }
    keys
}

/// Returns whether a text under this key may take the place of a message list.
pub(crate) fn allows_text_for_list(key: &str) -> bool {
    Format::ALL.iter().any(|format| format.facts().list_key == key && format.facts().allows_text_for_list)
}

/// The format of a whole body whose messages are under a key: by its fields, or else by its messages.
pub(crate) fn detect_in_body(body: &Object<'_>, list_key: &str, messages: &[&str]) -> Format {
    let mut with_key = Format::ALL.iter().filter(|format| format.facts().list_key == list_key);
    if let (Some(only), None) = (with_key.next(), with_key.next()) {
        return *only;
    }
    let found = by_specificity().find(|format| format.dialect().recognises_body(body));
    found.unwrap_or_else(|| detect_in_messages(messages))
}

/// The format of a list of messages: that of the first message with a characteristic of one format.
pub(crate) fn detect_in_messages(messages: &[&str]) -> Format {
    messages.iter().find_map(|message| detect_in_message(message)).unwrap_or_default()
}

fn detect_in_message(message: &str) -> Option<Format> {
    let message = Object::parse(message)?;
    if let Some(format) = by_specificity().find(|format| format.dialect().recognises_message(&message)) {
        return Some(format);
    }
    let parts = message.get("content").and_then(json::array)?;
    parts.iter().find_map(|part| {
        let part_type = Object::parse(part)?.text("type")?;
        by_specificity().find(|format| format.dialect().recognises_part(&part_type))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_bodies_are_detected() {
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
    fn names_round_trip() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        assert!("gemini".parse::<Format>().is_err());
    }
}
