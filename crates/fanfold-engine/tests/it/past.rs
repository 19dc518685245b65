//! What happened to a session, each thing behind its message, and what of it holds.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use fanfold_engine::{Back, Clock, Engine, FoldOutcome, LoggedEvent, RequestError, SessionEvent, Terms};
use fanfold_store::{MemoryStore, Millis, Store};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::setting::{chat, engine, id, long_chat, request, terms};

/// What happened behind an early message comes before what happened behind a late one, whenever it was noted: a session
/// that went back, had something happen to it and came forth again stands like one that went straight.
#[test]
fn what_happened_behind_an_early_message_comes_first_whenever_it_was_noted() {
    let messages = long_chat(60);
    let (early, late, later) = (chat(&messages[..10]), chat(&messages[..60]), chat(&messages));
    let terms = terms("fanfold", 400);
    let pinned = |engine: &Engine, is_pinned| engine.pin(&id("s"), 3, is_pinned).unwrap();
    let straight = engine();
    request(&straight, "s", &early, &terms);
    pinned(&straight, false);
    request(&straight, "s", &late, &terms);
    pinned(&straight, true);
    let wanted = request(&straight, "s", &later, &terms).body;
    assert!(wanted.contains("stage 0 line 3"), "a pin holds: {wanted}");
    for is_forgetful in [false, true] {
        let winding = engine();
        request(&winding, "s", &early, &terms);
        request(&winding, "s", &late, &terms);
        pinned(&winding, true);
        winding.rewind(&id("s"), Back::To(10)).unwrap();
        pinned(&winding, false);
        assert_eq!(winding.redo(&id("s")).unwrap().n_after, 60);
        if is_forgetful {
            winding.clear_cache();
        }
        assert_eq!(request(&winding, "s", &later, &terms).body, wanted, "forgetful: {is_forgetful}");
    }
}

/// A body of messages with tools and instructions beside them.
fn body(messages: &[Value], system: &str, n_tools: usize) -> String {
    let tools: Vec<Value> = (0..n_tools)
        .map(
            |i| json!({ "name": format!("tool_{i}"), "description": "does ".repeat(60), "input_schema": {} }),
        )
        .collect();
    json!({ "tools": tools, "system_prompt": system, "messages": messages }).to_string()
}

fn beside(window: u64) -> Terms {
    Terms { format: Some(Format::Hermes), ..terms("fanfold", window) }
}

fn n_eras(engine: &Engine) -> usize {
    let events = engine.store().events(&id("s"), 0).unwrap();
    events
        .iter()
        .filter_map(LoggedEvent::decode)
        .filter(|noted| matches!(noted.event, SessionEvent::NewTerms(_)))
        .count()
}

/// Instructions beside the list are its first entry: under other ones the session begins anew, and what was folded to
/// make room for the tools of then is whole again.
#[test]
fn other_instructions_begin_a_session_anew() {
    let messages = &long_chat(10)[1..16];
    let terms = beside(1_000);
    for is_forgetful in [false, true] {
        let engine_of_two = engine();
        let crowded = request(&engine_of_two, "s", &body(messages, "Be brief.", 12), &terms);
        assert!(matches!(crowded.fold, FoldOutcome::Folded(_)), "{:?}", crowded.fold);
        if is_forgetful {
            engine_of_two.clear_cache();
        }
        let other = body(messages, "Be kind to everybody.", 0);
        let answer = request(&engine_of_two, "s", &other, &terms);
        assert_eq!(answer.body, request(&engine(), "s", &other, &terms).body, "as one that begins with them");
        assert!(matches!(answer.fold, FoldOutcome::Whole), "{:?}", answer.fold);
        assert_eq!(n_eras(&engine_of_two), 2);
        // The same ones go on.
        request(&engine_of_two, "s", &other, &terms);
        assert_eq!(n_eras(&engine_of_two), 2);
    }
}

