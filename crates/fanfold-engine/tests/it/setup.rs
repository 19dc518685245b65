//! Engines, terms and bodies for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fanfold_core::{Budget, EngineFactory, Policy, Tokens, Words};
use fanfold_engine::{Clock, RequestInput, RequestOutcome, SessionEngine, Terms};
use fanfold_store::{Millis, SessionId, SqliteStore, Store};
pub(crate) use fanfold_testkit::generators::long_chat::long_chat_in_turns as long_chat;
use fanfold_wire::Conversation;
use serde_json::{Value, json};

/// A clock that advances by a second with each call, and by each wait.
#[derive(Default)]
pub(crate) struct TestClock(pub(crate) AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Millis {
        Millis(1_794_751_764_000 + self.0.fetch_add(1000, Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) {
        self.0.fetch_add(ms as i64, Ordering::SeqCst);
    }
}

pub(crate) fn engine() -> SessionEngine {
    engine_on(Arc::new(SqliteStore::in_memory()))
}

pub(crate) fn engine_on(store: Arc<dyn Store>) -> SessionEngine {
    SessionEngine::new(store, Arc::new(TestClock::default()))
}

/// Terms with a policy and a window. Each word is a token.
pub(crate) fn terms(policy: &str, window: u64) -> Terms {
    Terms {
        engine: EngineFactory::FANFOLD,
        policy: Policy::named(policy).unwrap(),
        budget: Budget::with_reserve(Tokens(window), Tokens::ZERO),
        prices: None,
        counter: &Words,
        format: None,
        focus: String::new(),
        assumed: Vec::new(),
        described: policy.to_owned(),
    }
}

/// Restores terms from their recorded description.
pub(crate) fn terms_of(described: &str, budget: Budget) -> Result<Terms, String> {
    Ok(Terms { budget, ..terms(described, 1) })
}

pub(crate) fn id(name: &str) -> SessionId {
    SessionId(name.to_owned())
}

pub(crate) fn request(engine: &SessionEngine, session: &str, body: &str, terms: &Terms) -> RequestOutcome {
    engine.request(&RequestInput::new(&id(session), body, terms, "test"))
}

/// The earlier versions of a body: with 1, 1 + `every`, 1 + 2 `every` … messages, and with all of them.
pub(crate) fn beginnings(body: &str, every: usize) -> Vec<String> {
    let Ok((conversation, _)) = Conversation::decode(body, None) else { return Vec::new() };
    let spans = conversation.spans();
    if spans.len() < 2 {
        return vec![body.to_owned()];
    }
    let messages: Vec<&str> = conversation.messages().collect();
    let (before, after) = (&body[..spans[0].start], &body[spans[spans.len() - 1].end..]);
    let gap = &body[spans[0].end..spans[1].start];
    let mut counts: Vec<usize> = (1..messages.len()).step_by(every).collect();
    counts.push(messages.len());
    counts.into_iter().map(|n| format!("{before}{}{after}", messages[..n].join(gap))).collect()
}

pub(crate) fn chat(messages: &[Value]) -> String {
    json!({ "model": "m", "messages": messages, "stream": true }).to_string()
}
