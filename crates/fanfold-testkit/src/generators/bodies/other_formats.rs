//! Bodies of Anthropic Messages, ShareGPT and Hermes.

use super::json_writer::JsonWriter;
use super::openai::{chat_messages, reply_text, response_text};

/// A body of Anthropic Messages.
pub fn anthropic(seed: u64) -> String {
    let mut json = JsonWriter::new(seed);
    let mut messages = Vec::new();
    let mut n_marks = 0;
    let n_turns = 1 + json.rng.below(3);
    let mut blocks = Vec::new();
    for turn in 0..n_turns {
        user_blocks(&mut json, &mut blocks, &mut n_marks);
        let n_steps = json.rng.below(4);
        for _ in 0..n_steps {
            flush(&mut json, &mut messages, &mut blocks);
            blocks = step(&mut json, &mut messages, &mut n_marks);
        }
        if blocks.is_empty() && turn + 1 < n_turns {
            let text = json.text();
            messages.push(json.object(&[("role", "\"assistant\"".into()), ("content", text)]));
        }
    }
    flush(&mut json, &mut messages, &mut blocks);
    if json.rng.percent(10) {
        let first = "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"y\"}]}";
        messages.push(first.to_owned());
        return json.list(&messages);
    }
    let system = if json.rng.percent(50) { json.text() } else { system_blocks(&mut json) };
    let tools = "[{\"name\": \"read\", \"input_schema\": {\"type\": \"object\"}}]".to_owned();
    json.body(
        "messages",
        &messages,
        &[
            ("model", "\"claude\"".into()),
            ("max_tokens", "1024".into()),
            ("system", system),
            ("tools", tools),
        ],
    )
}

fn system_blocks(json: &mut JsonWriter) -> String {
    let text = json.text();
    let block = json.object(&[
        ("type", "\"text\"".into()),
        ("text", text),
        ("cache_control", "{\"type\": \"ephemeral\"}".into()),
    ]);
    json.list(&[block])
}

fn mark(json: &mut JsonWriter, n_marks: &mut usize) -> String {
    let is_marked = *n_marks < 3 && json.rng.percent(20);
    if !is_marked {
        return String::new();
    }
    *n_marks += 1;
    "{\"type\":\"ephemeral\",\"ttl\":\"1h\"}".to_owned()
}

fn user_blocks(json: &mut JsonWriter, blocks: &mut Vec<String>, n_marks: &mut usize) {
    let (text, mark) = (json.text(), mark(json, n_marks));
    blocks.push(json.object(&[("type", "\"text\"".into()), ("text", text), ("cache_control", mark)]));
    if json.rng.percent(20) {
        blocks.push(image(json));
    }
    if json.odd(10) {
        blocks.push("{\"type\":\"text\",\"text\":\" \"}".to_owned());
    }
    if json.odd(10) {
        blocks.push("{\"type\":\"tool_result\",\"tool_use_id\":\"nobody\",\"content\":\"lost\"}".to_owned());
    }
    if json.rng.percent(10) {
        blocks.push("{\"type\": \"hologram\", \"z\": 1.0}".to_owned());
    }
}

fn image(json: &mut JsonWriter) -> String {
    let source = json.object(&[
        ("type", "\"base64\"".into()),
        ("media_type", "\"image/png\"".into()),
        ("data", "\"AAAA\"".into()),
    ]);
    json.object(&[("type", "\"image\"".into()), ("source", source)])
}

fn flush(json: &mut JsonWriter, messages: &mut Vec<String>, blocks: &mut Vec<String>) {
    if blocks.is_empty() {
        return;
    }
    let is_lone_text =
        blocks.len() == 1 && blocks[0].contains("\"text\"") && !blocks[0].contains("tool_result");
    let content = if is_lone_text && json.rng.percent(40) { json.text() } else { json.list(blocks) };
    messages.push(json.object(&[("role", "\"user\"".into()), ("content", content)]));
    blocks.clear();
}

