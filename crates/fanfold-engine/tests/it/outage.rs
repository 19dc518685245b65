//! While the store fails, requests are folded in memory. What waits there is stored when the store works again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fanfold_core::ProviderUsage;
use fanfold_core::Tokens;
use fanfold_engine::{FoldOutcome, RequestInput, SessionEngine, SessionMatch};
use fanfold_store::{OpenMode, SessionFilter, SqliteStore, Store, StoreError};
use fanfold_testkit::Rng;
use fanfold_wire::Format;

use crate::cluster::Cluster;
use crate::faulty_store::{Failing, FaultTiming, FaultyStore};
use crate::setup::{TestClock, beginnings, chat, engine, engine_on, id, long_chat, request, terms, terms_of};
use crate::store_failures::{bodies, check_handles_open, check_stored, sent_without_failures};

struct Fixture {
    inner: Arc<dyn Store>,
    faulty: Arc<FaultyStore>,
    engine: SessionEngine,
}

/// An engine that continues in memory, on a store that fails at an operation.
fn fixture(fails_at: usize, when: FaultTiming) -> Fixture {
    let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, when));
    let engine = engine_on(Arc::clone(&faulty) as Arc<dyn Store>).continuing_in_memory();
    Fixture { inner, faulty, engine }
}

fn healthy() -> Fixture {
    fixture(usize::MAX, FaultTiming::Before)
}

/// Sends all bodies; the store fails from the request with a number on. Then repairs it.
fn check_outage(failing: Failing, fails_from: usize) {
    let Fixture { inner, faulty, engine } = healthy();
    let terms = terms("fanfold", 400);
    for (i, (body, expected)) in bodies().iter().zip(sent_without_failures()).enumerate() {
        if i == fails_from {
            faulty.fail(failing);
        }
        let answer = request(&engine, "s", body, &terms);
        assert_eq!(answer.body, expected, "{failing:?} from {fails_from}: request {i}");
        assert_eq!(answer.is_stored, i < fails_from);
        check_handles_open(&engine, &answer.body);
    }
    let outage = engine.outage().unwrap();
    assert!(outage.n_sessions == 1 && outage.n_messages > 0, "{outage:?}");
    assert!(engine.store_waiting().unwrap().error.is_some(), "the store still fails");
    faulty.fail(Failing::Nothing);
    let restored = engine.store_waiting().unwrap();
    assert!(restored.error.is_none() && restored.renamed.is_empty(), "{restored:?}");
    assert_eq!((restored.n_messages, engine.outage()), (outage.n_messages, None));
    check_as_if_nothing_had_failed(&inner);
    // The next request continues the stored session.
    let body = chat(&long_chat(27));
    let answer = request(&engine, "s", &body, &terms);
    assert_eq!((answer.body, answer.is_stored), (request(&engine_on(inner), "s", &body, &terms).body, true));
}

/// Checks that the store has what it would have without failures.
fn check_as_if_nothing_had_failed(inner: &Arc<dyn Store>) {
    let fresh = engine_on(Arc::clone(inner));
    check_stored(&**inner, bodies().last().unwrap());
    assert_eq!(fresh.check_handles(&id("s")).unwrap().1, Vec::<String>::new());
    assert_eq!(fresh.requests(&id("s")).unwrap().len(), bodies().len());
    for (number, expected) in (1..).zip(sent_without_failures()) {
        let rebuilt = fresh.rebuild(&id("s"), number, &terms_of).unwrap();
        assert!(rebuilt.is_same && rebuilt.body == expected, "request {number}");
    }
}

#[test]
fn a_full_disk_does_not_turn_folding_off() {
    (0..bodies().len()).for_each(|from| check_outage(Failing::Writes, from));
}

#[test]
fn a_broken_store_does_not_turn_folding_off() {
    (0..bodies().len()).for_each(|from| check_outage(Failing::Everything, from));
}

