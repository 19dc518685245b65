//! Messages of Chat Completions.

use serde_json::{Value, json};

use super::{Made, PICTURE, Talk};

pub(super) fn begin(talk: &mut Talk, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    talk.frame["tools"] = ["read", "run"]
        .iter()
        .map(|name| json!({ "type": "function", "function": { "name": name, "parameters": schema } }))
        .chain([json!({ "type": "custom", "custom": { "name": "patch" } })])
        .collect();
    talk.frame["stream"] = true.into();
    if talk.rng.percent(80) {
        let role = talk.rng.pick(&["system", "developer"]);
        talk.messages.push(json!({ "role": role, "content": system }));
    }
}

pub(super) fn user(talk: &mut Talk, said: &str, has_picture: bool) {
    let mut content = Value::from(said);
    if has_picture || talk.rng.percent(20) {
        content = json!([{ "type": "text", "text": said }]);
    }
    if has_picture {
        let url = format!("data:image/png;base64,{PICTURE}");
        content
            .as_array_mut()
            .expect("it is a list")
            .push(json!({ "type": "image_url", "image_url": { "url": url } }));
    }
    let mut message = json!({ "role": "user", "content": content });
    if talk.rng.percent(8) {
        message["name"] = "harness".into();
    }
    talk.messages.push(message);
    if talk.rng.percent(5) {
        talk.messages.push(json!({ "role": "developer", "content": "Answer in one sentence." }));
    }
}

pub(super) fn step(talk: &mut Talk, made: &[Made]) {
    let calls: Vec<Value> = made
        .iter()
        .map(|call| match call.tool {
            "patch" => json!({ "id": call.id, "type": "custom",
                "custom": { "name": "patch", "input": call.arguments.to_string() } }),
            name => json!({ "id": call.id, "type": "function",
                "function": { "name": name, "arguments": call.arguments.to_string() } }),
        })
        .collect();
    let mut reply = json!({ "role": "assistant", "content": null });
    if talk.rng.percent(50) {
        reply["content"] = talk.words(1, 20).into();
    }
    if talk.is_thinking && talk.rng.percent(60) {
        reply["reasoning_content"] = talk.words(3, 60).into();
    }
    reply["tool_calls"] = calls.into();
    talk.messages.push(reply);
    for i in talk.shuffled(made.len()) {
        let is_list = talk.rng.percent(15);
        let result = &made[i].result;
        let content =
            if is_list { json!([{ "type": "text", "text": result }]) } else { result.as_str().into() };
        talk.messages.push(json!({ "role": "tool", "tool_call_id": made[i].id, "content": content }));
    }
}

pub(super) fn answer(talk: &mut Talk, answer: &str) {
    talk.messages.push(json!({ "role": "assistant", "content": answer }));
}
