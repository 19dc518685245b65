//! Recalls in the same answer as calls of the client. The client sees only its own calls; the model gets the
//! originals with their results in all later requests.

use fanfold_proxy::{Host as _, Recall};
use fanfold_store::SessionId;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_testkit::handles_in;
use fanfold_wire::Format;
use fanfold_wire::reply::{ReplyReader, ToolCall, Transport};
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, outcome, session};

/// One of the three APIs.
#[derive(Clone, Copy)]
struct Api {
    format: Format,
    path: &'static str,
    list: &'static str,
}

const APIS: [Api; 3] = [
    Api { format: Format::Chat, path: "/v1/chat/completions", list: "messages" },
    Api { format: Format::Responses, path: "/v1/responses", list: "input" },
    Api { format: Format::Anthropic, path: "/v1/messages", list: "messages" },
];

const OUR_CALL: &str = r#""name":"fanfold_recall""#;

/// A model that recalls the first handle it sees and calls a tool in the same answer, and then ends its turn.
fn mixed_calls_model() -> Script {
    Script::new(|asked| {
        let list = if asked.kind == BodyFormat::Responses { "input" } else { "messages" };
        let messages_text = asked.body[list].to_string();
        let text = |text: &str| ScriptedReply { text: text.to_owned(), ..ScriptedReply::default() };
        if messages_text.contains(OUR_CALL) {
            return text("I have both.");
        }
        let Some(handle) = handles_in(&messages_text).into_iter().next() else {
            return text("Nothing is folded.");
        };
        let ours = ("fanfold_recall".to_owned(), json!({ "handle": handle }));
        let theirs = ("read".to_owned(), json!({ "path": "src/more.py" }));
        ScriptedReply {
            text: "Let me look.".to_owned(),
            calls: vec![ours, theirs],
            ..ScriptedReply::default()
        }
    })
}

impl Api {
    fn prompt(self, text: &str) -> Value {
        match self.format {
            Format::Responses => json!({ "type": "message", "role": "user", "content": text }),
            _ => json!({ "role": "user", "content": text }),
        }
    }

    /// A call with its result, in the form that a client sends.
    fn step(self, call: &ToolCall, result: &str) -> Vec<Value> {
        let (id, arguments) = (&call.id, &call.arguments);
        let input: Value = serde_json::from_str(arguments).unwrap();
        match self.format {
            Format::Responses => vec![
                json!({ "type": "function_call", "call_id": id, "name": call.name, "arguments": arguments }),
                json!({ "type": "function_call_output", "call_id": id, "output": result }),
            ],
            Format::Anthropic => vec![
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": id, "name": call.name, "input": input }] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": result }] }),
            ],
            _ => vec![
                json!({ "role": "assistant", "content": null, "tool_calls": [
                    { "id": id, "type": "function", "function": { "name": call.name, "arguments": arguments } }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": result }),
            ],
        }
    }

    fn long_conversation(self, n_steps: usize) -> Vec<Value> {
        let mut messages = vec![self.prompt("Find out why the night run loses every hundredth record.")];
        for i in 0..n_steps {
            let arguments = json!({ "path": format!("src/stage_{i}.py") }).to_string();
            let call = ToolCall { id: format!("call_{i}"), name: "read".to_owned(), arguments };
            let lines: String =
                (0..12).map(|n| format!("stage {i} line {n} takes batch_{i}_{n} of it\n")).collect();
            messages.extend(self.step(&call, &lines));
        }
        messages
    }

    fn body(self, messages: &[Value], is_stream: bool) -> String {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = match self.format {
            Format::Responses => {
                json!({ "type": "function", "name": "read", "parameters": schema, "strict": false })
            }
            Format::Anthropic => json!({ "name": "read", "input_schema": schema }),
            _ => json!({ "type": "function", "function": { "name": "read", "parameters": schema } }),
        };
        let mut body = json!({ "model": "m", "tools": [tool], "stream": is_stream });
        body[self.list] = messages.into();
        match self.format {
            Format::Anthropic => body["max_tokens"] = 1000.into(),
            Format::Responses => body["store"] = false.into(),
            _ => {}
        }
        body.to_string()
    }

    /// The calls for the client, and the whole answer.
    async fn ask(
        self,
        stage: &Stage,
        messages: &[Value],
        options: RequestOptions,
    ) -> (Vec<ToolCall>, String, String) {
        let mut request = stage.post(self.path, self.body(messages, options.is_stream));
        if let Some(name) = options.named {
            request = request.header("x-fanfold-session", name);
        }
        let response = request.send().await.unwrap();
        let (status, outcome, session) = (response.status(), outcome(&response), session(&response));
        let transport = Transport::from_content_type(
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()),
        );
        let answer = response.text().await.unwrap();
        assert_eq!(status, 200, "{}: {outcome}: {answer}", self.format);
        assert!(!answer.contains("fanfold_recall"), "{}: {answer}", self.format);
        let mut reply = ReplyReader::new(self.format, transport);
        reply.feed(answer.as_bytes());
        let reply = reply.end();
        assert!(reply.is_ended && reply.failure.is_none(), "{}: {answer}", self.format);
        (reply.calls, answer, session)
    }

    /// The messages of the newest request, verbatim.
    fn received(self, stage: &Stage) -> Vec<String> {
        let seen = stage.upstream.seen();
        let last = seen.last().unwrap();
        assert!(last.violations.is_empty(), "{}: {:?}\n{}", self.format, last.violations, last.text());
        let body: Value = serde_json::from_slice(&last.body).unwrap();
        body[self.list].as_array().unwrap().iter().map(ToString::to_string).collect()
    }
}

