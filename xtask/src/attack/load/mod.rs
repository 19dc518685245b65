//! Hostile bodies and connections beside a good client that sends a growing conversation.
//!
//! The good client is measured before and during each attack, in front of a fresh server.

mod hostile_clients; // bodies and connections that keep a server busy

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_testkit::clients::http::HttpClient;
use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};

use crate::attack::Trial;
use crate::attack::provider::Provider;
use crate::attack::sandbox::{Sandbox, Server};
use crate::attack::table::Row;
use hostile_clients::{HostileClient, Load};

/// Latency during an attack, as a multiple of its quiet value.
const MAX_RATIO: f64 = 3.0;
/// Latencies below this are not compared: in a full run they are noise, and a short run is made on slow, shared machines.
const FLOOR_MS: f64 = 25.0;
const SHORT_FLOOR_MS: f64 = 1_500.0;
const MAX_MEMORY_MB: f64 = 300.0;
/// The time between two requests of the good client.
const THINKING: Duration = Duration::from_millis(15);
/// An answer that takes longer is a failure.
const LIMIT: Duration = Duration::from_secs(10);

/// An attack and its duration in seconds, of a short and of a full run.
struct Scenario {
    name: &'static str,
    client: HostileClient,
    seconds: (u64, u64),
    is_mcp: bool,
}

const fn against_serve(name: &'static str, client: HostileClient, seconds: (u64, u64)) -> Scenario {
    Scenario { name, client, seconds, is_mcp: false }
}

const SCENARIOS: [Scenario; 9] = [
    against_serve("load: slow heads and bodies", hostile_clients::slow_requests, (1, 20)),
    against_serve("load: idle connections", hostile_clients::idle, (1, 20)),
    Scenario {
        name: "load: idle connections to `mcp --listen`",
        client: hostile_clients::idle,
        seconds: (1, 20),
        is_mcp: true,
    },
    against_serve("load: huge bodies", hostile_clients::huge_bodies, (3, 90)),
    against_serve("load: gzip bombs", hostile_clients::gzip_bombs, (1, 20)),
    against_serve("load: deep JSON", hostile_clients::deep_json, (1, 20)),
    against_serve("load: HTTP/2 PING flood", hostile_clients::ping_flood, (1, 10)),
    against_serve("load: HTTP/2 SETTINGS flood", hostile_clients::settings_flood, (1, 10)),
    against_serve("load: streams nobody reads", hostile_clients::unread_streams, (2, 20)),
];

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let rows = SCENARIOS.iter().enumerate().map(|(n, scenario)| {
        let name = format!("load-{n}");
        Row::from_result(
            scenario.name,
            Sandbox::new(trial, &name).and_then(|sandbox| measure(trial, &sandbox, scenario)),
        )
    });
    Ok(rows.collect())
}

/// The requests of the good client.
#[derive(Default)]
struct Times {
    sorted_ms: Vec<f64>,
    failures: Vec<String>,
}

impl Times {
    fn percentile(&self, share: f64) -> f64 {
        let last = self.sorted_ms.len().saturating_sub(1);
        self.sorted_ms.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::INFINITY)
    }
}

fn measure(trial: &Trial, sandbox: &Sandbox, scenario: &Scenario) -> anyhow::Result<Row> {
    let floor_ms = if trial.is_short { SHORT_FLOOR_MS } else { FLOOR_MS };
    let target =
        format!("p99 ≤ {MAX_RATIO:.0}× its quiet value or {floor_ms:.0} ms; memory ≤ {MAX_MEMORY_MB:.0} MB");
    let mut row = Row::new(scenario.name, target);
    let provider = Provider::start(vec![hostile_clients::endless_stream()])?;
    let server = match scenario.is_mcp {
        true => sandbox.start_server(&["mcp", "--store", "x.db"])?,
        false => sandbox.serve(&provider.url(), "x.db", &["-w", "16k"])?,
    };
    let (short, full) = scenario.seconds;
    let time = Duration::from_secs(trial.tries(short as usize, full as usize) as u64);
    let mut good = GoodClient::new(trial.seed, server.port, scenario.is_mcp);
    // The first requests start threads and create the store.
    good.run(Duration::from_millis(300));
    let quiet = good.run(time);
    let load = Load { port: server.port, is_short: trial.is_short, is_stopped: AtomicBool::new(false) };
    let (during, n_tries, problems, memory_mb) = thread::scope(|scope| {
        let hostile = scope.spawn(|| (scenario.client)(&load));
        let memory = scope.spawn(|| peak_memory(&server, &load.is_stopped));
        let during = good.run(time);
        load.is_stopped.store(true, Ordering::SeqCst);
        let (n_tries, problems) = hostile.join().unwrap_or((0, vec!["the attack panicked".to_owned()]));
        (during, n_tries, problems, memory.join().unwrap_or(f64::NAN))
    });
    row.n_tries = n_tries;
    judge(&mut row, &quiet, &during, memory_mb, floor_ms);
    problems.into_iter().for_each(|problem| row.fail(problem));
    Ok(row)
}