#[test]
fn no_single_failure_of_the_store_turns_folding_off() {
    let expected = sent_without_failures();
    for when in [FaultTiming::Before, FaultTiming::After] {
        let mut fails_at = 0;
        loop {
            let Fixture { inner, faulty, engine } = fixture(fails_at, when);
            for (body, expected) in bodies().iter().zip(&expected) {
                let answer = request(&engine, "s", body, &terms("fanfold", 400));
                assert!(!matches!(answer.fold, FoldOutcome::Failed(_)), "{fails_at}: {:?}", answer.fold);
                assert_eq!(answer.body, *expected, "{when:?} {fails_at}");
                check_handles_open(&engine, &answer.body);
            }
            let restored = engine.store_waiting();
            assert!(restored.is_none_or(|restored| restored.error.is_none()), "{when:?} {fails_at}");
            check_stored(&*inner, bodies().last().unwrap());
            assert_eq!(engine_on(inner).check_handles(&id("s")).unwrap().1, Vec::<String>::new());
            if !faulty.has_failed() {
                break;
            }
            fails_at += 1;
        }
        assert!(fails_at > 20, "{fails_at} operations");
    }
}

/// Sessions take turns while the store fails, is repaired and loses contact at random. The views are those of an engine
/// whose store never fails.
#[test]
fn random_outages_change_no_view_and_lose_nothing() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let (reference, terms) = (engine(), terms("fanfold", 400));
        let Fixture { inner, faulty, engine } = healthy();
        let sessions = ["a", "b", "c"];
        let bodies = beginnings(&chat(&long_chat(26)), 3);
        let mut next = [0; 3];
        while next.iter().any(|next| *next < bodies.len()) {
            let failing = [Failing::Nothing, Failing::Writes, Failing::Everything];
            if rng.percent(30) {
                faulty.fail(failing[rng.below(3)]);
            }
            if rng.percent(50) {
                let restored = engine.store_waiting().unwrap_or_default();
                assert!(restored.renamed.is_empty(), "seed {seed}: {restored:?}");
            }
            let at = rng.below(3);
            let Some(body) = bodies.get(next[at]) else { continue };
            next[at] += 1 + rng.below(3);
            let answers = [&reference, &engine].map(|engine| request(engine, sessions[at], body, &terms));
            let [expected, answer] = answers;
            assert_eq!(answer.body, expected.body, "seed {seed}, session {}", sessions[at]);
            check_handles_open_in(&engine, sessions[at], &answer.body);
            if rng.percent(50) {
                let counted = expected.sizes.unwrap().view;
                let usage = ProviderUsage { input: Tokens(counted.0 * 11 / 10), ..ProviderUsage::default() };
                for engine in [&reference, &engine] {
                    engine.record_usage(&id(sessions[at]), counted, &usage).unwrap();
                }
            }
        }
        faulty.fail(Failing::Nothing);
        engine.store_waiting();
        assert_eq!(engine.outage(), None);
        let fresh = engine_on(inner);
        for session in sessions {
            let kinds = |engine: &SessionEngine| -> Vec<String> {
                let events = engine.store().events(&id(session), 0).unwrap();
                events.into_iter().map(|event| event.kind).collect()
            };
            assert_eq!(kinds(&fresh), kinds(&reference), "seed {seed}");
            let (n_handles, broken) = fresh.check_handles(&id(session)).unwrap();
            assert!(n_handles > 0 && broken.is_empty(), "seed {seed}: {broken:?}");
        }
    }
}

fn check_handles_open_in(engine: &SessionEngine, session: &str, body: &str) {
    for word in body.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() == 6) {
        let handle = word.parse().unwrap();
        assert!(engine.recall(&id(session), handle, &fanfold_core::Extent::Whole).is_ok(), "{word}");
    }
}

