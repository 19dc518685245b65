//! Reads sessions of Claude Code: one JSON object per line, each with the id of its parent line.
//!
//! Rewound lines and the program's own notes are left out; a replay also leaves out subagents and reasoning. A
//! compaction starts a new conversation. A reply has several lines, one for each of its blocks.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::chat_writer::{ChatWriter, call, text_of};
use super::time::seconds;
use super::{ConversationOrigin, ReadExtent, SourceConversation};
use crate::record::Record;

pub(super) fn read(lines: &[Value], name: &str, extent: ReadExtent) -> Vec<SourceConversation> {
    let is_message = |line: &Value| matches!(line["type"].as_str(), Some("user" | "assistant"));
    let is_subagent = |line: &Value| line["isSidechain"] == true;
    let session_id = lines.iter().find_map(|line| line["sessionId"].as_str());
    let mut conversations = Vec::new();
    let mains = chains(lines, |line| is_message(line) && !is_subagent(line));
    let n_mains = mains.len();
    for (n, chain) in mains.into_iter().enumerate() {
        let id = if n_mains > 1 { format!("{name}#{n}") } else { name.to_owned() };
        // All of them have the same session id in the file.
        let own_id = session_id.map(|own| if n > 0 { format!("{own}#{}", n + 1) } else { own.to_owned() });
        let origin = (n > 0).then_some(ConversationOrigin::Continuation);
        conversations.extend(write_chain(lines, &chain, id, extent).map(|record| SourceConversation {
            record,
            id: own_id,
            title: title(lines),
            origin,
        }));
    }
    if extent == ReadExtent::Whole {
        // Without the main lines, because several subagents may start at one of them.
        let lines: Vec<Value> = lines.iter().filter(|line| is_subagent(line)).cloned().collect();
        for (n, chain) in chains(&lines, is_message).into_iter().enumerate() {
            let agent = chain.first().and_then(|at| lines[*at]["agentId"].as_str());
            let agent = agent.map_or_else(|| format!("agent-{}", n + 1), str::to_owned);
            let origin = session_id.map(|id| ConversationOrigin::SubagentOf(id.to_owned()));
            let own_id = session_id.map(|id| format!("{id}-{agent}"));
            conversations.extend(
                write_chain(&lines, &chain, format!("{name} {agent}"), extent)
                    .map(|record| SourceConversation { record, id: own_id, title: None, origin }),
            );
        }
    }
    conversations
}

fn write_chain(lines: &[Value], chain: &[usize], id: String, extent: ReadExtent) -> Option<Record> {
    let mut writer = ChatWriter::with_extent(extent);
    chain.iter().for_each(|at| write(&mut writer, &lines[*at]));
    writer.finish(id, "claude-code")
}

/// The title of the session. A file may also contain titles of other sessions; each title names the last line it
/// covers.
fn title(lines: &[Value]) -> Option<String> {
    let is_here = |leaf: &Value| leaf.is_null() || lines.iter().any(|line| line["uuid"] == *leaf);
    let mut names = lines.iter().rev().filter(|line| line["type"] == "summary" && is_here(&line["leafUuid"]));
    names.find_map(|line| line["summary"].as_str()).map(str::to_owned)
}

/// The lines of each conversation, in the order of the file.
fn chains(lines: &[Value], is_message: impl Fn(&Value) -> bool) -> Vec<Vec<usize>> {
    let by_id: FxHashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, line)| Some((line["uuid"].as_str()?, i))).collect();
    let mut taken: FxHashSet<usize> = FxHashSet::default();
    let mut chains = Vec::new();
    for last in (0..lines.len()).rev().filter(|last| is_message(&lines[*last])) {
        let mut chain = Vec::new();
        let mut at = Some(last);
        let mut is_rewound = taken.contains(&last);
        while let Some(line) = at.filter(|_| !is_rewound) {
            chain.push(line);
            at = lines[line]["parentUuid"].as_str().and_then(|parent| by_id.get(parent).copied());
            // A chain that joins another one was rewound. A chain longer than the file is a loop.
            is_rewound = at.is_some_and(|at| taken.contains(&at)) || chain.len() > lines.len();
        }
        if !is_rewound {
            add_siblings(lines, &mut chain, last);
            chain.sort_unstable();
            chain.dedup();
            taken.extend(&chain);
            chain.retain(|line| is_message(&lines[*line]));
            chains.push(chain);
        }
    }
    chains.reverse();
    chains
}

