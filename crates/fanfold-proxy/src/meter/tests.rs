//! The meter as a whole.

use super::*;
use fanfold_wire::Format;

fn meter() -> Arc<Meter> {
    Arc::new(Meter::new(PriceTable::built_in()))
}

fn arrival(model: Option<&str>) -> Arrival<'_> {
    Arrival { format: Format::Chat, model, traceparent: None }
}

fn glance(came: u64, sent: u64) -> Glance {
    Glance { came, sent, window: 200_000, room: 190_000, ..Glance::default() }
}

fn used(input: u64, read: u64) -> Used {
    Used { input, read, written: None, output: 100 }
}

/// One request of a session from start to end.
fn pass(meter: &Arc<Meter>, session: &str, glance: Glance, used: Option<Used>) {
    let outcome = if glance.sent < glance.came { Outcome::Folded } else { Outcome::Whole };
    let mut passage = meter.came(&arrival(Some("gpt-5")));
    passage.looked(&SessionId(session.to_owned()), Some(glance));
    passage.left(outcome);
    passage.sending(1000);
    passage.first_byte(200);
    used.into_iter().for_each(|used| passage.used(used));
    passage.ended(Exit::Done);
}

#[test]
fn a_request_is_counted_everywhere() {
    let meter = meter();
    pass(
        &meter,
        "a",
        Glance { n_new_folds: 2, n_folds: 2, folded_away: 60_000, n_misses: 1, ..glance(100_000, 40_000) },
        Some(used(40_000, 0)),
    );
    meter.passed_through();
    meter.recalled(Some(&SessionId("a".to_owned())), "mcp");
    let status = meter.status();
    let totals = &status.totals;
    assert_eq!(
        (totals.requests, totals.passed_through, totals.folds, totals.recalls, totals.misses),
        (1, 1, 2, 1, 1)
    );
    assert_eq!(
        (totals.tokens.came, totals.tokens.sent, totals.tokens.folded_away),
        (100_000, 40_000, 60_000)
    );
    assert_eq!(totals.outcomes.get("folded"), Some(&1));
    // 60,000 tokens at 1.25 dollars a million.
    assert_eq!(totals.dollars.saved, 0.075);
    let session = &status.sessions[0];
    assert_eq!((session.folds, session.recalls, session.misses, session.in_flight), (2, 1, 1, 0));
    assert_eq!(session.dollars, Some(totals.dollars));
    assert_eq!(status.models[0].family, "gpt-5");
}

#[test]
fn a_client_that_goes_away_is_counted_as_gone() {
    let meter = meter();
    let mut passage = meter.came(&arrival(None));
    passage.looked(&SessionId("a".to_owned()), None);
    assert_eq!((meter.n_in_flight(), meter.status().sessions[0].in_flight), (1, 1));
    drop(passage);
    let status = meter.status();
    assert_eq!((meter.n_in_flight(), status.sessions[0].in_flight), (0, 0));
    assert_eq!(status.totals.ended.get("client_gone"), Some(&1));
}

#[test]
fn what_leaves_as_it_came_saves_nothing() {
    let meter = meter();
    let mut passage = meter.came(&arrival(Some("gpt-5")));
    passage.looked(&SessionId("a".to_owned()), Some(glance(100_000, 40_000)));
    passage.left(Outcome::AsItCame("late"));
    passage.sending(1000);
    passage.first_byte(200);
    passage.used(used(100_000, 0));
    passage.ended(Exit::Done);
    let totals = meter.status().totals;
    assert_eq!((totals.dollars.saved, totals.as_it_came.get("late")), (0.0, Some(&1)));
}

