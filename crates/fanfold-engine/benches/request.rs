//! Measures the next request of a cached conversation: recognising its session, and making the body to send.
//!
//! `cargo bench -p fanfold-engine --bench request` prints a line for each length, client and window. The store is a
//! file. `sync` is the time of an `fsync` on its disk, which each commit waits for. `cpu` is the CPU time of the
//! thread for both parts, which depends little on other load (Linux only).

#![allow(clippy::print_stdout, reason = "the measurements are the data")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::{Budget, Policy, Tokens};
use fanfold_engine::{FoldOutcome, MachineClock, RequestInput, SessionEngine, SessionMatch, Terms};
use fanfold_store::SqliteStore;
use fanfold_tokens::o200k;
use fanfold_wire::Format;

/// The number of measured requests.
const N_REQUESTS: usize = 60;
/// The size of the instructions and tools of a coding agent, in bytes.
const FRAME_BYTES: usize = 60_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!("sync of 4 kB: {}", format_times(&mut sync_times(folder.path())));
    let [recognise, request, both, cpu] = ["recognise", "request", "both", "cpu"];
    println!("     body client view   {recognise:>22} {request:>22} {both:>22} {cpu:>22}");
    for n_bytes in [20_000, 400_000, 4_000_000] {
        for client in [Client::Codex, Client::Claude] {
            for is_folded in [false, true] {
                measure(folder.path(), n_bytes, client, is_folded);
            }
        }
    }
}

/// The format of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Items of Responses, repeated byte for byte.
    Codex,
    /// Anthropic messages, with a cache mark on the newest.
    Claude,
}

fn measure(folder: &Path, n_bytes: usize, client: Client, is_folded: bool) {
    let store = SqliteStore::open(&folder.join(format!("{n_bytes}-{client:?}-{is_folded}.db"))).unwrap();
    let engine = SessionEngine::new(Arc::new(store), Arc::new(MachineClock));
    let format = if client == Client::Codex { Format::Responses } else { Format::Anthropic };
    let frame_bytes = FRAME_BYTES.min(n_bytes / 3);
    // Few lines per step, so that the measured steps do not make a short conversation much longer.
    let n_lines = (n_bytes / 20_000).clamp(1, 24);
    let n_steps = ((n_bytes - frame_bytes) / step(0, n_lines, client, false).len()).max(4);
    let window = if is_folded { n_bytes as u64 / 8 } else { 100_000_000 };
    let terms = Terms {
        engine: fanfold_core::EngineFactory::FANFOLD,
        policy: Policy::fanfold(),
        budget: Budget::of_window(Tokens(window)),
        prices: None,
        counter: o200k(),
        format: Some(format),
        focus: String::new(),
        assumed: Vec::new(),
        described: "bench".to_owned(),
    };
    let mut steps: Vec<String> = (0..n_steps).map(|i| step(i, n_lines, client, false)).collect();
    let first = body(&steps, frame_bytes, client);
    let session = engine.session_for(&engine.recognise(&first, format).unwrap()).unwrap();
    engine.request(&RequestInput::new(&session, &first, &terms, "bench"));
    let (mut recognise, mut request, mut both) = (Vec::new(), Vec::new(), Vec::new());
    let mut cpu = Vec::new();
    let mut n_folded = 0;
    for i in 0..N_REQUESTS {
        steps.push(step(n_steps + i, n_lines, client, true));
        let body = body(&steps, frame_bytes, client);
        let cpu_start = cpu_time();
        let start = Instant::now();
        let recognised = engine.recognise(&body, format).unwrap();
        let until_recognised = start.elapsed();
        assert_eq!(recognised, SessionMatch::Continues(session.clone()));
        let answer = engine.request(&RequestInput::new(&session, &body, &terms, "bench"));
        let total = start.elapsed();
        cpu.push(cpu_time().saturating_sub(cpu_start));
        n_folded += usize::from(matches!(answer.fold, FoldOutcome::Folded(_)));
        assert!(!matches!(answer.fold, FoldOutcome::Failed(_)), "{:?}", answer.fold);
        recognise.push(until_recognised);
        request.push(total - until_recognised);
        both.push(total);
        steps.pop();
        steps.push(step(n_steps + i, n_lines, client, false));
    }
    assert_eq!(n_folded > 0, is_folded);
    let times = [recognise, request, both, cpu];
    let [recognise, request, both, cpu] = times.map(|mut times| format_times(&mut times));
    let view = if is_folded { "folded" } else { "whole" };
    let n_bytes = first.len();
    println!("{n_bytes:>9} {client:?} {view:<6} {recognise:>22} {request:>22} {both:>22} {cpu:>22}");
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or_default())
}

/// A call and its result.
fn step(i: usize, n_lines: usize, client: Client, is_marked: bool) -> String {
    let lines: String = (0..n_lines)
        .map(|n| format!("src/stage_{i}.rs:{n}: let batch_{n} = take(&input[{i}..], {n})?;\\n"))
        .collect();
    match client {
        Client::Codex => format!(
            r#"{{"type":"function_call","call_id":"c{i}","name":"shell","arguments":"{{\"command\":\"cat src/stage_{i}.rs\"}}"}},{{"type":"function_call_output","call_id":"c{i}","output":"{lines}"}}"#
        ),
        Client::Claude => {
            let mark = if is_marked { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Stage {i} is next."}},{{"type":"tool_use","id":"c{i}","name":"Read","input":{{"file_path":"src/stage_{i}.rs"}}}}]}},{{"role":"user","content":[{{"tool_use_id":"c{i}","type":"tool_result","content":"{lines}"{mark}}}]}}"#
            )
        }
    }
}

fn body(steps: &[String], frame_bytes: usize, client: Client) -> String {
    let words = "Use the tools that are there. ".repeat(frame_bytes / 60);
    let steps = steps.join(",");
    match client {
        Client::Codex => format!(
            r#"{{"model":"m","instructions":"{words}","input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"go"}}]}},{steps}],"tools":[{{"type":"function","name":"shell","description":"{words}"}}],"store":false,"stream":true}}"#
        ),
        Client::Claude => format!(
            r#"{{"model":"m","system":[{{"type":"text","text":"{words}","cache_control":{{"type":"ephemeral"}}}}],"tools":[{{"name":"Read","description":"{words}","input_schema":{{"type":"object"}}}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"go"}}]}},{steps}],"max_tokens":32000,"stream":true}}"#
        ),
    }
}

/// The times of small synced writes.
fn sync_times(folder: &Path) -> Vec<Duration> {
    let mut file = std::fs::File::create(folder.join("sync")).unwrap();
    let mut times = Vec::new();
    for _ in 0..N_REQUESTS {
        let start = Instant::now();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        times.push(start.elapsed());
    }
    times
}

/// The median and the 99th percentile, in milliseconds.
fn format_times(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at =
        |permille: usize| times[(times.len() * permille / 1000).min(times.len() - 1)].as_secs_f64() * 1e3;
    format!("p50 {:.2} p99 {:.2}", at(500), at(990))
}
