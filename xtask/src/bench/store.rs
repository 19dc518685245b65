//! Times the stores of fanfold and Hermes 0.19.0 on the same conversation, in one run.
//!
//! Both write to the same disk and sync each commit. The sides run in turn, and the better run of each figure counts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::bench::{HERMES, run_command, transcripts, venv};
use crate::page;

const BEGIN: &str = "<!-- begin: cargo xtask bench store --write -->";
const BEGIN_MILLION: &str = "<!-- begin: cargo xtask bench store --million --write -->";
const PAGE: &str = "docs/benchmarks.md";

/// Hermes' store: append every message, read, search, branch as its command does, and compact four times.
const SCRIPT: &str = r###"
import json, logging, os, statistics, sys, tempfile, time
os.environ["HERMES_HOME"] = tempfile.mkdtemp()
os.environ["HERMES_DISABLE_LAZY_INSTALLS"] = "1"
logging.disable(logging.CRITICAL)
from pathlib import Path
from types import SimpleNamespace as N
import agent.context_compressor as module
from hermes_state import SessionDB
from tools.session_search_tool import session_search
text = "## Goal\n" + "a line of a summary with some facts in it. " * 200
module.call_llm = lambda **_: N(choices=[N(message=N(content=text))])
messages = json.load(open(sys.argv[1]))["messages"]
engine = module.ContextCompressor(model="m", config_context_length=200_000, quiet_mode=True)
compacted = engine.compress(messages)
def insert(db, session, messages):
    for m in messages:
        db.append_message(session, m["role"], m.get("content"), **{k: m.get(k) for k in ("tool_name", "tool_calls", "tool_call_id")})
def timed(work, n=1):
    times = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)
with tempfile.TemporaryDirectory() as folder:
    db = SessionDB(db_path=Path(folder) / "state.db")
    db.create_session("s", "cli")
    def size():
        db._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return os.path.getsize(db.db_path)
    figures = {"append_ms": timed(lambda: insert(db, "s", messages))}
    figures["load_ms"] = timed(lambda: db.get_messages_as_conversation("s"), 5)
    figures["broad_ms"] = timed(lambda: session_search(query="compact archive", db=db, current_session_id="other"), 5)
    figures["rare_ms"] = timed(lambda: session_search(query='"lineage parent"', db=db, current_session_id="other"), 5)
    figures["loaded_bytes"] = size()
    db.create_session("b", "cli", parent_session_id="s", model_config={"_branched_from": "s"})
    figures["fork_ms"] = timed(lambda: insert(db, "b", db.get_messages_as_conversation("s")))
    figures["fold_ms"] = timed(lambda: db.archive_and_compact("s", compacted))
    for _ in range(3):
        db.archive_and_compact("s", compacted)
    figures["folded_bytes"] = size()
    db.close()
print(json.dumps(figures))
"###;

/// Runs both and prints the table, or fanfold alone with a million messages.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let is_written = arguments.iter().any(|argument| argument == "--write");
    if arguments.iter().any(|argument| argument == "--million") {
        let line = ours(&root, &["--million".into(), "1000000".into()])?;
        return finish(&root, BEGIN_MILLION, &many(&line, &searches(&root)?)?, is_written);
    }
    let python = arguments.iter().skip_while(|argument| *argument != "--python").nth(1);
    let work = root.join("target/bench");
    let file = transcripts(&root, &work)?.pop().context("no transcript was generated")?;
    let python = python.map_or_else(|| venv(&work, &[HERMES]), |python| Ok(PathBuf::from(python)))?;
    let (mut best, mut hermes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        best.push(ours(&root, &[file.display().to_string()])?);
        let mut theirs = Command::new(&python);
        let output = run_command(theirs.args(["-c", SCRIPT]).arg(&file))?;
        hermes.extend(output.lines().last().map(str::to_owned));
    }
    finish(&root, BEGIN, &table(&best, &hermes)?, is_written)
}

fn finish(root: &Path, begin: &str, table: &str, is_written: bool) -> anyhow::Result<()> {
    if is_written {
        page::write_table(&root.join(PAGE), begin, table)?;
    }
    page::print(table);
    Ok(())
}

