//! Times fanfold and Hermes 0.19.0 on the same conversations, in one run.
//!
//! Benchmark machines are noisy, so only ratios are comparable: both sides run in turn, several times, and the best
//! run of each counts.

mod file; //    time to the first byte for a file of 10 MB
mod proxy; //   latency, streams and memory of the proxy
mod replay; //  `fanfold replay` and the yardstick
mod store; //   the stores
mod summary; // facts contained in summary prompts

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::page;
pub(crate) use proxy::free_port;

use crate::recordings::Replays;

/// Numbers of messages, each with a window that is too small for them.
const SIZES: [(&str, u64); 3] = [("200", 64_000), ("1000", 200_000), ("5000", 200_000)];
const TABLE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench --write -->";
pub(crate) const HERMES: &str = "hermes-agent==0.19.0";

/// Hermes' own `compress()` with its model stubbed out; prints the median time of each `WINDOW:FILE` in milliseconds.
const SCRIPT: &str = r###"
import json, logging, os, statistics, sys, tempfile, time
os.environ["HERMES_HOME"] = tempfile.mkdtemp()
os.environ["HERMES_DISABLE_LAZY_INSTALLS"] = "1"
logging.disable(logging.CRITICAL)
from types import SimpleNamespace as N
import agent.context_compressor as module
text = "## Goal\n" + "a line of a summary with some facts in it. " * 200
module.call_llm = lambda **_: N(choices=[N(message=N(content=text))])
for wanted in sys.argv[1:]:
    window, file = wanted.split(":", 1)
    messages, times = json.load(open(file))["messages"], []
    first = time.perf_counter()
    while len(times) < 7 or time.perf_counter() - first < 0.5:
        engine = module.ContextCompressor(model="m", config_context_length=int(window), quiet_mode=True)
        start = time.perf_counter()
        engine.compress(messages)
        times.append(1e3 * (time.perf_counter() - start))
    print("hermes", statistics.median(times))
"###;

/// Prints the peak memory of `fanfold fold` for each `WINDOW:FILE` minus that for a conversation of one line:
/// median of seven runs, in kB.
const MEMORY: &str = r###"
import os, statistics, sys, tempfile
program = sys.argv[1]
small = os.path.join(tempfile.mkdtemp(), "small.json")
open(small, "w").write('[{"role": "user", "content": "What is this?"}]')
def most(window, file):
    peaks = []
    for _ in range(7):
        child = os.fork()
        if child == 0:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.execv(program, [program, "fold", file, "--window", window])
        _, status, usage = os.wait4(child, 0)
        assert status == 0, file
        peaks.append(usage.ru_maxrss)
    return statistics.median(peaks)
for wanted in sys.argv[2:]:
    window, file = wanted.split(":", 1)
    print("memory", most(window, file) - most(window, small))
"###;

/// Figures for one transcript.
#[derive(Debug, Clone)]
struct Row {
    n: String,
    window: f64,
    tokens: f64,
    folds: f64,
    bytes: f64,
    decode: f64,
    fold: f64,
    step: f64,
    event: f64,
    peak_kb: f64,
    /// Peak memory of the whole program, minus that for a conversation of one line.
    program_kb: f64,
    hermes: f64,
}

/// Rounds; the best time of each side counts, and the median of memory.
const ROUNDS: usize = 7;

/// Runs the benchmark that the first argument names.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.first().map(String::as_str) {
        Some("file") => file::run(arguments),
        Some("proxy") => proxy::run(arguments),
        Some("replay") => replay::run(arguments),
        Some("store") => store::run(arguments),
        Some("summary") => summary::run(arguments),
        _ => compare_with_hermes(arguments),
    }
}

/// Times cold folds and appended steps next to Hermes' `compress()`.
fn compare_with_hermes(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let work = root.join("target/bench");
    let files = transcripts(&root, &work)?;
    let python = venv(&work, &[HERMES])?;
    let mut best: Vec<Row> = Vec::new();
    // Peak memory with several threads varies from run to run.
    let mut peaks: Vec<Vec<f64>> = vec![Vec::new(); files.len()];
    for _ in 0..ROUNDS {
        let rows = measure(&root, &python, &files)?;
        peaks.iter_mut().zip(&rows).for_each(|(peaks, row)| peaks.push(row.peak_kb));
        if best.is_empty() {
            best = rows;
            continue;
        }
        for (best, row) in best.iter_mut().zip(rows) {
            best.decode = best.decode.min(row.decode);
            best.fold = best.fold.min(row.fold);
            best.step = best.step.min(row.step);
            best.event = best.event.min(row.event);
            best.hermes = best.hermes.min(row.hermes);
        }
    }
    for (best, peaks) in best.iter_mut().zip(&mut peaks) {
        peaks.sort_by(f64::total_cmp);
        best.peak_kb = peaks[ROUNDS / 2];
    }
    let replays = Replays::new()?;
    let memory = run_command(
        Command::new(&python).args(["-c", MEMORY]).arg(replays.program()).args(windows_and_files(&files)),
    )?;
    let memory = memory.lines().filter_map(|line| line.strip_prefix("memory ")?.parse::<f64>().ok());
    best.iter_mut().zip(memory).for_each(|(best, memory)| best.program_kb = memory);
    let table = print(&best);
    if arguments.iter().any(|argument| argument == "--write") {
        page::write_table(&root.join(TABLE), BEGIN, &table)?;
    }
    page::print(&table);
    Ok(())
}

