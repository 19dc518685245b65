//! Summary requests of clients, by their phrases, and conversations that are not summary requests.

use fanfold_testkit::trajectories::trajectories;
use fanfold_wire::reply;
use fanfold_wire::{Format, Incoming};
use serde_json::{Value, json};

/// The client, the position of its phrase, and the phrase.
const SUMMARY_PROMPTS: &[(&str, &str, &str)] = &[
    (
        "Claude Code",
        "prompt",
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far, paying close attention",
    ),
    (
        "Claude Code, beside",
        "system",
        "You are a helpful AI assistant tasked with summarizing conversations.",
    ),
    ("Codex", "prompt", "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary"),
    ("opencode", "prompt", "Create a new anchored summary from the conversation history above."),
    ("opencode", "system", "You are an anchored context summarization assistant for coding sessions."),
    ("opencode, older", "prompt", "Provide a detailed prompt for continuing our conversation above."),
    (
        "gemini-cli",
        "system",
        "You are a specialized system component responsible for distilling chat history into a structured XML",
    ),
    (
        "Hermes",
        "prompt",
        "You are a summarization agent creating a context checkpoint. Treat the turns below as source material.",
    ),
    (
        "Cline",
        "prompt",
        "<explicit_instructions type=\"summarize_task\">\nThe current conversation is rapidly running out of context. Now, your urgent task is to create a comprehensive detailed summary of the conversation so far",
    ),
    (
        "goose",
        "system",
        "## Task Context\n- An llm context limit was reached when a user was in a working session with an agent (you)",
    ),
    (
        "pi",
        "end",
        "The messages above are a conversation to summarize. Create a structured context checkpoint summary",
    ),
    ("pi", "system", "You are a context summarization assistant. Your task is to read a conversation"),
    (
        "kimi-cli",
        "prompt",
        "You are tasked with compacting a coding conversation: compact this conversation context",
    ),
    ("crush", "system", "You are summarizing a conversation to preserve context for continuing work later."),
    (
        "Copilot",
        "system",
        "Your task is to create a comprehensive, detailed summary of the entire conversation that captures all essential information",
    ),
    ("OpenHands", "prompt", "You are maintaining a context-aware state summary for an interactive agent."),
    ("aider", "system", "*Briefly* summarize this partial conversation about programming."),
];

fn body(format: Format, system: &str, last: &str) -> Value {
    let turns = [("user", "fix the bug"), ("assistant", "done")];
    match format {
        Format::Anthropic => {
            let mut messages: Vec<_> =
                turns.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
            // The client merges its prompt with the results that came before it.
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "text", "text": last}]}));
            json!({"system": [{"type": "text", "text": "x-billing: 1"}, {"type": "text", "text": system}], "messages": messages})
        }
        Format::Responses => {
            let item = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
            let mut items: Vec<_> = turns.iter().map(|(role, text)| item(role, text)).collect();
            items.push(item("user", last));
            json!({"instructions": system, "input": items})
        }
        _ => {
            let mut messages = vec![json!({"role": "system", "content": system})];
            messages.extend(turns.iter().map(|(role, text)| json!({"role": role, "content": text})));
            messages.push(json!({"role": "user", "content": last}));
            json!({"messages": messages})
        }
    }
}

fn is_summary_request(body: &str, format: Format) -> bool {
    Incoming::open(body, Some(format)).is_ok_and(|incoming| reply::is_summary_request(&incoming))
}

#[test]
fn summary_requests_are_recognised_in_every_format() {
    for (who, place, words) in SUMMARY_PROMPTS {
        for format in [Format::Anthropic, Format::Chat, Format::Responses] {
            let long = "[User]: hello\n".repeat(5000);
            let (system, last) = match *place {
                "system" => ((*words).to_owned(), "go on".to_owned()),
                "prompt" => ("You are an agent.".to_owned(), format!("{words}\n{long}")),
                _ => ("You are an agent.".to_owned(), format!("{long}\n{words}")),
            };
            let body = body(format, &system, &last).to_string();
            assert!(is_summary_request(&body, format), "{who} in {format}");
        }
    }
    assert!(is_summary_request(
        r#"{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}"#,
        Format::Responses
    ));
}

#[test]
fn conversations_about_summaries_are_not_recognised() {
    let prompts = [
        "please summarize the README in three lines",
        "write a summary of the changes you made",
        "why does /compact lose my instructions?",
        "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion.",
    ];
    for format in [Format::Anthropic, Format::Chat, Format::Responses] {
        for prompt in prompts {
            let body = body(format, "You are Claude Code. Compaction summarizes long conversations.", prompt)
                .to_string();
            assert!(!is_summary_request(&body, format), "{prompt} in {format}");
        }
        // The prompt is not the last message.
        let words = SUMMARY_PROMPTS[0].2;
        let past = match format {
            Format::Responses => {
                json!({"input": [{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]})
            }
            _ => {
                json!({"messages": [{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]})
            }
        };
        assert!(!is_summary_request(&past.to_string(), format));
        assert!(
            !is_summary_request("[]", format)
                && !is_summary_request("{", format)
                && !is_summary_request("", format)
        );
    }
}

#[test]
fn recorded_prompts_are_not_summary_requests() {
    let Some(trajectories) = trajectories() else { return };
    let (mut n_prompts, mut wrong) = (0, Vec::new());
    for trajectory in &trajectories {
        let messages: Vec<&str> = trajectory.messages.iter().map(|message| message.get()).collect();
        let system = messages.first().filter(|first| first.contains("\"system\""));
        for message in &messages {
            let is_prompt =
                serde_json::from_str::<Value>(message).is_ok_and(|message| message["role"] == "user");
            if !is_prompt {
                continue;
            }
            n_prompts += 1;
            let list: Vec<&str> = system.into_iter().copied().chain([*message]).collect();
            let body = format!("{{\"messages\":[{}]}}", list.join(","));
            if is_summary_request(&body, Format::Chat) {
                wrong.push(format!("{}: {}", trajectory.id, message.chars().take(200).collect::<String>()));
            }
        }
    }
    eprintln!(
        "{n_prompts} prompts of {} conversations, {} taken for a summary request",
        trajectories.len(),
        wrong.len()
    );
    assert!(n_prompts > 500 && wrong.is_empty(), "{}", wrong.join("\n"));
}
