//! Mutates JSON as a tree, because random bytes are rarely valid JSON.

use fanfold_testkit::Rng;
use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Value, json};

/// Mutates the body after the first byte, usually as a tree and sometimes as bytes. Returns the new size.
pub fn body(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng::new(seed.into());
    let as_bytes = size < 2 || rng.percent(30);
    let changed = if as_bytes { None } else { mutate(&data[1..size], &mut rng) };
    let Some(changed) = changed.filter(|changed| changed.len() < max_size) else {
        return fuzzer_mutate(data, size, max_size);
    };
    if rng.percent(20) {
        data[0] = rng.number() as u8;
    }
    data[1..=changed.len()].copy_from_slice(changed.as_bytes());
    1 + changed.len()
}

/// Mutates the lines of JSON after the first byte.
pub fn lines(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng::new(seed.into());
    let Some(text) = data[..size].get(1..).and_then(|text| std::str::from_utf8(text).ok()) else {
        return fuzzer_mutate(data, size, max_size);
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() || rng.percent(20) {
        return fuzzer_mutate(data, size, max_size);
    }
    let (at, other) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(8) {
        0 => lines.swap(at, other),
        1 => lines.insert(other, lines[at].clone()),
        2 if lines.len() > 1 => drop(lines.remove(at)),
        _ => match mutate(lines[at].as_bytes(), &mut rng) {
            Some(changed) => lines[at] = changed,
            None => return fuzzer_mutate(data, size, max_size),
        },
    }
    let changed = lines.join("\n");
    if changed.len() >= max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[1..=changed.len()].copy_from_slice(changed.as_bytes());
    1 + changed.len()
}

fn mutate(text: &[u8], rng: &mut Rng) -> Option<String> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    for _ in 0..=rng.below(3) {
        change(&mut value, rng);
    }
    serde_json::to_string(&value).ok()
}

fn change(root: &mut Value, rng: &mut Rng) {
    let from = rng.below(n_nodes(root));
    let donor = node(root, &mut { from }).cloned().unwrap_or_default();
    let n = n_nodes(root);
    let at = rng.below(n);
    let Some(node) = node(root, &mut { at }) else { return };
    match (rng.below(6), node) {
        (0, node) => *node = donor,
        (1, node) => *node = literal(rng),
        (2, Value::Array(items)) if !items.is_empty() => {
            let at = rng.below(items.len());
            drop(items.remove(at));
        }
        (3, Value::Array(items)) if !items.is_empty() => {
            let (from, to) = (rng.below(items.len()), rng.below(items.len()));
            let copy = items[from].clone();
            items.insert(to, copy);
        }
        (4, Value::Array(items)) if items.len() > 1 => {
            let (from, to) = (rng.below(items.len()), rng.below(items.len()));
            items.swap(from, to);
        }
        (5, Value::Array(items)) => items.push(donor),
        (2, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(rng.below(fields.len())).cloned().unwrap_or_default();
            fields.shift_remove(&key);
        }
        (3 | 4, Value::Object(fields)) => {
            fields.insert(rng.pick(&KEYS).to_owned(), donor);
        }
        (5, Value::Object(fields)) => {
            fields.insert(rng.pick(&KEYS).to_owned(), literal(rng));
        }
        (_, Value::String(text)) => change_text(text, rng),
        (_, node) => *node = literal(rng),
    }
}

fn change_text(text: &mut String, rng: &mut Rng) {
    let at = text.floor_char_boundary(rng.below(text.len() + 1));
    match rng.below(4) {
        0 => text.insert_str(at, rng.pick(&TEXTS)),
        1 => text.truncate(at),
        2 if text.len() < 400 => *text = format!("{text}\n{text}"),
        _ => rng.pick(&TEXTS).clone_into(text),
    }
}

fn literal(rng: &mut Rng) -> Value {
    match rng.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(rng.number() as i64),
        3 => json!([]),
        4 => json!({}),
        5 => json!(-0.5e-9),
        _ => json!(rng.pick(&TEXTS)),
    }
}

fn n_nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(n_nodes).sum::<usize>(),
        Value::Object(fields) => fields.values().map(n_nodes).sum(),
        _ => 0,
    }
}

/// The node with this number, in depth-first order.
fn node<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| below(item, at)),
        Value::Object(fields) => fields.values_mut().find_map(|field| below(field, at)),
        _ => None,
    }
}

fn below<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    let n = n_nodes(value);
    if *at >= n {
        *at -= n;
        return None;
    }
    node(value, at)
}

const KEYS: [&str; 44] = [
    "role",
    "content",
    "type",
    "text",
    "name",
    "id",
    "call_id",
    "tool_call_id",
    "tool_calls",
    "tool_use_id",
    "function",
    "function_call",
    "arguments",
    "input",
    "output",
    "messages",
    "conversations",
    "from",
    "value",
    "system",
    "tools",
    "thinking",
    "signature",
    "cache_control",
    "source",
    "data",
    "image_url",
    "url",
    "is_error",
    "reasoning",
    "reasoning_content",
    "summary",
    "encrypted_content",
    "status",
    "instructions",
    "model",
    "max_tokens",
    "session",
    "window",
    "call",
    "incremental",
    "op",
    "handle",
    "session_id",
];

const TEXTS: [&str; 60] = [
    "",
    " ",
    "\n",
    "\u{0}",
    "\u{fffd}",
    "ü…🎉",
    "user",
    "assistant",
    "system",
    "developer",
    "tool",
    "function",
    "human",
    "gpt",
    "text",
    "input_text",
    "output_text",
    "image",
    "image_url",
    "input_image",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "compaction",
    "item_reference",
    "web_search_call",
    "hologram",
    "call_1",
    "toolu_1",
    "read_file",
    "bash",
    "apply_patch",
    "ephemeral",
    "{\"path\": \"src/a.rs\"}",
    "{\"command\": [\"bash\", \"-lc\", \"cat a.rs\"]}",
    "{",
    "error: no such file\n  at main.rs:3",
    "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>\n{\"a\": 1}\n</tool_response>",
    "<function=read><parameter=path>a</parameter></function>",
    "<invoke name=\"read\"><parameter name=\"path\">a</parameter></invoke>",
    "```json\n{\"name\": \"read\", \"arguments\": {}}\n```",
    "<think>hm</think>",
    "<fanfold>",
    "</fanfold>",
    "[read notes.md, 2243bf1f]",
    "data:image/png;base64,iVBORw0KGgo=",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen",
    "line\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\nline\n",
];
