//! Sessions of Codex: one JSON object per line, with a payload that is an item as the Responses API has it.
//!
//! Items between two messages of other people's make one reply. Where the program compacted the conversation, a new one
//! begins.

use serde_json::{Value, json};

use super::pen::{Pen, call, text_of};
use super::time::seconds;
use crate::record::{Record, Reported};

/// How texts begin that the program wrote in the user's role.
const PROGRAM: [&str; 4] = ["<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>"];

pub(super) fn read(text: &str, name: &str) -> Vec<Record> {
    let mut pens = vec![Pen::default()];
    let mut n_replies = 0;
    // Counts are of the whole session, and each conversation has its part of them.
    let (mut total, mut before) = (Usage::default(), Usage::default());
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let at = seconds(&line["timestamp"]);
        let payload = &line["payload"];
        let Some(pen) = pens.last_mut() else { break };
        match line["type"].as_str().unwrap_or_default() {
            "turn_context" => pen.model = payload["model"].as_str().map(str::to_owned).or(pen.model.take()),
            "event_msg" if payload["type"] == "token_count" => {
                total = Usage::read(&payload["info"]["total_token_usage"]).unwrap_or(total);
                total.since(before).tell(&mut pen.reported);
            }
            "compacted" => {
                before = total;
                let mut next = Pen::of_model(pen.model.clone());
                let summary = text_of(&payload["message"]);
                next.say(json!({ "role": "user", "name": "harness", "content": summary }), at);
                pens.push(next);
            }
            "response_item" => n_replies += u32::from(write(pen, payload, n_replies, at)),
            _ => {}
        }
    }
    let n_pens = pens.len();
    let id = |n: usize| if n_pens > 1 { format!("{name}#{n}") } else { name.to_owned() };
    pens.into_iter().enumerate().filter_map(|(n, pen)| pen.end(id(n), "codex")).collect()
}

/// What a session has used so far.
#[derive(Clone, Copy, Default)]
struct Usage {
    input: u64,
    cached: u64,
    output: u64,
}

impl Usage {
    fn read(usage: &Value) -> Option<Usage> {
        let field = |key: &str| usage[key].as_u64().unwrap_or_default();
        let (input, cached, output) =
            (usage["input_tokens"].as_u64()?, field("cached_input_tokens"), field("output_tokens"));
        Some(Usage { input, cached, output })
    }

    fn since(self, before: Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn tell(self, reported: &mut Reported) {
        reported.plain = self.input.saturating_sub(self.cached);
        reported.read = self.cached;
        reported.output = self.output;
    }
}

/// Writes an item. Says whether it ends a reply.
fn write(pen: &mut Pen, item: &Value, n_replies: u32, at: Option<f64>) -> bool {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let reply = n_replies.to_string();
    match text("type") {
        "message" if item["role"] == "assistant" => {
            pen.reply(&reply, &text_of(&item["content"]), Vec::new(), at);
            false
        }
        "message" => {
            let content = text_of(&item["content"]);
            let is_program = PROGRAM.iter().any(|start| content.trim_start().starts_with(start));
            let mut message = json!({ "role": text("role"), "content": content });
            if message["role"] == "developer" {
                message["role"] = Value::from("system");
            } else if is_program {
                message["name"] = Value::from("harness");
            }
            pen.say(message, at);
            true
        }
        "function_call" => {
            pen.reply(&reply, "", vec![call(text("call_id"), text("name"), text("arguments"))], at);
            false
        }
        "custom_tool_call" => {
            pen.reply(&reply, "", vec![call(text("call_id"), text("name"), text("input"))], at);
            false
        }
        "local_shell_call" => {
            pen.reply(&reply, "", vec![call(text("call_id"), "shell", &item["action"].to_string())], at);
            false
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = &item["output"];
            let content = if output["content"].is_null() { output } else { &output["content"] };
            pen.answer(text("call_id"), &text_of(content), at);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn items_make_messages() {
        let item = |payload: Value| json!({ "timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload });
        let lines = [
            json!({ "type": "session_meta", "payload": { "id": "x" } }),
            json!({ "type": "turn_context", "payload": { "model": "gpt-5" } }),
            item(
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }),
            ),
            item(json!({ "type": "reasoning", "summary": [] })),
            item(
                json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look" }] }),
            ),
            item(json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1" })),
            item(json!({ "type": "function_call_output", "call_id": "c1", "output": "done" })),
            item(
                json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "bye" }] }),
            ),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let records = read(&text, "s");
        let messages: Vec<&str> = records[0].messages.iter().map(|message| message.get()).collect();
        assert_eq!(records[0].model.as_deref(), Some("gpt-5"));
        expect![[r#"
            {"role":"user","content":"hello"}
            {"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"c1","content":"done"}
            {"role":"assistant","content":"bye"}"#]]
        .assert_eq(&messages.join("\n"));
    }
}
