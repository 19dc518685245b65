//! A chat about one task with any number of steps. Each step reads a file of about a hundred words.

use serde_json::{Value, json};

/// A chat with one user message and `n_steps` steps.
pub fn long_chat(n_steps: usize) -> Vec<Value> {
    begin().into_iter().chain((0..n_steps).flat_map(step)).collect()
}

/// Like `long_chat`, with a further user message after every seventh step.
pub fn long_chat_in_turns(n_steps: usize) -> Vec<Value> {
    let with_prompt = |i| {
        let mut messages = step(i).to_vec();
        if i % 7 == 6 {
            messages.push(json!({ "role": "assistant", "content": format!("So far stage {i} is fine.") }));
            messages.push(json!({ "role": "user", "content": format!("Then look at stage {}.", i + 1) }));
        }
        messages
    };
    begin().into_iter().chain((0..n_steps).flat_map(with_prompt)).collect()
}

fn begin() -> [Value; 2] {
    [
        json!({ "role": "system", "content": "You are careful." }),
        json!({ "role": "user", "content": "Find out why the night run loses every hundredth record." }),
    ]
}

fn step(i: usize) -> [Value; 2] {
    let id = format!("call_{i}");
    let arguments = json!({ "path": format!("src/stage_{i}.py") }).to_string();
    let lines: String = (0..12).map(|n| format!("stage {i} line {n} takes batch_{i}_{n} of it\n")).collect();
    [
        json!({ "role": "assistant", "content": format!("Step {i}."), "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "read", "arguments": arguments } }] }),
        json!({ "role": "tool", "tool_call_id": id, "content": lines }),
    ]
}