/// Adds the other blocks of replies, and results of their calls, that follow the same line as one in the chain.
fn add_siblings(lines: &[Value], chain: &mut Vec<usize>, last: usize) {
    let Some(first) = chain.iter().min().copied() else { return };
    let replies: FxHashSet<&str> =
        chain.iter().filter_map(|at| lines[*at]["message"]["id"].as_str()).collect();
    let mut calls: FxHashSet<String> = FxHashSet::default();
    for (at, line) in lines.iter().enumerate().take(last + 1).skip(first) {
        let is_of_reply = line["message"]["id"].as_str().is_some_and(|id| replies.contains(id));
        if is_of_reply {
            calls.extend(blocks(line).iter().filter_map(|block| block["id"].as_str().map(str::to_owned)));
            chain.push(at);
        }
        let answers = |block: &Value| block["tool_use_id"].as_str().is_some_and(|id| calls.contains(id));
        if line["type"] == "user" && blocks(line).iter().any(answers) {
            chain.push(at);
        }
    }
}

fn blocks(line: &Value) -> &[Value] {
    line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn write(writer: &mut ChatWriter, line: &Value) {
    let at = seconds(&line["timestamp"]);
    let message = &line["message"];
    let blocks = match &message["content"] {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    if line["type"] == "assistant" {
        return write_reply(writer, message, &blocks, at);
    }
    let mut prompt = Vec::new();
    for block in &blocks {
        match block["tool_use_id"].as_str() {
            Some(id) => writer.add_result(id, &text_of(&block["content"]), at),
            None => prompt.push(block.clone()),
        }
    }
    if !prompt.is_empty() {
        let content = text_of(&Value::from(prompt));
        let is_program = line["isMeta"] == true || line["isCompactSummary"] == true;
        let mut message = json!({ "role": "user", "content": content });
        if is_program {
            message["name"] = Value::from("harness");
        }
        writer.add_message(message, at);
    }
}

fn write_reply(writer: &mut ChatWriter, message: &Value, blocks: &[Value], at: Option<f64>) {
    let id = message["id"].as_str().unwrap_or_default();
    let is_real = message["model"] != "<synthetic>";
    if let Some(model) = message["model"].as_str().filter(|_| is_real) {
        writer.model = Some(model.to_owned());
    }
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        call(text("id"), text("name"), &block["input"].to_string())
    });
    let texts =
        blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    let thoughts = blocks.iter().filter(|block| block["type"] == "thinking");
    let thoughts = thoughts.filter_map(|block| block["thinking"].as_str()).collect::<Vec<_>>().join("\n");
    writer.add_reasoning(id, &thoughts, at);
    writer.add_reply(id, &texts.collect::<Vec<_>>().join("\n"), calls.collect(), at);
    writer.reported.add(id, &message["usage"]);
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(lines: &[Value], expected: &Expect) {
        expected.assert_eq(&print(lines, ReadExtent::Measured));
    }

    fn print(lines: &[Value], extent: ReadExtent) -> String {
        let mut out = String::new();
        for SourceConversation { record, id, title, origin } in read(lines, "s", extent) {
            out.push_str(&format!("{} {}", record.id, record.model.as_deref().unwrap_or("-")));
            if extent == ReadExtent::Whole {
                out.push_str(&format!(" {id:?} {title:?} {origin:?}"));
            }
            out.push('\n');
            record.messages.iter().for_each(|message| out.push_str(&format!("  {message}\n")));
        }
        out
    }

    #[allow(clippy::needless_pass_by_value, reason = "the lines below are easier to read")]
    fn line(uuid: &str, parent: Option<&str>, message: Value) -> Value {
        json!({ "type": message["role"], "uuid": uuid, "parentUuid": parent, "message": message })
    }

    #[test]
    fn blocks_of_one_reply_are_one_message_and_results_follow() {
        let block = |block: Value| json!({ "role": "assistant", "id": "r1", "model": "claude-x", "content": [block] });
        let read =
            |id: &str| json!({ "type": "tool_use", "id": id, "name": "Read", "input": { "path": "a" } });
        let result = |id: &str| {
            let content = json!([{ "type": "tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": "x" }] }]);
            json!({ "role": "user", "content": content })
        };
        check(
            &[
                json!({ "type": "summary", "summary": "no" }),
                line("1", None, json!({ "role": "user", "content": "hello" })),
                line("2", Some("1"), block(json!({ "type": "text", "text": "I look" }))),
                line("3", Some("2"), block(read("c1"))),
                line("4", Some("3"), block(read("c2"))),
                line("5", Some("3"), result("c1")),
                line("6", Some("4"), result("c2")),
                line("7", Some("6"), json!({ "role": "assistant", "id": "r2", "content": [] })),
            ],
            &expect![[r#"
                s claude-x
                  {"role":"user","content":"hello"}
                  {"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}},{"id":"c2","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]}
                  {"role":"tool","tool_call_id":"c1","content":"x"}
                  {"role":"tool","tool_call_id":"c2","content":"x"}
                  {"role":"assistant","content":""}
            "#]],
        );
    }

    #[test]
    fn rewound_lines_are_left_out_and_a_compaction_starts_a_conversation() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let reply = |id: &str| json!({ "role": "assistant", "id": id, "content": "ok" });
        check(
            &[
                line("1", None, user("one")),
                line("2", Some("1"), reply("a")),
                line("3", Some("2"), user("given up")),
                line("4", Some("3"), reply("b")),
                line("5", Some("2"), user("two")),
                line("6", Some("5"), reply("c")),
                line("7", None, user("summary")),
                line("8", Some("7"), reply("d")),
            ],
            &expect![[r#"
                s#0 -
                  {"role":"user","content":"one"}
                  {"role":"assistant","content":"ok"}
                  {"role":"user","content":"two"}
                  {"role":"assistant","content":"ok"}
                s#1 -
                  {"role":"user","content":"summary"}
                  {"role":"assistant","content":"ok"}
            "#]],
        );
    }

    #[test]
    fn the_whole_file_has_reasoning_subagents_a_title_and_unanswered_prompts() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let thought = |id: &str, text: &str| json!({ "role": "assistant", "id": id, "content": [{ "type": "thinking", "thinking": text, "signature": "x" }] });
        let reply = |id: &str| json!({ "role": "assistant", "id": id, "content": [{ "type": "text", "text": "ok" }] });
        let aside = |mut line: Value| {
            (line["isSidechain"], line["agentId"]) = (json!(true), json!("a7"));
            line
        };
        let mut lines = vec![
            json!({ "type": "summary", "summary": "Another one", "leafUuid": "elsewhere" }),
            json!({ "type": "summary", "summary": "The parser", "leafUuid": "3" }),
            line("1", None, user("one")),
            line("2", Some("1"), thought("a", "first this")),
            line("3", Some("2"), reply("a")),
            aside(line("s1", Some("3"), user("look there"))),
            aside(line("s2", Some("s1"), reply("b"))),
            line("7", None, user("a summary, and on")),
        ];
        lines.iter_mut().for_each(|line| line["sessionId"] = json!("sid"));
        expect![[r#"
            s#0 - Some("sid") Some("The parser") None
              {"role":"user","content":"one"}
              {"role":"assistant","content":"ok","reasoning_content":"first this"}
            s#1 - Some("sid#2") Some("The parser") Some(Continuation)
              {"role":"user","content":"a summary, and on"}
            s a7 - Some("sid-a7") None Some(SubagentOf("sid"))
              {"role":"user","content":"look there"}
              {"role":"assistant","content":"ok"}
        "#]]
        .assert_eq(&print(&lines, ReadExtent::Whole));
        expect![[r#"
            s#0 -
              {"role":"user","content":"one"}
              {"role":"assistant","content":"ok"}
        "#]]
        .assert_eq(&print(&lines, ReadExtent::Measured));
    }
}
