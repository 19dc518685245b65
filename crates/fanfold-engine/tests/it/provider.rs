//! What the provider says of a request: refusals, and what it counted.

use std::sync::Arc;

use fanfold_core::{Prices, ProviderUsage, Tokens};
use fanfold_engine::{Engine, FoldOutcome, LengthRefusal, RequestError, RequestInput, SessionEvent, Terms};
use fanfold_store::{MemoryStore, Store};
use fanfold_testkit::Rng;

use crate::dress::{agent_body, agent_messages};
use crate::setting::{chat, engine, engine_on, id, long_chat, request, terms, terms_of};

fn notes(engine: &Engine, kind: &str) -> usize {
    let events = engine.store().events(&id("s"), 0).unwrap_or_default();
    events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn what_was_refused_is_folded_harder_and_stays_so() {
    let (with, without) = (engine(), engine());
    let terms = terms("fanfold", 1500);
    let messages = long_chat(40);
    let body = chat(&messages[..60]);
    let mut sizes = Vec::new();
    let mut sent = Vec::new();
    for limit in [None, Some(Tokens(500)), None] {
        let answer = request(&with, "s", &body, &terms);
        without.clear_cache();
        assert_eq!(answer.body, request(&without, "s", &body, &terms).body);
        let size = answer.sizes.unwrap().view;
        sizes.push(size.0);
        sent.push(answer.body);
        for engine in [&with, &without] {
            engine.record_refusal(&id("s"), &LengthRefusal { counted: None, limit, size: None }).unwrap();
        }
    }
    let answer = request(&with, "s", &chat(&messages), &terms);
    without.clear_cache();
    assert_eq!(answer.body, request(&without, "s", &chat(&messages), &terms).body);
    sizes.push(answer.sizes.unwrap().view.0);
    sent.push(answer.body);
    // The window; a tenth less; the limit; a tenth less than that, also for what comes next.
    assert!(sizes[0] <= 1500 && sizes[1] <= 1350 && sizes[2] <= 500 && sizes[3] <= 450, "{sizes:?}");
    assert!(sizes[1] < sizes[0] && sizes[2] < sizes[1], "{sizes:?}");
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(with.rebuild(&id("s"), i + 1, &terms_of).unwrap().body, *body, "request {}", i + 1);
    }
    // Another window is another model's: what the first one refused does not hold for it.
    let wide = crate::setting::terms("fanfold", 100_000);
    let grown = request(&with, "s", &chat(&messages), &wide);
    assert!(matches!(grown.fold, FoldOutcome::Whole | FoldOutcome::Folded(_)));
    assert_eq!(
        with.with_cached(&id("s"), |followed| followed.session.budget().window()),
        Some(Tokens(100_000))
    );
}

#[test]
fn a_refusal_that_tells_the_size_corrects_the_count() {
    let engine = engine();
    let terms = terms("fanfold", 600);
    let body = chat(&long_chat(20));
    let answer = request(&engine, "s", &body, &terms);
    let counted = answer.sizes.unwrap().view;
    // It counts half as much again, and takes what we took for its window.
    let size = Some(Tokens(counted.0 * 3 / 2));
    let refused = LengthRefusal { counted: Some(counted), limit: Some(Tokens(600)), size };
    engine.record_refusal(&id("s"), &refused).unwrap();
    let answer = request(&engine, "s", &body, &terms);
    assert!(answer.sizes.unwrap().view.0 * 3 / 2 <= 600, "{:?}", answer.sizes);
}

#[test]
fn a_limit_alone_corrects_the_count_where_it_is_near() {
    for (share, n_corrected) in [(11, 1), (20, 0)] {
        let engine = engine();
        let body = chat(&long_chat(20));
        let counted = request(&engine, "s", &body, &terms("fanfold", 600)).sizes.unwrap().view;
        let limit = Some(Tokens(counted.0 * share / 10));
        engine
            .record_refusal(&id("s"), &LengthRefusal { counted: Some(counted), limit, size: None })
            .unwrap();
        assert_eq!((notes(&engine, "corrected"), notes(&engine, "refused")), (n_corrected, 1));
    }
}

