//! Sessions of Claude Code: one JSON object per line, each with the line it follows.
//!
//! What was rewound, what subagents did and what the program noted for itself is left out. Where the program compacted
//! the conversation, a new one begins. A reply comes as several lines, one for each of its blocks.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::pen::{Pen, call, text_of};
use super::time::seconds;
use crate::record::Record;

pub(super) fn read(text: &str, name: &str) -> Vec<Record> {
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_said = |line: &Value| {
        matches!(line["type"].as_str(), Some("user" | "assistant")) && line["isSidechain"] != true
    };
    let chains = chains(&lines, is_said);
    let n_chains = chains.len();
    let mut records = Vec::new();
    for (n, chain) in chains.into_iter().enumerate() {
        let mut pen = Pen::default();
        chain.iter().for_each(|at| write(&mut pen, &lines[*at]));
        let id = if n_chains > 1 { format!("{name}#{n}") } else { name.to_owned() };
        records.extend(pen.end(id, "claude-code"));
    }
    records
}

/// The lines of each conversation, in the order of the file.
fn chains(lines: &[Value], is_said: impl Fn(&Value) -> bool) -> Vec<Vec<usize>> {
    let by_id: FxHashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, line)| Some((line["uuid"].as_str()?, i))).collect();
    let mut taken: FxHashSet<usize> = FxHashSet::default();
    let mut chains = Vec::new();
    for last in (0..lines.len()).rev().filter(|last| is_said(&lines[*last])) {
        let mut chain = Vec::new();
        let mut at = Some(last);
        let mut is_rewound = taken.contains(&last);
        while let Some(line) = at.filter(|_| !is_rewound) {
            chain.push(line);
            at = lines[line]["parentUuid"].as_str().and_then(|parent| by_id.get(parent).copied());
            // What joins a conversation that goes on elsewhere was given up; what loops is broken.
            is_rewound = at.is_some_and(|at| taken.contains(&at)) || chain.len() > lines.len();
        }
        if !is_rewound {
            add_siblings(lines, &mut chain, last);
            chain.sort_unstable();
            chain.dedup();
            taken.extend(&chain);
            chain.retain(|line| is_said(&lines[*line]));
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

fn write(pen: &mut Pen, line: &Value) {
    let at = seconds(&line["timestamp"]);
    let message = &line["message"];
    let blocks = match &message["content"] {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    if line["type"] == "assistant" {
        return write_reply(pen, message, &blocks, at);
    }
    let mut said = Vec::new();
    for block in &blocks {
        match block["tool_use_id"].as_str() {
            Some(id) => pen.answer(id, &text_of(&block["content"]), at),
            None => said.push(block.clone()),
        }
    }
    if !said.is_empty() {
        let content = text_of(&Value::from(said));
        let is_program = line["isMeta"] == true || line["isCompactSummary"] == true;
        let mut message = json!({ "role": "user", "content": content });
        if is_program {
            message["name"] = Value::from("harness");
        }
        pen.say(message, at);
    }
}

fn write_reply(pen: &mut Pen, message: &Value, blocks: &[Value], at: Option<f64>) {
    let id = message["id"].as_str().unwrap_or_default();
    let is_real = message["model"] != "<synthetic>";
    if let Some(model) = message["model"].as_str().filter(|_| is_real) {
        pen.model = Some(model.to_owned());
    }
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        call(text("id"), text("name"), &block["input"].to_string())
    });
    let texts =
        blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    pen.reply(id, &texts.collect::<Vec<_>>().join("\n"), calls.collect(), at);
    pen.reported.note(id, &message["usage"]);
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(lines: &[Value], expected: &Expect) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut out = String::new();
        for record in read(&text, "s") {
            out.push_str(&format!("{} {}\n", record.id, record.model.as_deref().unwrap_or("-")));
            record.messages.iter().for_each(|message| out.push_str(&format!("  {message}\n")));
        }
        expected.assert_eq(&out);
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
    fn what_was_rewound_is_left_out_and_a_compaction_begins_anew() {
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
}
