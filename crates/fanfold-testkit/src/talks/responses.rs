//! Items of Responses.

use serde_json::{Value, json};

use super::{Made, PICTURE, Talk};

pub(super) fn begin(talk: &mut Talk, system: &str) {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut tools: Vec<Value> = ["read", "run"]
        .iter()
        .map(|name| json!({ "type": "function", "name": name, "parameters": schema, "strict": false }))
        .collect();
    tools.push(json!({ "type": "custom", "name": "patch" }));
    tools.push(json!({ "type": "web_search" }));
    talk.frame["instructions"] = system.into();
    talk.frame["tools"] = tools.into();
    talk.frame["store"] = false.into();
    talk.frame["stream"] = true.into();
    talk.frame["include"] = json!(["reasoning.encrypted_content"]);
    if talk.rng.percent(40) {
        let text = talk.words(5, 20);
        talk.messages.push(json!({ "type": "message", "role": "developer", "content": [
            { "type": "input_text", "text": text }] }));
    }
}

pub(super) fn user(talk: &mut Talk, said: &str, has_picture: bool) {
    let mut content = Value::from(said);
    if has_picture || talk.rng.percent(60) {
        content = json!([{ "type": "input_text", "text": said }]);
    }
    if has_picture {
        let url = format!("data:image/png;base64,{PICTURE}");
        content
            .as_array_mut()
            .expect("it is a list")
            .push(json!({ "type": "input_image", "image_url": url }));
    }
    let mut item = json!({ "type": "message", "role": "user", "content": content });
    if talk.rng.percent(30) {
        item.as_object_mut().expect("it is an object").remove("type");
    }
    talk.messages.push(item);
}

pub(super) fn step(talk: &mut Talk, made: &[Made]) {
    if talk.is_thinking && talk.rng.percent(70) {
        think(talk);
    }
    if talk.rng.percent(8) {
        let id = talk.id("ws");
        talk.messages.push(json!({ "type": "web_search_call", "id": id, "status": "completed",
            "action": { "type": "search", "query": "fold a letter" } }));
    }
    if talk.rng.percent(30) {
        let text = talk.words(1, 20);
        say(talk, &text);
    }
    for call in made {
        let number = talk.id("");
        let arguments = call.arguments.to_string();
        talk.messages.push(match call.tool {
            "patch" => json!({ "type": "custom_tool_call", "id": format!("ctc{number}"), "call_id": call.id,
                "name": "patch", "input": arguments }),
            "run" if call.has_picture => json!({ "type": "local_shell_call", "id": format!("lsh{number}"),
                "call_id": call.id, "status": "completed",
                "action": { "type": "exec", "command": ["cargo", "test"] } }),
            name => json!({ "type": "function_call", "id": format!("fc{number}"), "call_id": call.id,
                "name": name, "arguments": arguments, "status": "completed" }),
        });
    }
    for i in talk.shuffled(made.len()) {
        let call = &made[i];
        let kind = match call.tool {
            "patch" => "custom_tool_call_output",
            "run" if call.has_picture => "local_shell_call_output",
            _ => "function_call_output",
        };
        let mut output = Value::from(call.result.as_str());
        if call.has_picture && kind == "function_call_output" {
            let url = format!("data:image/png;base64,{PICTURE}");
            output = json!([{ "type": "input_text", "text": call.result }, { "type": "input_image", "image_url": url }]);
        }
        talk.messages.push(json!({ "type": kind, "call_id": call.id, "output": output }));
    }
}

pub(super) fn answer(talk: &mut Talk, answer: &str) {
    if talk.is_thinking && talk.rng.percent(50) {
        think(talk);
    }
    say(talk, answer);
}

fn think(talk: &mut Talk) {
    let (id, text) = (talk.id("rs"), talk.words(3, 40));
    talk.messages.push(json!({ "type": "reasoning", "id": id, "summary": [
        { "type": "summary_text", "text": text }], "encrypted_content": "gAAAAABsealed".repeat(9) }));
}

fn say(talk: &mut Talk, text: &str) {
    let id = talk.id("msg");
    talk.messages.push(json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] }));
}
