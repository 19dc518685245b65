//! Times a cold fold, one more step on a followed conversation and one that folds, and measures the memory of a cold fold.
//!
//! `cargo bench -p fanfold-testkit --bench fold -- WINDOW:FILE...` with files as `../shared/tools/gen_transcripts.py` makes
//! them; `cargo xtask bench` runs Hermes beside it. One line of JSON for each file. Each cold fold has a counter that has
//! seen nothing.

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
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if wanted.is_empty() {
        eprintln!("no files were given, so there is nothing to time; see `cargo xtask bench`");
    }
    // What is loaded once is there before the clock runs: the vocabulary with what it keeps for each thread, the threads,
    // and all that a first fold needs.
    parallel_map(&Threads, vec![(); 2 * Threads.n_threads()], |()| first_fold());
    for wanted in wanted {
        let parts = wanted.split_once(':').and_then(|(window, file)| Some((window.parse().ok()?, file)));
        let Some((window, file)) = parts else {
            eprintln!("{wanted} is no window and file; write 200000:FILE");
            continue;
        };
        match std::fs::read_to_string(file) {
            Ok(body) => println!("{}", measure(file, body, Tokens(window))),
            Err(error) => eprintln!("{file} can't be read: {error}"),
        }
    }
}

/// Folds a small conversation with every kind of piece in it.
fn first_fold() {
    let counter = o200k();
    counter.count("Load it: déjà vu, 漢字かな, Ωmega, can't STOP, 3.14159 <<==>>\r\n\n\t\t  ok");
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(8000)), counter);
    (0..30).for_each(|i| {
        one_more_step(&mut session, i);
    });
    assert!(!session.ledger().receipts().is_empty(), "it folds");
}

/// A cold fold is timed so often at least, and for so long.
const FEWEST: usize = 7;
const SHORTEST: Duration = Duration::from_millis(500);

fn measure(file: &str, body: String, window: Tokens) -> String {
    let (n_bytes, again) = (body.len(), body.clone());
    // The vocabulary is loaded by now; the peak starts anew, so that it is the fold's own.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak_kb();
    let counter = o200k();
    let (_, changes) = Conversation::decode(body, None).expect("a conversation");
    let followed = follow(changes, window, counter);
    let memory = peak_kb().saturating_sub(before);
    let (tokens, folds) = (followed.transcript().total().0, followed.ledger().receipts().len());
    let (mut decode, mut fold) = (Vec::new(), Vec::new());
    let first = Instant::now();
    while fold.len() < FEWEST || first.elapsed() < SHORTEST {
        let body = again.clone();
        let start = Instant::now();
        let (_, changes) = Conversation::decode(body, None).expect("a conversation");
        decode.push(start.elapsed());
        let counter = o200k();
        let start = Instant::now();
        let session = follow(changes, window, counter);
        fold.push(start.elapsed());
        drop(session);
    }
    let mut session = followed;
    // Enough of them that one folds: the longest.
    let steps: Vec<Duration> = (0..401).map(|i| one_more_step(&mut session, i)).collect();
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

/// Counts everything and folds as it goes: what a process does that has never seen the conversation.
fn follow(mut changes: Vec<Change>, window: Tokens, counter: &'static Exact) -> Session<'static> {
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

/// A reply with a call and its result of two kilobytes, and the view for the next request.
fn one_more_step(session: &mut Session<'_>, i: usize) -> Duration {
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

/// The most memory this process ever held, in kB; zero where the system does not tell.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
