//! Recalls beside calls of a client's: each later body gets them back, whoever remembers them.

use fanfold_engine::{Engine, HiddenRecall, HiddenRecallRecord, SessionMatch};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::setting::{chat, engine, id, request, terms};

fn step(call: &str, result: &str) -> [Value; 2] {
    let made = json!({ "id": call, "type": "function", "function": { "name": "read", "arguments": "{}" } });
    [
        json!({ "role": "assistant", "content": null, "tool_calls": [made] }),
        json!({ "role": "tool", "tool_call_id": call, "content": result }),
    ]
}

fn recognise(engine: &Engine, body: &str) -> (SessionMatch, Option<String>) {
    let found = engine.recognise_with_recalls(engine.open(body, Format::Chat).unwrap()).unwrap();
    (found.session_match, found.with_recalls)
}

#[test]
fn they_are_put_back_from_memory_from_the_store_and_in_a_fork() {
    let engine = engine();
    let mut messages = vec![json!({ "role": "user", "content": "Why?" })];
    messages.extend(step("call_1", "one"));
    assert!(request(&engine, "s", &chat(&messages), &terms("fanfold", 4_000)).is_stored);
    let opened = |result: &str| {
        let (call, arguments) = ("ours".to_owned(), r#"{"handle":"123456"}"#.to_owned());
        vec![HiddenRecall { call, arguments, result: result.to_owned() }]
    };
    let beside =
        HiddenRecallRecord { client_calls: vec!["call_2".to_owned()], recalls: opened("the original") };
    engine.record_hidden_recalls(&id("s"), beside).unwrap();
    messages.extend(step("call_2", "two"));
    let body = chat(&messages);
    let (recognised, first) = recognise(&engine, &body);
    let whole = first.clone().unwrap();
    assert_eq!(recognised, SessionMatch::Continues(id("s")));
    assert!(whole.contains("the original") && whole.contains("fanfold_recall"), "{whole}");
    engine.clear_cache();
    assert_eq!(recognise(&engine, &body), (recognised, first.clone()), "nobody remembers it");
    assert_eq!(engine.insert_hidden_recalls(&id("s"), &body, Format::Chat).unwrap(), first, "it is named");
    let fork = engine.fork(&id("s"), None, None).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.insert_hidden_recalls(&fork, &body, Format::Chat).unwrap(), first, "in a fork");
        engine.clear_cache();
    }
    // Other calls are another answer's.
    messages.truncate(3);
    messages.extend(step("call_3", "three"));
    assert_eq!(recognise(&engine, &chat(&messages)).1, None);
}
