//! The body around the list of messages: a request, a bare list, or a message per line.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::dialects::{self, Format};
use crate::json::{self, Object};
use crate::request::max_output;

/// A body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body is not JSON.
    #[error("not JSON at line {line}, column {column}: {reason}")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The parser's message.
        reason: String,
    },
    /// The body is JSON and has no list of messages.
    #[error("no list of messages in {found}")]
    NoMessages {
        /// A description of the body.
        found: String,
    },
    /// The body has several conversations.
    #[error("{n_values} conversations in one body, where one is expected")]
    ManyConversations {
        /// The number of conversations.
        n_values: usize,
    },
}

impl DecodeError {
    /// The next step for a user.
    pub fn hint(&self) -> &'static str {
        match self {
            DecodeError::NotJson { .. } => {
                "give a request body, a list of messages, or one message per line, as JSON"
            }
            DecodeError::NoMessages { .. } => {
                "fanfold looks for `messages`, `input` or `conversations`, or a bare list; --format says which one it is"
            }
            DecodeError::ManyConversations { .. } => {
                "give one line at a time; `fanfold replay` takes a whole file of them"
            }
        }
    }
}

/// A body whose message list has been located.
#[derive(Debug)]
pub(crate) struct OpenedBody {
    pub(crate) format: Format,
    pub(crate) frame: Frame,
    /// The ranges of the messages in the body.
    pub(crate) messages: Vec<Range<usize>>,
}

/// The form of the message list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListShape {
    /// `[a, b]`
    List,
    /// A text in place of a list: `"input": "hi"`.
    Text,
    /// A message per line.
    Lines,
}

/// The body around the messages.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) shape: ListShape,
    /// The range of the list, including brackets.
    pub(crate) list: Range<usize>,
    /// The text between two messages.
    pub(crate) separator: String,
    pub(crate) tools: Option<Range<usize>>,
    /// The range of the value of `tools`, whatever its type.
    pub(crate) tools_value: Option<Range<usize>>,
    /// The offset of the body if it is an object.
    pub(crate) object: Option<usize>,
    pub(crate) model: Option<String>,
    pub(crate) max_output: Option<u64>,
    /// The system text outside the list.
    pub(crate) system: Option<Range<usize>>,
    /// A field with the number of messages.
    pub(crate) count: Option<Range<usize>>,
    /// True if the provider stores the beginning of the conversation.
    pub(crate) is_continued: bool,
}

impl Frame {
    /// The frame of an empty list.
    pub(crate) fn bare() -> Frame {
        Frame {
            shape: ListShape::List,
            list: 0..0,
            separator: ",".to_owned(),
            tools: None,
            tools_value: None,
            object: None,
            model: None,
            max_output: None,
            system: None,
            count: None,
            is_continued: false,
        }
    }
}

/// Locates the message list in a body.
pub(crate) fn open(body: &str, format: Option<Format>) -> Result<OpenedBody, DecodeError> {
    let values = values(body)?;
    match values.as_slice() {
        [] => Err(DecodeError::NotJson { line: 1, column: 1, reason: "there is nothing".to_owned() }),
        [one] => open_one(body, one, format),
        many => open_lines(body, many, format),
    }
}

fn values(body: &str) -> Result<Vec<&str>, DecodeError> {
    let text = body.strip_prefix('\u{feff}').unwrap_or(body);
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.map_err(|error| DecodeError::NotJson {
            line: error.line(),
            column: error.column(),
            reason: reason(&error),
        })?;
        values.push(value.get());
    }
    Ok(values)
}

/// The parser's message without the position.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

fn open_one(body: &str, value: &str, format: Option<Format>) -> Result<OpenedBody, DecodeError> {
    if let Some(items) = json::array(value) {
        let format = format.unwrap_or_else(|| dialects::detect_in_messages(&items));
        return Ok(opened(body, format, value, &items, None));
    }
    let keys = match format {
        Some(format) => vec![format.facts().list_key],
        None => dialects::list_keys(),
    };
    let Some((object, found)) = Object::parse_and_list(value, &keys) else {
        return Err(DecodeError::NoMessages { found: "a single value".to_owned() });
    };
    for key in keys {
        let Some(list) = object.get(key) else { continue };
        let is_text = dialects::allows_text_for_list(key) && list.starts_with('"');
        if !is_text && !list.starts_with('[') {
            continue;
        }
        let items = match &found {
            // The last of duplicate keys counts, but the list was parsed from the first.
            Some(found) if std::ptr::eq(found.raw, list) => found.items.clone(),
            _ if is_text => vec![list],
            _ => json::array(list).unwrap_or_default(),
        };
        let format = format.unwrap_or_else(|| dialects::detect_in_body(&object, key, &items));
        return Ok(opened(body, format, list, &items, Some(&object)));
    }
    let is_message = object.get("role").is_some() || object.get("from").is_some();
    if is_message {
        return open_lines(body, &[value], format);
    }
    let keys: Vec<_> = object.fields.iter().take(8).map(|field| format!("`{}`", field.key)).collect();
    let found = if keys.is_empty() {
        "an empty object".to_owned()
    } else {
        format!("an object of {}", keys.join(", "))
    };
    Err(DecodeError::NoMessages { found })
}

