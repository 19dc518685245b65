//! Tool calls that a model wrote as text.
//!
//! ```text
//! <tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>
//! <function=read><parameter=path>a</parameter></function>      also inside <tool_call>
//! <invoke name="read"><parameter name="path">a</parameter></invoke>
//! {"name": "read", "arguments": {"path": "a"}}                 alone, or in a fence of three backticks
//! ```
//!
//! Every search goes forward and none is made twice, so that the time is that of reading the text once.

use std::borrow::Cow;
use std::ops::Range;

use fanfold_core::Body;

use crate::json::{self, Object};

/// How a reply's text falls into thought, words and calls.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The thought at the beginning: with its tags, and without.
    pub(crate) thought: Option<(Range<usize>, Range<usize>)>,
    pub(crate) calls: Vec<TextCall>,
}

/// A call in a text.
#[derive(Debug)]
pub(crate) struct TextCall {
    /// The whole of it.
    pub(crate) span: Range<usize>,
    pub(crate) tool: String,
    pub(crate) arguments: Body,
    /// Where the arguments stand.
    pub(crate) place: Range<usize>,
    style: Style,
}

/// How the arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Object,
    Quoted,
    Function,
    Invoke,
}

impl Reply {
    /// Reads a reply.
    pub(crate) fn read(text: &str) -> Reply {
        let thought = thought(text);
        let start = thought.as_ref().map_or(0, |(span, _)| span.end);
        let mut calls = Vec::new();
        let may_hold_calls =
            ["<tool_call>", "<function=", "<invoke ", "```"].iter().any(|mark| text.contains(mark));
        if may_hold_calls {
            calls = marked(text, start);
        } else if let Some(call) = bare(text, start..text.len()) {
            calls.push(call);
        }
        Reply { thought, calls }
    }

    /// Whether it is more than words.
    pub(crate) fn is_special(&self) -> bool {
        self.thought.is_some() || !self.calls.is_empty()
    }

    /// The places of the words, between thought and calls.
    pub(crate) fn words(&self, text: &str) -> Vec<Range<usize>> {
        let taken = self.thought.iter().map(|(span, _)| span).chain(self.calls.iter().map(|call| &call.span));
        let mut words = Vec::new();
        let mut at = 0;
        for span in taken {
            words.push(at..span.start);
            at = span.end;
        }
        words.push(at..text.len());
        words.retain(|place| !text[place.clone()].trim().is_empty());
        words
    }
}

impl TextCall {
    /// What is written where the arguments stand, for a stub that is JSON or not.
    pub(crate) fn written(&self, stub: &str) -> String {
        let stub = object_of(stub);
        match self.style {
            Style::Object => stub.into_owned(),
            Style::Quoted => json::quote(&stub),
            Style::Function => parameters(&stub, |key| format!("<parameter={key}>")),
            Style::Invoke => parameters(&stub, |key| format!("<parameter name=\"{key}\">")),
        }
    }
}

