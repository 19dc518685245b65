//! Bodies of Anthropic, of ShareGPT and of Hermes.

use super::openai::{chat_messages, reply_text, response_text};
use super::pen::Pen;

/// A body of Anthropic Messages.
pub fn anthropic(seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let mut messages = Vec::new();
    let mut n_marks = 0;
    let n_turns = 1 + pen.rng.below(3);
    let mut blocks = Vec::new();
    for turn in 0..n_turns {
        user_blocks(&mut pen, &mut blocks, &mut n_marks);
        let n_steps = pen.rng.below(4);
        for _ in 0..n_steps {
            flush(&mut pen, &mut messages, &mut blocks);
            blocks = step(&mut pen, &mut messages, &mut n_marks);
        }
        if blocks.is_empty() && turn + 1 < n_turns {
            let text = pen.text();
            messages.push(pen.object(&[("role", "\"assistant\"".into()), ("content", text)]));
        }
    }
    flush(&mut pen, &mut messages, &mut blocks);
    if pen.rng.percent(10) {
        let first = "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"y\"}]}";
        messages.push(first.to_owned());
        return pen.list(&messages);
    }
    let system = if pen.rng.percent(50) { pen.text() } else { system_blocks(&mut pen) };
    let tools = "[{\"name\": \"read\", \"input_schema\": {\"type\": \"object\"}}]".to_owned();
    pen.body(
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

fn system_blocks(pen: &mut Pen) -> String {
    let text = pen.text();
    let block = pen.object(&[
        ("type", "\"text\"".into()),
        ("text", text),
        ("cache_control", "{\"type\": \"ephemeral\"}".into()),
    ]);
    pen.list(&[block])
}

fn mark(pen: &mut Pen, n_marks: &mut usize) -> String {
    let is_marked = *n_marks < 3 && pen.rng.percent(20);
    if !is_marked {
        return String::new();
    }
    *n_marks += 1;
    "{\"type\":\"ephemeral\",\"ttl\":\"1h\"}".to_owned()
}

fn user_blocks(pen: &mut Pen, blocks: &mut Vec<String>, n_marks: &mut usize) {
    let (text, mark) = (pen.text(), mark(pen, n_marks));
    blocks.push(pen.object(&[("type", "\"text\"".into()), ("text", text), ("cache_control", mark)]));
    if pen.rng.percent(20) {
        blocks.push(image(pen));
    }
    if pen.odd(10) {
        blocks.push("{\"type\":\"text\",\"text\":\" \"}".to_owned());
    }
    if pen.odd(10) {
        blocks.push("{\"type\":\"tool_result\",\"tool_use_id\":\"nobody\",\"content\":\"lost\"}".to_owned());
    }
    if pen.rng.percent(10) {
        blocks.push("{\"type\": \"hologram\", \"z\": 1.0}".to_owned());
    }
}

fn image(pen: &mut Pen) -> String {
    let source = pen.object(&[
        ("type", "\"base64\"".into()),
        ("media_type", "\"image/png\"".into()),
        ("data", "\"AAAA\"".into()),
    ]);
    pen.object(&[("type", "\"image\"".into()), ("source", source)])
}

fn flush(pen: &mut Pen, messages: &mut Vec<String>, blocks: &mut Vec<String>) {
    if blocks.is_empty() {
        return;
    }
    let is_lone_text =
        blocks.len() == 1 && blocks[0].contains("\"text\"") && !blocks[0].contains("tool_result");
    let content = if is_lone_text && pen.rng.percent(40) { pen.text() } else { pen.list(blocks) };
    messages.push(pen.object(&[("role", "\"user\"".into()), ("content", content)]));
    blocks.clear();
}

/// An assistant message; gives back the blocks of its results.
fn step(pen: &mut Pen, messages: &mut Vec<String>, n_marks: &mut usize) -> Vec<String> {
    let mut blocks = Vec::new();
    if pen.rng.percent(40) {
        blocks.push(thought(pen));
    }
    if pen.rng.percent(60) {
        let text = pen.text();
        blocks.push(pen.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    let mut results = Vec::new();
    let n_calls = pen.rng.below(4);
    for _ in 0..n_calls {
        let id = if pen.odd(10) { "\"call_1\"".to_owned() } else { format!("\"{}\"", pen.id()) };
        let input = if pen.odd(8) { "null".to_owned() } else { pen.arguments() };
        blocks.push(pen.object(&[
            ("type", "\"tool_use\"".into()),
            ("id", id.clone()),
            ("name", "\"read\"".into()),
            ("input", input),
        ]));
        if pen.odd(12) {
            continue;
        }
        let content = if pen.rng.percent(30) { result_parts(pen) } else { pen.text() };
        let mark = mark(pen, n_marks);
        let is_error = pen.rng.pick(&["", "true", "false"]).to_owned();
        results.push(pen.object(&[
            ("type", "\"tool_result\"".into()),
            ("tool_use_id", id),
            ("content", content),
            ("is_error", is_error),
            ("cache_control", mark),
        ]));
    }
    if blocks.is_empty() || (n_calls == 0 && blocks.len() == 1) {
        let text = pen.text();
        blocks.push(pen.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    let content = pen.list(&blocks);
    messages.push(pen.object(&[("role", "\"assistant\"".into()), ("content", content)]));
    if results.is_empty() {
        let text = pen.text();
        results.push(pen.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    if pen.odd(10) {
        results.reverse();
        let text = pen.text();
        results.insert(0, pen.object(&[("type", "\"text\"".into()), ("text", text)]));
    }
    results
}

/// What the model thought: signed mostly, by others than the first provider not, and sometimes unreadable.
fn thought(pen: &mut Pen) -> String {
    let text = pen.text();
    match pen.rng.below(10) {
        0 => pen.object(&[("type", "\"redacted_thinking\"".into()), ("data", "\"EmwKAh==\"".into())]),
        1..4 => pen.object(&[("type", "\"thinking\"".into()), ("thinking", text)]),
        _ => pen.object(&[
            ("type", "\"thinking\"".into()),
            ("thinking", text),
            ("signature", "\"EqQB==\"".into()),
        ]),
    }
}

fn result_parts(pen: &mut Pen) -> String {
    let text = pen.text();
    let mut parts = vec![pen.object(&[("type", "\"text\"".into()), ("text", text)])];
    if pen.rng.percent(50) {
        parts.push(image(pen));
    }
    pen.list(&parts)
}

/// A ShareGPT trajectory.
pub fn sharegpt(seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let mut turns = Vec::new();
    let say = |pen: &mut Pen, turns: &mut Vec<String>, from: &str, text: &str| {
        let value = pen.quote(text);
        let weight = if pen.rng.percent(20) { "0.50".to_owned() } else { String::new() };
        turns.push(pen.object(&[("from", format!("\"{from}\"")), ("value", value), ("weight", weight)]));
    };
    if pen.rng.percent(60) {
        let text = pen.words();
        say(&mut pen, &mut turns, "system", &text);
    }
    let n_turns = 1 + pen.rng.below(3);
    for _ in 0..n_turns {
        let text = pen.words();
        say(&mut pen, &mut turns, "human", &text);
        let n_steps = pen.rng.below(4);
        for _ in 0..n_steps {
            if pen.rng.percent(20) {
                say(
                    &mut pen,
                    &mut turns,
                    "function_call",
                    "{\"name\": \"read\", \"arguments\": {\"a\": 1.50}}",
                );
                let text = pen.words();
                say(&mut pen, &mut turns, "observation", &text);
                continue;
            }
            let (text, n_calls) = reply_text(&mut pen);
            say(&mut pen, &mut turns, "gpt", &text);
            if !pen.odd(10) {
                let text = response_text(&mut pen, n_calls);
                say(&mut pen, &mut turns, "tool", &text);
            }
        }
        let text = pen.words();
        say(&mut pen, &mut turns, "gpt", &text);
    }
    if pen.rng.percent(15) {
        return pen.list(&turns);
    }
    let id = pen.text();
    pen.body("conversations", &turns, &[("id", id), ("completed", "true".into())])
}

/// A session file of Hermes.
pub fn hermes(seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let messages = chat_messages(&mut pen);
    let system = pen.text();
    let count = messages.len().to_string();
    pen.body(
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
