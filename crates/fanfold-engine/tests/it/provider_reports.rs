//! Reports of the provider: refusals, token counts and cache usage.

use std::sync::Arc;

use fanfold_core::{Prices, ProviderUsage, Tokens};
use fanfold_engine::{
    FoldOutcome, LengthRefusal, RequestError, RequestInput, SessionEngine, SessionEvent, Terms,
};
use fanfold_store::{SqliteStore, Store};
use fanfold_testkit::Rng;

use crate::cache_marks::{agent_body, agent_messages};
use crate::setup::{chat, engine, engine_on, id, long_chat, request, terms, terms_of};

fn notes(engine: &SessionEngine, kind: &str) -> usize {
    let events = engine.store().events(&id("s"), 0).unwrap_or_default();
    events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn a_refused_session_is_folded_into_a_smaller_window() {
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
    // The limits are: the window, a tenth less, the reported limit, and a tenth less than that for later requests.
    assert!(sizes[0] <= 1500 && sizes[1] <= 1350 && sizes[2] <= 500 && sizes[3] <= 450, "{sizes:?}");
    assert!(sizes[1] < sizes[0] && sizes[2] < sizes[1], "{sizes:?}");
    for (i, body) in sent.iter().enumerate() {
        assert_eq!(with.rebuild(&id("s"), i + 1, &terms_of).unwrap().body, *body, "request {}", i + 1);
    }
    // A changed window means another model, to which the refusals do not apply.
    let wide = crate::setup::terms("fanfold", 100_000);
    let grown = request(&with, "s", &chat(&messages), &wide);
    assert!(matches!(grown.fold, FoldOutcome::Whole | FoldOutcome::Folded(_)));
    assert_eq!(
        with.with_cached(&id("s"), |followed| followed.session.budget().window()),
        Some(Tokens(100_000))
    );
}

#[test]
fn a_refusal_with_the_counted_size_corrects_the_count() {
    let engine = engine();
    let terms = terms("fanfold", 600);
    let body = chat(&long_chat(20));
    let answer = request(&engine, "s", &body, &terms);
    let counted = answer.sizes.unwrap().view;
    // The provider's count is 1.5 times ours, and its window is the expected one.
    let size = Some(Tokens(counted.0 * 3 / 2));
    let refused = LengthRefusal { counted: Some(counted), limit: Some(Tokens(600)), size };
    engine.record_refusal(&id("s"), &refused).unwrap();
    let answer = request(&engine, "s", &body, &terms);
    assert!(answer.sizes.unwrap().view.0 * 3 / 2 <= 600, "{:?}", answer.sizes);
}

#[test]
fn a_refusal_with_a_limit_corrects_the_count_if_both_are_close() {
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

/// Simulates a provider whose counts differ, and checks that no request exceeds its window.
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
        let provider_count = Tokens((counted.0 * permille).div_ceil(1000));
        assert!(
            provider_count.0 <= window,
            "{permille} {seed}: {counted} are {provider_count} of {window} after {n}"
        );
        let usage =
            ProviderUsage { input: provider_count, cached: provider_count, ..ProviderUsage::default() };
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
    // Our counter is exact, so lower counts of the provider are ignored.
    assert!(n_corrected <= 2 && (n_corrected > 0) == (permille > 1000), "{permille}: {n_corrected}");
}

#[test]
fn requests_fit_the_window_of_a_provider_that_counts_differently() {
    let n_seeds = if std::env::var_os("FANFOLD_MANY").is_some() { 40 } else { 2 };
    for permille in [700, 850, 940, 1000, 1030, 1100, 1333, 1500] {
        for seed in 0..n_seeds {
            check_counts(permille, seed);
        }
    }
}

#[test]
fn small_variations_of_counts_do_not_change_the_budget() {
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
    // Counts of requests that fill less than an eighth of the room are ignored.
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
fn a_cache_miss_is_recorded_as_a_cold_cache() {
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
    // The first request cannot hit the cache, and a cache write makes it warm.
    assert_eq!(cold, [0, 1, 1, 1, 2]);
    let last = engine.store().events(&id("s"), 0).unwrap().pop().unwrap();
    assert_eq!(
        fanfold_engine::LoggedEvent::decode(&last).unwrap().event,
        SessionEvent::CacheExpired { later: true }
    );
}

#[test]
fn a_cache_miss_after_a_fold_is_not_a_cold_cache() {
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
        // A fold misses the whole cache; every other request hits it.
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
fn a_retry_gets_the_same_bytes_after_a_correction() {
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

/// The report of a cold cache may arrive after the next request or before a retry.
#[test]
fn a_late_report_of_a_cold_cache_changes_no_sent_bytes() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let (engine, other) = (engine_on(Arc::clone(&store)), engine_on(Arc::clone(&store)));
    let prices = Prices { write: 1.25, read: 0.1, minimum: Tokens(50), ..Prices::without_cache() };
    let terms = Terms { prices: Some(prices), ..terms("fanfold", 3_000) };
    let messages = agent_messages(90);
    let mut sent = Vec::new();
    for n in (21..messages.len() - 2).step_by(4) {
        let body = agent_body(&messages[..n]);
        let first = request(&engine, "s", &body, &terms);
        let cold = ProviderUsage { input: first.sizes.unwrap().view, ..ProviderUsage::default() };
        // In half of the cases, another process has sent the next request.
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

/// The cached session, the reopened session and the status have the same window and size.
#[test]
fn the_status_shows_the_window_that_decides_folds() {
    let engine = engine();
    let (terms, messages) = (terms("fanfold", 1500), long_chat(40));
    let check = |when: &str| {
        let overview = engine.session_overview(&id("s")).unwrap();
        let mut again = engine.reopen(&id("s"), &terms_of).unwrap();
        let tokens = again.view().unwrap().tokens.0;
        let budget = again.session.budget();
        assert_eq!(
            engine.with_cached(&id("s"), |followed| followed.session.budget()),
            Some(budget),
            "{when}"
        );
        assert_eq!(overview.window, Some((budget.window().0, budget.reserve().0)), "{when}");
        assert_eq!(overview.tokens, Some(tokens), "{when}");
        budget.window().0
    };
    let mut windows = std::collections::BTreeSet::new();
    for n in (9..messages.len()).step_by(7) {
        let counted = request(&engine, "s", &chat(&messages[..n]), &terms).sizes.unwrap().view;
        windows.insert(check(&format!("{n} messages were sent")));
        let input = Tokens(counted.0 * (1100 + n as u64) / 1000);
        engine
            .record_usage(
                &id("s"),
                counted,
                &ProviderUsage { input, cached: input, ..ProviderUsage::default() },
            )
            .unwrap();
        check(&format!("{n} messages were counted"));
    }
    assert!(windows.len() > 1, "the window was corrected: {windows:?}");
}
