//! The rules of Responses.

use fanfold_testkit::bodies::Kind;
use serde_json::{Value, json};

use super::{Example, check, push, repeat};

#[test]
fn every_rule_of_responses_is_tried() {
    let base = json!({ "model": "m", "store": false, "tools": [
            { "type": "function", "name": "read", "parameters": { "type": "object" } }],
        "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "Read." }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed" },
            { "type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}" },
            { "type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "x" },
            { "type": "function_call_output", "call_id": "a", "output": "one" },
            { "type": "custom_tool_call_output", "call_id": "b", "output": [
                { "type": "input_text", "text": "two" }] },
            { "type": "message", "id": "msg_1", "role": "assistant", "content": [
                { "type": "output_text", "text": "Done.", "annotations": [] }] },
            { "type": "message", "role": "user", "content": "Thanks." }] });
    let examples = [
        Example("`model` is a text", |b| b["model"] = Value::Null, |b| b["model"] = "x".into()),
        Example(
            "`input` is a text or a list, and not empty",
            |b| b["input"] = "".into(),
            |b| b["input"] = "Read.".into(),
        ),
        Example(
            "an item is of a type that the API knows",
            |b| push(b, "input", json!({ "type": "hologram" })),
            |b| push(b, "input", json!({ "type": "compaction", "encrypted_content": "sealed" })),
        ),
        Example(
            "a role is user, assistant, system or developer",
            |b| b["input"][7]["role"] = "tool".into(),
            |b| b["input"][7]["role"] = "developer".into(),
        ),
        Example(
            "a message has a content",
            |b| b["input"][7]["content"] = Value::Null,
            |b| b["input"][7]["content"] = "".into(),
        ),
        Example(
            "a part is of a type that its role may have",
            |b| b["input"][6]["content"][0]["type"] = "input_text".into(),
            |b| b["input"][6]["content"][0] = json!({ "type": "refusal", "refusal": "No." }),
        ),
        Example(
            "a part of text has a text",
            |b| b["input"][0]["content"][0]["text"] = Value::Null,
            |b| b["input"][0]["content"][0]["text"] = "".into(),
        ),
        Example(
            "an id is of letters, digits, `_` and `-`, begins as its type wants it, and has at most 64 of them",
            |b| b["input"][2]["id"] = "call_1".into(),
            |b| b["input"][2]["id"] = format!("fc_{}", repeat("x", 61)).into(),
        ),
        Example(
            "an id is of letters, digits, `_` and `-`, begins as its type wants it, and has at most 64 of them",
            |b| b["input"][2]["id"] = "fc_1.2".into(),
            |b| b["input"][2]["id"] = "fc_1-2".into(),
        ),
        Example(
            "a text has at most 10,485,760 letters",
            |b| b["input"][4]["output"] = repeat("ä", 10_485_761).into(),
            |b| b["input"][4]["output"] = repeat("ä", 10_485_760).into(),
        ),
        Example(
            "an output has its call before it, of its own kind",
            |b| {
                let other = json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "" });
                push(b, "input", other);
            },
            |b| b["input"].as_array_mut().unwrap().swap(4, 5),
        ),
        Example(
            "no two items have one id",
            |b| {
                let again = b["input"][6].clone();
                push(b, "input", again);
            },
            |b| {
                let mut again = b["input"][6].clone();
                again["id"] = "msg_2".into();
                push(b, "input", again);
            },
        ),
        Example(
            "a call has a `call_id` of at most 64 letters",
            |b| {
                b["input"][2]["call_id"] = repeat("x", 65).into();
                b["input"][4]["call_id"] = repeat("x", 65).into();
            },
            |b| {
                b["input"][2]["call_id"] = repeat("x", 64).into();
                b["input"][4]["call_id"] = repeat("x", 64).into();
            },
        ),
        Example(
            "a called tool has a name of at most 128 letters, digits, `_` and `-`",
            |b| b["input"][2]["name"] = "".into(),
            |b| b["input"][2]["name"] = repeat("n", 128).into(),
        ),
        Example(
            "arguments and inputs are texts",
            |b| b["input"][3]["input"] = json!({}),
            |b| b["input"][3]["input"] = "".into(),
        ),
        Example(
            "an output is a text or a list of parts",
            |b| b["input"][4]["output"] = Value::Null,
            |b| b["input"][4]["output"] = "".into(),
        ),
        Example(
            "every call has its output",
            |b| drop(b["input"].as_array_mut().unwrap().remove(4)),
            |b| b["input"].as_array_mut().unwrap().swap(4, 5),
        ),
        Example(
            "an output has its call before it, of its own kind",
            |b| push(b, "input", json!({ "type": "function_call_output", "call_id": "c", "output": "" })),
            |b| {
                let call = json!({ "type": "local_shell_call", "call_id": "c", "action": {} });
                push(b, "input", call);
                push(b, "input", json!({ "type": "local_shell_call_output", "call_id": "c", "output": "" }));
            },
        ),
        Example(
            "a call is answered once",
            |b| {
                let again = b["input"][4].clone();
                push(b, "input", again);
            },
            |b| {
                let late = b["input"].as_array_mut().unwrap().remove(4);
                push(b, "input", late);
            },
        ),
        Example(
            "calls have different `call_id`s",
            |b| {
                let again =
                    json!({ "type": "function_call", "call_id": "a", "name": "read", "arguments": "" });
                b["input"].as_array_mut().unwrap().insert(3, again);
            },
            |b| {
                let call =
                    json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "" });
                push(b, "input", call);
                push(b, "input", json!({ "type": "function_call_output", "call_id": "c", "output": "" }));
            },
        ),
        Example(
            "a thought has its summary",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("summary")),
            |b| b["input"][1]["summary"] = json!([{ "type": "summary_text", "text": "hm" }]),
        ),
        Example(
            "a thought is followed by its item",
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(7, thought);
            },
            |b| {
                let thought = json!({ "type": "reasoning", "summary": [] });
                b["input"].as_array_mut().unwrap().insert(2, thought);
            },
        ),
        Example(
            "with `store: false` a thought comes with its sealed content",
            |b| drop(b["input"][1].as_object_mut().unwrap().remove("encrypted_content")),
            |b| {
                b["store"] = true.into();
                b["input"][1].as_object_mut().unwrap().remove("encrypted_content");
            },
        ),
        Example(
            "with `store: false` nothing is named that the provider would have to keep",
            |b| push(b, "input", json!({ "type": "item_reference", "id": "msg_9" })),
            |b| {
                b["store"] = true.into();
                b["previous_response_id"] = "resp_1".into();
                push(b, "input", json!({ "type": "item_reference", "id": "msg_9" }));
                push(b, "input", json!({ "type": "function_call_output", "call_id": "z", "output": "" }));
            },
        ),
        Example(
            "an item has no fields that the API does not know",
            |b| b["input"][4]["mood"] = "good".into(),
            |b| b["input"][4]["status"] = "completed".into(),
        ),
        Example(
            "functions have different names of at most 128 letters, digits, `_` and `-`",
            |b| push(b, "tools", json!({ "type": "function", "name": "read" })),
            |b| push(b, "tools", json!({ "type": "function", "name": "write" })),
        ),
        Example(
            "the parameters of a function are a schema of an object",
            |b| b["tools"][0]["parameters"] = json!({ "type": "string" }),
            |b| b["tools"][0]["parameters"] = Value::Null,
        ),
    ];
    check(Kind::Responses, &base, &examples);
}
