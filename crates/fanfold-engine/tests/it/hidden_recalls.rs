//! Recalls that were hidden from the client: every later body gets them back, from the cache or from the store.

use fanfold_engine::{HiddenRecall, HiddenRecallRecord, SessionEngine, SessionMatch};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::setup::{chat, engine, id, request, terms};

fn step(call: &str, result: &str) -> [Value; 2] {
    let tool_call =
        json!({ "id": call, "type": "function", "function": { "name": "read", "arguments": "{}" } });
    [
        json!({ "role": "assistant", "content": null, "tool_calls": [tool_call] }),
        json!({ "role": "tool", "tool_call_id": call, "content": result }),
    ]
}

fn recognise(engine: &SessionEngine, body: &str) -> (SessionMatch, Option<String>) {
    let found = engine.recognise_with_recalls(engine.open(body, Format::Chat).unwrap()).unwrap();
    (found.session_match, found.with_recalls)
}

#[test]
fn hidden_recalls_are_inserted_from_cache_store_and_forks() {
    let engine = engine();
    let mut messages = vec![json!({ "role": "user", "content": "Why?" })];
    messages.extend(step("call_1", "one"));
    assert!(request(&engine, "s", &chat(&messages), &terms("fanfold", 4_000)).is_stored);
    let recall = |result: &str| {
        let (call, arguments) = ("ours".to_owned(), r#"{"handle":"123456"}"#.to_owned());
        vec![HiddenRecall { call, arguments, result: result.to_owned() }]
    };
    let recalls =
        HiddenRecallRecord { client_calls: vec!["call_2".to_owned()], recalls: recall("the original") };
    engine.record_hidden_recalls(&id("s"), recalls).unwrap();
    messages.extend(step("call_2", "two"));
    let body = chat(&messages);
    let (recognised, first) = recognise(&engine, &body);
    let with_recalls = first.clone().unwrap();
    assert_eq!(recognised, SessionMatch::Continues(id("s")));
    assert!(
        with_recalls.contains("the original") && with_recalls.contains("fanfold_recall"),
        "{with_recalls}"
    );
    engine.clear_cache();
    assert_eq!(recognise(&engine, &body), (recognised, first.clone()), "from the store");
    assert_eq!(
        engine.insert_hidden_recalls(&id("s"), &body, Format::Chat).unwrap(),
        first,
        "in a named session"
    );
    let fork = engine.fork(&id("s"), None, None).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.insert_hidden_recalls(&fork, &body, Format::Chat).unwrap(), first, "in a fork");
        engine.clear_cache();
    }
    // The recalls belong to the answer with `call_2` only.
    messages.truncate(3);
    messages.extend(step("call_3", "three"));
    assert_eq!(recognise(&engine, &chat(&messages)).1, None);
}