/// A client that moves the cache marks of its instructions has the same ones: what was folded stays so, and its marks
/// leave as they came.
#[test]
fn instructions_whose_marks_move_go_on() {
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
    for is_forgetful in [false, true] {
        let (moving, still) = (engine(), engine());
        for (i, n) in (1..messages.len()).step_by(2).enumerate() {
            let moved = request(&moving, "s", &body(n, i % 2), &terms);
            let unmoved = request(&still, "s", &body(n, 0), &terms);
            assert_eq!(moved.sizes, unmoved.sizes, "after {n}");
            let (now, then) = (r#"0.","cache_control":{"type""#, r#"1.","cache_control":{"type""#);
            assert!(moved.body.contains(if i % 2 == 0 { now } else { then }), "{}", moved.body);
            if is_forgetful {
                moving.clear_cache();
            }
        }
        assert_eq!((n_eras(&moving), n_eras(&still)), (1, 1));
        assert!(!moving.handles(&id("s")).unwrap().is_empty());
    }
}

/// A fold that a request made stays for those behind it, also when they would not need it: the tools that took the room
/// are gone, and the provider holds the folded beginning.
#[test]
fn what_an_earlier_request_folded_stays_folded() {
    let messages = &long_chat(10)[1..16];
    let terms = beside(1_000);
    for is_forgetful in [false, true] {
        let engine = engine();
        let whole = request(&engine, "s", &body(&messages[..11], "Be brief.", 0), &terms);
        assert!(matches!(whole.fold, FoldOutcome::Whole), "{:?}", whole.fold);
        request(&engine, "s", &body(&messages[..13], "Be brief.", 12), &terms);
        let folded = engine.handles(&id("s")).unwrap();
        assert!(!folded.is_empty());
        if is_forgetful {
            engine.clear_cache();
        }
        // By itself all of it fits.
        let alone = request(&crate::setting::engine(), "s", &body(messages, "Be brief.", 0), &terms);
        assert!(matches!(alone.fold, FoldOutcome::Whole), "{:?}", alone.fold);
        let after = request(&engine, "s", &body(messages, "Be brief.", 0), &terms);
        assert!(matches!(after.fold, FoldOutcome::Folded(_)), "{:?}", after.fold);
        let stands = engine
            .with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone())
            .unwrap();
        assert!(stands.iter().any(|handle| folded.contains(&handle.to_string())), "{stands:?} {folded:?}");
        assert!(!after.body.contains("stage 0 line 3"), "{}", after.body);
    }
}

/// A clock that goes on while somebody waits, and lets another one do something then.
struct Waiting {
    now: AtomicI64,
    waited: AtomicI64,
    meanwhile: Box<dyn Fn(i64) + Send + Sync>,
}

impl Clock for Waiting {
    fn now(&self) -> Millis {
        Millis(1_794_751_764_000 + self.now.load(Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) {
        self.now.fetch_add(ms as i64, Ordering::SeqCst);
        let waited = self.waited.fetch_add(ms as i64, Ordering::SeqCst) + ms as i64;
        (self.meanwhile)(waited);
    }
}

/// Sends a body while somebody has the lock, and gives what became of it and how long it took.
fn while_locked(
    meanwhile: impl Fn(&dyn Store, i64) + Send + Sync + 'static,
) -> (FoldOutcome, i64, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let terms = terms("fanfold", 400);
    let messages = long_chat(24);
    let weak: Weak<dyn Store> = Arc::downgrade(&store);
    let meanwhile: Box<dyn Fn(i64) + Send + Sync> = Box::new(move |waited| {
        if let Some(store) = weak.upgrade() {
            meanwhile(&*store, waited);
        }
    });
    let clock = Arc::new(Waiting { now: AtomicI64::new(0), waited: AtomicI64::new(0), meanwhile });
    let engine = Engine::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>);
    request(&engine, "s", &chat(&messages[..9]), &terms);
    store.lock(&id("s"), "somebody", 300_000, clock.now()).unwrap();
    let answer = request(&engine, "s", &chat(&messages), &terms);
    assert!(answer.is_stored);
    (answer.fold, clock.waited.load(Ordering::SeqCst), store)
}

/// Somebody else who folds is waited for, but not for long.
#[test]
fn a_lock_that_is_given_back_in_three_seconds_is_waited_for() {
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
