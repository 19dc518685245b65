//! The ShareGPT format: turns with their speakers, calls and results as tagged text.

use fanfold_core::{Entry, Speaker, Transcript, Words};
use fanfold_engine::decode;
use fanfold_redact::redact;
use fanfold_store::SessionRow;
use serde_json::{Value, json};

use crate::failure::{Result, not_decoded};

/// How secrets are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    /// Unchanged, for the user's own use.
    Keep,
    /// Removed, for data sets that are shared.
    Redact,
}

impl Secrets {
    fn apply(self, text: &str) -> String {
        match self {
            Secrets::Keep => text.to_owned(),
            Secrets::Redact => redact(text).into_owned(),
        }
    }
}

/// One line of a data set.
pub(super) fn line(row: &SessionRow, body: &str, secrets: Secrets) -> Result<String> {
    let format = row.format.parse().ok();
    let decoded = decode(body, None).or_else(|_| decode(body, format));
    let (conversation, changes) = decoded.map_err(|error| not_decoded(&row.id.0, &error))?;
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    let turns: Vec<Value> = transcript.entries().iter().flat_map(|entry| turns(entry, secrets)).collect();
    let mut line = json!({ "id": row.id.0, "source": row.source, "conversations": turns });
    if let Some(tools) = conversation.tools() {
        line["tools"] = Value::String(secrets.apply(tools));
    }
    Ok(line.to_string())
}

fn turns(entry: &Entry, secrets: Secrets) -> Vec<Value> {
    let turn = |from: &str, value: String| json!({ "from": from, "value": value });
    match entry {
        Entry::Prompt(prompt) => {
            let from = match prompt.speaker {
                Speaker::System => "system",
                Speaker::User | Speaker::Harness | Speaker::Provider => "human",
            };
            vec![turn(from, secrets.apply(prompt.body.as_str()))]
        }
        Entry::Step(step) => {
            let mut text = String::new();
            if !step.reasoning.is_empty() {
                text.push_str(&format!("<think>\n{}\n</think>\n", secrets.apply(step.reasoning.as_str())));
            }
            text.push_str(&secrets.apply(step.text.as_str()));
            for call in &step.calls {
                // Redact the JSON first, because names of fields reveal secrets, then each text without its escapes.
                let arguments = secrets.apply(call.arguments.as_str());
                let mut arguments: Value =
                    serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                map_texts(&mut arguments, &|text| secrets.apply(text));
                let tagged = json!({ "name": &*call.tool, "arguments": arguments });
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&format!("<tool_call>\n{tagged}\n</tool_call>"));
            }
            let results = step.calls.iter().filter_map(|call| Some((call, call.result.as_ref()?)));
            let results = results.map(|(call, outcome)| {
                let tagged = json!({ "name": &*call.tool, "content": secrets.apply(outcome.body.as_str()) });
                turn("tool", format!("<tool_response>\n{tagged}\n</tool_response>"))
            });
            std::iter::once(turn("gpt", text)).chain(results).collect()
        }
    }
}

/// Replaces every text in a JSON value.
fn map_texts(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| map_texts(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