/// A stub as a JSON object: itself, or wrapped.
pub(crate) fn object_of(stub: &str) -> Cow<'_, str> {
    if json::is_object(stub) {
        return Cow::Borrowed(stub);
    }
    let value = if json::is_valid(stub) { stub.to_owned() } else { json::quote(stub) };
    Cow::Owned(format!(r#"{{"_folded": {value}}}"#))
}

fn parameters(object: &str, open: impl Fn(&str) -> String) -> String {
    let fields = Object::parse(object).map(|object| object.fields).unwrap_or_default();
    let written = fields.iter().map(|field| {
        let value = json::string(field.value).map_or(Cow::Borrowed(field.value), |text| text.text);
        format!("{}{value}</parameter>", open(&field.key))
    });
    written.collect::<Vec<_>>().join("\n")
}

fn thought(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let start = text.len() - text.trim_start().len();
    let inner_start = start + text[start..].strip_prefix("<think>").map(|_| "<think>".len())?;
    let inner_end = inner_start + text[inner_start..].find("</think>")?;
    Some((start..inner_end + "</think>".len(), inner_start..inner_end))
}

/// The marks at which a call can begin, and what ends each.
const MARKS: [(&str, &str); 4] = [
    ("<tool_call>", "</tool_call>"),
    ("<function=", "</function>"),
    ("<invoke ", "</invoke>"),
    ("```", "```"),
];

fn marked(text: &str, start: usize) -> Vec<TextCall> {
    let mut calls = Vec::new();
    let mut is_endless = [false; MARKS.len()];
    let mut at = start;
    while let Some(step) = text[at..].bytes().position(|b| b == b'<' || b == b'`') {
        at += step;
        let found =
            MARKS.iter().position(|(open, _)| text[at..].starts_with(open)).filter(|i| !is_endless[*i]);
        let Some(i) = found else {
            at += 1;
            continue;
        };
        let (open, close) = MARKS[i];
        let inner_start = at + open.len();
        let Some(length) = text[inner_start..].find(close) else {
            is_endless[i] = true;
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

fn bare(text: &str, place: Range<usize>) -> Option<TextCall> {
    let slice = text[place].trim();
    if !slice.starts_with('{') || !slice.ends_with('}') {
        return None;
    }
    let span = json::span(text, slice);
    object_call(text, &span, slice, true)
}

/// A call written as JSON. A strict one has a name and arguments and nothing else that a document would have.
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
    let style = if quoted.is_some() { Style::Quoted } else { Style::Object };
    let arguments = match quoted {
        Some(quoted) if quoted.is_exact => Body::text(&*quoted.text),
        Some(quoted) => Body::with_raw(&*quoted.text, value),
        None => Body::text(value),
    };
    Some(TextCall { span: span.clone(), tool: tool.into(), arguments, place: json::span(text, value), style })
}

/// `name>...`, the inside of a function element.
fn function(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let end = inner.start + text[inner.clone()].find('>')?;
    let tool = text[inner.start..end].trim().trim_matches('"');
    let key_of =
        |tag: &str| tag.strip_prefix("<parameter=").map(|key| key.trim().trim_matches('"').to_owned());
    element(text, span, tool, end + 1..inner.end, Style::Function, key_of)
}

/// ` name="...">...`, the inside of an invoke element.
fn invoke(text: &str, span: &Range<usize>, inner: Range<usize>) -> Option<TextCall> {
    let end = inner.start + text[inner.clone()].find('>')?;
    let tool = attribute(&text[inner.start..end])?;
    let key_of =
        |tag: &str| tag.strip_prefix("<parameter ").and_then(|rest| attribute(rest)).map(str::to_owned);
    element(text, span, tool, end + 1..inner.end, Style::Invoke, key_of)
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
    style: Style,
    key_of: impl Fn(&str) -> Option<String>,
) -> Option<TextCall> {
    if tool.is_empty() || tool.contains(['<', '\n']) {
        return None;
    }
    let mut fields = Vec::new();
    let mut place: Option<Range<usize>> = None;
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
        place = Some(place.map_or(open, |place| place.start)..at);
    }
    let place = place.unwrap_or(inner.start..inner.start);
    let arguments = Body::with_raw(format!("{{{}}}", fields.join(", ")), &text[place.clone()]);
    Some(TextCall { span: span.clone(), tool: tool.to_owned(), arguments, place, style })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: &Expect) {
        let reply = Reply::read(text);
        let mut shown = String::new();
        if let Some((_, inner)) = &reply.thought {
            shown += &format!("thought {:?}\n", &text[inner.clone()]);
        }
        for call in &reply.calls {
            shown += &format!(
                "call {} {} at {:?}\n",
                call.tool,
                call.arguments.as_str(),
                &text[call.place.clone()]
            );
        }
        for place in reply.words(text) {
            shown += &format!("words {:?}\n", &text[place]);
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn calls_in_tags() {
        check(
            "<think>hm</think>Reading.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"p\": 1}}\n</tool_call> then",
            &expect![[r#"
                thought "hm"
                call read {"p": 1} at "{\"p\": 1}"
                words "Reading.\n"
                words " then"
            "#]],
        );
    }

    #[test]
    fn calls_as_elements() {
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
    fn json_is_a_call_only_if_it_is_nothing_else() {
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
            assert!(Reply::read(document).calls.is_empty(), "{document}");
        }
    }

    #[test]
    fn stubs_are_written_as_the_arguments_were() {
        let written = |text: &str, stub: &str| Reply::read(text).calls[0].written(stub);
        let object = r#"<tool_call>{"name":"a","arguments":{"x":1}}</tool_call>"#;
        assert_eq!(written(object, r#"{"y":2}"#), r#"{"y":2}"#);
        assert_eq!(written(object, "gone"), r#"{"_folded": "gone"}"#);
        let quoted = r#"{"name":"a","arguments":"{}"}"#;
        assert_eq!(written(quoted, r#"{"y":2}"#), r#""{\"y\":2}""#);
        let element = "<function=a><parameter=x>1</parameter></function>";
        assert_eq!(written(element, r#"{"y":"2"}"#), "<parameter=y>2</parameter>");
    }

    #[test]
    fn many_open_tags_cost_one_reading() {
        for mark in ["<tool_call>", "<function=", "<invoke ", "```", "<parameter=", "<think>"] {
            let text = mark.repeat(100_000);
            assert!(Reply::read(&text).calls.is_empty());
        }
        let text = format!("{}</tool_call>", "<tool_call>".repeat(100_000));
        assert!(Reply::read(&text).calls.is_empty());
    }
}
