//! Finds tool calls that a model wrote as text.
//!
//! ```text
//! <tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>
//! <function=read><parameter=path>a</parameter></function>      also inside <tool_call>
//! <invoke name="read"><parameter name="path">a</parameter></invoke>
//! {"name": "read", "arguments": {"path": "a"}}                 alone, or in a fence of three backticks
//! ```
//!
//! Searches only move forward and are not repeated, so the time is linear in the text.

use std::borrow::Cow;
use std::ops::Range;

use fanfold_core::Body;

use crate::json::{self, Object};

/// The thought, the prose and the calls in the text of a reply.
#[derive(Debug, Default)]
pub(crate) struct TextReply {
    /// The range of the thought at the beginning, with and without its tags.
    pub(crate) thought: Option<(Range<usize>, Range<usize>)>,
    pub(crate) calls: Vec<TextCall>,
}

/// A call in a text.
#[derive(Debug)]
pub(crate) struct TextCall {
    pub(crate) span: Range<usize>,
    pub(crate) tool: String,
    pub(crate) arguments: Body,
    pub(crate) arguments_range: Range<usize>,
    style: ArgumentStyle,
}

/// The syntax of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentStyle {
    Object,
    Quoted,
    Function,
    Invoke,
}

impl TextReply {
    pub(crate) fn read(text: &str) -> TextReply {
        let thought = thought(text);
        let start = thought.as_ref().map_or(0, |(span, _)| span.end);
        let mut calls = Vec::new();
        let may_have_calls = MARKERS.iter().any(|(open, _)| text.contains(open));
        if may_have_calls {
            calls = marked_calls(text, start);
        } else if let Some(call) = bare_call(text, start..text.len()) {
            calls.push(call);
        }
        TextReply { thought, calls }
    }

    /// Returns whether it has more than prose.
    pub(crate) fn is_special(&self) -> bool {
        self.thought.is_some() || !self.calls.is_empty()
    }

    /// The ranges of the prose between thought and calls.
    pub(crate) fn prose(&self, text: &str) -> Vec<Range<usize>> {
        let others =
            self.thought.iter().map(|(span, _)| span).chain(self.calls.iter().map(|call| &call.span));
        let mut prose = Vec::new();
        let mut at = 0;
        for span in others {
            prose.push(at..span.start);
            at = span.end;
        }
        prose.push(at..text.len());
        prose.retain(|range| !text[range.clone()].trim().is_empty());
        prose
    }
}

impl TextCall {
    /// Formats a stub, JSON or not, in the syntax of the arguments.
    pub(crate) fn format_arguments(&self, stub: &str) -> String {
        let stub = wrap_as_object(stub);
        match self.style {
            ArgumentStyle::Object => stub.into_owned(),
            ArgumentStyle::Quoted => json::quote(&stub),
            ArgumentStyle::Function => parameters(&stub, |key| format!("<parameter={key}>")),
            ArgumentStyle::Invoke => parameters(&stub, |key| format!("<parameter name=\"{key}\">")),
        }
    }
}

