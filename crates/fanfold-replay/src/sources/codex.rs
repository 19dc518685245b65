//! Reads sessions of Codex: one JSON object per line, whose payload is an item of the Responses API.
//!
//! Consecutive items of the model make one reply. A compaction starts a new conversation.

use serde_json::{Value, json};

use super::chat_writer::{ChatWriter, call, text_of};
use super::time::seconds;
use super::{ConversationOrigin, ReadExtent, SourceConversation};
use crate::record::ReportedUsage;

/// Prefixes of texts that the program writes in the user's role.
const HARNESS_PREFIXES: [&str; 4] =
    ["<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>"];

pub(super) fn read(lines: &[Value], name: &str, extent: ReadExtent) -> Vec<SourceConversation> {
    let meta = lines.iter().find(|line| line["type"] == "session_meta").map(|line| &line["payload"]);
    let session_id = meta.and_then(|meta| meta["id"].as_str());
    let begin = |model: Option<String>, at: Option<f64>| {
        let mut writer = ChatWriter::with_extent(extent);
        writer.model = model;
        if let Some(text) = meta.and_then(instructions).filter(|_| extent == ReadExtent::Whole) {
            writer.add_message(json!({ "role": "system", "content": text }), at);
        }
        writer
    };
    let mut writers = vec![begin(None, lines.first().and_then(|line| seconds(&line["timestamp"])))];
    let mut n_replies = 0;
    // The file counts tokens of the whole session; each conversation gets the difference.
    let (mut total, mut before) = (SessionUsage::default(), SessionUsage::default());
    for line in lines {
        let at = seconds(&line["timestamp"]);
        let payload = &line["payload"];
        let Some(writer) = writers.last_mut() else { break };
        match line["type"].as_str().unwrap_or_default() {
            "turn_context" => {
                writer.model = payload["model"].as_str().map(str::to_owned).or(writer.model.take());
            }
            "event_msg" if payload["type"] == "token_count" => {
                total = SessionUsage::read(&payload["info"]["total_token_usage"]).unwrap_or(total);
                total.since(before).store_in(&mut writer.reported);
            }
            "compacted" => {
                before = total;
                let mut next = begin(writer.model.clone(), at);
                let summary = text_of(&payload["message"]);
                next.add_message(json!({ "role": "user", "name": "harness", "content": summary }), at);
                writers.push(next);
            }
            "response_item" => {
                let is_end = match extent {
                    ReadExtent::Whole => write_extra(writer, payload, n_replies, at),
                    ReadExtent::Measured => false,
                };
                n_replies += u32::from(write(writer, payload, n_replies, at) || is_end);
            }
            _ => {}
        }
    }
    finish_all(writers, name, session_id)
}

fn finish_all(writers: Vec<ChatWriter>, name: &str, session_id: Option<&str>) -> Vec<SourceConversation> {
    let n_writers = writers.len();
    let file_id = |n: usize| if n_writers > 1 { format!("{name}#{n}") } else { name.to_owned() };
    let conversation = |(n, writer): (usize, ChatWriter)| {
        let id = session_id.map(|id| if n > 0 { format!("{id}#{}", n + 1) } else { id.to_owned() });
        let origin = (n > 0).then_some(ConversationOrigin::Continuation);
        Some(SourceConversation { record: writer.finish(file_id(n), "codex")?, id, title: None, origin })
    };
    writers.into_iter().enumerate().filter_map(conversation).collect()
}

