//! Bodies of chat and of responses.

use super::pen::Pen;

/// A chat body, a bare list of chat messages, or a message per line.
pub fn chat(seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let messages = chat_messages(&mut pen);
    let style = pen.rng.below(10);
    if style < 2 {
        return pen.list(&messages);
    }
    if style == 2 && messages.len() > 1 && !messages.iter().any(|message| message.contains('\n')) {
        return messages.join("\n") + "\n";
    }
    let tool = tool_schema(&mut pen);
    let tools = pen.list(&[tool]);
    pen.body(
        "messages",
        &messages,
        &[("model", "\"gpt-5\"".into()), ("tools", tools), ("max_tokens", "900".into())],
    )
}

fn tool_schema(pen: &mut Pen) -> String {
    let function =
        pen.object(&[("name", "\"read\"".into()), ("parameters", "{\"type\": \"object\"}".into())]);
    pen.object(&[("type", "\"function\"".into()), ("function", function)])
}

/// The messages of a chat.
pub(super) fn chat_messages(pen: &mut Pen) -> Vec<String> {
    let mut messages = Vec::new();
    if pen.rng.percent(60) {
        let text = pen.text();
        let role = pen.rng.pick(&["\"system\"", "\"developer\""]).to_owned();
        messages.push(pen.object(&[("role", role), ("content", text)]));
    }
    let n_turns = 1 + pen.rng.below(3);
    for turn in 0..n_turns {
        user(pen, &mut messages);
        let n_steps = pen.rng.below(4);
        for _ in 0..n_steps {
            let style = pen.rng.below(10);
            match style {
                0 | 1 => said(pen, &mut messages),
                2 | 3 => text_calls(pen, &mut messages),
                4 if pen.is_odd => legacy(pen, &mut messages),
                _ => calls(pen, &mut messages),
            }
        }
        if pen.odd(15) {
            let text = pen.text();
            messages.push(pen.object(&[
                ("role", "\"tool\"".into()),
                ("tool_call_id", "\"nobody\"".into()),
                ("content", text),
            ]));
        }
        if turn + 1 == n_turns && pen.rng.percent(50) {
            said(pen, &mut messages);
        }
    }
    messages
}

fn user(pen: &mut Pen, messages: &mut Vec<String>) {
    let content = if pen.rng.percent(25) { parts(pen) } else { pen.text() };
    let name = if pen.rng.percent(10) { "\"harness\"".to_owned() } else { String::new() };
    messages.push(pen.object(&[("role", "\"user\"".into()), ("name", name), ("content", content)]));
}

fn parts(pen: &mut Pen) -> String {
    let text = pen.text();
    let mut parts = vec![pen.object(&[("type", "\"text\"".into()), ("text", text)])];
    if pen.rng.percent(60) {
        let url = pen.object(&[("url", "\"data:image/png;base64,iVBORw0KGgo=\"".into())]);
        parts.push(pen.object(&[("type", "\"image_url\"".into()), ("image_url", url)]));
    }
    if pen.rng.percent(20) {
        parts.push("{\"type\": \"hologram\", \"z\": 1.0}".to_owned());
    }
    if pen.rng.percent(30) {
        let text = pen.text();
        parts.push(pen.object(&[("text", text), ("type", "\"text\"".into())]));
    }
    pen.list(&parts)
}

fn said(pen: &mut Pen, messages: &mut Vec<String>) {
    let thought = if pen.rng.percent(20) { "<think>" } else { "" };
    let words = pen.words();
    let all = if thought.is_empty() { words } else { format!("<think>{}</think>\n{words}", pen.words()) };
    let content = if pen.odd(10) { "null".to_owned() } else { pen.quote(&all) };
    messages.push(pen.object(&[("role", "\"assistant\"".into()), ("content", content)]));
}

