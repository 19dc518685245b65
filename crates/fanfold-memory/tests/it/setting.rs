//! Providers that are scripted, and turns.

use std::path::Path;
use std::time::{Duration, Instant};

use fanfold_memory::{MemoryClient, MemoryEvent, MemoryLimits, MemoryProvider, MemoryTurn, ProviderAddress};
use fanfold_testkit::fakes::memory_server::{Behaviour, arguments, environment, serve_stdio};

/// Quick limits, so that a test does not wait for long.
pub(crate) fn limits() -> MemoryLimits {
    MemoryLimits {
        deadline: Duration::from_millis(250),
        call: Duration::from_secs(4),
        shutdown: Duration::from_secs(2),
        ..MemoryLimits::default()
    }
}

pub(crate) fn keeper(place: ProviderAddress, limits: MemoryLimits) -> MemoryClient {
    MemoryClient::start(Some(MemoryProvider::new(place)), None, limits, None).unwrap()
}

pub(crate) fn http(url: &str) -> ProviderAddress {
    ProviderAddress::Http { url: url.to_owned(), key: None }
}

pub(crate) fn mcp(url: &str) -> ProviderAddress {
    ProviderAddress::Mcp { url: url.to_owned(), key: None }
}

/// This binary as a program that speaks MCP; what is written to it goes into a file.
pub(crate) fn program(manner: Behaviour, log: &Path) -> ProviderAddress {
    ProviderAddress::Program {
        program: std::env::current_exe().unwrap().display().to_string(),
        arguments: arguments("setting::a_scripted_program"),
        environment: environment(manner, log),
    }
}

#[test]
#[ignore = "a program that other tests start"]
fn a_scripted_program() {
    serve_stdio();
}

pub(crate) fn turn(number: usize, asked: &str) -> MemoryTurn {
    MemoryTurn { conversation: "this-talk".to_owned(), number, prompt: asked.to_owned() }
}

/// What is recalled for a turn, and how long that took.
pub(crate) fn recall(keeper: &MemoryClient, turn: &MemoryTurn) -> (Option<String>, Duration) {
    let began = Instant::now();
    let recalling = keeper.recall(turn, Duration::from_secs(60));
    (keeper.recalled_text(&recalling), began.elapsed())
}

/// Waits until something is true, for some seconds.
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

pub(crate) fn count(keeper: &MemoryClient, deed: MemoryEvent) -> u64 {
    keeper.counts().get(&deed).copied().unwrap_or_default()
}
