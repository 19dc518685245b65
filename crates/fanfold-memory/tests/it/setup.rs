//! Scripted providers and turns.

use std::path::Path;
use std::time::{Duration, Instant};

use fanfold_memory::{MemoryClient, MemoryEvent, MemoryLimits, MemoryProvider, MemoryTurn, ProviderAddress};
use fanfold_testkit::fakes::memory_server::{Behaviour, arguments, environment, serve_stdio};

/// Short timeouts, for quick tests.
pub(crate) fn limits() -> MemoryLimits {
    MemoryLimits {
        deadline: Duration::from_millis(250),
        call: Duration::from_secs(4),
        shutdown: Duration::from_secs(2),
        ..MemoryLimits::default()
    }
}

pub(crate) fn client(address: ProviderAddress, limits: MemoryLimits) -> MemoryClient {
    MemoryClient::start(Some(MemoryProvider::new(address)), None, limits, None).unwrap()
}

pub(crate) fn http(url: &str) -> ProviderAddress {
    ProviderAddress::Http { url: url.to_owned(), key: None }
}

pub(crate) fn mcp(url: &str) -> ProviderAddress {
    ProviderAddress::Mcp { url: url.to_owned(), key: None }
}

/// This test binary as an MCP program. It writes the calls it gets to a log file.
pub(crate) fn program(manner: Behaviour, log: &Path) -> ProviderAddress {
    ProviderAddress::Program {
        program: std::env::current_exe().unwrap().display().to_string(),
        arguments: arguments("setup::scripted_program"),
        environment: environment(manner, log),
    }
}

#[test]
#[ignore = "a program that other tests start"]
fn scripted_program() {
    serve_stdio();
}

pub(crate) fn turn(number: usize, prompt: &str) -> MemoryTurn {
    MemoryTurn { conversation: "this-talk".to_owned(), number, prompt: prompt.to_owned() }
}

/// The recalled text of a turn, and how long it took.
pub(crate) fn recall(client: &MemoryClient, turn: &MemoryTurn) -> (Option<String>, Duration) {
    let began = Instant::now();
    let recalling = client.recall(turn, Duration::from_secs(60));
    (client.recalled_text(&recalling), began.elapsed())
}

/// Waits some seconds for a condition.
pub(crate) fn until(is_true: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

pub(crate) fn count(client: &MemoryClient, event: MemoryEvent) -> u64 {
    client.counts().get(&event).copied().unwrap_or_default()
}
