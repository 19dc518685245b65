//! Failures of the store at every operation: acknowledged data is never lost, and every sent body is complete.

use std::sync::Arc;

use fanfold_core::Extent;
use fanfold_engine::{FoldOutcome, Import, RequestError, SessionEngine};
use fanfold_store::{EndReason, SessionFilter, SqliteStore, Store};

use crate::faulty_store::{FaultTiming, FaultyStore};
use crate::setup::{chat, engine, engine_on, id, long_chat, request, terms};

pub(crate) fn bodies() -> Vec<String> {
    let messages = long_chat(24);
    [9, 21, 30, 44, messages.len()].iter().map(|n| chat(&messages[..*n])).collect()
}

/// The bodies sent without failures.
pub(crate) fn sent_without_failures() -> Vec<String> {
    let engine = engine();
    let terms = terms("fanfold", 400);
    bodies().iter().map(|body| request(&engine, "s", body, &terms).body).collect()
}

fn check_faults(when: FaultTiming) -> usize {
    let (bodies, expected) = (bodies(), sent_without_failures());
    let terms = terms("fanfold", 400);
    let mut fails_at = 0;
    loop {
        let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, when));
        let failing = engine_on(Arc::clone(&faulty) as Arc<dyn Store>);
        let mut n_troubles = 0;
        for (body, expected) in bodies.iter().zip(&expected) {
            let answer = request(&failing, "s", body, &terms);
            match &answer.fold {
                FoldOutcome::Failed(RequestError::Store(_)) => {
                    n_troubles += 1;
                    assert_eq!(answer.body, *body, "{fails_at}: a failed request is forwarded unchanged");
                }
                FoldOutcome::Failed(other) => panic!("{fails_at}: {other}"),
                FoldOutcome::Whole | FoldOutcome::Folded(_) => {
                    assert_eq!(answer.body, *expected, "{fails_at}: other requests are not affected");
                    check_handles_open(&engine_on(Arc::clone(&inner)), &answer.body);
                }
            }
            if answer.is_stored {
                check_stored(&*inner, body);
            }
        }
        assert!(n_troubles <= 1, "{fails_at}");
        assert_eq!(engine_on(inner).check_handles(&id("s")).unwrap().1, Vec::<String>::new());
        if !faulty.has_failed() {
            return fails_at;
        }
        fails_at += 1;
    }
}

/// Checks that the store has every message of a body.
pub(crate) fn check_stored(store: &dyn Store, body: &str) {
    let row = store.session(&id("s")).unwrap().unwrap();
    let nodes = store.chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
    for node in &nodes {
        assert!(body.contains(&*node.json));
    }
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(nodes.len(), body["messages"].as_array().unwrap().len());
}

/// Checks that every handle in a body can be recalled from the store.
pub(crate) fn check_handles_open(engine: &SessionEngine, body: &str) {
    for word in body.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() == 6) {
        let opened = engine.recall(&id("s"), word.parse().unwrap(), &Extent::Whole);
        assert!(opened.is_ok_and(|content| !content.is_empty()), "{word}");
    }
}

#[test]
fn no_failure_loses_acknowledged_data() {
    let n_before = check_faults(FaultTiming::Before);
    let n_after = check_faults(FaultTiming::After);
    assert!(n_before > 20 && n_after > 20, "{n_before} and {n_after} operations");
}

