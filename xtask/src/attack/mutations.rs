//! Mutated conversations of all formats through `fold`, `show` and `pipe`.
//!
//! No panic, no hang, and nothing above the window with exit code 0.

use fanfold_testkit::Rng;
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use serde_json::{Value, json};

use super::Trial;
use super::sandbox::Sandbox;
use super::table::Row;

const WINDOW: &str = "2k";

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let sandbox = Sandbox::new(trial, "mutations")?;
    let inputs: Vec<Vec<u8>> = (0..trial.tries(60, 1_500)).map(|n| input(trial.seed, n)).collect();
    Ok(vec![fold(&sandbox, &inputs)?, show(&sandbox, &inputs)?, pipe(&sandbox, &inputs)?])
}

/// A mutated body: hostile JSON, or a valid body with changed bytes.
fn input(seed: u64, n: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed.wrapping_mul(1_000_003) + n as u64);
    let kind = BodyFormat::ALL[n % BodyFormat::ALL.len()];
    let body = if rng.percent(40) { hostile(kind, rng.number()) } else { rich(kind, rng.number()) };
    let mut bytes = body.into_bytes();
    for _ in 0..rng.below(4) {
        change_bytes(&mut bytes, &mut rng);
    }
    bytes
}

fn change_bytes(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let (at, end) = (rng.below(bytes.len()), rng.below(bytes.len() + 1));
    let range = at.min(end)..at.max(end);
    match rng.below(8) {
        0 => bytes.truncate(end),
        1 => drop(bytes.drain(range)),
        2 => {
            let copy = bytes[range].to_vec();
            bytes.splice(at..at, copy);
        }
        3 => drop(bytes.splice(0..0, *b"\xef\xbb\xbf")),
        4 => drop(bytes.splice(at..at, rng.number().to_le_bytes())),
        5 => bytes.extend_from_slice(b"\0\n{\"messages\":[]}"),
        _ if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        _ => {}
    }
}

fn fold(sandbox: &Sandbox, inputs: &[Vec<u8>]) -> anyhow::Result<Row> {
    let mut row =
        Row::new("mutated input of `fold`", "no panic, no hang, nothing above the window with exit 0");
    let (mut n_accepted, mut n_folded) = (0, 0);
    for (n, input) in inputs.iter().enumerate() {
        sandbox.write("body.json", input)?;
        let ran = sandbox.run(&format!("fold body.json -w {WINDOW} --json"))?;
        let answer = ran.json();
        let mut problem = ran.crash();
        if ran.is_ok() && problem.is_none() {
            n_accepted += 1;
            let is_folded = answer["receipts"].as_array().is_some_and(|receipts| !receipts.is_empty());
            n_folded += usize::from(is_folded);
            problem = above_window(sandbox, &answer, is_folded)?;
        }
        row.count(problem.is_none(), || format!("input {n}: {}", problem.unwrap_or_default()));
    }
    row.figure = format!("{n_accepted} accepted, {n_folded} folded");
    Ok(row)
}

/// A description of an answer that exceeds its room, by its own report or counted again.
fn above_window(sandbox: &Sandbox, answer: &Value, is_folded: bool) -> anyhow::Result<Option<String>> {
    let (Some(tokens), Some(room)) = (answer["tokens"].as_u64(), answer["room"].as_u64()) else {
        return Ok(Some(format!("exit 0 without figures: {answer}")));
    };
    if tokens > room {
        return Ok(Some(format!("{tokens} tokens for a room of {room}")));
    }
    if !is_folded {
        return Ok(None);
    }
    sandbox.write("view.json", answer["body"].as_str().unwrap_or_default())?;
    let format = answer["format"].as_str().unwrap_or_default();
    let counted = sandbox.run(&format!("fold view.json -w 1m --json --format {format}"))?;
    let counted_tokens = counted.json()["tokens_whole"].as_u64();
    let is_within = counted_tokens.is_some_and(|counted| counted <= room);
    Ok((!is_within).then(|| {
        format!("counted again: {counted_tokens:?} tokens for a room of {room}: {}", counted.err_text())
    }))
}

fn show(sandbox: &Sandbox, inputs: &[Vec<u8>]) -> anyhow::Result<Row> {
    let mut row = Row::new("mutated input of `show`", "no panic, no hang");
    for (n, input) in inputs.iter().enumerate().step_by(3) {
        sandbox.write("body.json", input)?;
        let crash = sandbox.run("show body.json")?.crash();
        row.count(crash.is_none(), || format!("input {n}: {}", crash.unwrap_or_default()));
    }
    Ok(row)
}

/// Sends all inputs to one process, each to a session of its own.
fn pipe(sandbox: &Sandbox, inputs: &[Vec<u8>]) -> anyhow::Result<Row> {
    let mut row = Row::new(
        "mutated input of `pipe`",
        "no panic, no hang, one answer per line, nothing above the window",
    );
    let mut lines = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        lines.extend(pipe_line(n, input));
        lines.push(b'\n');
    }
    let n_lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    let file = sandbox.write("lines.jsonl", &lines)?;
    let ran = sandbox.run_with(&["pipe"], Some(&file))?;
    if let Some(crash) = ran.crash() {
        row.fail(crash);
    }
    let answers: Vec<Value> =
        ran.out_text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if answers.len() != n_lines {
        row.fail(format!("{} answers to {n_lines} lines", answers.len()));
    }
    for (n, answer) in answers.iter().enumerate() {
        let is_view = answer["original"] != true && answer["error"].is_null();
        let report = &answer["report"];
        let is_within = !is_view || report["tokens"].as_u64() <= report["room"].as_u64();
        row.count(is_within, || format!("line {n}: {} tokens of {}", report["tokens"], report["room"]));
    }
    Ok(row)
}

/// A request with the messages of a body, or the bytes of the body if it has none.
fn pipe_line(n: usize, input: &[u8]) -> Vec<u8> {
    let body: Value = serde_json::from_slice(input).unwrap_or_default();
    let list = ["messages", "input", "conversations"].iter().find_map(|key| body.get(key));
    match list.or(body.as_array().map(|_| &body)) {
        Some(messages) => {
            json!({ "session": format!("s{n}"), "call": 1, "window": 2_000, "messages": messages })
                .to_string()
                .into()
        }
        None => input.iter().copied().filter(|byte| *byte != b'\n').collect(),
    }
}
