//! The order of a session's events, and which of them are in force.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use fanfold_engine::{
    Clock, FoldOutcome, LoggedEvent, RequestError, RewindTarget, SessionEngine, SessionEvent, Terms,
};
use fanfold_store::{Millis, SqliteStore, Store};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::setup::{chat, engine, id, long_chat, request, terms};

/// A session that is rewound, gets an event and is redone equals one that got the event at that message.
#[test]
fn events_apply_in_message_order_regardless_of_recording_time() {
    let messages = long_chat(60);
    let (early, late, later) = (chat(&messages[..10]), chat(&messages[..60]), chat(&messages));
    let terms = terms("fanfold", 400);
    let pin = |engine: &SessionEngine, is_pinned| engine.pin(&id("s"), 3, is_pinned).unwrap();
    let straight = engine();
    request(&straight, "s", &early, &terms);
    pin(&straight, false);
    request(&straight, "s", &late, &terms);
    pin(&straight, true);
    let expected = request(&straight, "s", &later, &terms).body;
    assert!(expected.contains("stage 0 line 3"), "the message is pinned: {expected}");
    for is_restarted in [false, true] {
        let winding = engine();
        request(&winding, "s", &early, &terms);
        request(&winding, "s", &late, &terms);
        pin(&winding, true);
        winding.rewind(&id("s"), RewindTarget::Length(10)).unwrap();
        pin(&winding, false);
        assert_eq!(winding.redo(&id("s")).unwrap().n_after, 60);
        if is_restarted {
            winding.clear_cache();
        }
        assert_eq!(request(&winding, "s", &later, &terms).body, expected, "restarted: {is_restarted}");
    }
}

/// A body with tools and with instructions outside the list of messages.
fn body(messages: &[Value], system: &str, n_tools: usize) -> String {
    let tools: Vec<Value> = (0..n_tools)
        .map(
            |i| json!({ "name": format!("tool_{i}"), "description": "does ".repeat(60), "input_schema": {} }),
        )
        .collect();
    json!({ "tools": tools, "system_prompt": system, "messages": messages }).to_string()
}

fn hermes_terms(window: u64) -> Terms {
    Terms { format: Some(Format::Hermes), ..terms("fanfold", window) }
}

/// The number of times that terms were recorded.
fn n_terms(engine: &SessionEngine) -> usize {
    let events = engine.store().events(&id("s"), 0).unwrap();
    events
        .iter()
        .filter_map(LoggedEvent::decode)
        .filter(|noted| matches!(noted.event, SessionEvent::NewTerms(_)))
        .count()
}

/// Instructions outside the list of messages are its first entry. If they change, the session restarts, and folds
/// that made room for its tools no longer apply.
#[test]
fn changed_instructions_restart_the_session() {
    let messages = &long_chat(10)[1..16];
    let terms = hermes_terms(1_000);
    for is_restarted in [false, true] {
        let changing = engine();
        let crowded = request(&changing, "s", &body(messages, "Be brief.", 12), &terms);
        assert!(matches!(crowded.fold, FoldOutcome::Folded(_)), "{:?}", crowded.fold);
        if is_restarted {
            changing.clear_cache();
        }
        let other = body(messages, "Be kind to everybody.", 0);
        let answer = request(&changing, "s", &other, &terms);
        assert_eq!(
            answer.body,
            request(&engine(), "s", &other, &terms).body,
            "like a new session with these instructions"
        );
        assert!(matches!(answer.fold, FoldOutcome::Whole), "{:?}", answer.fold);
        assert_eq!(n_terms(&changing), 2);
        // Unchanged instructions do not restart it.
        request(&changing, "s", &other, &terms);
        assert_eq!(n_terms(&changing), 2);
    }
}

/// Moved cache marks do not change the instructions: folds stay in force, and the marks are forwarded unchanged.
#[test]
fn moved_marks_in_instructions_do_not_restart_the_session() {
    let messages: Vec<Value> = (0..30)
        .map(|i| {
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("{i}: {}", "some words of it ".repeat(30)) })
        })
        .collect();
    let body = |n: usize, marked: usize| {
        let mark = |at: usize| if at == marked { json!({ "type": "ephemeral" }) } else { Value::Null };
        let system: Vec<Value> = (0..2)
            .map(|at| json!({ "type": "text", "text": format!("Be kind {at}."), "cache_control": mark(at) }))
            .collect();
        json!({ "model": "m", "max_tokens": 9, "system": system, "messages": messages[..n] }).to_string()
    };
    let terms = Terms { format: Some(Format::Anthropic), ..terms("fanfold", 1_500) };
    for is_restarted in [false, true] {
        let (moving, still) = (engine(), engine());
        for (i, n) in (1..messages.len()).step_by(2).enumerate() {
            let moved = request(&moving, "s", &body(n, i % 2), &terms);
            let unmoved = request(&still, "s", &body(n, 0), &terms);
            assert_eq!(moved.sizes, unmoved.sizes, "after {n}");
            let (now, then) = (r#"0.","cache_control":{"type""#, r#"1.","cache_control":{"type""#);
            assert!(moved.body.contains(if i % 2 == 0 { now } else { then }), "{}", moved.body);
            if is_restarted {
                moving.clear_cache();
            }
        }
        assert_eq!((n_terms(&moving), n_terms(&still)), (1, 1));
        assert!(!moving.handles(&id("s")).unwrap().is_empty());
    }
}

