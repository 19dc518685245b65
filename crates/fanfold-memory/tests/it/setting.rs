//! Providers that are scripted, and turns.

use std::path::Path;
use std::time::{Duration, Instant};

use fanfold_memory::{Deed, Keeper, Limits, Place, Provider, Turn};
use fanfold_testkit::memory::{Manner, arguments, environment, serve_stdio};

/// Quick limits, so that a test does not wait for long.
pub(crate) fn limits() -> Limits {
    Limits {
        deadline: Duration::from_millis(250),
        call: Duration::from_secs(4),
        farewell: Duration::from_secs(2),
        ..Limits::default()
    }
}

pub(crate) fn keeper(place: Place, limits: Limits) -> Keeper {
    Keeper::start(Some(Provider::at(place)), None, limits, None).unwrap()
}

pub(crate) fn http(url: &str) -> Place {
    Place::Http { url: url.to_owned(), key: None }
}

pub(crate) fn mcp(url: &str) -> Place {
    Place::Mcp { url: url.to_owned(), key: None }
}

/// This binary as a program that speaks MCP; what is written to it goes into a file.
pub(crate) fn program(manner: Manner, log: &Path) -> Place {
    Place::Program {
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

pub(crate) fn turn(number: usize, asked: &str) -> Turn {
    Turn { talk: "this-talk".to_owned(), number, asked: asked.to_owned() }
}

/// What is recalled for a turn, and how long that took.
pub(crate) fn recall(keeper: &Keeper, turn: &Turn) -> (Option<String>, Duration) {
    let began = Instant::now();
    let recalling = keeper.recall(turn, Duration::from_secs(60));
    (keeper.text(&recalling), began.elapsed())
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

pub(crate) fn count(keeper: &Keeper, deed: Deed) -> u64 {
    keeper.counts().get(&deed).copied().unwrap_or_default()
}
