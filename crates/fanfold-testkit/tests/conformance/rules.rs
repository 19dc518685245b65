//! For each rule, a body that breaks only it and a similar one that keeps it.

mod chat; //       Chat Completions
mod responses; //  Responses
mod anthropic; //  Anthropic Messages
mod comparison; // regressions that only a comparison of two requests shows

use fanfold_testkit::contracts::api_rules::{rules, violations};
use fanfold_testkit::generators::bodies::BodyFormat;
use serde_json::Value;

type Change = fn(&mut Value);

/// A rule, a change that breaks it, and a similar change that keeps it.
struct RuleExample(&'static str, Change, Change);

fn check(kind: BodyFormat, base: &Value, examples: &[RuleExample]) {
    assert_eq!(violations(kind, base.to_string().as_bytes()), [], "the base body");
    for RuleExample(rule, breaks, keeps) in examples {
        assert!(rules(kind).contains(rule), "unknown rule {rule:?}");
        let (mut bad, mut good) = (base.clone(), base.clone());
        breaks(&mut bad);
        keeps(&mut good);
        let found = violations(kind, bad.to_string().as_bytes());
        let is_only_rule = !found.is_empty() && found.iter().all(|violation| violation.rule == *rule);
        assert!(is_only_rule, "only {rule:?} should be broken: {found:?} in {bad}");
        assert_eq!(violations(kind, good.to_string().as_bytes()), [], "{rule:?} should be kept: {good}");
    }
    let untested: Vec<_> = rules(kind)
        .iter()
        .filter(|rule| examples.iter().all(|RuleExample(name, ..)| name != *rule))
        .collect();
    assert!(untested.is_empty(), "no example for {untested:?}");
}

#[test]
fn a_body_that_is_not_an_object_is_reported() {
    for kind in [BodyFormat::Chat, BodyFormat::Responses, BodyFormat::Anthropic] {
        for body in ["", "[]", "{\"model\":", "\u{0}"] {
            let found = violations(kind, body.as_bytes());
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].to_string(), "the body: a request is a JSON object");
        }
    }
}

fn push(body: &mut Value, key: &str, message: Value) {
    body[key].as_array_mut().unwrap().push(message);
}

fn repeat(letter: &str, n: usize) -> String {
    letter.repeat(n)
}
