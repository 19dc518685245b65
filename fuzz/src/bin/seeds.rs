//! Writes seeds for every target into `corpus/`, from the bodies of the testkit.

use std::fs;
use std::path::Path;

use fanfold_core::{Transcript, Words, print_entries};
use fanfold_testkit::fakes::upstream::too_long_error;
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use fanfold_wire::{Change, Conversation, Format};
// Linked because the crates are instrumented for the fuzzer.
use libfuzzer_sys as _;
use serde_json::{Value, json};

const N_SEEDS: u64 = 150;
/// Longer seeds slow down every run and find nothing more.
const MAX_LEN: usize = 12 * 1024;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (kind, format) in BodyFormat::ALL.into_iter().zip(Format::ALL) {
        for seed in 0..N_SEEDS {
            let body = rich(kind, seed);
            write(
                &corpus.join(format.to_string()),
                &format!("rich-{seed}"),
                &[&[seed as u8], body.as_bytes()],
            )?;
            let odd = hostile(kind, seed);
            write(
                &corpus.join(format.to_string()),
                &format!("hostile-{seed}"),
                &[&[seed as u8], odd.as_bytes()],
            )?;
            if let Some(late) = with_late_system(&body).filter(|_| format == Format::Anthropic) {
                write(&corpus.join("anthropic"), &format!("late-{seed}"), &[&[seed as u8], late.as_bytes()])?;
            }
            let Ok((conversation, changes)) = Conversation::decode(&body, Some(format)) else { continue };
            let lines = pipe_lines(&conversation, seed);
            write(&corpus.join("pipe"), &format!("{format}-{seed}"), &[&[seed as u8], lines.as_bytes()])?;
            let transcript = transcript_of(changes);
            let printed = print_entries(transcript.entries());
            write(&corpus.join("notation"), &format!("{format}-{seed}"), &[printed.as_bytes()])?;
            write_texts(&corpus.join("texts"), &format!("{format}-{seed}"), &transcript)?;
        }
    }
    write_answers(&corpus)
}

/// Writes answers of each provider, and errors.
fn write_answers(corpus: &Path) -> std::io::Result<()> {
    for (i, answer) in fanfold_fuzz::reply::seeds().iter().enumerate() {
        write(&corpus.join("reply"), &i.to_string(), &[answer])?;
    }
    for (i, kind) in [BodyFormat::Anthropic, BodyFormat::Chat, BodyFormat::Responses].into_iter().enumerate()
    {
        let error = too_long_error(kind, 213_462, 200_000).to_string();
        write(&corpus.join("refusal"), &i.to_string(), &[&[1, 90], error.as_bytes()])?;
    }
    Ok(())
}

/// Adds a system message after each user message, as Claude Code does.
fn with_late_system(body: &str) -> Option<String> {
    let mut body: Value = serde_json::from_str(body).ok()?;
    let messages = body.get_mut("messages")?.as_array_mut()?;
    let late = json!({"role": "system", "content": "be brief"});
    let is_user = |message: &Value| message.get("role").is_some_and(|role| role == "user");
    let with_late = std::mem::take(messages).into_iter().flat_map(|message| {
        let late = is_user(&message).then(|| late.clone());
        [Some(message), late].into_iter().flatten()
    });
    *messages = with_late.collect();
    Some(body.to_string())
}

/// The lines that send a conversation whole or message by message, then every operation.
fn pipe_lines(conversation: &Conversation, seed: u64) -> String {
    let messages: Vec<&str> = conversation.messages().collect();
    let window = 20 + seed * 7;
    let mut lines = Vec::new();
    if seed.is_multiple_of(2) {
        let half = messages.len() / 2;
        for part in [&messages[..half], &messages[..]] {
            let tools = conversation.tools().unwrap_or("[]");
            let list = part.join(",");
            lines.push(format!(r#"{{"session":"a","window":{window},"messages":[{list}],"tools":{tools}}}"#));
        }
    } else {
        for (i, message) in messages.iter().enumerate() {
            let call = i + 1;
            lines.push(format!(
                r#"{{"session":1,"call":{call},"incremental":true,"window":{window},"messages":[{message}]}}"#
            ));
        }
    }
    let session = if seed.is_multiple_of(2) { r#""a""# } else { "1" };
    for op in [
        r#""op":"report""#,
        r#""op":"pin","entry":1"#,
        r#""op":"unpin","entry":1"#,
        r#""op":"focus","topic":"errors""#,
        r#""op":"fold","from":0,"to":3"#,
        r#""op":"unfold","handle":"2243bf1f""#,
        r#""op":"fold""#,
        r#""op":"recall","handle":"2243bf1f","lines":[1,2]"#,
        r#""op":"recall","handle":"2243bf1f","search":"a","around":1"#,
        r#""op":"expand","handle":"2243bf1f""#,
    ] {
        lines.push(format!(r#"{{"session":{session},{op}}}"#));
    }
    lines.join("\n")
}

fn transcript_of(changes: Vec<Change>) -> Transcript {
    let mut transcript = Transcript::new();
    changes.into_iter().for_each(|change| change.apply(&mut transcript, &Words));
    transcript
}

fn write_texts(directory: &Path, name: &str, transcript: &Transcript) -> std::io::Result<()> {
    let steps = transcript.entries().iter().filter_map(|entry| entry.step());
    for (i, call) in steps.flat_map(|step| &step.calls).enumerate().take(3) {
        let result = call.result.as_ref().map_or("", |outcome| outcome.body.as_str());
        let text = [&call.tool, call.arguments.as_str(), result].join("\0");
        write(directory, &format!("{name}-{i}"), &[&[100, 0], text.as_bytes()])?;
    }
    Ok(())
}

fn write(directory: &Path, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
    let content = parts.concat();
    if content.len() > MAX_LEN {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    fs::write(directory.join(name), content)
}
