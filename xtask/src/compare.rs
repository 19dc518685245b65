//! Compares the views and receipts of two builds of `fanfold` on the recorded conversations, byte for byte.
//!
//! A change of structure must not change what is sent. The command runs both programs over the same input and stops at
//! the first difference.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

const POLICIES: [&str; 6] = ["fanfold", "hermes", "rules", "hamr", "mask", "window"];
const WINDOWS: [u64; 5] = [4_000, 8_000, 16_000, 32_000, 64_000];
/// Replays whose receipts are compared.
const REPLAYS: [&str; 2] = [
    "--policy all --window 4k 8k 16k 32k 64k --cadence window",
    "--policy all --window 1M --min-ratio 0 --cadence cost --prices anthropic",
];

/// Sentences of receipts that a person reads and that were reworded, with the words before and after.
const REWORDED: [(&str, &str); 4] = [
    ("a result was over its tool's cap", "a result exceeded the cap of its tool"),
    (
        "the newest results took more than their share of the window",
        "the newest results exceeded their share of the room",
    ),
    ("lines of the newest results stood above already", "the newest results repeated visible lines"),
    (
        "the provider refused the request for its length",
        "the provider refused the request because of its length",
    ),
];

/// Compares the programs at two paths.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [before, after] = arguments else { bail!("usage: cargo xtask compare BEFORE AFTER") };
    let files = crate::recordings::files(&crate::tidy::root())?;
    for replay in REPLAYS {
        for file in &files {
            let output = |program: &str| {
                let mut command = Command::new(program);
                command.arg("replay").arg(file).args(["--json", "--receipts", "--quiet"]);
                output_of(command.args(replay.split(' ')), "")
            };
            compare(&output(before)?, &output(after)?, &format!("replay {replay}"), file)?;
        }
    }
    for file in &files {
        let conversations = conversations(file)?;
        for policy in POLICIES {
            for (cadence, windows) in [("window", &WINDOWS[..]), ("cost", &[1_000_000][..])] {
                let requests = requests(&conversations, windows);
                let output = |program: &str| {
                    let mut command = Command::new(program);
                    command.args(["pipe", "--policy", policy, "--cadence", cadence]);
                    output_of(command.args(["--model", "claude-opus-4-5"]), &requests)
                };
                compare(&output(before)?, &output(after)?, &format!("pipe {policy} {cadence}"), file)?;
            }
        }
    }
    Ok(())
}

fn compare(before: &[u8], after: &[u8], name: &str, file: &Path) -> anyhow::Result<()> {
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    let reworded = REWORDED.iter().fold(String::from_utf8_lossy(before).into_owned(), |text, (old, new)| {
        if text.contains(old) { text.replace(old, new) } else { text }
    });
    let before = reworded.as_bytes();
    if before != after {
        let at = before.iter().zip(after).take_while(|(left, right)| left == right).count();
        let excerpt = |bytes: &[u8]| {
            let range = at.saturating_sub(200)..(at + 200).min(bytes.len());
            String::from_utf8_lossy(&bytes[range]).into_owned()
        };
        bail!(
            "{name}, {file}: outputs differ from byte {at}\nbefore: {}\nafter:  {}",
            excerpt(before),
            excerpt(after)
        );
    }
    crate::page::print(&format!("identical: {name}, {file}, {} bytes", before.len()));
    Ok(())
}

/// One line for `fanfold pipe` per conversation and window.
fn requests(conversations: &[Value], windows: &[u64]) -> String {
    let mut lines = String::new();
    for conversation in conversations {
        for window in windows {
            let mut request = json!({ "window": window, "messages": conversation["messages"] });
            if conversation["tools"].is_array() {
                request["tools"] = conversation["tools"].clone();
            }
            lines.push_str(&request.to_string());
            lines.push('\n');
        }
    }
    lines
}

fn conversations(file: &Path) -> anyhow::Result<Vec<Value>> {
    let mut text = String::new();
    GzDecoder::new(File::open(file)?).read_to_string(&mut text)?;
    let parse =
        |line| serde_json::from_str(line).with_context(|| format!("invalid JSON in {}", file.display()));
    text.lines().map(parse).collect()
}

fn output_of(command: &mut Command, input: &str) -> anyhow::Result<Vec<u8>> {
    command.env_remove("FANFOLD_CONFIG").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let mut stdin = child.stdin.take().context("the child has no stdin")?;
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output();
        // A program that exits early closes its stdin; its exit code and output say why.
        drop(writer.join());
        output
    })?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(output.stdout)
}
