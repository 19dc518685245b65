//! Inserts recalls that the client was not shown into its next request.
//!
//! A model may call the recall tool and tools of the client in one reply. The client sees only its own calls, so
//! its next request has a reply without the recalls. They are inserted after the client's calls, and their results
//! after the client's results: the model sees every call that it made, with its result.
//!
//! ```text
//! call    read notes.md              call    read notes.md
//! result  buy milk               ->  call    fanfold_recall 2243bf
//!                                    result  buy milk
//!                                    result  the original
//! ```
//!
//! The reply is found by the ids of the client's calls, which no other reply has.

use crate::dialects::Format;
use crate::json::{self, Object, Splices};
use crate::reply::reader::ToolCall;
use crate::request::RECALL_TOOL;

/// The recalls of one reply that also called tools of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenRecalls {
    /// The ids of the client's calls.
    pub client_calls: Vec<String>,
    /// The recalls, each with its result.
    pub recalls: Vec<(ToolCall, String)>,
}

impl HiddenRecalls {
    pub(crate) fn is_client_call(&self, id: Option<impl AsRef<str>>) -> bool {
        id.is_some_and(|id| self.client_calls.iter().any(|call| call == id.as_ref()))
    }
}

/// A body with hidden recalls, each after the calls of its reply; `None` if there is no place for any of them. Every
/// other byte is unchanged.
///
/// Recalls stay out if the client has not answered its own calls, or has changed the reply.
pub fn insert_hidden_recalls(body: &str, format: Format, hidden: &[HiddenRecalls]) -> Option<String> {
    let is_mentioned =
        |hidden: &&HiddenRecalls| hidden.client_calls.iter().any(|id| body.contains(id.as_str()));
    let hidden: Vec<&HiddenRecalls> = hidden.iter().filter(is_mentioned).collect();
    if hidden.is_empty() {
        return None;
    }
    let api = format.api()?;
    let object = Object::parse(body)?;
    let messages = json::array(object.some(format.facts().list_key)?)?;
    let mut splices = Splices::default();
    for hidden in hidden {
        let is_inserted = hidden.recalls.iter().any(|(call, _)| body.contains(&json::quote(&call.id)));
        let positions = if is_inserted { None } else { api.recall_positions(body, &messages, hidden) };
        let Some(positions) = positions else { continue };
        let (mut calls, mut results) = (String::new(), String::new());
        for (call, result) in &hidden.recalls {
            let id = json::quote(&call.id);
            let arguments = if json::is_object(&call.arguments) { &*call.arguments } else { "{}" };
            calls = calls + "," + &api.print_call(&id, RECALL_TOOL, arguments);
            results = results + "," + &api.print_result(&id, &json::quote(result));
        }
        if let Some(call) = positions.call {
            splices.replace(call..call, calls);
        }
        splices.replace(positions.result..positions.result, results);
    }
    (!splices.is_empty()).then(|| splices.apply(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(client_calls: &[&str]) -> HiddenRecalls {
        let call = ToolCall {
            id: "ours".into(),
            name: RECALL_TOOL.into(),
            arguments: r#"{"handle":"123456"}"#.into(),
        };
        HiddenRecalls {
            client_calls: client_calls.iter().map(|id| (*id).to_owned()).collect(),
            recalls: vec![(call, "said".into())],
        }
    }

    fn check(format: Format, body: &str, expected: &str) {
        let found = insert_hidden_recalls(body, format, &[hidden(&["a", "b"])]);
        assert_eq!(found.as_deref(), Some(expected), "{format}");
        assert_eq!(
            insert_hidden_recalls(expected, format, &[hidden(&["a", "b"])]),
            None,
            "it is not inserted twice"
        );
    }

    #[test]
    fn recalls_follow_the_clients_calls_and_results() {
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
    fn stored_calls_get_only_the_result() {
        check(
            Format::Responses,
            r#"{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a"}]}"#,
            r#"{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a"},{"type":"function_call_output","call_id":"ours","output":"said"}]}"#,
        );
    }

    #[test]
    fn recalls_stay_out_without_the_clients_results() {
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
            assert_eq!(insert_hidden_recalls(body, format, &[hidden(&["a"])]), None, "{body}");
        }
    }

    #[test]
    fn invalid_arguments_become_an_empty_object() {
        let mut invalid = hidden(&["a"]);
        invalid.recalls[0].0.arguments = "nonsense".into();
        let body = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}"#;
        let body = insert_hidden_recalls(body, Format::Chat, &[invalid]).unwrap();
        assert!(body.contains(r#""arguments":"{}""#), "{body}");
    }
}