/// Adds an assistant message and returns the blocks of its results.
fn step(json: &mut JsonWriter, messages: &mut Vec<String>, n_marks: &mut usize) -> Vec<String> {
    let mut blocks = Vec::new();
    if json.rng.percent(40) {
        blocks.push(thinking_block(json));
    }
    if json.rng.percent(60) {
        let text = json.text();
        blocks.push(json.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    let mut results = Vec::new();
    let n_calls = json.rng.below(4);
    for _ in 0..n_calls {
        let id = if json.odd(10) { "\"call_1\"".to_owned() } else { format!("\"{}\"", json.id()) };
        let input = if json.odd(8) { "null".to_owned() } else { json.arguments() };
        blocks.push(json.object(&[
            ("type", "\"tool_use\"".into()),
            ("id", id.clone()),
            ("name", "\"read\"".into()),
            ("input", input),
        ]));
        if json.odd(12) {
            continue;
        }
        let content = if json.rng.percent(30) { result_parts(json) } else { json.text() };
        let mark = mark(json, n_marks);
        let is_error = json.rng.pick(&["", "true", "false"]).to_owned();
        results.push(json.object(&[
            ("type", "\"tool_result\"".into()),
            ("tool_use_id", id),
            ("content", content),
            ("is_error", is_error),
            ("cache_control", mark),
        ]));
    }
    if blocks.is_empty() || (n_calls == 0 && blocks.len() == 1) {
        let text = json.text();
        blocks.push(json.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    let content = json.list(&blocks);
    messages.push(json.object(&[("role", "\"assistant\"".into()), ("content", content)]));
    if results.is_empty() {
        let text = json.text();
        results.push(json.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    if json.odd(10) {
        results.reverse();
        let text = json.text();
        results.insert(0, json.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    results
}

/// A thinking block: usually signed, sometimes unsigned as from other providers, sometimes redacted.
fn thinking_block(json: &mut JsonWriter) -> String {
    let text = json.text();
    match json.rng.below(10) {
        0 => json.object(&[("type", "\"redacted_thinking\"".into()), ("data", "\"EmwKAh==\"".into())]),
        1..4 => json.object(&[("type", "\"thinking\"".into()), ("thinking", text)]),
        _ => json.object(&[
            ("type", "\"thinking\"".into()),
            ("thinking", text),
            ("signature", "\"EqQB==\"".into()),
        ]),
    }
}

fn result_parts(json: &mut JsonWriter) -> String {
    let text = json.text();
    let mut parts = vec![json.object(&[("type", "\"text\"".into()), ("text", text)])];
    if json.rng.percent(50) {
        parts.push(image(json));
    }
    json.list(&parts)
}

/// A ShareGPT trajectory.
pub fn sharegpt(seed: u64) -> String {
    let mut json = JsonWriter::new(seed);
    let mut turns = Vec::new();
    let add_turn = |json: &mut JsonWriter, turns: &mut Vec<String>, from: &str, text: &str| {
        let value = json.quote(text);
        let weight = if json.rng.percent(20) { "0.50".to_owned() } else { String::new() };
        turns.push(json.object(&[("from", format!("\"{from}\"")), ("value", value), ("weight", weight)]));
    };
    if json.rng.percent(60) {
        let text = json.words();
        add_turn(&mut json, &mut turns, "system", &text);
    }
    let n_turns = 1 + json.rng.below(3);
    for _ in 0..n_turns {
        let text = json.words();
        add_turn(&mut json, &mut turns, "human", &text);
        let n_steps = json.rng.below(4);
        for _ in 0..n_steps {
            if json.rng.percent(20) {
                add_turn(
                    &mut json,
                    &mut turns,
                    "function_call",
                    "{\"name\": \"read\", \"arguments\": {\"a\": 1.50}}",
                );
                let text = json.words();
                add_turn(&mut json, &mut turns, "observation", &text);
                continue;
            }
            let (text, n_calls) = reply_text(&mut json);
            add_turn(&mut json, &mut turns, "gpt", &text);
            if !json.odd(10) {
                let text = response_text(&mut json, n_calls);
                add_turn(&mut json, &mut turns, "tool", &text);
            }
        }
        let text = json.words();
        add_turn(&mut json, &mut turns, "gpt", &text);
    }
    if json.rng.percent(15) {
        return json.list(&turns);
    }
    let id = json.text();
    json.body("conversations", &turns, &[("id", id), ("completed", "true".into())])
}

/// A session file of Hermes.
pub fn hermes(seed: u64) -> String {
    let mut json = JsonWriter::new(seed);
    let messages = chat_messages(&mut json);
    let system = json.text();
    let count = messages.len().to_string();
    json.body(
        "messages",
        &messages,
        &[
            ("session_id", "\"20260101_000000_abcdef\"".into()),
            ("model", "\"hermes\"".into()),
            ("platform", "\"cli\"".into()),
            ("system_prompt", system),
            ("message_count", count),
        ],
    )
}