/// The system instructions, in the fields of older and newer versions.
fn instructions(meta: &Value) -> Option<String> {
    let texts = [&meta["instructions"], &meta["base_instructions"]["text"]];
    texts.into_iter().find_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Writes reasoning and the provider's web searches. Returns true if the item ends a reply.
fn write_extra(writer: &mut ChatWriter, item: &Value, n_replies: u32, at: Option<f64>) -> bool {
    let reply = n_replies.to_string();
    match item["type"].as_str().unwrap_or_default() {
        "reasoning" => {
            let reasoning = [text_of(&item["summary"]), text_of(&item["content"])];
            let reasoning: Vec<String> = reasoning.into_iter().filter(|text| !text.is_empty()).collect();
            writer.add_reasoning(&reply, &reasoning.join("\n"), at);
            false
        }
        "web_search_call" => {
            let id = item["id"].as_str().map_or_else(|| format!("search_{n_replies}"), str::to_owned);
            writer.add_reply(&reply, "", vec![call(&id, "web_search", &item["action"].to_string())], at);
            writer.add_result(&id, item["status"].as_str().unwrap_or_default(), at);
            true
        }
        _ => false,
    }
}

/// The cumulative token usage of a session.
#[derive(Clone, Copy, Default)]
struct SessionUsage {
    input: u64,
    cached: u64,
    output: u64,
}

impl SessionUsage {
    fn read(usage: &Value) -> Option<SessionUsage> {
        let field = |key: &str| usage[key].as_u64().unwrap_or_default();
        let (input, cached, output) =
            (usage["input_tokens"].as_u64()?, field("cached_input_tokens"), field("output_tokens"));
        Some(SessionUsage { input, cached, output })
    }

    fn since(self, before: SessionUsage) -> SessionUsage {
        SessionUsage {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn store_in(self, reported: &mut ReportedUsage) {
        reported.plain = self.input.saturating_sub(self.cached);
        reported.read = self.cached;
        reported.output = self.output;
    }
}

/// Writes an item. Returns true if it ends a reply.
fn write(writer: &mut ChatWriter, item: &Value, n_replies: u32, at: Option<f64>) -> bool {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let reply = n_replies.to_string();
    match text("type") {
        "message" if item["role"] == "assistant" => {
            writer.add_reply(&reply, &text_of(&item["content"]), Vec::new(), at);
            false
        }
        "message" => {
            let content = text_of(&item["content"]);
            let is_program = HARNESS_PREFIXES.iter().any(|start| content.trim_start().starts_with(start));
            let mut message = json!({ "role": text("role"), "content": content });
            if message["role"] == "developer" {
                message["role"] = Value::from("system");
            } else if is_program {
                message["name"] = Value::from("harness");
            }
            writer.add_message(message, at);
            true
        }
        "function_call" => {
            writer.add_reply(&reply, "", vec![call(text("call_id"), text("name"), text("arguments"))], at);
            false
        }
        "custom_tool_call" => {
            writer.add_reply(&reply, "", vec![call(text("call_id"), text("name"), text("input"))], at);
            false
        }
        "local_shell_call" => {
            writer.add_reply(
                &reply,
                "",
                vec![call(text("call_id"), "shell", &item["action"].to_string())],
                at,
            );
            false
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = &item["output"];
            let content = if output["content"].is_null() { output } else { &output["content"] };
            writer.add_result(text("call_id"), &text_of(content), at);
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
    fn items_become_messages() {
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
        let record = &read(&lines, "s", ReadExtent::Measured)[0].record;
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
    fn the_whole_file_has_instructions_reasoning_searches_and_compactions() {
        let item = |payload: Value| json!({ "type": "response_item", "payload": payload });
        let message =
            |role: &str, text: &str| item(json!({ "type": "message", "role": role, "content": text }));
        let lines = [
            json!({ "type": "session_meta", "payload": { "id": "x", "instructions": "be brief" } }),
            message("user", "hello"),
            item(
                json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "look it up" }] }),
            ),
            item(
                json!({ "type": "web_search_call", "status": "completed", "action": { "query": "walrus" } }),
            ),
            item(json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "found" }] })),
            message("assistant", "a walrus"),
            json!({ "type": "compacted", "payload": { "message": "they greeted" } }),
            message("user", "and now?"),
        ];
        let print = |extent| {
            let mut out = String::new();
            for SourceConversation { record, id, origin, .. } in read(&lines, "s", extent) {
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
            Some("x#2") Some(Continuation)
              {"role":"system","content":"be brief"}
              {"role":"user","name":"harness","content":"they greeted"}
              {"role":"user","content":"and now?"}
        "#]]
        .assert_eq(&print(ReadExtent::Whole));
        expect![[r#"
            Some("x") None
              {"role":"user","content":"hello"}
              {"role":"assistant","content":"a walrus"}
        "#]]
        .assert_eq(&print(ReadExtent::Measured));
    }
}
