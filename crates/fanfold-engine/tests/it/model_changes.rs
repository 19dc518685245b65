//! Changes of the model, learnt limits, and notices about a filling window.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fanfold_core::{Budget, Notice, Pressure, Tokens};
use fanfold_engine::{FoldOutcome, RequestError, RequestInput, SessionEngine, Terms};
use fanfold_store::{SqliteStore, Store};
use serde_json::{Value, json};

use crate::cache_marks::{agent_body, agent_messages};
use crate::setup::{TestClock, chat, engine, engine_on, id, long_chat, request, terms};

#[test]
fn a_learnt_limit_is_stored() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let first = engine_on(Arc::clone(&store));
    assert!(first.record_model_limit("https://a/v1", "m", Tokens(8_000)).unwrap());
    let clock = Arc::new(TestClock::default());
    let later = SessionEngine::new(store, Arc::clone(&clock) as Arc<dyn fanfold_engine::Clock>);
    let limit =
        |upstream: &str, model: &str| later.model_limit(upstream, model).unwrap().map(|limit| limit.0);
    assert_eq!(limit("https://a/v1", "m"), Some(8_000));
    for (upstream, model) in [("https://b/v1", "m"), ("https://a/v1", "n"), ("https://a/v1", ""), ("", "m")] {
        assert_eq!(limit(upstream, model), None, "{upstream} {model}");
    }
    // The last limit counts, and implausible ones are ignored.
    assert!(later.record_model_limit("https://a/v1", "m", Tokens(16_000)).unwrap());
    assert!(!later.record_model_limit("https://a/v1", "m", Tokens(12)).unwrap());
    assert!(!later.record_model_limit("https://a/v1\nx", "m", Tokens(9_000)).unwrap());
    assert_eq!(limit("https://a/v1", "m"), Some(16_000));
    // A limit expires after a fortnight.
    let day = 24 * 60 * 60 * 1000;
    clock.0.fetch_add(13 * day, Ordering::SeqCst);
    assert_eq!(limit("https://a/v1", "m"), Some(16_000));
    clock.0.fetch_add(2 * day, Ordering::SeqCst);
    assert_eq!(limit("https://a/v1", "m"), None);
}

/// The terms for a model with a window.
fn model(name: &str, window: u64) -> Terms {
    Terms { described: name.to_owned(), ..terms("fanfold", window) }
}

fn body_for(model: &str, messages: &[Value]) -> String {
    json!({ "model": model, "messages": messages, "stream": true }).to_string()
}

fn kinds(engine: &SessionEngine) -> Vec<String> {
    engine.store().events(&id("s"), 0).unwrap().into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_changed_model_takes_effect_at_once_with_a_cold_cache() {
    let (with, without) = (engine(), engine());
    let (large, small) = (model("large", 100_000), model("small", 900));
    let messages = long_chat(40);
    let mut sent = Vec::new();
    let turns = [("large", &large, 40), ("large", &large, 42), ("small", &small, 44), ("large", &large, 46)];
    for (name, terms, n) in turns {
        let body = body_for(name, &messages[..n]);
        let answer = request(&with, "s", &body, terms);
        without.clear_cache();
        assert_eq!(answer.body, request(&without, "s", &body, terms).body, "{name} after {n}");
        let is_folded = matches!(answer.fold, FoldOutcome::Folded(_));
        assert_eq!(is_folded, name == "small", "{name} after {n}");
        assert!(answer.sizes.unwrap().view <= terms.budget.room());
        sent.push(answer.body);
    }
    // Each change of the model records new terms and a cold cache.
    let kinds = kinds(&with);
    let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
    assert_eq!((count("began"), count("cooled")), (3, 2), "{kinds:?}");
    let terms_of = |described: &str, budget: Budget| Ok(Terms { budget, ..model(described, 1) });
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(with.rebuild(&id("s"), i + 1, &terms_of).unwrap().body, *body, "request {}", i + 1);
    }
}

/// For each request: the levels of its pressure notices, and the total number of folds.
fn pressures(engine: &SessionEngine, is_restarted: bool) -> Vec<(Vec<Pressure>, usize)> {
    let terms = terms("fanfold", 1_500);
    let messages = agent_messages(60);
    let mut reported = Vec::new();
    for n in (1..messages.len()).step_by(2) {
        if is_restarted {
            engine.clear_cache();
        }
        let answer = request(engine, "s", &agent_body(&messages[..n]), &terms);
        let Some(sizes) = answer.sizes else { continue };
        let levels = answer.notices.iter().filter_map(|notice| match notice {
            Notice::Pressure(level) => Some(*level),
            _ => None,
        });
        reported.push((levels.collect(), sizes.n_folds));
    }
    reported
}

#[test]
fn each_pressure_level_is_reported_once_per_fold() {
    let reported = pressures(&engine(), false);
    let mut last = Pressure::None;
    let mut n_folds = 0;
    let mut all = Vec::new();
    for (levels, n) in &reported {
        // A fold resets the reported level.
        if *n > n_folds {
            (last, n_folds) = (Pressure::None, *n);
        }
        for level in levels {
            assert!(*level > last, "{level} is reported after {last}");
            last = *level;
            all.push(*level);
        }
    }
    assert!(n_folds > 1 && all.len() > 4, "{all:?}");
    assert!(all.contains(&Pressure::Info) && all.contains(&Pressure::Warning), "{all:?}");
    // A restarted program reports the same levels.
    assert_eq!(pressures(&engine(), true), reported);
}

#[test]
fn an_overflow_reports_the_needed_size() {
    let engine = engine();
    let messages = [
        json!({ "role": "system", "content": "word ".repeat(700) }),
        json!({ "role": "user", "content": "hi" }),
    ];
    let answer = request(&engine, "s", &chat(&messages), &terms("fanfold", 500));
    assert!(matches!(answer.fold, FoldOutcome::Failed(RequestError::Overflow(_))));
    let sizes = answer.sizes.unwrap();
    assert_eq!((sizes.transcript, sizes.view), (Tokens(701), Tokens(701)));
}

#[test]
fn a_fold_by_hand_persists() {
    let (with, without) = (engine(), engine());
    let terms = terms("fanfold", 1_500);
    let messages = long_chat(20);
    let session = id("s");
    for (n, is_by_hand) in [(20, false), (24, true), (28, false)] {
        let body = chat(&messages[..n]);
        let send = |engine: &SessionEngine| {
            engine.request(&RequestInput { is_by_hand, ..RequestInput::new(&session, &body, &terms, "test") })
        };
        let answer = send(&with);
        without.clear_cache();
        assert_eq!(send(&without).body, answer.body);
        assert_eq!(matches!(answer.fold, FoldOutcome::Folded(_)), n > 20, "after {n}");
    }
    // A second fold by hand reports that there is nothing to fold.
    let body = chat(&messages[..28]);
    let ask = RequestInput { is_by_hand: true, ..RequestInput::new(&session, &body, &terms, "test") };
    let folded = with.request(&ask);
    let again = with.request(&ask);
    assert_eq!(again.body, folded.body);
    let is_nothing = |notice: &Notice| matches!(notice, Notice::NothingToFold(_));
    assert!(again.notices.iter().any(is_nothing), "{:?}", again.notices);
}