fn ours(root: &Path, arguments: &[String]) -> anyhow::Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["bench", "--quiet", "-p", "fanfold-store", "--bench", "store", "--"]);
    let output = run_command(cargo.args(arguments))?;
    output
        .lines()
        .find(|line| line.starts_with('{'))
        .map(str::to_owned)
        .context("the benchmark printed no figures")
}

/// The smallest figure of that name in some lines of JSON.
fn figure(lines: &[String], name: &str) -> anyhow::Result<f64> {
    let mut smallest = f64::INFINITY;
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let figure = line[name].as_f64().with_context(|| format!("there is no {name} in {line}"))?;
        smallest = smallest.min(figure);
    }
    Ok(smallest)
}

fn table(ours: &[String], hermes: &[String]) -> anyhow::Result<String> {
    let mut table =
        String::from("| | Hermes | fanfold | ratio | target |\n| --- | --- | --- | --- | --- |\n");
    let rows = [
        ("append all, each turn committed", "append_ms", "turn_ms", "1/20"),
        ("append all, each step committed", "append_ms", "append_ms", ""),
        ("append all, each message committed", "append_ms", "each_ms", ""),
        ("read all", "load_ms", "load_ms", ""),
        ("broad search", "broad_ms", "broad_ms", "1/50"),
        ("rare phrase", "rare_ms", "rare_ms", "1/10"),
        ("fork", "fork_ms", "fork_ms", "1/1000"),
        ("a fold committed", "fold_ms", "fold_ms", "1/50"),
    ];
    for (name, theirs, mine, target) in rows {
        let (theirs, mine) = (figure(hermes, theirs)?, figure(ours, mine)?);
        table.push_str(&format!(
            "| {name} | {theirs:.1} ms | {mine:.2} ms | 1/{:.0} | {target} |\n",
            theirs / mine
        ));
    }
    let (sync, n) = (figure(ours, "sync_ms")?, figure(ours, "commits")?);
    table.push_str(&format!(
        "| one sync of 16 kB to this disk; there are {n:.0} steps | | {sync:.2} ms | | |\n"
    ));
    let (index, turns, theirs) =
        (figure(ours, "index_ms")?, figure(ours, "turn_ms")?, figure(hermes, "append_ms")?);
    table.push_str(&format!(
        "| the index of all of it, when idle or before a search | in appending | {index:.0} ms | | |\n\
         | append all by turns, and the index brought up to date | {theirs:.1} ms | {:.0} ms | 1/{:.0} | |\n",
        turns + index,
        theirs / (turns + index)
    ));
    let json = figure(ours, "json_bytes")?;
    let sizes = [
        ("file after that, × the JSON", "loaded_bytes", "2.5×"),
        ("after one fork and four folds", "folded_bytes", "3×"),
    ];
    for (name, bytes, target) in sizes {
        let (theirs, mine) = (figure(hermes, bytes)?, figure(ours, bytes)?);
        let ratio = theirs / mine;
        table.push_str(&format!(
            "| {name} | {:.2}× | {:.2}× | 1/{ratio:.1} | {target} |\n",
            theirs / json,
            mine / json
        ));
    }
    Ok(table)
}

/// The output of `search_speed` for a million messages: one line per kind of search.
fn searches(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("target/bench/million");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args([
        "run",
        "--quiet",
        "--release",
        "-p",
        "fanfold-store",
        "--example",
        "search_speed",
    ]);
    let output = run_command(cargo.args(["--", "generated", "1000000"]).arg(&folder));
    // Free a gigabyte; the next run generates it again.
    std::fs::remove_dir_all(&folder)?;
    output
}

fn many(line: &str, searches: &str) -> anyhow::Result<String> {
    let lines = [line.to_owned()];
    let figure = |name| figure(&lines, name);
    let (few, many) = (figure("few_ms")?, figure("many_ms")?);
    let (json, disk) = (figure("json_bytes")?, figure("disk_bytes")?);
    Ok(format!(
        "| messages | their JSON | on disk | a step at 1,000 | a step at the end | ratio |\n\
         | --- | --- | --- | --- | --- | --- |\n\
         | {:.0} | {:.0} MB | {:.2}× | {few:.3} ms | {many:.3} ms | {:.2} |\n\n```text\n{}\n```\n",
        figure("messages")?,
        json / 1e6,
        disk / json,
        many / few,
        searches.trim_end(),
    ))
}