fn calls(pen: &mut Pen, messages: &mut Vec<String>) {
    let content = match pen.rng.below(3) {
        0 => "null".to_owned(),
        1 => pen.text(),
        _ => String::new(),
    };
    let reasoning = if pen.rng.percent(40) { pen.text() } else { String::new() };
    let details = if pen.rng.percent(15) { "[{\"type\":\"reasoning.text\", \"text\":\"deep\"}]" } else { "" };
    let n_calls = 1 + pen.rng.below(3);
    let mut ids: Vec<String> = Vec::new();
    let mut listed = Vec::new();
    for i in 0..n_calls {
        let id = if i > 0 && pen.odd(10) { ids[0].clone() } else { pen.id() };
        let written = if pen.odd(8) { String::new() } else { format!("\"{id}\"") };
        ids.push(id);
        listed.push(call(pen, written));
    }
    let listed = pen.list(&listed);
    let key = pen.rng.pick(&["reasoning_content", "reasoning"]).to_owned();
    messages.push(pen.object(&[
        ("role", "\"assistant\"".into()),
        (&key, reasoning),
        ("content", content),
        ("tool_calls", listed),
        ("reasoning_details", details.to_owned()),
    ]));
    for id in &ids {
        if pen.odd(12) {
            continue;
        }
        result(pen, messages, id);
        if pen.odd(5) {
            result(pen, messages, id);
        }
        if pen.odd(5) {
            user(pen, messages);
        }
    }
}

fn call(pen: &mut Pen, id: String) -> String {
    let arguments = pen.arguments();
    let mut quoted = pen.quote(&arguments);
    if pen.odd(10) {
        quoted = pen.rng.pick(&["null", "\"not json\"", "{\"a\": 1}", "\"\""]).to_owned();
    }
    let function = pen.object(&[("name", "\"read\"".into()), ("arguments", quoted)]);
    pen.object(&[("id", id), ("type", "\"function\"".into()), ("function", function)])
}

fn result(pen: &mut Pen, messages: &mut Vec<String>, id: &str) {
    let content = if pen.rng.percent(15) { parts(pen) } else { pen.text() };
    let content = if pen.odd(6) { pen.rng.pick(&["null", "[]", "\"\""]).to_owned() } else { content };
    let id = if pen.odd(5) { String::new() } else { format!("\"{id}\"") };
    messages.push(pen.object(&[
        ("role", "\"tool\"".into()),
        ("tool_call_id", id),
        ("content", content),
        ("tool_name", "\"read\"".into()),
    ]));
}

fn legacy(pen: &mut Pen, messages: &mut Vec<String>) {
    let arguments = pen.arguments();
    let arguments = pen.quote(&arguments);
    let call = pen.object(&[("name", "\"read\"".into()), ("arguments", arguments)]);
    messages.push(pen.object(&[
        ("role", "\"assistant\"".into()),
        ("content", "null".into()),
        ("function_call", call),
    ]));
    let text = pen.text();
    messages.push(pen.object(&[
        ("role", "\"function\"".into()),
        ("name", "\"read\"".into()),
        ("content", text),
    ]));
}

/// A reply with calls in its text.
pub(super) fn reply_text(pen: &mut Pen) -> (String, usize) {
    let mut text = String::new();
    if pen.rng.percent(40) {
        text += &format!("<think>{}</think>", pen.words());
    }
    if pen.rng.percent(70) {
        text += &format!("{}\n", pen.words().replace(['<', '`', '{'], ""));
    }
    let n_calls = 1 + pen.rng.below(2);
    for _ in 0..n_calls {
        let arguments = pen.arguments();
        text += &match pen.rng.below(4) {
            0 => format!("<tool_call>\n{{\"name\": \"read\", \"arguments\": {arguments}}}\n</tool_call>\n"),
            1 => "<function=read>\n<parameter=path>\nsrc/main.rs\n</parameter>\n</function>\n".to_owned(),
            2 => "<invoke name=\"read\"><parameter name=\"path\">é.rs</parameter></invoke>".to_owned(),
            _ => format!("```json\n{{\"name\": \"read\", \"arguments\": {arguments}}}\n```\n"),
        };
    }
    (text, n_calls)
}

/// The results of calls in text.
pub(super) fn response_text(pen: &mut Pen, n_calls: usize) -> String {
    let responses: Vec<_> =
        (0..n_calls).map(|_| format!("<tool_response>\n{}\n</tool_response>", pen.words())).collect();
    let mut text = responses.join("\n");
    if pen.rng.percent(20) {
        text += "\nGo on.";
    }
    text
}

fn text_calls(pen: &mut Pen, messages: &mut Vec<String>) {
    let (text, n_calls) = reply_text(pen);
    let content = pen.quote(&text);
    messages.push(pen.object(&[("role", "\"assistant\"".into()), ("content", content)]));
    if pen.odd(20) {
        return;
    }
    let text = response_text(pen, n_calls);
    let content = pen.quote(&text);
    messages.push(pen.object(&[("role", "\"user\"".into()), ("content", content)]));
}

