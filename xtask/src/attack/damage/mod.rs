//! Damages a store of 15 sessions and counts what `doctor --repair` saves.

mod damage_list; // damages of a store

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, ensure};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::tool_outputs::{KINDS, tool_output};
use serde_json::{Value, json};

use crate::attack::Trial;
use crate::attack::sandbox::Sandbox;
use crate::attack::table::Row;
use damage_list::{Damage, flips, headers, invalid_texts, pages, truncations};

const N_SESSIONS: usize = 15;
const N_STEPS: usize = 20;
/// Every session must fill many pages.
const MIN_BYTES: usize = 500_000;
/// The share of messages to save after the loss of any single page, and on average.
const LEAST: f64 = 0.90;
const LEAST_MEAN: f64 = 0.97;

/// An intact store and its content.
pub(super) struct Store {
    pub(super) bytes: Vec<u8>,
    /// The session of each message, by the JSON of the message. Every message is unique.
    pub(super) messages: BTreeMap<String, String>,
}

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let store = build(trial)?;
    let mut rng = Rng::new(trial.seed);
    let single = "≥ 90 % of the messages each, 97 % on average, all sessions";
    let kinds: [(&str, &str, Vec<Damage>); 6] = [
        ("page of zeros", single, pages(trial, &store, |_| 0, &mut rng)),
        ("page of random bytes", single, pages(trial, &store, |rng| rng.number() as u8, &mut rng)),
        ("truncation up to 50 %", "everything in the rest", truncations(trial, &store, &mut rng)),
        ("damaged header", "all messages and sessions", headers(trial, &mut rng)),
        ("changed byte", "≥ 90 % each, 97 % on average; no silent change", flips(trial, &store, &mut rng)),
        (
            "byte 0xFF in a message",
            "≥ 90 % each, 97 % on average, all sessions",
            invalid_texts(trial, &store, &mut rng),
        ),
    ];
    let mut rows = Vec::new();
    for (n, (name, target, damages)) in kinds.into_iter().enumerate() {
        rows.push(repair_all(trial, n, Row::new(format!("damage: {name}"), target), &store, &damages)?);
    }
    Ok(rows)
}

/// Stores conversations of unique messages, and reads them back.
fn build(trial: &Trial) -> anyhow::Result<Store> {
    let sandbox = Sandbox::new(trial, "damage")?;
    let mut rng = Rng::new(trial.seed);
    for n in 0..N_SESSIONS {
        sandbox.write("chat.json", conversation(n, &mut rng))?;
        let ran = sandbox.run(&format!("fold --session s{n} chat.json -w 8k --store x.db -o out.json"))?;
        ensure!(ran.is_ok(), "no store to damage: {}", ran.err_text());
    }
    let messages = exported(&sandbox, "x.db")?;
    ensure!(messages.len() == N_SESSIONS * (2 * N_STEPS + 2), "{} messages are stored", messages.len());
    let bytes = fs::read(sandbox.path("x.db"))?;
    let is_checkpointed = fs::metadata(sandbox.path("x.db-wal")).map_or(0, |wal| wal.len()) == 0;
    ensure!(is_checkpointed && bytes.len() > MIN_BYTES, "the store is not in one file");
    Ok(Store { bytes, messages })
}

fn conversation(n: usize, rng: &mut Rng) -> String {
    let mut messages = vec![
        json!({ "role": "system", "content": format!("You are assistant {n}.") }),
        json!({ "role": "user", "content": format!("Find the fault in part {n}, please.") }),
    ];
    for i in 0..N_STEPS {
        let id = format!("call_{n}_{i}");
        let mut text = tool_output(KINDS[rng.below(KINDS.len())], rng).0;
        text.truncate(text.floor_char_boundary(200 + rng.below(2_000)));
        let function = json!({ "name": "read", "arguments": format!("{{\"path\":\"part_{n}/{i}.rs\"}}") });
        let calls = json!([{ "id": id, "type": "function", "function": function }]);
        messages.push(
            json!({ "role": "assistant", "content": format!("Step {i} of {n}."), "tool_calls": calls }),
        );
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }
    json!({ "model": "gpt-4o", "messages": messages }).to_string()
}

