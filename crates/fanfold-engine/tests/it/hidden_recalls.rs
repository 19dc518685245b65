//! Recalls that were hidden from the client: every later body gets them back, from the cache or from the store.

use fanfold_engine::{Beside, Engine, Opened, Recognised};
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

fn recognise(engine: &Engine, body: &str) -> (Recognised, Option<String>) {
    let found = engine.recognise_whole(engine.open(body, Format::Chat).unwrap()).unwrap();
    (found.recognised, found.with_recalls)
}

#[test]
fn hidden_recalls_are_inserted_from_cache_store_and_forks() {
    let engine = engine();
    let mut messages = vec![json!({ "role": "user", "content": "Why?" })];
    messages.extend(step("call_1", "one"));
    assert!(request(&engine, "s", &chat(&messages), &terms("fanfold", 4_000)).is_kept);
    let recall = |result: &str| {
        let (call, arguments) = ("ours".to_owned(), r#"{"handle":"123456"}"#.to_owned());
        vec![Opened { call, arguments, result: result.to_owned() }]
    };
    let recalls = Beside { theirs: vec!["call_2".to_owned()], ours: recall("the original") };
    engine.recalled_beside(&id("s"), recalls).unwrap();
    messages.extend(step("call_2", "two"));
    let body = chat(&messages);
    let (recognised, first) = recognise(&engine, &body);
    let with_recalls = first.clone().unwrap();
    assert_eq!(recognised, Recognised::GoesOn(id("s")));
    assert!(
        with_recalls.contains("the original") && with_recalls.contains("fanfold_recall"),
        "{with_recalls}"
    );
    engine.forget();
    assert_eq!(recognise(&engine, &body), (recognised, first.clone()), "from the store");
    assert_eq!(engine.with_recalls_of(&id("s"), &body, Format::Chat).unwrap(), first, "in a named session");
    let fork = engine.fork(&id("s"), None, None).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.with_recalls_of(&fork, &body, Format::Chat).unwrap(), first, "in a fork");
        engine.forget();
    }
    // The recalls belong to the answer with `call_2` only.
    messages.truncate(3);
    messages.extend(step("call_3", "three"));
    assert_eq!(recognise(&engine, &chat(&messages)).1, None);
}
