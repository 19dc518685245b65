//! Bodies of Chat Completions and of Responses.

use super::json_writer::JsonWriter;

/// A chat body, a bare list of chat messages, or one message per line.
pub fn chat(seed: u64) -> String {
    let mut json = JsonWriter::new(seed);
    let messages = chat_messages(&mut json);
    let style = json.rng.below(10);
    if style < 2 {
        return json.list(&messages);
    }
    if style == 2 && messages.len() > 1 && !messages.iter().any(|message| message.contains('\n')) {
        return messages.join("\n") + "\n";
    }
    let tool = tool_schema(&mut json);
    let tools = json.list(&[tool]);
    json.body(
        "messages",
        &messages,
        &[("model", "\"gpt-5\"".into()), ("tools", tools), ("max_tokens", "900".into())],
    )
}

fn tool_schema(json: &mut JsonWriter) -> String {
    let function =
        json.object(&[("name", "\"read\"".into()), ("parameters", "{\"type\": \"object\"}".into())]);
    json.object(&[("type", "\"function\"".into()), ("function", function)])
}

/// The messages of a chat.
pub(super) fn chat_messages(json: &mut JsonWriter) -> Vec<String> {
    let mut messages = Vec::new();
    if json.rng.percent(60) {
        let text = json.text();
        let role = json.rng.pick(&["\"system\"", "\"developer\""]).to_owned();
        messages.push(json.object(&[("role", role), ("content", text)]));
    }
    let n_turns = 1 + json.rng.below(3);
    for turn in 0..n_turns {
        user(json, &mut messages);
        let n_steps = json.rng.below(4);
        for _ in 0..n_steps {
            let style = json.rng.below(10);
            match style {
                0 | 1 => text_reply(json, &mut messages),
                2 | 3 => calls_in_text(json, &mut messages),
                4 if json.is_odd => function_call(json, &mut messages),
                _ => calls(json, &mut messages),
            }
        }
        if json.odd(15) {
            let text = json.text();
            messages.push(json.object(&[
                ("role", "\"tool\"".into()),
                ("tool_call_id", "\"nobody\"".into()),
                ("content", text),
            ]));
        }
        if turn + 1 == n_turns && json.rng.percent(50) {
            text_reply(json, &mut messages);
        }
    }
    messages
}

fn user(json: &mut JsonWriter, messages: &mut Vec<String>) {
    let content = if json.rng.percent(25) { parts(json) } else { json.text() };
    let name = if json.rng.percent(10) { "\"harness\"".to_owned() } else { String::new() };
    messages.push(json.object(&[("role", "\"user\"".into()), ("name", name), ("content", content)]));
}

fn parts(json: &mut JsonWriter) -> String {
    let text = json.text();
    let mut parts = vec![json.object(&[("type", "\"text\"".into()), ("text", text)])];
    if json.rng.percent(60) {
        let url = json.object(&[("url", "\"data:image/png;base64,iVBORw0KGgo=\"".into())]);
        parts.push(json.object(&[("type", "\"image_url\"".into()), ("image_url", url)]));
    }
    if json.rng.percent(20) {
        parts.push("{\"type\": \"hologram\", \"z\": 1.0}".to_owned());
    }
    if json.rng.percent(30) {
        let text = json.text();
        parts.push(json.object(&[("text", text), ("type", "\"text\"".into())]));
    }
    json.list(&parts)
}

fn text_reply(json: &mut JsonWriter, messages: &mut Vec<String>) {
    let thought = if json.rng.percent(20) { "<think>" } else { "" };
    let words = json.words();
    let text = if thought.is_empty() { words } else { format!("<think>{}</think>\n{words}", json.words()) };
    let content = if json.odd(10) { "null".to_owned() } else { json.quote(&text) };
    messages.push(json.object(&[("role", "\"assistant\"".into()), ("content", content)]));
}

