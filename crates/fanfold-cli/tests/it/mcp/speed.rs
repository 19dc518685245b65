//! Latency in a large store: 100,000 messages with FANFOLD_MANY, fewer without.

#![allow(clippy::print_stdout, reason = "a test prints its measurements")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::{Budget, Policy, Tokens, Words};
use fanfold_engine::{MachineClock, RequestInput, SessionEngine, Terms};
use fanfold_store::{SessionId, SqliteStore};
use fanfold_testkit::generators::conversations::{ConversationSize, chat_messages, conversation};
use serde_json::{Value, json};

use super::client::Client;
use super::stored_session::StoredSession;

/// Maximum duration of a call, even on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(3);

#[test]
fn calls_are_fast_in_a_large_store() {
    let wanted = if std::env::var_os("FANFOLD_MANY").is_some() { 100_000 } else { 3_000 };
    let stored = StoredSession::new();
    let (n_messages, n_sessions) = fill(&stored, wanted);
    let began = Instant::now();
    let mut client = Client::start_and_initialize(&stored, &[]);
    println!("{n_messages} messages in {n_sessions} sessions; started and greeted in {:?}", began.elapsed());
    let oldest = stored.handles[0].clone();
    for (name, tool, arguments) in [
        ("browse", "search", json!({})),
        ("one word", "search", json!({ "query": "hundredth" })),
        ("two common words", "search", json!({ "query": "error path" })),
        ("a part of a word", "search", json!({ "query": "*ecord*" })),
        ("read", "search", json!({ "session_id": "night" })),
        ("recall, session named", "recall", json!({ "handle": oldest, "session_id": "night" })),
        ("recall, oldest of all sessions", "recall", json!({ "handle": oldest })),
        ("status of one", "status", json!({ "session_id": "night" })),
        ("status of the newest", "status", json!({})),
    ] {
        let mut times: Vec<Duration> = (0..7).map(|_| timed(&mut client, tool, &arguments)).collect();
        let first = times[0];
        times.sort();
        println!("{name}: {:?}, the first time {first:?}", times[times.len() / 2]);
        assert!(times[times.len() / 2] < MAX_TIME, "{name}: {times:?}");
    }
}

fn timed(client: &mut Client, tool: &str, arguments: &Value) -> Duration {
    let began = Instant::now();
    let called = client.call(tool, arguments.clone());
    let duration = began.elapsed();
    assert!(!called.is_error, "{tool} {arguments}: {:?}", called.texts);
    duration
}

/// Adds folded sessions, newer than the stored one, until the store has this many messages.
fn fill(stored: &StoredSession, wanted: usize) -> (usize, usize) {
    let store = Arc::new(SqliteStore::open(&stored.store()).unwrap());
    let engine = SessionEngine::new(store, Arc::new(MachineClock));
    let terms = Terms {
        engine: fanfold_core::EngineFactory::FANFOLD,
        policy: Policy::fanfold(),
        budget: Budget::of_window(Tokens(2_000)),
        prices: None,
        counter: &Words,
        format: None,
        focus: String::new(),
        assumed: Vec::new(),
        described: "words".to_owned(),
    };
    let (mut n_messages, mut n_sessions) = (0, 0);
    while n_messages < wanted {
        let entries: Vec<_> =
            (0..4).flat_map(|i| conversation(n_sessions as u64 * 4 + i, ConversationSize::Long)).collect();
        let messages: Vec<Value> = entries.iter().flat_map(chat_messages).collect();
        let body = json!({ "model": "m", "messages": messages }).to_string();
        let session = SessionId(format!("made-{n_sessions}"));
        let answer = engine.request(&RequestInput::new(&session, &body, &terms, "test"));
        assert!(answer.is_stored, "{:?}", answer.fold);
        n_messages += messages.len();
        n_sessions += 1;
        engine.clear_cache();
    }
    (n_messages, n_sessions)
}