fn judge(row: &mut Row, quiet: &Times, during: &Times, memory_mb: f64, floor_ms: f64) {
    let (before, after) = (quiet.percentile(0.99), during.percentile(0.99));
    row.figure = format!(
        "p50 {:.0} → {:.0} ms, p99 {before:.0} → {after:.0} ms, {memory_mb:.0} MB",
        quiet.percentile(0.5),
        during.percentile(0.5)
    );
    for failure in quiet.failures.iter().chain(&during.failures) {
        row.fail(format!("the good client: {failure}"));
    }
    if after > (MAX_RATIO * before).max(floor_ms) {
        row.fail(format!("p99 {before:.0} → {after:.0} ms"));
    }
    // Also fails without a figure.
    let is_small = memory_mb <= MAX_MEMORY_MB;
    if !is_small {
        row.fail(format!("{memory_mb:.0} MB of memory"));
    }
}

/// The largest resident memory until the attack stops.
fn peak_memory(server: &Server, is_stopped: &AtomicBool) -> f64 {
    let mut peak = f64::NAN;
    while !is_stopped.load(Ordering::SeqCst) {
        peak = server.memory_mb().map_or(peak, |memory| memory.max(peak));
        thread::sleep(Duration::from_millis(20));
    }
    peak
}

/// Sends the requests of one conversation after another to a proxy, or lists the tools of an MCP server.
struct GoodClient {
    client: HttpClient,
    conversation: GrowingConversation,
    seed: u64,
    n_requests: usize,
    port: u16,
    is_mcp: bool,
}

impl GoodClient {
    fn new(seed: u64, port: u16, is_mcp: bool) -> GoodClient {
        let conversation = GrowingConversation::new(seed, 60_000, false);
        GoodClient { client: new_client(port), conversation, seed, n_requests: 0, port, is_mcp }
    }

    fn run(&mut self, time: Duration) -> Times {
        let mut times = Times::default();
        let until = Instant::now() + time;
        while Instant::now() < until {
            let started = Instant::now();
            match self.send() {
                Ok(()) => times.sorted_ms.push(started.elapsed().as_secs_f64() * 1e3),
                Err(failure) => times.failures.push(failure),
            }
            thread::sleep(THINKING);
        }
        times.sorted_ms.sort_by(f64::total_cmp);
        times
    }

    fn send(&mut self) -> Result<(), String> {
        const PER_CONVERSATION: usize = 40;
        if self.is_mcp {
            let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
            let headers = [("accept", "application/json, text/event-stream")];
            // Each call comes on a new connection, as from a client that just started.
            let answer =
                new_client(self.port).post("/mcp", &headers, list).map_err(|error| error.to_string())?;
            return if answer.status == 200 { Ok(()) } else { Err(format!("status {}", answer.status)) };
        }
        self.n_requests += 1;
        if self.n_requests.is_multiple_of(PER_CONVERSATION) {
            self.seed += 1;
            self.conversation = GrowingConversation::new(self.seed, 60_000, false);
        }
        self.conversation.add_step(1_500);
        let answer =
            self.client.post(PATH, &HEADERS, &self.conversation.body()).map_err(|error| error.to_string())?;
        let outcome = answer.headers.iter().find(|(name, _)| name == "x-fanfold");
        let is_folded = outcome.is_some_and(|(_, outcome)| !outcome.starts_with("as it came"));
        if answer.status == 200 && is_folded {
            Ok(())
        } else {
            Err(format!("status {}, {outcome:?}", answer.status))
        }
    }
}

fn new_client(port: u16) -> HttpClient {
    let mut client = HttpClient::new(port);
    client.timeout = LIMIT;
    client
}

#[cfg(test)]
mod tests {
    use super::{Row, Times, judge};

    fn n_failures(quiet_ms: f64, during_ms: f64, memory_mb: f64) -> usize {
        let mut row = Row::new("x", "");
        let times = |ms| Times { sorted_ms: vec![ms], failures: Vec::new() };
        judge(&mut row, &times(quiet_ms), &times(during_ms), memory_mb, 0.0);
        row.n_failures()
    }

    #[test]
    fn slow_answers_and_much_memory_are_failures() {
        assert_eq!(n_failures(10.0, 30.0, 300.0), 0);
        assert_eq!(n_failures(10.0, 31.0, 301.0), 2);
        assert_eq!(n_failures(10.0, 10.0, f64::NAN), 1);
        assert_eq!(n_failures(10.0, f64::INFINITY, 10.0), 1);
    }
}
