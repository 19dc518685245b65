//! Recalls beside the client's own calls, put where they were made.
//!
//! A model may call the recall tool and tools of its client in one answer. The client is shown its own calls alone, so
//! it sends back an answer without ours. Before the next request goes on, our call is put back behind the client's, and
//! its result behind the client's results: the model sees every call that it made, each with its result.
//!
//! ```text
//! call    read notes.md              call    read notes.md
//! result  buy milk               ->  call    fanfold_recall 2243bf
//!                                    result  buy milk
//!                                    result  the original
//! ```
//!
//! They are found by the ids of the client's calls, which no other answer has.

use std::ops::Range;

use super::said::Called;
use super::tool::RECALL_TOOL;
use crate::format::Format;
use crate::json::{self, Object};
use crate::splice::Splices;

/// Recalls of one answer that also made calls of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The ids of the client's calls.
    pub theirs: Vec<String>,
    /// Our calls, each with its result.
    pub ours: Vec<(Called, String)>,
}

impl Beside {
    fn is_theirs(&self, id: Option<impl AsRef<str>>) -> bool {
        id.is_some_and(|id| self.theirs.iter().any(|theirs| theirs == id.as_ref()))
    }
}

/// A body with the recalls in it that its client was not shown, each where it was made; none if there is no place for
/// any of them. Every other byte stays as it came.
///
/// Where the client has not answered its own calls, or has changed what the model said, ours stay out.
pub fn with_recalls(body: &str, format: Format, besides: &[Beside]) -> Option<String> {
    let is_near = |beside: &&Beside| beside.theirs.iter().any(|id| body.contains(id.as_str()));
    let besides: Vec<&Beside> = besides.iter().filter(is_near).collect();
    if besides.is_empty() {
        return None;
    }
    let object = Object::parse(body)?;
    let messages = json::array(object.some(format.list_key())?)?;
    let mut splices = Splices::default();
    for beside in besides {
        let is_there = beside.ours.iter().any(|(call, _)| body.contains(&json::quote(&call.id)));
        let found = if is_there { None } else { places(body, format, &messages, beside) };
        let Some(Places { call, result }) = found else { continue };
        let printed = |print: fn(Format, &Called, &str) -> String| {
            let all = beside.ours.iter().map(|(call, answer)| format!(",{}", print(format, call, answer)));
            all.collect::<String>()
        };
        if let Some(call) = call {
            splices.replace(call..call, printed(print_call));
        }
        splices.replace(result..result, printed(print_result));
    }
    (!splices.is_empty()).then(|| splices.apply(body))
}

/// Where our calls and their results go: each behind the last of the client's.
struct Places {
    /// None where the provider has the calls.
    call: Option<usize>,
    result: usize,
}

fn places(body: &str, format: Format, messages: &[&str], beside: &Beside) -> Option<Places> {
    match format {
        Format::Chat => in_chat(body, messages, beside),
        Format::Anthropic => in_blocks(body, messages, beside),
        Format::Responses => in_items(body, messages, beside),
        Format::ShareGpt | Format::Hermes => None,
    }
}

fn in_chat(body: &str, messages: &[&str], beside: &Beside) -> Option<Places> {
    let calls_of = |message: &&str| {
        let calls = json::array(Object::parse(message)?.some("tool_calls")?)?;
        last_of(body, &calls, |call| beside.is_theirs(call.text("id")))
    };
    let (at, call) = messages.iter().enumerate().find_map(|(i, message)| Some((i, calls_of(message)?)))?;
    let results = messages[at + 1..].iter().take_while(|message| {
        Object::parse(message).is_some_and(|message| message.text("role").as_deref() == Some("tool"))
    });
    let results: Vec<&str> = results.copied().collect();
    let result = last_of(body, &results, |message| beside.is_theirs(message.text("tool_call_id")))?;
    Some(Places { call: Some(call.end), result: result.end })
}

fn in_blocks(body: &str, messages: &[&str], beside: &Beside) -> Option<Places> {
    let call_of =
        |message: &str| last_of(body, &blocks_of(message)?, |block| beside.is_theirs(block.text("id")));
    let (at, call) = messages.iter().enumerate().find_map(|(i, message)| Some((i, call_of(message)?)))?;
    let blocks = blocks_of(messages.get(at + 1)?)?;
    let result = last_of(body, &blocks, |block| beside.is_theirs(block.text("tool_use_id")))?;
    Some(Places { call: Some(call.end), result: result.end })
}

fn in_items(body: &str, messages: &[&str], beside: &Beside) -> Option<Places> {
    let is_output = |item: &Object<'_>| item.text("type").is_some_and(|kind| kind.ends_with("_output"));
    let named = |item: &Object<'_>| beside.is_theirs(item.text("call_id").or_else(|| item.text("id")));
    let call = last_of(body, messages, |item| !is_output(item) && named(item));
    let result = last_of(body, messages, |item| is_output(item) && named(item))?;
    // Where the calls are not in the list, the provider holds them, with ours.
    let is_held = call.is_none();
    let is_in_order = call.as_ref().is_none_or(|call| call.end < result.end);
    (is_held || is_in_order).then_some(Places { call: call.map(|call| call.end), result: result.end })
}

fn blocks_of(message: &str) -> Option<Vec<&str>> {
    json::array(Object::parse(message)?.some("content")?)
}