#[test]
fn rotation_is_atomic() {
    for when in [FaultTiming::Before, FaultTiming::After] {
        let mut fails_at = 0;
        loop {
            let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
            let healthy = engine_on(Arc::clone(&inner));
            request(&healthy, "s", &bodies()[4], &terms("fanfold", 400));
            healthy.set_title(&id("s"), "Night run").unwrap();
            healthy.set_goal(&id("s"), "find the record").unwrap();
            let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, when));
            let rotated = engine_on(Arc::clone(&faulty) as Arc<dyn Store>).rotate(&id("s"));
            let rows = inner.sessions(&SessionFilter::default()).unwrap();
            let parent = inner.session(&id("s")).unwrap().unwrap();
            match rows.iter().find(|row| row.id != id("s")) {
                Some(child) => {
                    assert_eq!(parent.ended.as_ref().map(|(_, why)| why), Some(&EndReason::Compression));
                    assert_eq!(parent.goal, None);
                    assert_eq!(child.title.as_deref(), Some("Night run #2"));
                    assert_eq!(child.goal.as_deref(), Some("find the record"));
                    assert_eq!((child.tip, child.n_messages), (parent.tip, parent.n_messages));
                }
                None => {
                    assert!(rotated.is_err(), "{fails_at}");
                    assert_eq!((parent.ended, parent.title.as_deref()), (None, Some("Night run")));
                    assert_eq!(parent.goal.as_deref(), Some("find the record"));
                }
            }
            if !faulty.has_failed() {
                assert!(rotated.is_ok() && fails_at > 2);
                break;
            }
            fails_at += 1;
        }
    }
}

#[test]
fn requests_are_folded_when_locks_fail() {
    let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let mut faulty = FaultyStore::new(inner, usize::MAX, FaultTiming::Before);
    faulty.has_broken_locks = true;
    let engine = engine_on(Arc::new(faulty));
    let answer = request(&engine, "s", &bodies()[4], &terms("fanfold", 400));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)));
}

#[test]
fn an_expired_lock_is_taken_over_and_a_valid_one_respected() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let engine = engine_on(Arc::clone(&store));
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "s", &bodies[0], &terms);
    let now = fanfold_store::Millis(1_794_751_764_000);
    store.lock(&id("s"), "somebody", 300_000, now).unwrap();
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert!(
        matches!(&answer.fold, FoldOutcome::Failed(RequestError::Locked(holder)) if holder == "somebody")
    );
    assert_eq!((answer.body.as_str(), answer.is_stored), (bodies[4].as_str(), true));
    store.unlock(&id("s"), "somebody").unwrap();
    // The lease of a holder that died has expired.
    store.lock(&id("s"), "dead", 1_000, now).unwrap();
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
}

#[test]
#[cfg(target_os = "linux")]
fn the_lock_of_a_dead_local_process_is_taken_over() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let engine = engine_on(Arc::clone(&store));
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "s", &bodies[0], &terms);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host: String = host.trim().chars().take(40).collect();
    // No process has this id: it is above the maximum of Linux.
    let dead = format!("{host}-{}-0a1b2c3d", u32::MAX);
    store.lock(&id("s"), &dead, 300_000, fanfold_store::Millis(1_794_751_764_000)).unwrap();
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
}

#[test]
fn a_request_is_forwarded_unchanged_after_a_panic() {
    struct Panicking;
    impl fanfold_core::Count for Panicking {
        fn count(&self, _: &str) -> fanfold_core::Tokens {
            panic!("the counter broke")
        }
        fn name(&self) -> &str {
            "panicking"
        }
        fn is_exact(&self) -> bool {
            false
        }
    }
    let engine = engine();
    let body = &bodies()[1];
    let broken = fanfold_engine::Terms { counter: &Panicking, ..terms("fanfold", 400) };
    let answer = request(&engine, "s", body, &broken);
    assert!(
        matches!(&answer.fold, FoldOutcome::Failed(RequestError::Panicked(why)) if why == "the counter broke")
    );
    assert_eq!((&answer.body, answer.is_stored), (body, true));
    assert!(matches!(request(&engine, "s", body, &terms("mask", 9000)).fold, FoldOutcome::Whole));
}

#[test]
fn import_is_atomic() {
    let messages: Vec<_> = long_chat(9).iter().map(|message| (message.to_string(), None)).collect();
    for fails_at in 0..8 {
        let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
        let failing =
            engine_on(Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, FaultTiming::Before)));
        let import = Import { format: "chat".into(), messages: messages.clone(), ..Import::default() };
        let is_imported = failing.import(import).is_ok();
        let rows = inner.sessions(&SessionFilter::default()).unwrap();
        assert_eq!(rows.len(), usize::from(is_imported), "{fails_at}");
        assert!(rows.iter().all(|row| row.n_messages as usize == messages.len()));
    }
}