/// A body of responses.
pub fn responses(seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let mut items = Vec::new();
    let n_turns = 1 + pen.rng.below(3);
    for _ in 0..n_turns {
        let content = if pen.rng.percent(50) { pen.text() } else { input_parts(&mut pen) };
        let kind = pen.rng.pick(&["\"message\"", ""]).to_owned();
        items.push(pen.object(&[("type", kind), ("role", "\"user\"".into()), ("content", content)]));
        let n_steps = pen.rng.below(4);
        for _ in 0..n_steps {
            step(&mut pen, &mut items);
        }
        if pen.rng.percent(10) {
            items.push("{\"type\": \"compaction\", \"encrypted_content\": \"abc\"}".to_owned());
        }
        if pen.rng.percent(10) {
            items.push("{\"type\": \"hologram\", \"z\": 1.10}".to_owned());
        }
        if pen.odd(15) {
            let text = pen.text();
            items.push(pen.object(&[
                ("type", "\"function_call_output\"".into()),
                ("call_id", "\"nobody\"".into()),
                ("output", text),
            ]));
        }
    }
    if pen.rng.percent(15) {
        return pen.list(&items);
    }
    let instructions = if pen.rng.percent(50) { pen.text() } else { String::new() };
    let fields =
        [("model", "\"gpt-5\"".into()), ("instructions", instructions), ("max_output_tokens", "77".into())];
    if pen.rng.percent(5) {
        let text = pen.text();
        return pen.object(&[("input", text), ("model", "\"m\"".into())]);
    }
    pen.body("input", &items, &fields)
}

fn input_parts(pen: &mut Pen) -> String {
    let text = pen.text();
    let mut parts = vec![pen.object(&[("type", "\"input_text\"".into()), ("text", text)])];
    if pen.rng.percent(50) {
        parts.push(pen.object(&[
            ("type", "\"input_image\"".into()),
            ("image_url", "\"data:image/jpeg;base64,AAAA\"".into()),
        ]));
    }
    pen.list(&parts)
}

fn step(pen: &mut Pen, items: &mut Vec<String>) {
    let n = pen.id();
    if pen.rng.percent(40) {
        let summary = "[{\"type\": \"summary_text\", \"text\": \"thinking hard\"}]".to_owned();
        items.push(pen.object(&[
            ("type", "\"reasoning\"".into()),
            ("id", format!("\"rs_{n}\"")),
            ("summary", summary),
            ("encrypted_content", "\"gAAA=\"".into()),
        ]));
    } else if pen.odd(20) {
        items.push("{\"type\":\"reasoning\",\"summary\":[]}".to_owned());
        let text = pen.text();
        items.push(pen.object(&[("role", "\"user\"".into()), ("content", text)]));
    }
    let n_calls = pen.rng.below(3);
    if n_calls == 0 || pen.rng.percent(50) {
        let text = pen.text();
        let part =
            pen.object(&[("type", "\"output_text\"".into()), ("text", text), ("annotations", "[]".into())]);
        let content = pen.list(&[part]);
        let content = if pen.odd(10) { pen.rng.pick(&["null", "[]"]).to_owned() } else { content };
        items.push(pen.object(&[
            ("type", "\"message\"".into()),
            ("id", format!("\"msg_{n}\"")),
            ("role", "\"assistant\"".into()),
            ("content", content),
        ]));
    }
    let mut outputs = Vec::new();
    for _ in 0..n_calls {
        let id = format!("\"{}\"", pen.id());
        let (kind, key, value) = match pen.rng.below(4) {
            0 => ("custom_tool_call", "input", pen.text()),
            1 => ("local_shell_call", "action", "{\"type\":\"exec\",\"command\":[\"ls\"]}".to_owned()),
            _ => {
                let arguments = pen.arguments();
                ("function_call", "arguments", pen.quote(&arguments))
            }
        };
        items.push(pen.object(&[
            ("type", format!("\"{kind}\"")),
            ("id", format!("\"fc_{}\"", id.trim_matches('"'))),
            ("call_id", id.clone()),
            ("name", "\"read\"".into()),
            (key, value),
        ]));
        let output = if pen.rng.percent(20) { input_parts(pen) } else { pen.text() };
        if !pen.odd(12) {
            outputs.push(pen.object(&[
                ("type", format!("\"{kind}_output\"")),
                ("call_id", id),
                ("output", output),
            ]));
        }
    }
    if pen.rng.percent(10) {
        items.push("{\"type\": \"web_search_call\", \"id\": \"ws_1\", \"status\": \"completed\"}".to_owned());
    }
    items.extend(outputs);
}
