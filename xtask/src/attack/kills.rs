//! Kills `fold --session` and `serve` at random times.
//!
//! Everything acknowledged before the kill must be stored, the store must have no problems, and the same request
//! must then give the same view as in a process that was never killed.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use fanfold_testkit::Rng;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};
use fanfold_testkit::generators::long_chat::long_chat_in_turns;
use serde_json::{Value, json};

use super::Trial;
use super::http::{exchange, request};
use super::sandbox::Sandbox;
use super::table::Row;

const TARGET: &str = "nothing acknowledged lost, same view, no problems";
const WINDOW: &str = "8k";
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let (fold, serve) = ("kill of `fold --session`", "kill of `serve` under a stream");
    Ok(vec![
        Row::from_result(fold, kill_fold(trial, fold)),
        Row::from_result(serve, kill_serve(trial, serve)),
    ])
}

fn kill_fold(trial: &Trial, name: &str) -> anyhow::Result<Row> {
    let mut row = Row::new(name, TARGET);
    let sandbox = Sandbox::new(trial, "kill-fold")?;
    let mut rng = Rng::new(trial.seed);
    let n_tries = trial.tries(10, 200);
    // The time adapts, so that most kills come before the end of a run and some after it.
    let (mut latest_us, mut n_killed) = (100_000, 0);
    for n in 0..n_tries {
        let session = format!("s{}", n % 5);
        let messages = long_chat_in_turns(20 + n / 5 * 7 % 100);
        sandbox.write("chat.json", json!({ "model": "gpt-4o", "messages": messages }).to_string())?;
        let fold = |store: &str| format!("fold --session {session} chat.json -w {WINDOW} --store {store}");
        let victim = fold("victim.db");
        let mut running = sandbox.start(&victim.split_whitespace().collect::<Vec<_>>(), None)?;
        thread::sleep(Duration::from_micros(rng.below(latest_us) as u64));
        running.kill();
        let killed = running.wait(Duration::ZERO);
        let is_killed = !killed.is_ok();
        n_killed += usize::from(is_killed);
        latest_us = if is_killed { latest_us * 3 / 2 } else { latest_us * 2 / 3 + 1_000 };
        // The messages are stored before the first byte of output.
        let is_acknowledged = !killed.out.is_empty();
        let found = after_kill(
            &sandbox,
            &session,
            is_acknowledged.then_some(&messages),
            &victim,
            &fold("beside.db"),
        )?;
        row.count(found.is_none(), || format!("try {n}: {}", found.unwrap_or_default()));
    }
    row.figure = format!("{n_killed} killed before their end");
    Ok(row)
}

/// Checks a store after a kill, and repeats the run. Returns a description of the problem.
fn after_kill(
    sandbox: &Sandbox,
    session: &str,
    acknowledged: Option<&Vec<Value>>,
    victim: &str,
    beside: &str,
) -> anyhow::Result<Option<String>> {
    let is_stored = sandbox.path("victim.db").exists();
    let doctor = sandbox.run("doctor --store victim.db")?;
    if is_stored && !doctor.is_ok() {
        return Ok(Some(format!("doctor: {}{}", doctor.out_text(), doctor.err_text())));
    }
    if let Some(messages) = acknowledged {
        let exported = sandbox.run(&format!("sessions export {session} --store victim.db"))?;
        let n_stored = exported.json()["messages"].as_array().map_or(0, Vec::len);
        if n_stored < messages.len() {
            return Ok(Some(format!("{n_stored} of {} acknowledged messages are stored", messages.len())));
        }
    }
    let (view, expected) = (sandbox.run(victim)?, sandbox.run(beside)?);
    if !view.is_ok() || view.out != expected.out {
        return Ok(Some(format!("another view than without the kill: {}", view.err_text())));
    }
    Ok(None)
}

/// The cadence `cost` counts each request that was sent, also one that is sent again after a kill.
const OPTIONS: [&str; 4] = ["-w", "16k", "--cadence", "window"];