fn calls(json: &mut JsonWriter, messages: &mut Vec<String>) {
    let content = match json.rng.below(3) {
        0 => "null".to_owned(),
        1 => json.text(),
        _ => String::new(),
    };
    let reasoning = if json.rng.percent(40) { json.text() } else { String::new() };
    let details =
        if json.rng.percent(15) { "[{\"type\":\"reasoning.text\", \"text\":\"deep\"}]" } else { "" };
    let n_calls = 1 + json.rng.below(3);
    let mut ids: Vec<String> = Vec::new();
    let mut listed = Vec::new();
    for i in 0..n_calls {
        let id = if i > 0 && json.odd(10) { ids[0].clone() } else { json.id() };
        let id_text = if json.odd(8) { String::new() } else { format!("\"{id}\"") };
        ids.push(id);
        listed.push(call(json, id_text));
    }
    let listed = json.list(&listed);
    let key = json.rng.pick(&["reasoning_content", "reasoning"]).to_owned();
    messages.push(json.object(&[
        ("role", "\"assistant\"".into()),
        (&key, reasoning),
        ("content", content),
        ("tool_calls", listed),
        ("reasoning_details", details.to_owned()),
    ]));
    for id in &ids {
        if json.odd(12) {
            continue;
        }
        result(json, messages, id);
        if json.odd(5) {
            result(json, messages, id);
        }
        if json.odd(5) {
            user(json, messages);
        }
    }
}

fn call(json: &mut JsonWriter, id: String) -> String {
    let arguments = json.arguments();
    let mut quoted = json.quote(&arguments);
    if json.odd(10) {
        quoted = json.rng.pick(&["null", "\"not json\"", "{\"a\": 1}", "\"\""]).to_owned();
    }
    let function = json.object(&[("name", "\"read\"".into()), ("arguments", quoted)]);
    json.object(&[("id", id), ("type", "\"function\"".into()), ("function", function)])
}

fn result(json: &mut JsonWriter, messages: &mut Vec<String>, id: &str) {
    let content = if json.rng.percent(15) { parts(json) } else { json.text() };
    let content = if json.odd(6) { json.rng.pick(&["null", "[]", "\"\""]).to_owned() } else { content };
    let id = if json.odd(5) { String::new() } else { format!("\"{id}\"") };
    messages.push(json.object(&[
        ("role", "\"tool\"".into()),
        ("tool_call_id", id),
        ("content", content),
        ("tool_name", "\"read\"".into()),
    ]));
}

fn function_call(json: &mut JsonWriter, messages: &mut Vec<String>) {
    let arguments = json.arguments();
    let arguments = json.quote(&arguments);
    let call = json.object(&[("name", "\"read\"".into()), ("arguments", arguments)]);
    messages.push(json.object(&[
        ("role", "\"assistant\"".into()),
        ("content", "null".into()),
        ("function_call", call),
    ]));
    let text = json.text();
    messages.push(json.object(&[
        ("role", "\"function\"".into()),
        ("name", "\"read\"".into()),
        ("content", text),
    ]));
}

/// The text of a reply with calls in it, and the number of calls.
pub(super) fn reply_text(json: &mut JsonWriter) -> (String, usize) {
    let mut text = String::new();
    if json.rng.percent(40) {
        text += &format!("<think>{}</think>", json.words());
    }
    if json.rng.percent(70) {
        text += &format!("{}\n", json.words().replace(['<', '`', '{'], ""));
    }
    let n_calls = 1 + json.rng.below(2);
    for _ in 0..n_calls {
        let arguments = json.arguments();
        text += &match json.rng.below(4) {
            0 => format!("<tool_call>\n{{\"name\": \"read\", \"arguments\": {arguments}}}\n</tool_call>\n"),
            1 => "<function=read>\n<parameter=path>\nsrc/main.rs\n</parameter>\n</function>\n".to_owned(),
            2 => "<invoke name=\"read\"><parameter name=\"path\">é.rs</parameter></invoke>".to_owned(),
            _ => format!("```json\n{{\"name\": \"read\", \"arguments\": {arguments}}}\n```\n"),
        };
    }
    (text, n_calls)
}

/// The text of a message with the results of calls in text.
pub(super) fn response_text(json: &mut JsonWriter, n_calls: usize) -> String {
    let responses: Vec<_> =
        (0..n_calls).map(|_| format!("<tool_response>\n{}\n</tool_response>", json.words())).collect();
    let mut text = responses.join("\n");
    if json.rng.percent(20) {
        text += "\nGo on.";
    }
    text
}

fn calls_in_text(json: &mut JsonWriter, messages: &mut Vec<String>) {
    let (text, n_calls) = reply_text(json);
    let content = json.quote(&text);
    messages.push(json.object(&[("role", "\"assistant\"".into()), ("content", content)]));
    if json.odd(20) {
        return;
    }
    let text = response_text(json, n_calls);
    let content = json.quote(&text);
    messages.push(json.object(&[("role", "\"user\"".into()), ("content", content)]));
}

