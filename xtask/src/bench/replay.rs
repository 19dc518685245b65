//! Times `fanfold replay` and the yardstick, a replay in Python, on the same conversations.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::page;
use crate::recordings::Replays;

const TABLE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench replay --write -->";
/// Rounds; the sides run in turn, and the best time of each counts.
const ROUNDS: usize = 2;
const WINDOWS: [&str; 4] = ["8000", "16000", "32000", "64000"];

/// The yardstick's policy, the policy of fanfold, and their labels in the table.
const RUNS: [(&str, &str, &str); 3] = [
    ("`fanfold pipe`, handles opened", "", "fanfold"),
    ("its own `best-lines`", "best-lines", "fanfold"),
    ("its own `sliding`, the cheapest", "sliding", "window"),
];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let script = root.join("../shared/tools/replay/replay.py");
    ensure!(
        script.exists(),
        "{} does not exist\n\nhint: the benchmark compares with this program",
        script.display()
    );
    let python = crate::bench::venv(&root.join("target/bench/yardstick"), &["tiktoken", "litellm"])?;
    let replays = Replays::new()?;
    let mut best = [[f64::INFINITY; 2]; RUNS.len()];
    for _ in 0..ROUNDS {
        for (best, (_, theirs, ours)) in best.iter_mut().zip(RUNS) {
            let mut command = Command::new(&python);
            command.arg(&script).arg("--data").args(replays.files()).arg("--window").args(WINDOWS);
            if theirs.is_empty() {
                let pipe = format!("{} pipe --policy fanfold --cadence window", replays.program().display());
                command.args(["--expand", "--cmd", &pipe]);
            } else {
                command.args(["--policy", theirs]);
            }
            best[0] = best[0].min(seconds(command.current_dir(script.parent().unwrap_or(Path::new("."))))?);
            let mut command = Command::new(replays.program());
            command.arg("replay").args(replays.files()).args(["--cadence", "window", "--policy", ours]);
            best[1] = best[1].min(seconds(command.arg("--window").args(WINDOWS))?);
        }
    }
    let mut table = "| the yardstick replays | in | `fanfold replay` | in | ratio |\n".to_owned();
    table += "| --- | --- | --- | --- | --- |\n";
    for ([theirs, ours], (name, _, policy)) in best.iter().zip(RUNS) {
        table += &format!("| {name} | {theirs:.1} s | `{policy}` | {ours:.2} s | 1/{:.1} |\n", theirs / ours);
    }
    if arguments.iter().any(|argument| argument == "--write") {
        page::write_table(&root.join(TABLE), BEGIN, &table)?;
    }
    page::print(&table);
    Ok(())
}

/// The running time of a command, which must succeed.
fn seconds(command: &mut Command) -> anyhow::Result<f64> {
    command.env_remove("FANFOLD_CONFIG").env("PYTHONDONTWRITEBYTECODE", "1").stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(start.elapsed().as_secs_f64())
}