#[derive(Clone, Copy)]
struct RequestOptions {
    is_stream: bool,
    named: Option<&'static str>,
}

async fn check(api: Api, options: RequestOptions) {
    let label = format!("{}, {}", api.format, if options.is_stream { "streamed" } else { "whole" });
    let script = mixed_calls_model();
    let mut stage =
        Stage::new(StageOptions { window: 1500, script, recall: Recall::Tool, ..StageOptions::default() })
            .await;
    let mut messages = api.long_conversation(36);
    let (none, _, first) = api.ask(&stage, &messages[..1], options).await;
    assert!(none.is_empty());
    let (calls, _, named) = api.ask(&stage, &messages, options).await;
    assert_eq!((calls.len(), calls[0].name.as_str(), &named), (1, "read", &first), "{label}");
    // The client sends the result of its own call, and the proxy adds the recall.
    messages.extend(api.step(&calls[0], "more of it"));
    let (_, answer, named) = api.ask(&stage, &messages, options).await;
    assert!(answer.contains("I have both."), "{label}: {answer}");
    assert_eq!(named, first, "{label}: the session is the same");
    let before = api.received(&stage);
    let messages_text = before.join("\n");
    assert_eq!(messages_text.matches(OUR_CALL).count(), 1, "{label}: {messages_text}");
    let last = &before[before.len() - if api.format == Format::Anthropic { 1 } else { 2 }..].join("\n");
    assert!(last.contains("more of it") && last.contains("takes batch_"), "{label}: the original: {last}");
    // Its position and its bytes stay the same, also after a restart.
    api.ask(&stage, &messages, options).await;
    assert_eq!(api.received(&stage), before, "{label}: sent again");
    stage.restart().await;
    let (_, _, named) = api.ask(&stage, &messages, options).await;
    assert_eq!((&named, api.received(&stage)), (&first, before), "{label}: after a restart");
    let answered = match api.format {
        Format::Responses => json!({ "type": "message", "role": "assistant", "content": "I have both." }),
        _ => json!({ "role": "assistant", "content": "I have both." }),
    };
    messages.extend([answered, api.prompt("And then?")]);
    api.ask(&stage, &messages, options).await;
    let after = api.received(&stage);
    stage.restart().await;
    let (_, _, named) = api.ask(&stage, &messages, options).await;
    assert_eq!((&named, api.received(&stage)), (&first, after), "{label}: after another restart");
    // Later requests fold the recall like any other call.
    for i in 40..60 {
        let arguments = json!({ "path": format!("src/late_{i}.py") }).to_string();
        let call = ToolCall { id: format!("call_{i}"), name: "read".to_owned(), arguments };
        messages.extend(api.step(&call, &format!("late {i} takes it all the same\n").repeat(12)));
        let (_, _, named) = api.ask(&stage, &messages, options).await;
        assert_eq!(named, first, "{label}: step {i}");
    }
    assert!(stage.upstream.seen().iter().all(|seen| seen.violations.is_empty()), "{label}");
    stage.assert_rebuilds(&first, api.format, &stage.received());
    let engine = stage.host.open().unwrap();
    let (n_handles, broken) = engine.check_handles(&SessionId(first)).unwrap();
    assert!(n_handles > 0 && broken.is_empty(), "{label}: {n_handles} {broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recalls_beside_client_calls_reach_the_model() {
    for api in APIS {
        for is_stream in [false, true] {
            check(api, RequestOptions { is_stream, named: None }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recalls_beside_client_calls_work_in_named_sessions() {
    check(APIS[2], RequestOptions { is_stream: true, named: Some("mine") }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rewinding_before_a_hidden_recall_removes_it() {
    let api = APIS[0];
    let options = RequestOptions { is_stream: false, named: None };
    let stage = Stage::new(StageOptions {
        window: 1500,
        script: mixed_calls_model(),
        recall: Recall::Tool,
        ..StageOptions::default()
    })
    .await;
    let mut messages = api.long_conversation(36);
    api.ask(&stage, &messages[..1], options).await;
    let (calls, _, _) = api.ask(&stage, &messages, options).await;
    let mut other = messages.clone();
    messages.extend(api.step(&calls[0], "more of it"));
    api.ask(&stage, &messages, options).await;
    // The last answer is regenerated with other calls, so no recall belongs to it.
    let theirs = ToolCall { id: "call_other".to_owned(), ..calls[0].clone() };
    other.extend(api.step(&theirs, "something else"));
    api.ask(&stage, &other, options).await;
    assert!(!api.received(&stage).join("").contains(OUR_CALL));
}

/// The rule of a provider that holds a conversation: each call needs its result.
fn requires_all_results(body: &Value) -> Option<(u16, String)> {
    let is_continued = !body["previous_response_id"].is_null();
    let outputs = body["input"].as_array()?.iter().filter(|item| item["type"] == "function_call_output");
    let is_short = is_continued && outputs.count() < 2;
    is_short.then(|| (400, "No tool output found for function call.".to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_recalls_are_added_to_continued_conversations() {
    let api = APIS[1];
    for is_stream in [false, true] {
        let options = RequestOptions { is_stream, named: None };
        let stage = Stage::new(StageOptions {
            window: 1500,
            script: mixed_calls_model(),
            recall: Recall::Tool,
            ..StageOptions::default()
        })
        .await;
        stage.upstream.set_rule(requires_all_results);
        let messages = api.long_conversation(36);
        api.ask(&stage, &messages[..1], options).await;
        let (calls, _, _) = api.ask(&stage, &messages, options).await;
        assert_eq!(calls.len(), 1);
        // The client continues by the id of the answer, with the result of the only call that it knows.
        let mut body: Value =
            serde_json::from_str(&api.body(&api.step(&calls[0], "more of it")[1..], is_stream)).unwrap();
        (body["store"], body["previous_response_id"]) = (true.into(), "resp_1".into());
        let body = body.to_string();
        let mut received = Vec::new();
        for _ in 0..2 {
            let response = stage.post(api.path, body.clone()).send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), outcome(&response).as_str()),
                (200, "as it came: continued")
            );
            let session = session(&response);
            assert!(!response.text().await.unwrap().contains("fanfold_recall"));
            received.push(api.received(&stage));
            stage.assert_rebuilds(&session, api.format, &stage.received()[stage.upstream.n_seen() - 1..]);
        }
        assert_eq!(received[0], received[1], "a repeated request gets the same body");
        let [theirs, ours] = received[0].as_slice() else { panic!("{:?}", received[0]) };
        assert!(theirs.contains("more of it") && theirs.contains(&calls[0].id), "{theirs}");
        assert!(ours.contains("takes batch_") && !ours.contains(&calls[0].id), "the original: {ours}");
        // A body with other results is sent unchanged.
        let other = body.replace(&calls[0].id, "call_other");
        let response = stage.post(api.path, other.clone()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{other}");
        assert_eq!(stage.upstream.seen().last().unwrap().text(), other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn continued_conversations_get_no_recall_tool() {
    let stage = Stage::new(StageOptions { recall: Recall::Tool, ..StageOptions::default() }).await;
    for key in ["previous_response_id", "conversation"] {
        let mut body: Value =
            serde_json::from_str(&APIS[1].body(&APIS[1].long_conversation(1)[..1], false)).unwrap();
        (body["store"], body[key]) = (true.into(), "held_1".into());
        let body = body.to_string();
        let response = stage.post(APIS[1].path, body.clone()).send().await.unwrap();
        assert_eq!(outcome(&response), "as it came: continued", "{key}");
        assert_eq!(stage.upstream.seen().last().unwrap().text(), body, "{key}");
    }
}
