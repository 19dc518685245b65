//! The order of effects: whatever fails, nothing acknowledged is lost, and what leaves is whole.

use std::sync::Arc;

use fanfold_core::Extent;
use fanfold_engine::{Engine, FoldOutcome, Import, RequestError};
use fanfold_store::{EndReason, MemoryStore, SessionFilter, Store};

use crate::faulty::{Faulty, When};
use crate::setting::{chat, engine, engine_on, id, long_chat, request, terms};

fn bodies() -> Vec<String> {
    let messages = long_chat(24);
    [9, 21, 30, 44, messages.len()].iter().map(|n| chat(&messages[..*n])).collect()
}

/// What leaves when nothing fails.
fn without_faults() -> Vec<String> {
    let engine = engine();
    let terms = terms("fanfold", 400);
    bodies().iter().map(|body| request(&engine, "s", body, &terms).body).collect()
}

fn check_faults(when: When) -> usize {
    let (bodies, wanted) = (bodies(), without_faults());
    let terms = terms("fanfold", 400);
    let mut fails_at = 0;
    loop {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let faulty = Arc::new(Faulty::new(Arc::clone(&inner), fails_at, when));
        let failing = engine_on(Arc::clone(&faulty) as Arc<dyn Store>);
        let mut n_troubles = 0;
        for (body, wanted) in bodies.iter().zip(&wanted) {
            let answer = request(&failing, "s", body, &terms);
            match &answer.fold {
                FoldOutcome::Failed(RequestError::Store(_)) => {
                    n_troubles += 1;
                    assert_eq!(answer.body, *body, "{fails_at}: what failed leaves as it came");
                }
                FoldOutcome::Failed(other) => panic!("{fails_at}: {other}"),
                FoldOutcome::Whole | FoldOutcome::Folded(_) => {
                    assert_eq!(answer.body, *wanted, "{fails_at}: what did not fail leaves as ever");
                    check_left(&engine_on(Arc::clone(&inner)), &answer.body);
                }
            }
            if answer.is_stored {
                check_kept(&*inner, body);
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

/// Every message of the body is in the store.
fn check_kept(store: &dyn Store, body: &str) {
    let row = store.session(&id("s")).unwrap().unwrap();
    let nodes = store.chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
    for node in &nodes {
        assert!(body.contains(&*node.json));
    }
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(nodes.len(), body["messages"].as_array().unwrap().len());
}

/// Every handle that left opens from the store.
fn check_left(engine: &Engine, body: &str) {
    for word in body.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() == 6) {
        let opened = engine.recall(&id("s"), word.parse().unwrap(), &Extent::Whole);
        assert!(opened.is_ok_and(|content| !content.is_empty()), "{word}");
    }
}

#[test]
fn whatever_fails_nothing_acknowledged_is_lost() {
    let n_before = check_faults(When::Before);
    let n_after = check_faults(When::After);
    assert!(n_before > 20 && n_after > 20, "{n_before} and {n_after} operations");
}

#[test]
fn a_rotation_happens_as_a_whole_or_not_at_all() {
    for when in [When::Before, When::After] {
        let mut fails_at = 0;
        loop {
            let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let calm = engine_on(Arc::clone(&inner));
            request(&calm, "s", &bodies()[4], &terms("fanfold", 400));
            calm.set_title(&id("s"), "Night run").unwrap();
            calm.set_goal(&id("s"), "find the record").unwrap();
            let faulty = Arc::new(Faulty::new(Arc::clone(&inner), fails_at, when));
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
fn a_broken_lock_stops_nobody() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut faulty = Faulty::new(inner, usize::MAX, When::Before);
    faulty.has_broken_locks = true;
    let engine = engine_on(Arc::new(faulty));
    let answer = request(&engine, "s", &bodies()[4], &terms("fanfold", 400));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)));
}

#[test]
fn a_dead_holder_is_taken_over_and_a_living_one_waited_for() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
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
    // One that has died does not give it back: its time is over.
    store.lock(&id("s"), "dead", 1_000, now).unwrap();
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
}

#[test]
#[cfg(target_os = "linux")]
fn a_holder_that_died_here_is_not_waited_for() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let engine = engine_on(Arc::clone(&store));
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "s", &bodies[0], &terms);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host: String = host.trim().chars().take(40).collect();
    // No process has this number: it is above the largest that Linux gives.
    let dead = format!("{host}-{}-0a1b2c3d", u32::MAX);
    store.lock(&id("s"), &dead, 300_000, fanfold_store::Millis(1_794_751_764_000)).unwrap();
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
}

#[test]
fn what_panics_leaves_as_it_came() {
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
fn an_import_happens_as_a_whole_or_not_at_all() {
    let messages: Vec<_> = long_chat(9).iter().map(|message| (message.to_string(), None)).collect();
    for fails_at in 0..8 {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let failing = engine_on(Arc::new(Faulty::new(Arc::clone(&inner), fails_at, When::Before)));
        let import = Import { format: "chat".into(), messages: messages.clone(), ..Import::default() };
        let is_here = failing.import(import).is_ok();
        let rows = inner.sessions(&SessionFilter::default()).unwrap();
        assert_eq!(rows.len(), usize::from(is_here), "{fails_at}");
        assert!(rows.iter().all(|row| row.n_messages as usize == messages.len()));
    }
}
