//! Converts request bodies and lists of messages, in any wire format, to chat messages.

use fanfold_core::{Entry, Speaker, Transcript, Words};
use fanfold_wire::{Change, Conversation};
use serde_json::json;
use serde_json::value::RawValue;

use super::chat_writer::{ChatWriter, call};
use crate::record::{Record, ReportedUsage};

/// True if the text can be decoded and has at least two messages.
pub(super) fn is_conversation(text: &str) -> bool {
    Conversation::decode(text, None).is_ok_and(|(conversation, _)| conversation.messages().len() > 1)
}

pub(super) fn read(text: &str, name: &str) -> Option<Record> {
    let (conversation, changes) = Conversation::decode(text, None).ok()?;
    let model = conversation.model().map(str::to_owned);
    let raw = |json: &str| RawValue::from_string(json.to_owned()).ok();
    let tools = conversation.tools().and_then(raw);
    if conversation.format() == Record::format() {
        let messages = conversation.messages().filter_map(raw).collect();
        let (id, source) = (name.to_owned(), name.to_owned());
        let reported = ReportedUsage::default();
        return Some(Record {
            id,
            source,
            messages,
            tools,
            tokens: None,
            model,
            times: Vec::new(),
            reported,
        });
    }
    let mut transcript = Transcript::new();
    for change in changes {
        match change {
            Change::Append(entry) => {
                transcript.append(entry, &Words);
            }
            Change::Answer(call, outcome) => {
                transcript.set_result(call, outcome, &Words);
            }
        }
    }
    let mut writer = ChatWriter::with_model(model);
    transcript.entries().iter().enumerate().for_each(|(i, entry)| write(&mut writer, i, entry));
    writer.finish(name.to_owned(), name).map(|record| Record { tools, ..record })
}

fn write(writer: &mut ChatWriter, i: usize, entry: &Entry) {
    match entry {
        Entry::Prompt(prompt) => {
            let content = prompt.body.as_str();
            writer.add_message(
                match prompt.speaker {
                    Speaker::System => json!({ "role": "system", "content": content }),
                    Speaker::User => json!({ "role": "user", "content": content }),
                    Speaker::Harness | Speaker::Provider => {
                        json!({ "role": "user", "name": "harness", "content": content })
                    }
                },
                None,
            );
        }
        Entry::Step(step) => {
            let calls = step
                .calls
                .iter()
                .map(|step_call| call(&step_call.id, &step_call.tool, step_call.arguments.as_str()));
            writer.add_reply(&i.to_string(), step.text.as_str(), calls.collect(), None);
            for step_call in &step.calls {
                if let Some(outcome) = &step_call.result {
                    writer.add_result(&step_call.id, outcome.body.as_str(), None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_another_wire_format_becomes_chat() {
        let body = json!({
            "model": "claude-x",
            "system": "be brief",
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "c1", "name": "ls", "input": {} }] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "content": "a b" }] },
            ]
        });
        let record = read(&body.to_string(), "x").expect("a body that can be decoded");
        let roles: Vec<String> = record
            .messages
            .iter()
            .map(|message| {
                let message: serde_json::Value = serde_json::from_str(message.get()).expect("JSON");
                message["role"].as_str().unwrap_or_default().to_owned()
            })
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    }
}
