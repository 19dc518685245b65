//! Hostile bodies: valid JSON with a wrong shape.

use super::{BodyFormat, rich};
use crate::Rng;

const KEYS: [&str; 40] = [
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "tool_call_id",
    "from",
    "value",
    "tool_use_id",
    "input",
    "output",
    "call_id",
    "thinking",
    "signature",
    "cache_control",
    "source",
    "media_type",
    "image_url",
    "url",
    "function_call",
    "custom",
    "summary",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "is_error",
    "refusal",
    "action",
    "encrypted_content",
    "x",
    "",
    "role",
    "content",
    "type",
    "tool_calls",
    "content",
];

const TEXTS: [&str; 44] = [
    "user",
    "assistant",
    "system",
    "tool",
    "developer",
    "function",
    "banana",
    "human",
    "gpt",
    "observation",
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "image",
    "image_url",
    "input_text",
    "output_text",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "compaction",
    "item_reference",
    "web_search_call",
    "call_1",
    "call_1",
    "call_2",
    "",
    " ",
    "\\ud83d",
    "\\udc00x",
    "<tool_call>{\\\"name\\\":\\\"a\\\",\\\"arguments\\\":{}}</tool_call>",
    "<tool_response>r</tool_response>",
    "<think>t</think>",
    "<function=f></function>",
    "<tool_response>",
    "{\\\"a\\\":1}",
    "\\u0000",
    "```json\\n{}\\n```",
    "not json",
];

/// A body that is JSON and has a list of messages, but has a wrong shape.
pub fn hostile(kind: BodyFormat, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    if rng.percent(50) {
        let body = rich(kind, rng.number());
        return substitute_strings(&mut rng, &body);
    }
    let key = match kind {
        BodyFormat::Chat | BodyFormat::Anthropic | BodyFormat::Hermes => "messages",
        BodyFormat::Responses => "input",
        BodyFormat::ShareGpt => "conversations",
    };
    let n_messages = rng.below(9);
    let messages: Vec<_> = (0..n_messages).map(|_| message(&mut rng)).collect();
    let list = format!("[{}]", messages.join(","));
    let extra = match kind {
        BodyFormat::Anthropic => format!(",\"system\":{}", value(&mut rng, 2)),
        BodyFormat::Responses => format!(",\"instructions\":{}", value(&mut rng, 2)),
        BodyFormat::Hermes => {
            format!(",\"session_id\":1,\"platform\":2,\"system_prompt\":{}", value(&mut rng, 2))
        }
        BodyFormat::Chat | BodyFormat::ShareGpt => String::new(),
    };
    format!("{{\"{key}\":{list}{extra},\"tools\":{}}}", value(&mut rng, 2))
}

fn message(rng: &mut Rng) -> String {
    if rng.percent(10) {
        return value(rng, 2);
    }
    let role = rng.pick(&["user", "assistant", "tool", "system", "gpt", "human"]);
    let mut members = vec![format!("\"role\":\"{role}\""), format!("\"from\":\"{role}\"")];
    for _ in 0..rng.below(6) {
        members.push(member(rng, 4));
    }
    let at = rng.below(members.len());
    members.rotate_left(at);
    format!("{{{}}}", members.join(" , "))
}

fn member(rng: &mut Rng, depth: usize) -> String {
    let key = rng.pick(&KEYS);
    format!("\"{key}\":{}", value(rng, depth))
}

fn value(rng: &mut Rng, depth: usize) -> String {
    let n_kinds = if depth == 0 { 6 } else { 10 };
    match rng.below(n_kinds) {
        0 => "null".to_owned(),
        1 => rng.pick(&["0", "-1.50", "1e400", "true", "false"]).to_owned(),
        2..=5 => format!("\"{}\"", rng.pick(&TEXTS)),
        6 | 7 => {
            let members: Vec<_> = (0..rng.below(6)).map(|_| member(rng, depth - 1)).collect();
            format!("{{{}}}", members.join(","))
        }
        _ => {
            let items: Vec<_> = (0..rng.below(4)).map(|_| value(rng, depth - 1)).collect();
            format!("[ {}]", items.join(","))
        }
    }
}

/// Replaces some strings of a body by others. The result is still JSON.
fn substitute_strings(rng: &mut Rng, body: &str) -> String {
    let mut body = body.to_owned();
    for _ in 0..1 + rng.below(6) {
        let old = format!("\"{}\"", rng.pick(&TEXTS));
        let positions: Vec<_> = body.match_indices(&old).map(|(at, _)| at).collect();
        if positions.is_empty() {
            continue;
        }
        let at = positions[rng.below(positions.len())];
        let is_key = body[at + old.len()..].trim_start().starts_with(':');
        let new = if is_key { format!("\"{}\"", rng.pick(&KEYS)) } else { value(rng, 1) };
        body.replace_range(at..at + old.len(), &new);
    }
    body
}
