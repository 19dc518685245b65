//! Sessions of Codex: one JSON object per line, with a payload that is an item as the Responses API has it.
//!
//! Items between two messages of other people's make one reply. Where the program compacted the conversation, a new one
//! begins.

use serde_json::{Value, json};

use super::pen::{Pen, call, text_of};
use super::time::seconds;
use super::{Extent, Origin, Told};
use crate::record::Reported;

/// How texts begin that the program wrote in the user's role.
const PROGRAM: [&str; 4] = ["<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>"];

pub(super) fn read(lines: &[Value], name: &str, extent: Extent) -> Vec<Told> {
    let meta = lines.iter().find(|line| line["type"] == "session_meta").map(|line| &line["payload"]);
    let own = meta.and_then(|meta| meta["id"].as_str());
    let begin = |model: Option<String>, at: Option<f64>| {
        let mut pen = Pen::of_extent(extent);
        pen.model = model;
        if let Some(text) = meta.and_then(instructions).filter(|_| extent == Extent::Whole) {
            pen.say(json!({ "role": "system", "content": text }), at);
        }
        pen
    };
    let mut pens = vec![begin(None, lines.first().and_then(|line| seconds(&line["timestamp"])))];
    let mut n_replies = 0;
    // Counts are of the whole session, and each conversation has its part of them.
    let (mut total, mut before) = (Usage::default(), Usage::default());
    for line in lines {
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
                let mut next = begin(pen.model.clone(), at);
                let summary = text_of(&payload["message"]);
                next.say(json!({ "role": "user", "name": "harness", "content": summary }), at);
                pens.push(next);
            }
            "response_item" => {
                let is_end = match extent {
                    Extent::Whole => write_beside(pen, payload, n_replies, at),
                    Extent::Measured => false,
                };
                n_replies += u32::from(write(pen, payload, n_replies, at) || is_end);
            }
            _ => {}
        }
    }
    let n_pens = pens.len();
    let id = |n: usize| if n_pens > 1 { format!("{name}#{n}") } else { name.to_owned() };
    let told = |(n, pen): (usize, Pen)| {
        let own = own.map(|own| if n > 0 { format!("{own}#{}", n + 1) } else { own.to_owned() });
        let record = pen.end(id(n), "codex")?;
        Some(Told { record, id: own, title: None, origin: (n > 0).then_some(Origin::Before) })
    };
    pens.into_iter().enumerate().filter_map(told).collect()
}

/// What the model is told before anything is said, as older and newer sessions have it.
fn instructions(meta: &Value) -> Option<String> {
    let texts = [&meta["instructions"], &meta["base_instructions"]["text"]];
    texts.into_iter().find_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Writes what is said beside messages and calls: what the model thought, and searches that the provider made. Says
/// whether it ends a reply.
fn write_beside(pen: &mut Pen, item: &Value, n_replies: u32, at: Option<f64>) -> bool {
    let reply = n_replies.to_string();
    match item["type"].as_str().unwrap_or_default() {
        "reasoning" => {
            let thoughts = [text_of(&item["summary"]), text_of(&item["content"])];
            let thoughts: Vec<String> = thoughts.into_iter().filter(|text| !text.is_empty()).collect();
            pen.think(&reply, &thoughts.join("\n"), at);
            false
        }
        "web_search_call" => {
            let id = item["id"].as_str().map_or_else(|| format!("search_{n_replies}"), str::to_owned);
            pen.reply(&reply, "", vec![call(&id, "web_search", &item["action"].to_string())], at);
            pen.answer(&id, item["status"].as_str().unwrap_or_default(), at);
            true
        }
        _ => false,
    }
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
        let record = &read(&lines, "s", Extent::Measured)[0].record;
        let messages: Vec<&str> = record.messages.iter().map(|message| message.get()).collect();
        assert_eq!(record.model.as_deref(), Some("gpt-5"));
        expect![[r#"
            {"role":"user","content":"hello"}
            {"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"c1","content":"done"}
            {"role":"assistant","content":"bye"}"#]]
        .assert_eq(&messages.join("\n"));
    }

    #[test]
    fn the_whole_file_has_instructions_thoughts_searches_and_what_follows_a_compaction() {
        let item = |payload: Value| json!({ "type": "response_item", "payload": payload });
        let said = |role: &str, text: &str| item(json!({ "type": "message", "role": role, "content": text }));
        let lines = [
            json!({ "type": "session_meta", "payload": { "id": "x", "instructions": "be brief" } }),
            said("user", "hello"),
            item(
                json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "look it up" }] }),
            ),
            item(
                json!({ "type": "web_search_call", "status": "completed", "action": { "query": "walrus" } }),
            ),
            item(json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "found" }] })),
            said("assistant", "a walrus"),
            json!({ "type": "compacted", "payload": { "message": "they greeted" } }),
            said("user", "and now?"),
        ];
        let shown = |extent| {
            let mut out = String::new();
            for Told { record, id, origin, .. } in read(&lines, "s", extent) {
                out.push_str(&format!("{id:?} {origin:?}\n"));
                record.messages.iter().for_each(|message| out.push_str(&format!("  {message}\n")));
            }
            out
        };
        expect![[r#"
            Some("x") None
              {"role":"system","content":"be brief"}
              {"role":"user","content":"hello"}
              {"role":"assistant","content":"","reasoning_content":"look it up","tool_calls":[{"id":"search_1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"walrus\"}"}}]}
              {"role":"tool","tool_call_id":"search_1","content":"completed"}
              {"role":"assistant","content":"a walrus","reasoning_content":"found"}
            Some("x#2") Some(Before)
              {"role":"system","content":"be brief"}
              {"role":"user","name":"harness","content":"they greeted"}
              {"role":"user","content":"and now?"}
        "#]]
        .assert_eq(&shown(Extent::Whole));
        expect![[r#"
            Some("x") None
              {"role":"user","content":"hello"}
              {"role":"assistant","content":"a walrus"}
        "#]]
        .assert_eq(&shown(Extent::Measured));
    }
}
