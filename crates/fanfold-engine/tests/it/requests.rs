//! The bytes of requests: equal with and without a cache, and rebuilt from the store.

use std::sync::Arc;

use fanfold_core::Extent;
use fanfold_engine::{FoldOutcome, RequestError, SessionEngine};
use fanfold_store::SqliteStore;
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use fanfold_testkit::trajectories::trajectories;

use crate::setup::{beginnings, chat, engine, engine_on, id, long_chat, request, terms, terms_of};

/// Sends bodies to an engine with a cache and to one without, compares the results, and rebuilds each request.
fn check(bodies: &[String], policy: &str, window: u64, name: &str) -> usize {
    let (with, without) = (engine(), engine());
    let terms = terms(policy, window);
    let mut sent = Vec::new();
    let mut n_folded = 0;
    for body in bodies {
        let answer = request(&with, "s", body, &terms);
        without.clear_cache();
        let again = request(&without, "s", body, &terms);
        assert_eq!(answer.body, again.body, "{name}: with and without a cache, after {body}");
        match &answer.fold {
            FoldOutcome::Failed(RequestError::Overflow(_) | RequestError::NotDecoded(_)) => continue,
            FoldOutcome::Failed(RequestError::Continued) => assert_eq!(answer.body, *body),
            FoldOutcome::Failed(trouble) => panic!("{name}: {trouble}"),
            FoldOutcome::Whole => assert_eq!(answer.body, *body, "{name}"),
            FoldOutcome::Folded(_) => n_folded += 1,
        }
        assert!(answer.is_stored, "{name}");
        sent.push(answer.body);
    }
    if !sent.is_empty() {
        check_rebuilt(&with, &sent, name);
        let (_, broken) = with.check_handles(&id("s")).unwrap();
        assert_eq!(broken, Vec::<String>::new(), "{name}");
    }
    n_folded
}

fn check_rebuilt(engine: &SessionEngine, sent: &[String], name: &str) {
    assert_eq!(engine.requests(&id("s")).unwrap().len(), sent.len(), "{name}");
    for (i, body) in sent.iter().enumerate() {
        let rebuilt = engine.rebuild(&id("s"), i + 1, &terms_of).unwrap();
        assert!(rebuilt.is_same, "{name}: request {}", i + 1);
        assert_eq!(rebuilt.body, *body, "{name}: request {}", i + 1);
    }
}

fn n_seeds(few: u64, many: u64) -> u64 {
    if std::env::var_os("FANFOLD_MANY").is_some() { many } else { few }
}

#[test]
fn requests_are_equal_without_a_cache_and_when_rebuilt() {
    let mut n_folded = 0;
    for kind in BodyFormat::ALL {
        for seed in 0..n_seeds(12, 400) {
            let bodies = beginnings(&rich(kind, seed), 2);
            for (policy, window) in [("fanfold", 150), ("hermes", 300), ("rules", 200)] {
                n_folded += check(&bodies, policy, window, &format!("{kind:?} {seed} {policy}"));
            }
        }
    }
    assert!(n_folded > 100, "{n_folded}");
}

#[test]
fn hostile_bodies_are_forwarded_unchanged_or_rebuilt() {
    for kind in BodyFormat::ALL {
        for seed in 0..n_seeds(40, 2000) {
            let body = hostile(kind, seed);
            check(&[body.clone(), body], "fanfold", 100, &format!("{kind:?} {seed}"));
        }
    }
}

#[test]
fn recorded_conversations_are_rebuilt() {
    let Some(all) = trajectories() else { return };
    let max_count = n_seeds(6, 200) as usize;
    let step = (all.len() / max_count).max(1);
    for trajectory in all.iter().step_by(step) {
        let messages: Vec<&str> = trajectory.messages.iter().map(|message| message.get()).collect();
        let tools = trajectory.tools.as_deref().unwrap_or("[]");
        let body = format!(r#"{{"messages":[{}],"tools":{tools}}}"#, messages.join(","));
        let every = (messages.len() / 12).max(1);
        check(&beginnings(&body, every), "fanfold", 8_000, &trajectory.id);
    }
}

#[test]
fn a_reopened_file_gives_the_same_bytes_as_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    check_same_bytes_as_memory(&|| engine_on(Arc::new(SqliteStore::open(&file).unwrap())));
}

/// Compares a store that is reopened for each operation with a store in memory.
pub(crate) fn check_same_bytes_as_memory(open: &dyn Fn() -> SessionEngine) {
    let in_memory = engine();
    let terms = terms("fanfold", 500);
    let messages = long_chat(40);
    let mut sent = Vec::new();
    for n in (4..=messages.len()).step_by(9) {
        let body = chat(&messages[..n]);
        let answer = request(&open(), "s", &body, &terms);
        assert_eq!(answer.body, request(&in_memory, "s", &body, &terms).body, "after {n} messages");
        sent.push(answer.body);
    }
    check_rebuilt(&open(), &sent, "reopened");
    let (n_handles, broken) = open().check_handles(&id("s")).unwrap();
    assert!(n_handles > 10 && broken.is_empty(), "{n_handles} {broken:?}");
    assert_eq!(open().live_messages(&id("s")).unwrap(), in_memory.live_messages(&id("s")).unwrap());
    let other = engine();
    let line = open().export_line(&id("s")).unwrap();
    other.import_line(&line).unwrap();
    check_rebuilt(&other, &sent, "imported");
}

#[test]
fn every_handle_of_a_view_is_recalled_from_the_store() {
    let engine = engine();
    let messages = long_chat(60);
    let body = chat(&messages);
    let answer = request(&engine, "s", &body, &terms("fanfold", 700));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
    let handles =
        engine.with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone()).unwrap();
    assert!(!handles.is_empty());
    engine.clear_cache();
    let mut originals = String::new();
    for handle in handles {
        originals.push_str(&engine.recall(&id("s"), handle, &Extent::Whole).unwrap());
    }
    assert!(originals.contains("stage 3 line 7 takes batch_3_7 of it"), "{originals}");
}

#[test]
fn an_undecodable_body_leaves_the_cached_session_as_it_is() {
    let engine = engine();
    let (terms, messages) = (terms("fanfold", 400), long_chat(24));
    request(&engine, "s", &chat(&messages[..9]), &terms);
    let broken = request(&engine, "s", "no conversation", &terms);
    assert!(matches!(broken.fold, FoldOutcome::Failed(RequestError::NotDecoded(_))), "{:?}", broken.fold);
    let n_cached = engine.with_cached(&id("s"), |followed| followed.conversation.messages().len());
    assert_eq!(n_cached, Some(9));
    let next = request(&engine, "s", &chat(&messages), &terms).body;
    engine.clear_cache();
    assert_eq!(request(&engine, "s", &chat(&messages), &terms).body, next);
}