#[test]
fn a_session_that_only_the_broken_store_knows_is_folded_as_new_and_loses_nothing() {
    let Fixture { inner, faulty, engine } = healthy();
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine_on(Arc::clone(&inner)), "s", &bodies[1], &terms);
    faulty.fail(Failing::Everything);
    let answer = request(&engine, "s", &bodies[4], &terms);
    assert_eq!(answer.body, request(&crate::setup::engine(), "s", &bodies[4], &terms).body);
    faulty.fail(Failing::Nothing);
    let restored = engine.store_waiting().unwrap();
    assert_eq!(restored.renamed, [(id("s"), id("s-2"))]);
    let fresh = engine_on(Arc::clone(&inner));
    assert_eq!(fresh.rebuild(&id("s-2"), 1, &terms_of).unwrap().body, answer.body);
    assert!(fresh.check_handles(&id("s-2")).unwrap().1.is_empty());
    assert!(fresh.rebuild(&id("s"), 1, &terms_of).unwrap().is_same, "the stored session is unchanged");
    assert!(request(&engine, "s", &bodies[4], &terms).is_stored);
}

#[test]
fn a_session_that_another_process_continued_is_stored_beside_it() {
    let Fixture { inner, faulty, engine } = healthy();
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "s", &bodies[1], &terms);
    faulty.fail(Failing::Writes);
    let answer = request(&engine, "s", &bodies[3], &terms);
    let other = engine_on(Arc::clone(&inner));
    request(&other, "s", &bodies[2], &terms);
    faulty.fail(Failing::Nothing);
    let restored = engine.store_waiting().unwrap();
    assert_eq!(restored.renamed, [(id("s"), id("s-2"))]);
    assert_eq!(other.rebuild(&id("s-2"), 2, &terms_of).unwrap().body, answer.body);
    let next = request(&engine, "s", &bodies[4], &terms);
    assert!(next.is_stored);
    assert_eq!(other.check_handles(&id("s")).unwrap().1, Vec::<String>::new());
}