/// A provider that counts otherwise, and refuses what is over its window.
fn check_counts(permille: u64, seed: u64) {
    let (with, without) = (engine(), engine());
    let window = 1_200;
    let terms = terms("fanfold", window);
    let messages = agent_messages(60);
    let mut rng = Rng::new(seed);
    let mut sent = Vec::new();
    let mut n = 1;
    while n < messages.len() {
        let body = agent_body(&messages[..n]);
        let answer = request(&with, "s", &body, &terms);
        without.clear_cache();
        assert_eq!(answer.body, request(&without, "s", &body, &terms).body, "{permille} {seed}: after {n}");
        if matches!(answer.fold, FoldOutcome::Failed(RequestError::Overflow(_))) {
            n += 2;
            continue;
        }
        let counted = answer.sizes.unwrap().view;
        let theirs = Tokens((counted.0 * permille).div_ceil(1000));
        assert!(theirs.0 <= window, "{permille} {seed}: {counted} are {theirs} of {window} after {n}");
        let usage = ProviderUsage { input: theirs, cached: theirs, ..ProviderUsage::default() };
        for engine in [&with, &without] {
            engine.record_usage(&id("s"), counted, &usage).unwrap();
        }
        sent.push(answer.body);
        n += 2 * (1 + rng.below(2));
    }
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(with.rebuild(&id("s"), i + 1, &terms_of).unwrap().body, *body, "request {}", i + 1);
    }
    assert!(notes(&with, "fold") > 0);
    let n_corrected = notes(&with, "corrected");
    // The count is exact, so one that is lower is not believed.
    assert!(n_corrected <= 2 && (n_corrected > 0) == (permille > 1000), "{permille}: {n_corrected}");
}

#[test]
fn a_provider_that_counts_otherwise_never_gets_more_than_it_takes() {
    let n_seeds = if std::env::var_os("FANFOLD_MANY").is_some() { 40 } else { 2 };
    for permille in [700, 850, 940, 1000, 1030, 1100, 1333, 1500] {
        for seed in 0..n_seeds {
            check_counts(permille, seed);
        }
    }
}

#[test]
fn counts_that_waver_do_not_move_the_budget() {
    let engine = engine();
    let terms = terms("fanfold", 2_000);
    let messages = agent_messages(40);
    let mut rng = Rng::new(5);
    for n in (1..messages.len()).step_by(2) {
        let answer = request(&engine, "s", &agent_body(&messages[..n]), &terms);
        let counted = answer.sizes.unwrap().view;
        let input = Tokens(counted.0 * (1190 - rng.below(30) as u64) / 1000);
        engine
            .record_usage(
                &id("s"),
                counted,
                &ProviderUsage { input, cached: input, ..ProviderUsage::default() },
            )
            .unwrap();
    }
    assert!(notes(&engine, "corrected") <= 2, "{}", notes(&engine, "corrected"));
    // What fills less than an eighth of the room tells nothing.
    let n_before = notes(&engine, "corrected");
    engine
        .record_usage(
            &id("s"),
            Tokens(100),
            &ProviderUsage { input: Tokens(300), ..ProviderUsage::default() },
        )
        .unwrap();
    assert_eq!(notes(&engine, "corrected"), n_before);
}

#[test]
fn a_cache_that_should_have_been_warm_is_noted_as_cold() {
    let engine = engine();
    let prices = Prices { write: 1.25, read: 0.1, minimum: Tokens(50), ..Prices::without_cache() };
    let terms = Terms { prices: Some(prices), ..terms("fanfold", 100_000) };
    let messages = agent_messages(12);
    let mut cold = Vec::new();
    for (n, cached, written) in [(3, 0, 0), (5, 0, 0), (7, 0, 80), (9, 80, 0), (11, 0, 0)] {
        let session = id("s");
        let answer =
            engine.request(&RequestInput::new(&session, &agent_body(&messages[..n]), &terms, "test"));
        let input = answer.sizes.unwrap().view;
        let usage = ProviderUsage {
            input,
            cached: Tokens(cached),
            written: Tokens(written),
            ..ProviderUsage::default()
        };
        engine.record_usage(&session, input, &usage).unwrap();
        cold.push(notes(&engine, "cooled"));
    }
    // The first one could not find anything; one that writes is warm from then on.
    assert_eq!(cold, [0, 1, 1, 1, 2]);
    let last = engine.store().events(&id("s"), 0).unwrap().pop().unwrap();
    assert_eq!(
        fanfold_engine::LoggedEvent::decode(&last).unwrap().event,
        SessionEvent::CacheExpired { later: true }
    );
}

#[test]
fn a_cache_that_a_fold_broke_is_not_called_cold() {
    let engine = engine();
    let prices = Prices { write: 1.25, read: 0.1, minimum: Tokens(50), ..Prices::without_cache() };
    let terms = Terms { prices: Some(prices), ..terms("fanfold", 500) };
    let messages = agent_messages(60);
    let mut n_breaks = 0;
    for n in (1..messages.len()).step_by(2) {
        let (n_folds, n_cold) = (notes(&engine, "fold"), notes(&engine, "cooled"));
        let answer = request(&engine, "s", &agent_body(&messages[..n]), &terms);
        let input = answer.sizes.unwrap().view;
        let has_folded = notes(&engine, "fold") > n_folds;
        // Nothing was read from the cache after a fold; else all of it was.
        let cached = if has_folded { Tokens::ZERO } else { input };
        engine
            .record_usage(&id("s"), input, &ProviderUsage { input, cached, ..ProviderUsage::default() })
            .unwrap();
        assert_eq!(notes(&engine, "cooled"), n_cold, "after {n}");
        n_breaks += usize::from(has_folded);
    }
    assert!(n_breaks > 3, "{n_breaks}");
}

