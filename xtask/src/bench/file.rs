//! Measures the time to the first byte of `fanfold fold` for a file of 10 MB.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::bench::run_command;
use crate::page;
use crate::recordings::Replays;

const TABLE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench file --write -->";
const WINDOWS: [&str; 5] = ["200k", "64k", "32k", "16k", "8k"];
/// Number of generated messages that make about 10 MB.
const MESSAGES: &str = "5800";
/// Runs per file and window; the median counts.
const ROUNDS: usize = 7;

/// Joins recorded conversations into one of 10 MB.
const JOIN: &str = r#"
import gzip, json, random, sys
records = [json.loads(line) for file in sys.argv[2:] for line in gzip.open(file, "rt")]
random.Random(3).shuffle(records)
joined, size = [], 0
for n, record in enumerate(records):
    for message in record["messages"]:
        if joined and message["role"] == "system":
            continue
        for call in message.get("tool_calls") or []:
            call["id"] = f"{n}_{call['id']}"
        if "tool_call_id" in message:
            message["tool_call_id"] = f"{n}_{message['tool_call_id']}"
        joined.append(message)
        size += len(json.dumps(message))
    if size > 10_000_000:
        break
json.dump(joined, open(sys.argv[1], "w"))
"#;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let work = root.join("target/bench");
    std::fs::create_dir_all(&work)?;
    let replays = Replays::new()?;
    let generator = root.join("../shared/tools/gen_transcripts.py");
    run_command(Command::new("python3").arg(&generator).arg(&work).arg(MESSAGES))?;
    let joined = work.join("joined.json");
    run_command(Command::new("python3").args(["-c", JOIN]).arg(&joined).args(replays.files()))?;
    let files: [(&str, PathBuf); 2] =
        [("generated", work.join(format!("transcript_{MESSAGES}.json"))), ("recorded, joined", joined)];
    let mut table = format!("| file | MB | {} |\n| --- | --- |", WINDOWS.join(" | "));
    table += &" --- |".repeat(WINDOWS.len());
    for (name, file) in files {
        let bytes = std::fs::metadata(&file).with_context(|| file.display().to_string())?.len();
        table += &format!("\n| {name} | {:.1} |", bytes as f64 / 1e6);
        for window in WINDOWS {
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                times.push(first_byte(replays.program(), &file, window)?);
            }
            times.sort_by(f64::total_cmp);
            table += &format!(" {:.2} s |", times[ROUNDS / 2]);
        }
    }
    table.push('\n');
    if arguments.iter().any(|argument| argument == "--write") {
        page::write_table(&root.join(TABLE), BEGIN, &table)?;
    }
    page::print(&table);
    Ok(())
}

/// The seconds from the start of the program to the first byte of its output.
fn first_byte(program: &Path, file: &Path, window: &str) -> anyhow::Result<f64> {
    let mut command = Command::new(program);
    command.arg("fold").arg(file).args(["--window", window]).env_remove("FANFOLD_CONFIG");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{command:?} cannot be started"))?;
    let mut stdout = child.stdout.take().context("the program has no stdout")?;
    let n_read = stdout.read(&mut [0])?;
    let seconds = start.elapsed().as_secs_f64();
    std::io::copy(&mut stdout, &mut std::io::sink())?;
    ensure!(child.wait()?.success() && n_read == 1, "{command:?} failed");
    Ok(seconds)
}
