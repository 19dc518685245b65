//! What holds in memory and in a file holds on a PostgreSQL server, too.

use std::sync::Arc;

use fanfold_engine::{Engine, FoldOutcome, MachineClock};
use fanfold_store::{OpenMode, Store};

use crate::cluster;
use crate::setting::{chat, engine, engine_on, id, long_chat, request, terms};
use crate::{lineage, requests, walks};

fn open(database: &str) -> Arc<dyn Store> {
    Arc::from(fanfold_store::open(database, OpenMode::Write).unwrap())
}

#[test]
fn a_server_says_the_same_as_memory_also_to_who_comes_anew() {
    let Some(database) = cluster::database() else { return };
    requests::check_says_the_same_as_memory(&|| engine_on(open(&database)));
}

#[test]
fn forks_on_a_server_go_on_with_what_was_sent() {
    let Some(database) = cluster::database() else { return };
    lineage::check_fork(&engine_on(open(&database)));
}

#[test]
fn whatever_happens_a_server_and_memory_say_the_same() {
    for seed in 0..2 {
        let Some(database) = cluster::database() else { return };
        let n_sent = walks::check_walk(seed, [engine(), engine_on(open(&database))]);
        assert!(n_sent > 15, "{n_sent}");
    }
}

#[test]
fn those_who_fold_one_session_of_a_server_at_once_make_one_fold() {
    let Some(database) = cluster::database() else { return };
    let messages = long_chat(40);
    let terms = terms("fanfold", 400);
    request(&engine_on(open(&database)), "s", &chat(&messages[..6]), &terms);
    let bodies: Vec<String> = std::thread::scope(|scope| {
        let ask = || {
            let engine = Engine::new(open(&database), Arc::new(MachineClock));
            let answer = request(&engine, "s", &chat(&messages), &terms);
            assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
            answer.body
        };
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let events = open(&database).events(&id("s"), 0).unwrap();
    let n = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!((n("fold"), n("request")), (1, 5));
}
