//! Each rule has a body that breaks it alone, and one that just keeps it.

mod chat; //      of Chat Completions
mod responses; // of Responses
mod anthropic; // of Anthropic Messages
mod worse; //     and what only what came beside what left can show

use fanfold_testkit::bodies::Kind;
use fanfold_testkit::rules::{broken, rules};
use serde_json::Value;

type Change = fn(&mut Value);

/// A rule, what breaks it, and what is as near to that as can be and keeps it.
struct Example(&'static str, Change, Change);

fn check(kind: Kind, base: &Value, examples: &[Example]) {
    assert_eq!(broken(kind, base.to_string().as_bytes()), [], "the body that all is made of");
    for Example(rule, breaks, keeps) in examples {
        assert!(rules(kind).contains(rule), "there is no rule {rule:?}");
        let (mut bad, mut good) = (base.clone(), base.clone());
        breaks(&mut bad);
        keeps(&mut good);
        let found = broken(kind, bad.to_string().as_bytes());
        let is_it_alone = !found.is_empty() && found.iter().all(|broken| broken.rule == *rule);
        assert!(is_it_alone, "{rule:?} should be broken alone: {found:?} in {bad}");
        assert_eq!(broken(kind, good.to_string().as_bytes()), [], "{rule:?} should be kept: {good}");
    }
    let untried: Vec<_> =
        rules(kind).iter().filter(|rule| examples.iter().all(|Example(name, ..)| name != *rule)).collect();
    assert!(untried.is_empty(), "nobody tries {untried:?}");
}

#[test]
fn a_body_that_is_no_object_is_told() {
    for kind in [Kind::Chat, Kind::Responses, Kind::Anthropic] {
        for body in ["", "[]", "{\"model\":", "\u{0}"] {
            let found = broken(kind, body.as_bytes());
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].to_string(), "the body: a request is an object of JSON");
        }
    }
}

fn push(body: &mut Value, key: &str, message: Value) {
    body[key].as_array_mut().unwrap().push(message);
}

fn repeat(letter: &str, n: usize) -> String {
    letter.repeat(n)
}