/// Two proxies get the same requests. One is killed while it answers, the other one never.
fn kill_serve(trial: &Trial, name: &str) -> anyhow::Result<Row> {
    let mut row = Row::new(name, TARGET);
    let sandbox = Sandbox::new(trial, "kill-serve")?;
    let upstreams = [streaming_provider()?, streaming_provider()?];
    let beside = sandbox.serve(&upstreams[0].url(), "beside.db", &OPTIONS)?;
    let mut rng = Rng::new(trial.seed ^ 1);
    let mut conversation = GrowingConversation::new(trial.seed, 20_000, true);
    let mut n_acknowledged = 0;
    // The number of acknowledged messages of each session.
    let mut acknowledged: BTreeMap<String, usize> = BTreeMap::new();
    for n in 0..trial.tries(8, 200) {
        const PER_CONVERSATION: usize = 40;
        if n % PER_CONVERSATION == PER_CONVERSATION - 1 {
            conversation = GrowingConversation::new(trial.seed + n as u64, 20_000, true);
        }
        conversation.add_step(2_000);
        // This model has an exact counter. Others learn from the usage that a provider reports, and a request that is
        // sent again after a kill reports more of it.
        let body = conversation.body().replace("claude-sonnet-4-5", "gpt-4o");
        let send = |port| exchange(port, &request("POST", PATH, port, &HEADERS, body.as_bytes()), LIMIT);
        let mut victim = sandbox.serve(&upstreams[1].url(), "victim.db", &OPTIONS)?;
        let delay = Duration::from_micros(rng.below(120_000) as u64);
        let cut = thread::scope(|scope| {
            let sent = scope.spawn(|| send(victim.port));
            thread::sleep(delay);
            victim.running.kill();
            sent.join().unwrap_or_default()
        });
        let has_store = sandbox.path("victim.db").exists();
        let doctor = sandbox.run("doctor --store victim.db")?;
        row.count(doctor.is_ok() || !has_store, || {
            format!("try {n}: doctor: {}{}", doctor.out_text(), doctor.err_text())
        });
        if let Some(session) = cut.header("x-fanfold-session") {
            n_acknowledged += 1;
            acknowledged.insert(session.to_owned(), messages_of(&body)?);
        }
        let stored = stored_messages(&sandbox)?;
        for (session, n_messages) in &acknowledged {
            let n_stored = stored.get(session).copied().unwrap_or(0);
            if n_stored < *n_messages {
                row.fail(format!("try {n}: {n_stored} of {n_messages} acknowledged messages are stored"));
            }
        }
        let restarted = sandbox.serve(&upstreams[1].url(), "victim.db", &OPTIONS)?;
        let answers = [send(beside.port), send(restarted.port)];
        let [expected, view] =
            upstreams.each_ref().map(|upstream| upstream.seen().pop().map(|seen| seen.body));
        if answers.iter().any(|answer| answer.status != Some(200) || !answer.is_complete) {
            row.fail(format!("try {n}: {} and {}", answers[0].describe(), answers[1].describe()));
        } else if view != expected {
            row.fail(format!("try {n}: another view than without the kill"));
        }
    }
    row.figure = format!("{n_acknowledged} acknowledged before the kill");
    Ok(row)
}

/// A provider whose streams take a tenth of a second.
fn streaming_provider() -> anyhow::Result<Upstream> {
    let text = "one of many words ".repeat(10);
    let mut script = Script::new(move |_| ScriptedReply { text: text.clone(), ..ScriptedReply::default() });
    script.pause = Duration::from_millis(8);
    script.is_strict = false;
    Ok(Upstream::start(script)?)
}

fn messages_of(body: &str) -> anyhow::Result<usize> {
    let body: Value = serde_json::from_str(body)?;
    Ok(body["messages"].as_array().context("a body without messages")?.len())
}

/// The number of stored messages of each session.
fn stored_messages(sandbox: &Sandbox) -> anyhow::Result<BTreeMap<String, usize>> {
    let list = sandbox.run("sessions list --json --store victim.db")?.json();
    let sessions = list.as_array().into_iter().flatten();
    let counts = sessions.filter_map(|session| {
        Some((session["id"].as_str()?.to_owned(), session["messages"].as_u64()? as usize))
    });
    Ok(counts.collect())
}
