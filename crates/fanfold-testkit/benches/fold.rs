//! Measures the time and memory of a cold fold, the time of a further step, and the time of a step that folds.
//!
//! `cargo bench -p fanfold-testkit --bench fold -- WINDOW:FILE...` reads files of
//! `../shared/tools/gen_transcripts.py` and prints a line of JSON for each; `cargo xtask bench` compares with
//! Hermes. Each cold fold has a new token counter.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

use std::time::{Duration, Instant};

use fanfold_core::{
    Body, Budget, Call, Count as _, Entry, Origin, Outcome, ParallelMap as _, Policy, Session, Step, Tokens,
    parallel_map,
};
use fanfold_engine::{Threads, count_changes};
use fanfold_tokens::{Exact, o200k};
use fanfold_wire::{Change, Conversation};

fn main() {
    let inputs: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if inputs.is_empty() {
        eprintln!("no files to measure\n\nhint: run `cargo xtask bench`");
    }
    // Warm up everything that is initialised once: the tokenizer with its state per thread, the threads and the
    // first fold.
    parallel_map(&Threads, vec![(); 2 * Threads.n_threads()], |()| warm_up());
    for input in inputs {
        let parts = input.split_once(':').and_then(|(window, file)| Some((window.parse().ok()?, file)));
        let Some((window, file)) = parts else {
            eprintln!("{input} is not WINDOW:FILE, for example 200000:FILE");
            continue;
        };
        match std::fs::read_to_string(file) {
            Ok(body) => println!("{}", measure(file, body, Tokens(window))),
            Err(error) => eprintln!("{file} can't be read: {error}"),
        }
    }
}

/// Folds a small conversation, and counts a text with every kind of token.
fn warm_up() {
    let counter = o200k();
    counter.count("Load it: déjà vu, 漢字かな, Ωmega, can't STOP, 3.14159 <<==>>\r\n\n\t\t  ok");
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(8000)), counter);
    (0..30).for_each(|i| {
        append_step(&mut session, i);
    });
    assert!(!session.ledger().receipts().is_empty(), "the session folds");
}

/// The minimum number and total time of the measured cold folds.
const MIN_RUNS: usize = 7;
const MIN_TIME: Duration = Duration::from_millis(500);

fn measure(file: &str, body: String, window: Tokens) -> String {
    let (n_bytes, copy) = (body.len(), body.clone());
    // Reset the peak, so that it excludes the tokenizer.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak_kb();
    let counter = o200k();
    let (_, changes) = Conversation::decode(body, None).expect("a conversation");
    let first_session = fold_cold(changes, window, counter);
    let memory = peak_kb().saturating_sub(before);
    let (tokens, folds) = (first_session.transcript().total().0, first_session.ledger().receipts().len());
    let (mut decode, mut fold) = (Vec::new(), Vec::new());
    let first = Instant::now();
    while fold.len() < MIN_RUNS || first.elapsed() < MIN_TIME {
        let body = copy.clone();
        let start = Instant::now();
        let (_, changes) = Conversation::decode(body, None).expect("a conversation");
        decode.push(start.elapsed());
        let counter = o200k();
        let start = Instant::now();
        let session = fold_cold(changes, window, counter);
        fold.push(start.elapsed());
        drop(session);
    }
    let mut session = first_session;
    // Enough steps that at least one folds; that is the longest.
    let steps: Vec<Duration> = (0..401).map(|i| append_step(&mut session, i)).collect();
    let n_folds = session.ledger().receipts().len() - folds;
    let longest = steps.iter().max().copied().unwrap_or_default();
    let event = if n_folds > 0 { longest.as_secs_f64() * 1e3 } else { 0.0 };
    format!(
        "{{\"file\":{file:?},\"window\":{},\"bytes\":{},\"tokens\":{},\"folds\":{},\"view\":{},\"decode_ms\":{:.3},\"fold_ms\":{:.3},\
         \"step_ms\":{:.4},\"event_ms\":{event:.3},\"peak_kb\":{memory}}}",
        window.0,
        n_bytes,
        tokens,
        folds,
        session.view().map_or(0, |view| view.tokens.0),
        median(decode),
        median(fold),
        median(steps),
    )
}

/// Appends a conversation to a new session and makes its view.
fn fold_cold(mut changes: Vec<Change>, window: Tokens, counter: &'static Exact) -> Session<'static> {
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(window), counter);
    session.set_parallel(&Threads);
    count_changes(counter, &mut changes);
    for change in changes {
        match change {
            Change::Append(entry) => {
                session.append(entry);
            }
            Change::Answer(call, outcome) => {
                session.set_result(call, outcome);
            }
        }
    }
    session.view().expect("it fits");
    session
}

/// Appends a step with a result of two kilobytes and makes the next view. Returns the time.
fn append_step(session: &mut Session<'_>, i: usize) -> Duration {
    let origin = Origin::message(1_000_000 + 2 * i);
    let result =
        format!("line {i} of a result that nobody has seen before, with value_{i} in it\n").repeat(30);
    let outcome = Outcome { body: Body::text(result), is_error: false, media: Vec::new(), origin };
    let call = Call {
        id: format!("bench_{i}"),
        tool: "read_file".to_owned(),
        arguments: Body::text(format!("{{\"path\":\"src/file_{i}.rs\"}}")),
        result: Some(outcome),
        origin,
    };
    let step = Step { text: Body::text("I look."), reasoning: Body::text(""), calls: vec![call], origin };
    let start = Instant::now();
    session.append(Entry::Step(step));
    session.view().expect("it fits");
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// The peak memory of this process in kB; zero if the system does not report it.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