fn open_lines(body: &str, values: &[&str], format: Option<Format>) -> Result<OpenedBody, DecodeError> {
    let holds_list = |value: &&str| {
        Object::parse(value).is_some_and(|object| {
            ["messages", "conversations"]
                .iter()
                .any(|key| object.get(key).is_some_and(|list| list.starts_with('[')))
        })
    };
    if values.first().is_some_and(holds_list) {
        return Err(DecodeError::ManyConversations { n_values: values.len() });
    }
    let is_any_object = values.iter().any(|value| value.starts_with('{'));
    if !is_any_object {
        return Err(DecodeError::NoMessages { found: format!("{} values in a row", values.len()) });
    }
    let format = format.unwrap_or_else(|| dialects::detect_in_messages(values));
    let first = json::span(body, values[0]);
    let last = json::span(body, values[values.len() - 1]);
    let messages: Vec<_> = values.iter().map(|value| json::span(body, value)).collect();
    let separator = separator(body, &messages).unwrap_or("\n").to_owned();
    let frame = Frame { shape: ListShape::Lines, list: first.start..last.end, separator, ..Frame::bare() };
    Ok(OpenedBody { format, frame, messages })
}

fn opened(body: &str, format: Format, list: &str, items: &[&str], object: Option<&Object<'_>>) -> OpenedBody {
    let messages: Vec<_> = items.iter().map(|item| json::span(body, item)).collect();
    let mut frame = Frame::bare();
    frame.list = json::span(body, list);
    if list.starts_with('"') {
        frame.shape = ListShape::Text;
    }
    frame.separator = separator(body, &messages).unwrap_or(", ").to_owned();
    if let Some(object) = object {
        let facts = format.facts();
        let range = |key: &str| object.some(key).map(|value| json::span(body, value));
        frame.tools = range("tools").or_else(|| range("functions"));
        frame.tools_value = object.get("tools").map(|value| json::span(body, value));
        frame.object = json::span(body, object.raw.trim_start()).start.into();
        frame.model = object.text("model").map(Into::into);
        frame.max_output = max_output(object);
        frame.system = facts.system_key.and_then(range);
        frame.count = facts.count_key.and_then(range);
        frame.is_continued = format.dialect().is_continued(object);
    }
    OpenedBody { format, frame, messages }
}

fn separator<'b>(body: &'b str, messages: &[Range<usize>]) -> Option<&'b str> {
    let [first, second, ..] = messages else { return None };
    body.get(first.end..second.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check_error(body: &str, format: Option<Format>, expected: &Expect) {
        let error = open(body, format).expect_err("not a conversation");
        expected.assert_eq(&format!("{error}\nhint: {}", error.hint()));
    }

    #[test]
    fn errors_have_position_and_reason() {
        check_error(
            "{\"messages\": [\n  {\"role\" \"user\"}]}",
            None,
            &expect![[r#"
                not JSON at line 2, column 11: expected `:`
                hint: give a request body, a list of messages, or one message per line, as JSON"#]],
        );
        check_error(
            r#"{"model": "m", "messages": null}"#,
            None,
            &expect![[r#"
                no list of messages in an object of `model`, `messages`
                hint: fanfold looks for `messages`, `input` or `conversations`, or a bare list; --format says which one it is"#]],
        );
        check_error(
            "{\"conversations\": []}\n{\"conversations\": []}",
            None,
            &expect![[r#"
                2 conversations in one body, where one is expected
                hint: give one line at a time; `fanfold replay` takes a whole file of them"#]],
        );
        check_error(
            "",
            None,
            &expect![[r#"
                not JSON at line 1, column 1: there is nothing
                hint: give a request body, a list of messages, or one message per line, as JSON"#]],
        );
        check_error(
            "{\"messages\": []}",
            Some(Format::ShareGpt),
            &expect![[r#"
                no list of messages in an object of `messages`
                hint: fanfold looks for `messages`, `input` or `conversations`, or a bare list; --format says which one it is"#]],
        );
    }

    #[test]
    fn fields_of_requests_are_read() {
        let body = r#"{"model":"m\u0031","max_tokens":5,"tools":[{"a":1}],"messages":[{"role":"user"} ,{"role":"user"}]}"#;
        let opened = open(body, None).unwrap();
        assert_eq!(opened.frame.model.as_deref(), Some("m1"));
        assert_eq!(opened.frame.max_output, Some(5));
        assert_eq!(&body[opened.frame.tools.unwrap()], r#"[{"a":1}]"#);
        assert_eq!(opened.frame.separator, " ,");
    }
}