/// The last one of some values that is meant.
fn last_of(body: &str, values: &[&str], is_meant: impl Fn(&Object<'_>) -> bool) -> Option<Range<usize>> {
    let last = values.iter().rev().find(|value| Object::parse(value).is_some_and(|value| is_meant(&value)));
    last.map(|last| json::span(body, last))
}

fn print_call(format: Format, call: &Called, _answer: &str) -> String {
    let id = json::quote(&call.id);
    let arguments = if json::is_object(&call.arguments) { &*call.arguments } else { "{}" };
    match format {
        Format::Anthropic => {
            format!(r#"{{"type":"tool_use","id":{id},"name":"{RECALL_TOOL}","input":{arguments}}}"#)
        }
        Format::Responses => {
            let arguments = json::quote(arguments);
            format!(
                r#"{{"type":"function_call","call_id":{id},"name":"{RECALL_TOOL}","arguments":{arguments}}}"#
            )
        }
        Format::Chat | Format::ShareGpt | Format::Hermes => {
            let arguments = json::quote(arguments);
            let function = format!(r#"{{"name":"{RECALL_TOOL}","arguments":{arguments}}}"#);
            format!(r#"{{"id":{id},"type":"function","function":{function}}}"#)
        }
    }
}

fn print_result(format: Format, call: &Called, answer: &str) -> String {
    result_of(format, &call.id, answer)
}

/// The result of a call, as a format writes it.
pub(super) fn result_of(format: Format, call: &str, answer: &str) -> String {
    let (id, answer) = (json::quote(call), json::quote(answer));
    match format {
        Format::Anthropic => format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{answer}}}"#),
        Format::Responses => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{answer}}}"#)
        }
        Format::Chat | Format::ShareGpt | Format::Hermes => {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{answer}}}"#)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(theirs: &[&str]) -> Beside {
        let call = Called {
            id: "ours".into(),
            name: RECALL_TOOL.into(),
            arguments: r#"{"handle":"123456"}"#.into(),
        };
        Beside {
            theirs: theirs.iter().map(|id| (*id).to_owned()).collect(),
            ours: vec![(call, "said".into())],
        }
    }

    fn check(format: Format, body: &str, expected: &str) {
        let found = with_recalls(body, format, &[beside(&["a", "b"])]);
        assert_eq!(found.as_deref(), Some(expected), "{format}");
        assert_eq!(with_recalls(expected, format, &[beside(&["a", "b"])]), None, "it is there already");
    }

    #[test]
    fn a_recall_comes_behind_the_clients_calls_and_its_result_behind_their_results() {
        check(
            Format::Chat,
            r#"{"messages":[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"a"}, {"id":"b"}]},{"role":"tool","tool_call_id":"b"}, {"role":"tool","tool_call_id":"a"},{"role":"user"}]}"#,
            r#"{"messages":[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"a"}, {"id":"b"},{"id":"ours","type":"function","function":{"name":"fanfold_recall","arguments":"{\"handle\":\"123456\"}"}}]},{"role":"tool","tool_call_id":"b"}, {"role":"tool","tool_call_id":"a"},{"role":"tool","tool_call_id":"ours","content":"said"},{"role":"user"}]}"#,
        );
        check(
            Format::Anthropic,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","cache_control":{}},{"type":"text","text":"go on"}]}]}"#,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"},{"type":"tool_use","id":"ours","name":"fanfold_recall","input":{"handle":"123456"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","cache_control":{}},{"type":"tool_result","tool_use_id":"ours","content":"said"},{"type":"text","text":"go on"}]}]}"#,
        );
        check(
            Format::Responses,
            r#"{"input":[{"type":"function_call","call_id":"a"},{"type":"local_shell_call","id":"b"},{"type":"function_call_output","call_id":"a"},{"type":"local_shell_call_output","id":"b"}]}"#,
            r#"{"input":[{"type":"function_call","call_id":"a"},{"type":"local_shell_call","id":"b"},{"type":"function_call","call_id":"ours","name":"fanfold_recall","arguments":"{\"handle\":\"123456\"}"},{"type":"function_call_output","call_id":"a"},{"type":"local_shell_call_output","id":"b"},{"type":"function_call_output","call_id":"ours","output":"said"}]}"#,
        );
    }

    #[test]
    fn a_provider_that_holds_the_calls_gets_the_result_alone() {
        check(
            Format::Responses,
            r#"{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a"}]}"#,
            r#"{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a"},{"type":"function_call_output","call_id":"ours","output":"said"}]}"#,
        );
    }

    #[test]
    fn without_the_clients_calls_and_results_ours_stay_out() {
        let none = [
            (Format::Chat, r#"{"messages":[{"role":"user","content":"b"}]}"#),
            (
                Format::Chat,
                r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user"}]}"#,
            ),
            (
                Format::Chat,
                r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"x"}]},{"role":"tool","tool_call_id":"a"}]}"#,
            ),
            (
                Format::Anthropic,
                r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":"a"}]}"#,
            ),
            (Format::Responses, r#"{"input":[{"type":"function_call","call_id":"a"}]}"#),
            (Format::Responses, r#"{"input":"a"}"#),
            (Format::Hermes, r#"{"messages":[{"id":"a"}]}"#),
        ];
        for (format, body) in none {
            assert_eq!(with_recalls(body, format, &[beside(&["a"])]), None, "{body}");
        }
    }

    #[test]
    fn arguments_that_are_none_become_empty_ones() {
        let mut odd = beside(&["a"]);
        odd.ours[0].0.arguments = "nonsense".into();
        let body = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}"#;
        let body = with_recalls(body, Format::Chat, &[odd]).unwrap();
        assert!(body.contains(r#""arguments":"{}""#), "{body}");
    }
}
