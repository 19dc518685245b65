//! Tests of the whole meter.

use fanfold_wire::Format;

use super::*;
use crate::outcome::{BypassReason, ProxyOutcome};

fn meter() -> Arc<Meter> {
    Arc::new(Meter::new(PriceTable::built_in()))
}

fn request(model: Option<&str>) -> RequestInfo<'_> {
    RequestInfo { format: Format::Chat, model, traceparent: None }
}

fn snapshot(came: u64, sent: u64) -> FoldSnapshot {
    FoldSnapshot { came, sent, window: 200_000, room: 190_000, ..FoldSnapshot::default() }
}

fn usage(input: u64, read: u64) -> ResponseUsage {
    ResponseUsage { input, read, written: None, output: 100 }
}

/// One request of a session from start to end.
fn run_request(meter: &Arc<Meter>, session: &str, snapshot: FoldSnapshot, usage: Option<ResponseUsage>) {
    let outcome = if snapshot.sent < snapshot.came { ProxyOutcome::Folded } else { ProxyOutcome::Whole };
    let mut request_meter = meter.start_request(&request(Some("gpt-5")));
    request_meter.set_session(&SessionId(session.to_owned()), Some(snapshot));
    request_meter.set_outcome(outcome);
    request_meter.start_call(1000);
    request_meter.first_byte(200);
    usage.into_iter().for_each(|usage| request_meter.add_usage(usage));
    request_meter.end(Exit::Done);
}

#[test]
fn a_request_is_counted_everywhere() {
    let meter = meter();
    run_request(
        &meter,
        "a",
        FoldSnapshot {
            n_new_folds: 2,
            n_folds: 2,
            folded_away: 60_000,
            n_misses: 1,
            ..snapshot(100_000, 40_000)
        },
        Some(usage(40_000, 0)),
    );
    meter.count_pass_through();
    meter.count_recall(Some(&SessionId("a".to_owned())), "mcp");
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
fn a_dropped_request_counts_as_client_gone() {
    let meter = meter();
    let mut request_meter = meter.start_request(&request(None));
    request_meter.set_session(&SessionId("a".to_owned()), None);
    assert_eq!((meter.n_in_flight(), meter.status().sessions[0].in_flight), (1, 1));
    drop(request_meter);
    let status = meter.status();
    assert_eq!((meter.n_in_flight(), status.sessions[0].in_flight), (0, 0));
    assert_eq!(status.totals.ended.get("client_gone"), Some(&1));
}

#[test]
fn unchanged_requests_save_nothing() {
    let meter = meter();
    let mut request_meter = meter.start_request(&request(Some("gpt-5")));
    request_meter.set_session(&SessionId("a".to_owned()), Some(snapshot(100_000, 40_000)));
    request_meter.set_outcome(ProxyOutcome::Unchanged(BypassReason::Deadline));
    request_meter.start_call(1000);
    request_meter.first_byte(200);
    request_meter.add_usage(usage(100_000, 0));
    request_meter.end(Exit::Done);
    let totals = meter.status().totals;
    assert_eq!((totals.dollars.saved, totals.as_it_came.get("deadline")), (0.0, Some(&1)));
}

#[test]
fn recalls_are_a_cost_of_folding() {
    let meter = meter();
    let mut request_meter = meter.start_request(&request(Some("gpt-5")));
    request_meter.set_session(&SessionId("a".to_owned()), Some(snapshot(1_000, 1_000)));
    request_meter.start_call(10);
    request_meter.first_byte(200);
    request_meter.count_recall(Some(ResponseUsage { input: 1_000, ..ResponseUsage::default() }));
    // The original is in the second call, and is not part of the request of the client.
    request_meter.add_usage(ResponseUsage { input: 100_000, ..ResponseUsage::default() });
    request_meter.end(Exit::Done);
    let status = meter.status();
    assert_eq!((status.totals.dollars.saved, status.totals.recalls), (-0.125, 1));
    assert_eq!(status.sessions[0].dollars.map(|money| money.saved), Some(-0.125));
}

#[test]
fn an_observing_meter_reports_possible_savings() {
    let meter = Arc::new(Meter::new(PriceTable::built_in()).observing());
    for (came, sent) in [(100_000, 40_000), (110_000, 50_000)] {
        let mut request_meter = meter.start_request(&request(Some("gpt-5")));
        let folded_away = if came == 100_000 { 60_000 } else { 0 };
        request_meter.set_session(
            &SessionId("a".to_owned()),
            Some(FoldSnapshot { folded_away, ..snapshot(came, sent) }),
        );
        request_meter.set_outcome(ProxyOutcome::Observed);
        request_meter.start_call(10);
        request_meter.first_byte(200);
        // The second one finds the first in the cache.
        request_meter.add_usage(usage(came, if came == 100_000 { 0 } else { 100_000 }));
        request_meter.end(Exit::Done);
    }
    let status = meter.status();
    // 60,000 fewer written, then 60,000 fewer read at a tenth.
    assert_eq!(status.totals.dollars.saved, 0.0825);
    assert_eq!(
        status.report(),
        "2 of 2 requests would have been folded: 210,000 -> 90,000 tokens in all, 60,000 folded away in 0 folds\n\
         that would have saved $0.08: $0.15 without folding, $0.07 with it\n"
    );
}

#[test]
fn memory_is_bounded_for_any_number_of_sessions() {
    let meter = meter();
    for n in 0..2_000 {
        let model = format!("model-{n}");
        let mut request_meter = meter.start_request(&request(Some(&model)));
        request_meter.set_session(&SessionId(format!("s{n}")), Some(snapshot(10, 10)));
        request_meter.end(Exit::Done);
    }
    let status = meter.status();
    assert_eq!((status.sessions.len(), status.models.len()), (300, 1));
    assert_eq!(status.sessions[0].id, "s1999");
    let text = meter.prometheus();
    assert!(text.len() < 20_000 && !text.contains("s1999") && !text.contains("model-1"), "{text}");
}

#[test]
fn prometheus_text_is_valid() {
    let meter = meter();
    run_request(&meter, "a", snapshot(100_000, 40_000), Some(usage(40_000, 0)));
    meter.count_pass_through();
    meter.count_recall(None, "mcp");
    let mut refused = meter.start_request(&request(Some("x")));
    refused.set_outcome(ProxyOutcome::Unchanged(BypassReason::Store));
    refused.count_refusal();
    refused.count_harder_fold();
    refused.end(Exit::Stalled);
    check_prometheus(&meter.prometheus());
}

/// The rules of `promtool check metrics`: each family has a help text and a type, names end in their units, only
/// counters end in `_total`, and histograms are complete.
fn check_prometheus(text: &str) {
    use std::collections::{BTreeMap, BTreeSet};
    let mut types = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, words) = rest.split_once(' ').unwrap();
            assert!(words.ends_with('.'), "{line}");
            assert!(helped.insert(name.to_owned()), "{line} is repeated");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line} is repeated");
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
            assert!(seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line} is repeated");
        }
    }
    for (name, kind) in &types {
        if kind == "histogram" {
            assert!(text.contains(&format!("{name}_sum")) && text.contains("le=\"+Inf\""), "{name}");
        }
    }
    assert!(types.len() >= 18, "{types:?}");
}