#[test]
fn a_recall_inside_the_proxy_costs_what_it_cost() {
    let meter = meter();
    let mut passage = meter.came(&arrival(Some("gpt-5")));
    passage.looked(&SessionId("a".to_owned()), Some(glance(1_000, 1_000)));
    passage.sending(10);
    passage.first_byte(200);
    passage.recalled(Some(Used { input: 1_000, ..Used::default() }));
    // What was recalled is in the second call, and is no part of what came.
    passage.used(Used { input: 100_000, ..Used::default() });
    passage.ended(Exit::Done);
    let status = meter.status();
    assert_eq!((status.totals.dollars.saved, status.totals.recalls), (-0.125, 1));
    assert_eq!(status.sessions[0].dollars.map(|money| money.saved), Some(-0.125));
}

#[test]
fn an_observing_meter_tells_what_would_have_been_saved() {
    let meter = Arc::new(Meter::new(PriceTable::built_in()).observing());
    for (came, sent) in [(100_000, 40_000), (110_000, 50_000)] {
        let mut passage = meter.came(&arrival(Some("gpt-5")));
        let folded_away = if came == 100_000 { 60_000 } else { 0 };
        passage.looked(&SessionId("a".to_owned()), Some(Glance { folded_away, ..glance(came, sent) }));
        passage.left(Outcome::Observed);
        passage.sending(10);
        passage.first_byte(200);
        // The second one finds the first in the cache.
        passage.used(used(came, if came == 100_000 { 0 } else { 100_000 }));
        passage.ended(Exit::Done);
    }
    let status = meter.status();
    // 60,000 fewer written, then 60,000 fewer read at a tenth.
    assert_eq!(status.totals.dollars.saved, 0.0825);
    assert_eq!(
        status.report(),
        "2 of 2 requests would have been folded: 210,000 -> 90,000 tokens in all, 60,000 folded away in 0 folds\n\
         that would have saved $0.08: $0.15 as they came, $0.07 folded\n"
    );
}

#[test]
fn any_number_of_sessions_and_models_takes_the_same_room() {
    let meter = meter();
    for n in 0..2_000 {
        let model = format!("model-{n}");
        let mut passage = meter.came(&arrival(Some(&model)));
        passage.looked(&SessionId(format!("s{n}")), Some(glance(10, 10)));
        passage.ended(Exit::Done);
    }
    let status = meter.status();
    assert_eq!((status.sessions.len(), status.models.len()), (300, 1));
    assert_eq!(status.sessions[0].id, "s1999");
    let text = meter.prometheus();
    assert!(text.len() < 20_000 && !text.contains("s1999") && !text.contains("model-1"), "{text}");
}

#[test]
fn prometheus_text_follows_the_rules() {
    let meter = meter();
    pass(&meter, "a", glance(100_000, 40_000), Some(used(40_000, 0)));
    meter.passed_through();
    meter.recalled(None, "mcp");
    let mut refused = meter.came(&arrival(Some("x")));
    refused.left(Outcome::AsItCame("store"));
    refused.refused();
    refused.retried();
    refused.ended(Exit::Stalled);
    check_prometheus(&meter.prometheus());
}

/// What `promtool check metrics` looks at: each family has help and a type, names end in their units, counters in
/// `_total` and nothing else does, labels are plain words, histograms are whole.
fn check_prometheus(text: &str) {
    use std::collections::{BTreeMap, BTreeSet};
    let mut types = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').unwrap();
            assert!(words.ends_with('.'), "{line}");
            assert!(helped.insert(name.to_owned()), "{line} comes twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line} comes twice");
            assert!(name.starts_with("fanfold_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            if kind == "histogram" {
                assert!(["_seconds", "_bytes", "_tokens"].iter().any(|unit| name.ends_with(unit)), "{line}");
            }
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = family.filter(|family| types.contains_key(*family)).unwrap_or(name);
            assert!(types.contains_key(family), "{line} has no type");
            assert!(helped.contains(family), "{line} has no help");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            assert!(seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line} comes twice");
        }
    }
    for (name, kind) in &types {
        if kind == "histogram" {
            assert!(text.contains(&format!("{name}_sum")) && text.contains("le=\"+Inf\""), "{name}");
        }
    }
    assert!(types.len() >= 18, "{types:?}");
}