/// A body of Responses.
pub fn responses(seed: u64) -> String {
    let mut json = JsonWriter::new(seed);
    let mut items = Vec::new();
    let n_turns = 1 + json.rng.below(3);
    for _ in 0..n_turns {
        let content = if json.rng.percent(50) { json.text() } else { input_parts(&mut json) };
        let kind = json.rng.pick(&["\"message\"", ""]).to_owned();
        items.push(json.object(&[("type", kind), ("role", "\"user\"".into()), ("content", content)]));
        let n_steps = json.rng.below(4);
        for _ in 0..n_steps {
            step(&mut json, &mut items);
        }
        if json.rng.percent(10) {
            items.push("{\"type\": \"compaction\", \"encrypted_content\": \"abc\"}".to_owned());
        }
        if json.rng.percent(10) {
            items.push("{\"type\": \"hologram\", \"z\": 1.10}".to_owned());
        }
        if json.odd(15) {
            let text = json.text();
            items.push(json.object(&[
                ("type", "\"function_call_output\"".into()),
                ("call_id", "\"nobody\"".into()),
                ("output", text),
            ]));
        }
    }
    if json.rng.percent(15) {
        return json.list(&items);
    }
    let instructions = if json.rng.percent(50) { json.text() } else { String::new() };
    let fields =
        [("model", "\"gpt-5\"".into()), ("instructions", instructions), ("max_output_tokens", "77".into())];
    if json.rng.percent(5) {
        let text = json.text();
        return json.object(&[("input", text), ("model", "\"m\"".into())]);
    }
    json.body("input", &items, &fields)
}

fn input_parts(json: &mut JsonWriter) -> String {
    let text = json.text();
    let mut parts = vec![json.object(&[("type", "\"input_text\"".into()), ("text", text)])];
    if json.rng.percent(50) {
        parts.push(json.object(&[
            ("type", "\"input_image\"".into()),
            ("image_url", "\"data:image/jpeg;base64,AAAA\"".into()),
        ]));
    }
    json.list(&parts)
}

fn step(json: &mut JsonWriter, items: &mut Vec<String>) {
    let n = json.id();
    if json.rng.percent(40) {
        let summary = "[{\"type\": \"summary_text\", \"text\": \"thinking hard\"}]".to_owned();
        items.push(json.object(&[
            ("type", "\"reasoning\"".into()),
            ("id", format!("\"rs_{n}\"")),
            ("summary", summary),
            ("encrypted_content", "\"gAAA=\"".into()),
        ]));
    } else if json.odd(20) {
        items.push("{\"type\":\"reasoning\",\"summary\":[]}".to_owned());
        let text = json.text();
        items.push(json.object(&[("role", "\"user\"".into()), ("content", text)]));
    }
    let n_calls = json.rng.below(3);
    if n_calls == 0 || json.rng.percent(50) {
        let text = json.text();
        let part =
            json.object(&[("type", "\"output_text\"".into()), ("text", text), ("annotations", "[]".into())]);
        let content = json.list(&[part]);
        let content = if json.odd(10) { json.rng.pick(&["null", "[]"]).to_owned() } else { content };
        items.push(json.object(&[
            ("type", "\"message\"".into()),
            ("id", format!("\"msg_{n}\"")),
            ("role", "\"assistant\"".into()),
            ("content", content),
        ]));
    }
    let mut outputs = Vec::new();
    for _ in 0..n_calls {
        let id = format!("\"{}\"", json.id());
        let (kind, key, value) = match json.rng.below(4) {
            0 => ("custom_tool_call", "input", json.text()),
            1 => ("local_shell_call", "action", "{\"type\":\"exec\",\"command\":[\"ls\"]}".to_owned()),
            _ => {
                let arguments = json.arguments();
                ("function_call", "arguments", json.quote(&arguments))
            }
        };
        items.push(json.object(&[
            ("type", format!("\"{kind}\"")),
            ("id", format!("\"fc_{}\"", id.trim_matches('"'))),
            ("call_id", id.clone()),
            ("name", "\"read\"".into()),
            (key, value),
        ]));
        let output = if json.rng.percent(20) { input_parts(json) } else { json.text() };
        if !json.odd(12) {
            outputs.push(json.object(&[
                ("type", format!("\"{kind}_output\"")),
                ("call_id", id),
                ("output", output),
            ]));
        }
    }
    if json.rng.percent(10) {
        items.push("{\"type\": \"web_search_call\", \"id\": \"ws_1\", \"status\": \"completed\"}".to_owned());
    }
    items.extend(outputs);
}
