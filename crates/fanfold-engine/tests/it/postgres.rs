//! The contract on a PostgreSQL server.

use std::sync::Arc;

use fanfold_engine::{FoldOutcome, MachineClock, SessionEngine};
use fanfold_store::{OpenMode, Store};

use crate::cluster;
use crate::setup::{chat, engine, engine_on, id, long_chat, request, terms};
use crate::{lineage, random_walks, requests};

fn open(database: &str) -> Arc<dyn Store> {
    Arc::from(fanfold_store::open(database, OpenMode::Write).unwrap())
}

#[test]
fn a_postgres_store_gives_the_same_bytes_as_memory() {
    let Some(database) = cluster::database() else { return };
    requests::check_same_bytes_as_memory(&|| engine_on(open(&database)));
}

#[test]
fn forks_on_postgres_continue_with_the_sent_view() {
    let Some(database) = cluster::database() else { return };
    lineage::check_fork(&engine_on(open(&database)));
}

#[test]
fn random_walks_are_equal_on_postgres_and_in_memory() {
    for seed in 0..2 {
        let Some(database) = cluster::database() else { return };
        let n_sent = random_walks::check_walk(seed, [engine(), engine_on(open(&database))]);
        assert!(n_sent > 15, "{n_sent}");
    }
}

#[test]
fn concurrent_requests_of_a_session_make_one_fold() {
    let Some(database) = cluster::database() else { return };
    let messages = long_chat(40);
    let terms = terms("fanfold", 400);
    request(&engine_on(open(&database)), "s", &chat(&messages[..6]), &terms);
    let bodies: Vec<String> = std::thread::scope(|scope| {
        let send = || {
            let engine = SessionEngine::new(open(&database), Arc::new(MachineClock));
            let answer = request(&engine, "s", &chat(&messages), &terms);
            assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
            answer.body
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let events = open(&database).events(&id("s"), 0).unwrap();
    let n = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!((n("fold"), n("request")), (1, 5));
}