/// Every message that `sessions export` returns, with its session.
fn exported(sandbox: &Sandbox, store: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let ran = sandbox.run(&format!("sessions export --all --store {store}"))?;
    if let Some(crash) = ran.crash() {
        anyhow::bail!("export: {crash}");
    }
    let mut messages = BTreeMap::new();
    for line in ran.out_text().lines() {
        let line: Value = serde_json::from_str(line).context("export printed no JSON")?;
        let session = line["id"].as_str().unwrap_or_default();
        let list = line["messages"].as_array().into_iter().flatten();
        messages.extend(list.map(|message| (message["json"].to_string(), session.to_owned())));
    }
    Ok(messages)
}

/// Repairs each damaged copy, on all processors, and counts what is left.
fn repair_all(
    trial: &Trial,
    kind: usize,
    mut row: Row,
    store: &Store,
    damages: &[Damage],
) -> anyhow::Result<Row> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for worker in 0..n_threads {
            let (next, results) = (&next, &results);
            scope.spawn(move || {
                while let Some(damage) = damages.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let name = format!("damage-{kind}-{worker}");
                    let result =
                        Sandbox::new(trial, &name).and_then(|sandbox| repair(&sandbox, store, damage));
                    results.lock().unwrap_or_else(|error| error.into_inner()).push((damage, result));
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    let mut shares = Vec::new();
    for (damage, result) in results {
        let (share, problem) = result.unwrap_or_else(|error| (0.0, Some(format!("{error:#}"))));
        shares.push(share);
        row.count(problem.is_none(), || format!("{}: {}", damage.name, problem.unwrap_or_default()));
    }
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let worst = shares.iter().copied().fold(1.0, f64::min);
    row.count(mean >= LEAST_MEAN, || format!("{:.1} % of the messages on average", 100.0 * mean));
    row.figure = format!("messages: {:.1} % on average, {:.1} % at worst", 100.0 * mean, 100.0 * worst);
    Ok(row)
}

/// Repairs a damaged copy. Returns the share of its messages that is saved, and a description of the problem.
fn repair(sandbox: &Sandbox, store: &Store, damage: &Damage) -> anyhow::Result<(f64, Option<String>)> {
    for file in fs::read_dir(sandbox.path(""))? {
        fs::remove_file(file?.path())?;
    }
    let damaged = damage.apply(&store.bytes);
    sandbox.write("x.db", &damaged)?;
    let repaired = sandbox.run("doctor --repair --store x.db")?;
    if let Some(crash) = repaired.crash() {
        return Ok((0.0, Some(crash)));
    }
    let saved = exported(sandbox, "x.db")?;
    let remaining = damage.remaining(store, &damaged);
    let found: BTreeSet<&String> =
        remaining.iter().copied().filter(|message| saved.contains_key(*message)).collect();
    let sessions = |messages: &BTreeSet<&String>| {
        messages.iter().map(|message| &store.messages[*message]).collect::<BTreeSet<_>>()
    };
    let (n_sessions, n_found) = (sessions(&remaining).len(), sessions(&found).len());
    let share = found.len() as f64 / remaining.len().max(1) as f64;
    let report = repaired.out_text() + &repaired.err_text();
    let is_reported = report.contains("repaired") || !repaired.out_text().ends_with("no problems\n");
    let is_changed = store.messages.keys().any(|message| !saved.contains_key(message));
    let problem = if share < damage.least || n_found < n_sessions {
        let (n, of) = (found.len(), remaining.len());
        Some(format!("{n} of {of} messages, {n_found} of {n_sessions} sessions: {report}"))
    } else if is_changed && !is_reported {
        Some("a message has changed and doctor reports nothing".to_owned())
    } else {
        listed(sandbox, n_found)?
    };
    Ok((share, problem))
}

/// The repaired store must be usable: it lists its sessions, and a search answers.
fn listed(sandbox: &Sandbox, n_sessions: usize) -> anyhow::Result<Option<String>> {
    let list = sandbox.run("sessions list --json -n 100 --store x.db")?;
    let n_listed = list.json().as_array().map_or(0, Vec::len);
    let search = sandbox.run("search fault part --json --store x.db")?;
    let is_found = search.is_ok()
        && search.json()["results"].as_array().is_some_and(|found: &Vec<Value>| !found.is_empty());
    if n_listed < n_sessions || !is_found {
        return Ok(Some(format!("{n_listed} sessions are listed; search: {}", search.err_text())));
    }
    Ok(None)
}