#[test]
fn a_conversation_is_recognised_during_an_outage() {
    let Fixture { inner, faulty, engine } = healthy();
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "s", &bodies[1], &terms);
    faulty.fail(Failing::Everything);
    let recognise = |body: &str| engine.recognise(body, Format::Chat).unwrap();
    for body in &bodies[2..] {
        assert_eq!(recognise(body), SessionMatch::Continues(id("s")));
        request(&engine, "s", body, &terms);
    }
    assert_eq!(recognise(r#"{"messages":[{"role":"user","content":"another"}]}"#), SessionMatch::New);
    // A body that goes back behind what was stored last becomes a fork, which waits with its parent.
    let mut edited = long_chat(24)[..21].to_vec();
    edited.push(serde_json::json!({ "role": "user", "content": "Look elsewhere." }));
    let found = recognise(&chat(&edited));
    assert!(matches!(&found, SessionMatch::Forks { from, .. } if *from == id("s")), "{found:?}");
    let fork = engine.session_for(&found).unwrap();
    assert!(!engine.request(&RequestInput::new(&fork, &chat(&edited), &terms, "test")).is_stored);
    faulty.fail(Failing::Nothing);
    let restored = engine.store_waiting().unwrap();
    assert!(restored.error.is_none() && restored.sessions == [id("s"), fork.clone()], "{restored:?}");
    let row = inner.session(&fork).unwrap().unwrap();
    assert_eq!((row.parent.unwrap().0, row.n_messages as usize), (id("s"), edited.len()));
}

#[test]
fn sessions_in_memory_are_listed_with_the_stored_ones() {
    let Fixture { faulty, engine, .. } = healthy();
    let (bodies, terms) = (bodies(), terms("fanfold", 400));
    request(&engine, "stored", &bodies[1], &terms);
    faulty.fail(Failing::Writes);
    request(&engine, "waiting", &bodies[1], &terms);
    let listed = |engine: &SessionEngine| -> Vec<String> {
        let rows = engine.store().sessions(&SessionFilter::default()).unwrap();
        rows.into_iter().map(|row| row.id.0).collect()
    };
    assert_eq!(listed(&engine), ["waiting", "stored"]);
    faulty.fail(Failing::Everything);
    assert!(matches!(engine.is_new(&id("unknown")), Ok(true)));
    assert!(
        engine.store().sessions(&SessionFilter::default()).is_err(),
        "a list without most sessions is wrong"
    );
}

#[test]
fn an_engine_without_a_store_folds() {
    let error = StoreError::ForeignDatabase;
    let engine = SessionEngine::without_store(&error, Arc::new(TestClock::default()));
    let terms = terms("fanfold", 400);
    for (body, expected) in bodies().iter().zip(sent_without_failures()) {
        let answer = request(&engine, "s", body, &terms);
        assert_eq!((answer.body.as_str(), answer.is_stored), (expected.as_str(), false));
        check_handles_open(&engine, &answer.body);
    }
    let inner: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    engine.replace_store(Ok(&engine_on(Arc::clone(&inner)))).unwrap();
    assert!(engine.store_waiting().unwrap().error.is_none());
    check_as_if_nothing_had_failed(&inner);
}

#[test]
fn a_server_that_is_down_does_not_turn_folding_off() {
    let Some(cluster) = Cluster::start() else { return };
    let database = cluster.database();
    let store: Arc<dyn Store> = Arc::from(fanfold_store::open(&database, OpenMode::WritePromptly).unwrap());
    let engine = engine_on(Arc::clone(&store)).continuing_in_memory();
    let terms = terms("fanfold", 400);
    for (i, (body, expected)) in bodies().iter().zip(sent_without_failures()).enumerate() {
        if i == 2 {
            cluster.kill_server(true);
        }
        let start = Instant::now();
        let answer = request(&engine, "s", body, &terms);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert_eq!((answer.body, answer.is_stored), (expected, i < 2), "request {i}");
    }
    cluster.run_server();
    let restored = engine.store_waiting().unwrap();
    assert!(restored.error.is_none() && restored.renamed.is_empty(), "{restored:?}");
    check_as_if_nothing_had_failed(&store);
}

#[test]
fn sessions_are_stored_while_their_requests_go_on() {
    let (reference, terms) = (engine(), terms("fanfold", 400));
    let Fixture { inner, faulty, engine } = healthy();
    let bodies = beginnings(&chat(&long_chat(26)), 2);
    let sessions = ["a", "b"];
    let expected: Vec<String> =
        bodies.iter().map(|body| request(&reference, "a", body, &terms).body).collect();
    let is_done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for session in sessions {
            let (engine, bodies, expected, terms, is_done) = (&engine, &bodies, &expected, &terms, &is_done);
            scope.spawn(move || {
                for (body, expected) in bodies.iter().zip(expected) {
                    let sent = request(engine, session, body, terms);
                    let is_same = sent.body == *expected;
                    if !is_same {
                        is_done.fetch_add(1, Ordering::SeqCst);
                    }
                    assert!(is_same, "session {session}: {:?}", sent.fold);
                }
                is_done.fetch_add(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            let mut rng = Rng::new(7);
            while is_done.load(Ordering::SeqCst) < sessions.len() {
                faulty.fail([Failing::Nothing, Failing::Writes][rng.below(2)]);
                let renamed = engine.store_waiting().unwrap_or_default().renamed;
                assert!(renamed.is_empty(), "{renamed:?}");
            }
        });
    });
    faulty.fail(Failing::Nothing);
    engine.store_waiting();
    for session in sessions {
        let row = inner.session(&id(session)).unwrap().unwrap();
        assert_eq!((row.n_messages as usize, engine.outage()), (long_chat(26).len(), None));
        let fresh = engine_on(Arc::clone(&inner));
        assert_eq!(fresh.check_handles(&id(session)).unwrap().1, Vec::<String>::new());
    }
}