/// A fold stays in force when later requests without tools would fit unfolded, because the folded beginning is in
/// the provider's cache.
#[test]
fn a_fold_stays_in_force_when_it_is_no_longer_needed() {
    let messages = &long_chat(10)[1..16];
    let terms = hermes_terms(1_000);
    for is_restarted in [false, true] {
        let engine = engine();
        let whole = request(&engine, "s", &body(&messages[..11], "Be brief.", 0), &terms);
        assert!(matches!(whole.fold, FoldOutcome::Whole), "{:?}", whole.fold);
        request(&engine, "s", &body(&messages[..13], "Be brief.", 12), &terms);
        let folded = engine.handles(&id("s")).unwrap();
        assert!(!folded.is_empty());
        if is_restarted {
            engine.clear_cache();
        }
        // A new session would fit unfolded.
        let alone = request(&crate::setup::engine(), "s", &body(messages, "Be brief.", 0), &terms);
        assert!(matches!(alone.fold, FoldOutcome::Whole), "{:?}", alone.fold);
        let after = request(&engine, "s", &body(messages, "Be brief.", 0), &terms);
        assert!(matches!(after.fold, FoldOutcome::Folded(_)), "{:?}", after.fold);
        let in_view = engine
            .with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone())
            .unwrap();
        assert!(in_view.iter().any(|handle| folded.contains(&handle.to_string())), "{in_view:?} {folded:?}");
        assert!(!after.body.contains("stage 0 line 3"), "{}", after.body);
    }
}

/// A clock that advances by waits, and calls `meanwhile` with the total time at each.
struct WaitingClock {
    now: AtomicI64,
    waited: AtomicI64,
    meanwhile: Box<dyn Fn(i64) + Send + Sync>,
}

impl Clock for WaitingClock {
    fn now(&self) -> Millis {
        Millis(1_794_751_764_000 + self.now.load(Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) {
        self.now.fetch_add(ms as i64, Ordering::SeqCst);
        let waited = self.waited.fetch_add(ms as i64, Ordering::SeqCst) + ms as i64;
        (self.meanwhile)(waited);
    }
}

/// Sends a body while another process has the lock. Returns the outcome and the time waited, in milliseconds.
fn while_locked(
    meanwhile: impl Fn(&dyn Store, i64) + Send + Sync + 'static,
) -> (FoldOutcome, i64, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let terms = terms("fanfold", 400);
    let messages = long_chat(24);
    let weak: Weak<dyn Store> = Arc::downgrade(&store);
    let meanwhile: Box<dyn Fn(i64) + Send + Sync> = Box::new(move |waited| {
        if let Some(store) = weak.upgrade() {
            meanwhile(&*store, waited);
        }
    });
    let clock = Arc::new(WaitingClock { now: AtomicI64::new(0), waited: AtomicI64::new(0), meanwhile });
    let engine = SessionEngine::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>);
    request(&engine, "s", &chat(&messages[..9]), &terms);
    store.lock(&id("s"), "somebody", 300_000, clock.now()).unwrap();
    let answer = request(&engine, "s", &chat(&messages), &terms);
    assert!(answer.is_stored);
    (answer.fold, clock.waited.load(Ordering::SeqCst), store)
}

#[test]
fn a_request_waits_three_seconds_for_the_lock() {
    let (left, waited, _) = while_locked(|store, waited| {
        if waited >= 2_500 {
            store.unlock(&id("s"), "somebody").unwrap();
        }
    });
    assert!(matches!(left, FoldOutcome::Folded(_)), "{left:?}");
    assert!((2_500..3_000).contains(&waited), "{waited} ms");
    let (left, waited, _) = while_locked(|_, _| {});
    assert!(matches!(left, FoldOutcome::Failed(RequestError::Locked(_))), "{left:?}");
    assert!((3_000..3_500).contains(&waited), "{waited} ms");
}