/// A stub as a JSON object: unchanged, or wrapped in one.
pub(crate) fn wrap_as_object(stub: &str) -> Cow<'_, str> {
    if json::is_object(stub) {
        return Cow::Borrowed(stub);
    }
    let value = if json::is_valid(stub) { stub.to_owned() } else { json::quote(stub) };
    Cow::Owned(format!(r#"{{"_folded": {value}}}"#))
}

fn parameters(object: &str, open: impl Fn(&str) -> String) -> String {
    let fields = Object::parse(object).map(|object| object.fields).unwrap_or_default();
    let parameters = fields.iter().map(|field| {
        let value = json::string(field.value).map_or(Cow::Borrowed(field.value), |text| text.text);
        format!("{}{value}</parameter>", open(&field.key))
    });
    parameters.collect::<Vec<_>>().join("\n")
}

fn thought(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let start = text.len() - text.trim_start().len();
    let inner_start = start + text[start..].strip_prefix("<think>").map(|_| "<think>".len())?;
    let inner_end = inner_start + text[inner_start..].find("</think>")?;
    Some((start..inner_end + "</think>".len(), inner_start..inner_end))
}

/// The markers that begin a call, each with its end.
const MARKERS: [(&str, &str); 4] = [
    ("<tool_call>", "</tool_call>"),
    ("<function=", "</function>"),
    ("<invoke ", "</invoke>"),
    ("```", "```"),
];

fn marked_calls(text: &str, start: usize) -> Vec<TextCall> {
    let mut calls = Vec::new();
    let mut is_unclosed = [false; MARKERS.len()];
    let mut at = start;
    while let Some(step) = text[at..].bytes().position(|b| b == b'<' || b == b'`') {
        at += step;
        let found =
            MARKERS.iter().position(|(open, _)| text[at..].starts_with(open)).filter(|i| !is_unclosed[*i]);
        let Some(i) = found else {
            at += 1;
            continue;
        };
        let (open, close) = MARKERS[i];
        let inner_start = at + open.len();
        let Some(length) = text[inner_start..].find(close) else {
            is_unclosed[i] = true;
            at += 1;
            continue;
        };
        let inner = inner_start..inner_start + length;
        let span = at..inner.end + close.len();
        let call = match i {
            0 => tagged(text, &span, inner),
            1 => function(text, &span, inner),
            2 => invoke(text, &span, inner),
            _ => fenced(text, &span, inner),
        };
        calls.extend(call);
        at = span.end;
    }
    calls
}

fn tagged(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let slice = &text[inner.clone()];
    if slice.trim_start().starts_with('{') {
        return object_call(text, span, slice, false);
    }
    let open = slice.find("<function=")?;
    let start = inner.start + open + "<function=".len();
    let length = text[start..inner.end].find("</function>").unwrap_or(inner.end - start);
    function(text, span, start..start + length)
}

fn fenced(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let slice = &text[inner];
    let line_end = slice.find('\n')?;
    let language = slice[..line_end].trim();
    if !matches!(language, "" | "json" | "tool_call" | "tool") {
        return None;
    }
    object_call(text, span, &slice[line_end..], true)
}

fn bare_call(text: &str, range: Range<usize>) -> Option<TextCall> {
    let slice = text[range].trim();
    if !slice.starts_with('{') || !slice.ends_with('}') {
        return None;
    }
    let span = json::span(text, slice);
    object_call(text, &span, slice, true)
}

/// A call written as JSON. A strict one has only a name and arguments, so that documents are not taken for calls.
fn object_call(text: &str, span: &Range<usize>, slice: &str, is_strict: bool) -> Option<TextCall> {
    let slice = slice.trim();
    if !json::is_object(slice) {
        return None;
    }
    let outer = Object::parse(slice)?;
    let object = outer.get("function").and_then(Object::parse).unwrap_or(outer);
    let name_key = ["name", "tool_name", "function"].into_iter().find(|key| object.text(key).is_some())?;
    let tool = object.text(name_key).filter(|tool| !tool.is_empty())?;
    let value_key = ["arguments", "parameters", "input"].into_iter().find(|key| object.get(key).is_some())?;
    let value = object.get(value_key)?;
    let is_exact = object.fields.iter().all(|field| field.key == name_key || field.key == value_key);
    let is_call_like = value.starts_with('{') || value.starts_with('"');
    if is_strict && !(is_exact && is_call_like) {
        return None;
    }
    let quoted = json::string(value);
    let style = if quoted.is_some() { ArgumentStyle::Quoted } else { ArgumentStyle::Object };
    let arguments = match quoted {
        Some(quoted) if quoted.is_exact => Body::text(&*quoted.text),
        Some(quoted) => Body::with_raw(&*quoted.text, value),
        None => Body::text(value),
    };
    Some(TextCall {
        span: span.clone(),
        tool: tool.into(),
        arguments,
        arguments_range: json::span(text, value),
        style,
    })
}

/// The content of a function element: `name>...`.
fn function(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let end = inner.start + text[inner.clone()].find('>')?;
    let tool = text[inner.start..end].trim().trim_matches('"');
    let key_of =
        |tag: &str| tag.strip_prefix("<parameter=").map(|key| key.trim().trim_matches('"').to_owned());
    element(text, span, tool, end + 1..inner.end, ArgumentStyle::Function, key_of)
}

/// The content of an invoke element: ` name="...">...`.
fn invoke(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let end = inner.start + text[inner.clone()].find('>')?;
    let tool = attribute(&text[inner.start..end])?;
    let key_of =
        |tag: &str| tag.strip_prefix("<parameter ").and_then(|rest| attribute(rest)).map(str::to_owned);
    element(text, span, tool, end + 1..inner.end, ArgumentStyle::Invoke, key_of)
}

fn attribute(tag: &str) -> Option<&str> {
    let value = tag.trim().strip_prefix("name=")?.trim();
    Some(value.trim_matches(['"', '\'']))
}

fn element(
    text: &str,
    span: &Range<usize>,
    tool: &str,
    inner: Range<usize>,
    style: ArgumentStyle,
    key_of: impl Fn(&str) -> Option<String>,
) -> Option<TextCall> {
    if tool.is_empty() || tool.contains(['<', '\n']) {
        return None;
    }
    let mut fields = Vec::new();
    let mut range: Option<Range<usize>> = None;
    let mut at = inner.start;
    while let Some(step) = text[at..inner.end].find("<parameter") {
        let open = at + step;
        let Some(head) = text[open..inner.end].find('>') else { break };
        let start = open + head + 1;
        let Some(length) = text[start..inner.end].find("</parameter>") else { break };
        if let Some(key) = key_of(&text[open..start - 1]) {
            let value = text[start..start + length].trim_matches('\n');
            fields.push(format!("{}: {}", json::quote(&key), json::quote(value)));
        }
        at = start + length + "</parameter>".len();
        range = Some(range.map_or(open, |range| range.start)..at);
    }
    let arguments_range = range.unwrap_or(inner.start..inner.start);
    let arguments = Body::with_raw(format!("{{{}}}", fields.join(", ")), &text[arguments_range.clone()]);
    Some(TextCall { span: span.clone(), tool: tool.to_owned(), arguments, arguments_range, style })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: &Expect) {
        let reply = TextReply::read(text);
        let mut shown = String::new();
        if let Some((_, inner)) = &reply.thought {
            shown += &format!("thought {:?}\n", &text[inner.clone()]);
        }
        for call in &reply.calls {
            shown += &format!(
                "call {} {} at {:?}\n",
                call.tool,
                call.arguments.as_str(),
                &text[call.arguments_range.clone()]
            );
        }
        for range in reply.prose(text) {
            shown += &format!("prose {:?}\n", &text[range]);
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn finds_calls_in_tags() {
        check(
            "<think>hm</think>Reading.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"p\": 1}}\n</tool_call> then",
            &expect![[r#"
                thought "hm"
                call read {"p": 1} at "{\"p\": 1}"
                prose "Reading.\n"
                prose " then"
            "#]],
        );
    }

    #[test]
    fn finds_calls_as_elements() {
        check(
            "<tool_call>\n<function=edit>\n<parameter=path>\na.rs\n</parameter>\n<parameter=n>2</parameter></function>\n</tool_call><invoke name=\"ls\"><parameter name=\"d\">/</parameter></invoke><function=now></function>",
            &expect![[r#"
                call edit {"path": "a.rs", "n": "2"} at "<parameter=path>\na.rs\n</parameter>\n<parameter=n>2</parameter>"
                call ls {"d": "/"} at "<parameter name=\"d\">/</parameter>"
                call now {} at ""
            "#]],
        );
    }

    #[test]
    fn json_documents_are_not_calls() {
        check(
            "```json\n{\"tool_name\": \"ls\", \"parameters\": {}}\n```",
            &expect![[r#"
                call ls {} at "{}"
            "#]],
        );
        check(
            r#" {"name": "ls", "input": "{\"a\": 1}"} "#,
            &expect![[r#"
                call ls {"a": 1} at "\"{\\\"a\\\": 1}\""
            "#]],
        );
        for document in [
            r#"{"name": "pkg", "version": 1}"#,
            r#"{"name": "x", "arguments": {}, "version": 1}"#,
            "```rust\n{}\n```",
            r#"{"name": "x", "input": 5}"#,
            "<tool_call>not json</tool_call>",
            "<tool_call>{\"name\": \"x\", \"arguments\": {}}",
        ] {
            assert!(TextReply::read(document).calls.is_empty(), "{document}");
        }
    }

    #[test]
    fn stubs_keep_the_syntax_of_the_arguments() {
        let format = |text: &str, stub: &str| TextReply::read(text).calls[0].format_arguments(stub);
        let object = r#"<tool_call>{"name":"a","arguments":{"x":1}}</tool_call>"#;
        assert_eq!(format(object, r#"{"y":2}"#), r#"{"y":2}"#);
        assert_eq!(format(object, "gone"), r#"{"_folded": "gone"}"#);
        let quoted = r#"{"name":"a","arguments":"{}"}"#;
        assert_eq!(format(quoted, r#"{"y":2}"#), r#""{\"y\":2}""#);
        let element = "<function=a><parameter=x>1</parameter></function>";
        assert_eq!(format(element, r#"{"y":"2"}"#), "<parameter=y>2</parameter>");
    }

    #[test]
    fn unclosed_tags_take_linear_time() {
        for marker in ["<tool_call>", "<function=", "<invoke ", "```", "<parameter=", "<think>"] {
            let text = marker.repeat(100_000);
            assert!(TextReply::read(&text).calls.is_empty());
        }
        let text = format!("{}</tool_call>", "<tool_call>".repeat(100_000));
        assert!(TextReply::read(&text).calls.is_empty());
    }
}
