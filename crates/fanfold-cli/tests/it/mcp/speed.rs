//! Latency in a large store: 100,000 messages with FANFOLD_MANY, fewer without.

#![allow(clippy::print_stdout, reason = "a test says what it measured")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::{Budget, Policy, Tokens, Words};
use fanfold_engine::{Ask, Engine, MachineClock, Terms};
use fanfold_store::{SessionId, SqliteStore};
use fanfold_testkit::generators::conversations::{ConversationSize, chat_messages, conversation};
use serde_json::{Value, json};

use super::client::Client;
use super::stored_session::StoredSession;

/// A call takes no longer, on a busy machine, too.
const MOST: Duration = Duration::from_secs(3);

#[test]
fn calls_are_fast_in_a_large_store() {
    let wanted = if std::env::var_os("FANFOLD_MANY").is_some() { 100_000 } else { 3_000 };
    let kept = StoredSession::new();
    let (n_messages, n_sessions) = fill(&kept, wanted);
    let began = Instant::now();
    let mut client = Client::greeted(&kept, &[]);
    println!("{n_messages} messages in {n_sessions} sessions; started and greeted in {:?}", began.elapsed());
    let oldest = kept.handles[0].clone();
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
        assert!(times[times.len() / 2] < MOST, "{name}: {times:?}");
    }
}

fn timed(client: &mut Client, tool: &str, arguments: &Value) -> Duration {
    let began = Instant::now();
    let called = client.call(tool, arguments.clone());
    let taken = began.elapsed();
    assert!(!called.is_error, "{tool} {arguments}: {:?}", called.texts);
    taken
}

/// Adds sessions until there are so many messages, each folded now and then, all newer than the one that is there.
fn fill(kept: &StoredSession, wanted: usize) -> (usize, usize) {
    let store = Arc::new(SqliteStore::open(&kept.store()).unwrap());
    let engine = Engine::new(store, Arc::new(MachineClock));
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
        let answer = engine.request(&Ask::new(&session, &body, &terms, "test"));
        assert!(answer.is_kept, "{:?}", answer.left);
        n_messages += messages.len();
        n_sessions += 1;
        engine.forget();
    }
    (n_messages, n_sessions)
}