/// Generates the transcripts, the longest one last.
pub(crate) fn transcripts(root: &Path, work: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let generator = root.join("../shared/tools/gen_transcripts.py");
    ensure!(
        generator.exists(),
        "{} is not there\n\nhint: the transcripts are made by it",
        generator.display()
    );
    fs::create_dir_all(work)?;
    run_command(Command::new("python3").arg(&generator).arg(work).args(SIZES.map(|(n, _)| n)))?;
    Ok(SIZES.iter().map(|(n, _)| work.join(format!("transcript_{n}.json"))).collect())
}

/// Creates a Python environment with packages, once, and returns its interpreter.
pub(crate) fn venv(work: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let venv = work.join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run_command(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    }
    Ok(python)
}

/// Each file with its window, as `WINDOW:FILE`.
fn windows_and_files(files: &[PathBuf]) -> Vec<String> {
    let with_window = |(file, (_, window)): (&PathBuf, (&str, u64))| format!("{window}:{}", file.display());
    files.iter().zip(SIZES).map(with_window).collect()
}

fn measure(root: &Path, python: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<Row>> {
    let pairs = windows_and_files(files);
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["bench", "--quiet", "-p", "fanfold-testkit", "--bench", "fold", "--"]);
    let ours = run_command(cargo.args(&pairs))?;
    let theirs = run_command(Command::new(python).args(["-c", SCRIPT]).args(&pairs))?;
    let mut hermes = theirs.lines().filter_map(|line| line.strip_prefix("hermes ")?.parse::<f64>().ok());
    let mut rows = Vec::new();
    for (line, (n, _)) in ours.lines().filter(|line| line.starts_with('{')).zip(SIZES) {
        let figure = |name: &str| -> anyhow::Result<f64> {
            let start = line.find(&format!("\"{name}\":")).with_context(|| name.to_owned())? + name.len() + 3;
            let text: String =
                line[start..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            text.parse().with_context(|| format!("{name} is not a number in {line}"))
        };
        rows.push(Row {
            n: n.to_owned(),
            window: figure("window")?,
            tokens: figure("tokens")?,
            folds: figure("folds")?,
            bytes: figure("bytes")?,
            decode: figure("decode_ms")?,
            fold: figure("fold_ms")?,
            step: figure("step_ms")?,
            event: figure("event_ms")?,
            peak_kb: figure("peak_kb")?,
            program_kb: 0.0,
            hermes: hermes.next().context("Hermes printed no figure")?,
        });
    }
    ensure!(rows.len() == SIZES.len(), "the benchmark printed no figures:\n{ours}");
    ensure!(rows.iter().all(|row| row.folds > 0.0), "a benchmark case does not fold:\n{ours}");
    Ok(rows)
}

fn print(rows: &[Row]) -> String {
    let mut table = String::from(
        "| messages | tokens | window | folds | Hermes `compress()` | cold fold, counting included | ratio | decode | one more step | of Hermes | a step that folds | peak memory | of the program |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        table.push_str(&format!(
            "| {} | {:.0}k | {:.0}k | {:.0} | {:.1} ms | {:.2} ms | 1/{:.1} | {:.1} ms | {:.3} ms | 1/{:.0} | {:.1} ms | {:.1}× the JSON | {:.1}× |\n",
            row.n,
            row.tokens / 1e3,
            row.window / 1e3,
            row.folds,
            row.hermes,
            row.fold,
            row.hermes / row.fold,
            row.decode,
            row.step,
            row.hermes / row.step,
            row.event,
            row.peak_kb * 1024.0 / row.bytes,
            row.program_kb * 1024.0 / row.bytes,
        ));
    }
    table
}

/// Runs a command and returns its stdout.
pub(crate) fn run_command(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("{command:?} cannot be started"))?;
    if !output.status.success() {
        bail!("{command:?} failed");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