#[test]
fn a_body_that_is_sent_again_is_sent_as_it_was_whatever_was_counted() {
    let engine = engine();
    let terms = terms("fanfold", 1_200);
    let messages = agent_messages(60);
    let mut n_folded = 0;
    for n in (21..messages.len()).step_by(4) {
        let body = agent_body(&messages[..n]);
        let first = request(&engine, "s", &body, &terms);
        let Some(sizes) = first.sizes else { continue };
        let input = Tokens(sizes.view.0 * (1100 + 10 * n as u64) / 1000);
        engine
            .record_usage(
                &id("s"),
                sizes.view,
                &ProviderUsage { input, cached: input, ..ProviderUsage::default() },
            )
            .unwrap();
        assert_eq!(request(&engine, "s", &body, &terms).body, first.body, "after {n}");
        engine.clear_cache();
        assert_eq!(request(&engine, "s", &body, &terms).body, first.body, "after {n}, replayed");
        n_folded += usize::from(matches!(first.fold, FoldOutcome::Folded(_)));
    }
    assert!(n_folded > 3 && notes(&engine, "corrected") > 1, "{n_folded}");
}

/// An answer may tell of a cold cache when the next request has left already, or the same one is sent again.
#[test]
fn a_cold_cache_that_is_told_late_changes_nothing_that_was_sent() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (engine, other) = (engine_on(Arc::clone(&store)), engine_on(Arc::clone(&store)));
    let prices = Prices { write: 1.25, read: 0.1, minimum: Tokens(50), ..Prices::without_cache() };
    let terms = Terms { prices: Some(prices), ..terms("fanfold", 3_000) };
    let messages = agent_messages(90);
    let mut sent = Vec::new();
    for n in (21..messages.len() - 2).step_by(4) {
        let body = agent_body(&messages[..n]);
        let first = request(&engine, "s", &body, &terms);
        let cold = ProviderUsage { input: first.sizes.unwrap().view, ..ProviderUsage::default() };
        // Meanwhile another program has gone on, or nobody has.
        let is_overtaken = n % 8 == 1;
        let next = agent_body(&messages[..n + 2]);
        let overtaking = is_overtaken.then(|| request(&other, "s", &next, &terms).body);
        engine.record_usage(&id("s"), cold.input, &cold).unwrap();
        let newest = if is_overtaken { &next } else { &body };
        let expected = overtaking.clone().unwrap_or_else(|| first.body.clone());
        for _ in 0..2 {
            assert_eq!(request(&engine, "s", newest, &terms).body, expected, "after {n}");
            engine.clear_cache();
        }
        sent.push(first.body);
        sent.extend(overtaking);
        sent.extend([expected.clone(), expected]);
    }
    assert!(notes(&engine, "cooled") > 5 && notes(&engine, "fold") > 1, "{}", notes(&engine, "cooled"));
    for (i, body) in sent.iter().enumerate() {
        let again =
            |described: &str, budget| terms_of(described, budget).map(|_| Terms { budget, ..terms.clone() });
        assert_eq!(engine.rebuild(&id("s"), i + 1, &again).unwrap().body, *body, "request {}", i + 1);
    }
}

/// What decides is what every place shows: the session in memory, the one made again, and how it is told to stand.
#[test]
fn how_full_it_is_is_told_by_the_numbers_that_decide() {
    let engine = engine();
    let (terms, messages) = (terms("fanfold", 1500), long_chat(40));
    let check = |when: &str| {
        let standing = engine.standing(&id("s")).unwrap();
        let mut again = engine.reopen(&id("s"), &terms_of).unwrap();
        let tokens = again.view().unwrap().tokens.0;
        let budget = again.session.budget();
        assert_eq!(
            engine.with_cached(&id("s"), |followed| followed.session.budget()),
            Some(budget),
            "{when}"
        );
        assert_eq!(standing.window, Some((budget.window().0, budget.reserve().0)), "{when}");
        assert_eq!(standing.tokens, Some(tokens), "{when}");
        budget.window().0
    };
    let mut windows = std::collections::BTreeSet::new();
    for n in (9..messages.len()).step_by(7) {
        let counted = request(&engine, "s", &chat(&messages[..n]), &terms).sizes.unwrap().view;
        windows.insert(check(&format!("{n} messages are sent")));
        let input = Tokens(counted.0 * (1100 + n as u64) / 1000);
        engine
            .record_usage(
                &id("s"),
                counted,
                &ProviderUsage { input, cached: input, ..ProviderUsage::default() },
            )
            .unwrap();
        check(&format!("{n} messages are counted"));
    }
    assert!(windows.len() > 1, "it was corrected: {windows:?}");
}
