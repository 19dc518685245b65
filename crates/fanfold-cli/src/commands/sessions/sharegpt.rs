//! A session as ShareGPT: who said what, calls and results as tagged text.

use fanfold_core::{Entry, Speaker, Transcript, Words};
use fanfold_engine::decode;
use fanfold_store::SessionRow;
use serde_json::{Value, json};

use crate::failure::not_decoded;

/// One line of a data set.
pub(crate) fn line(row: &SessionRow, body: &str) -> anyhow::Result<String> {
    let format = row.format.parse().ok();
    let decoded = decode(body, None).or_else(|_| decode(body, format));
    let (conversation, changes) = decoded.map_err(|error| not_decoded(&row.id.0, &error))?;
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    let turns: Vec<Value> = transcript.entries().iter().flat_map(turns).collect();
    let mut line = json!({ "id": row.id.0, "source": row.source, "conversations": turns });
    if let Some(tools) = conversation.tools() {
        line["tools"] = Value::String(tools.to_owned());
    }
    Ok(line.to_string())
}

fn turns(entry: &Entry) -> Vec<Value> {
    let turn = |from: &str, value: String| json!({ "from": from, "value": value });
    match entry {
        Entry::Prompt(prompt) => {
            let from = match prompt.speaker {
                Speaker::System => "system",
                Speaker::User | Speaker::Harness | Speaker::Provider => "human",
            };
            vec![turn(from, prompt.body.as_str().to_owned())]
        }
        Entry::Step(step) => {
            let mut text = String::new();
            if !step.reasoning.is_empty() {
                text.push_str(&format!("<think>\n{}\n</think>\n", step.reasoning.as_str()));
            }
            text.push_str(step.text.as_str());
            for call in &step.calls {
                let arguments: Value = serde_json::from_str(call.arguments.as_str())
                    .unwrap_or_else(|_| Value::String(call.arguments.as_str().to_owned()));
                let said = json!({ "name": &*call.tool, "arguments": arguments });
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&format!("<tool_call>\n{said}\n</tool_call>"));
            }
            let results = step.calls.iter().filter_map(|call| Some((call, call.result.as_ref()?)));
            let results = results.map(|(call, outcome)| {
                let said = json!({ "name": &*call.tool, "content": outcome.body.as_str() });
                turn("tool", format!("<tool_response>\n{said}\n</tool_response>"))
            });
            std::iter::once(turn("gpt", text)).chain(results).collect()
        }
    }
}
