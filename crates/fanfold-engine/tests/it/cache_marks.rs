//! Cache marks, and the spelling of a single text as a string or a list, do not change messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fanfold_core::{Extent, Handle};
use fanfold_engine::{FoldOutcome, NewTerms, RequestError, SessionEngine, SessionEvent};
use fanfold_store::{
    Batch, BlobId, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, SqliteStore, Store,
};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::bodies::{BodyFormat, rich};
use serde_json::{Value, json};

use crate::faulty_store::{FaultTiming, FaultyStore};
use crate::setup::{beginnings, engine, engine_on, id, request, terms, terms_of};

/// A conversation of a coding agent in Anthropic's format.
pub(crate) fn agent_messages(n_steps: usize) -> Vec<Value> {
    let mut messages =
        vec![json!({ "role": "user", "content": [{ "type": "text", "text": "Find the lost record." }] })];
    for i in 0..n_steps {
        let lines: String =
            (0..12).map(|n| format!("stage {i} line {n} takes batch_{i}_{n} of it\n")).collect();
        messages.push(json!({ "role": "assistant", "content": [
            { "type": "text", "text": format!("Step {i}.") },
            { "type": "tool_use", "id": format!("c{i}"), "name": "Read", "input": { "path": format!("src/{i}.py") } }] }));
        messages.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": format!("c{i}"), "content": lines }] }));
        if i % 7 == 6 {
            messages.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": format!("Stage {i} is fine.") }] }));
            messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": format!("Look at stage {i} again.") }] }));
        }
    }
    messages
}

pub(crate) fn agent_body(messages: &[Value]) -> String {
    json!({ "model": "m", "system": "Be careful.", "tools": [{ "name": "Read", "input_schema": {} }],
        "messages": messages, "max_tokens": 100 })
    .to_string()
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// Adds a cache mark to the last message, as clients do.
pub(crate) fn marked(messages: &[Value]) -> Vec<Value> {
    let mut messages = messages.to_vec();
    if let Some(part) = messages.last_mut().and_then(|last| last["content"].as_array_mut()?.last_mut()) {
        part["cache_control"] = mark();
    }
    messages
}

fn parts(message: &mut Value) -> Vec<&mut Value> {
    let parts = message.get_mut("content").and_then(Value::as_array_mut);
    parts.into_iter().flatten().filter(|part| part.is_object()).collect()
}

/// A body without cache marks, with every single text written as a string.
fn bare(body: &str) -> Value {
    let mut body: Value = serde_json::from_str(body).unwrap();
    for message in body["messages"].as_array_mut().unwrap() {
        remove_style(message);
    }
    body
}

fn remove_style(message: &mut Value) {
    if let Some(message) = message.as_object_mut() {
        message.shift_remove("cache_control");
    }
    for part in parts(message) {
        part.as_object_mut().unwrap().shift_remove("cache_control");
        for inner in parts(part) {
            inner.as_object_mut().unwrap().shift_remove("cache_control");
        }
    }
    let text = match message.get("content").and_then(Value::as_array).map(Vec::as_slice) {
        Some([part]) if part["type"] == "text" && part.as_object().is_some_and(|part| part.len() == 2) => {
            part["text"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    if let Some(text) = text {
        message["content"] = json!(text);
    }
}

/// A body with random cache marks and random spellings of single texts.
fn styled(bare: &Value, rng: &mut Rng, has_spellings: bool) -> String {
    let mut body = bare.clone();
    for message in body["messages"].as_array_mut().unwrap() {
        let text = message["content"].as_str().map(str::to_owned);
        if let Some(text) = text.filter(|_| has_spellings && rng.percent(40)) {
            message["content"] = json!([{ "type": "text", "text": text }]);
        }
        for part in parts(message) {
            if rng.percent(10) {
                part["cache_control"] = mark();
            }
            for inner in parts(part) {
                if rng.percent(10) {
                    inner["cache_control"] = mark();
                }
            }
        }
    }
    body.to_string()
}

/// Sends a growing conversation with random styles to an engine with a cache and to one without.
fn check(bodies: &[Value], seed: u64, policy: &str, window: u64, name: &str) -> usize {
    let (with, without, plain) = (engine(), engine(), engine());
    let terms = terms(policy, window);
    let mut rng = Rng::new(seed);
    let mut sent = Vec::new();
    let mut n_folded = 0;
    for bare_body in bodies {
        // Spellings change how adjacent texts are joined, so such bodies are not compared with the unmarked
        // engine's.
        let has_spellings = seed % 2 == 1;
        let body = styled(bare_body, &mut rng, has_spellings);
        let answer = request(&with, "s", &body, &terms);
        without.clear_cache();
        assert_eq!(answer.body, request(&without, "s", &body, &terms).body, "{name}: after {body}");
        let unmarked = request(&plain, "s", &bare_body.to_string(), &terms);
        match &answer.fold {
            FoldOutcome::Failed(RequestError::Overflow(_)) => continue,
            FoldOutcome::Failed(trouble) => panic!("{name}: {trouble}"),
            FoldOutcome::Whole => assert_eq!(answer.body, body, "{name}"),
            FoldOutcome::Folded(_) => n_folded += 1,
        }
        if !has_spellings {
            assert_eq!(bare(&answer.body), bare(&unmarked.body), "{name}: equal except for the marks");
        }
        assert_eq!(answer.sizes.unwrap().view, unmarked.sizes.unwrap().view, "{name}");
        sent.push(answer.body);
        // Random events between requests.
        let note = match rng.below(12) {
            0 => SessionEvent::TokenRatio {
                permille: 900 + 20 * rng.below(15) as u32,
                at_once: rng.below(2) == 0,
            },
            1 => SessionEvent::CacheExpired { later: rng.percent(50) },
            2 => SessionEvent::Pinned { message: rng.below(4) as u32 },
            3 => SessionEvent::FoldRequested { from: None, to: None },
            _ => continue,
        };
        [&with, &without, &plain].iter().for_each(|engine| engine.record_note(&id("s"), &note).unwrap());
    }
    for (i, body) in sent.iter().enumerate() {
        let rebuilt = with.rebuild(&id("s"), i + 1, &terms_of).unwrap();
        assert!(rebuilt.is_same && rebuilt.body == *body, "{name}: request {}", i + 1);
    }
    if let Some(last) = bodies.last() {
        let n_messages = last["messages"].as_array().unwrap().len() as u64;
        assert_eq!(with.store().size().unwrap().n_nodes, n_messages, "{name}: every message is stored once");
        assert_eq!(with.check_handles(&id("s")).unwrap().1, Vec::<String>::new(), "{name}");
    }
    n_folded
}

#[test]
fn moved_cache_marks_change_no_other_bytes() {
    let n_seeds = if std::env::var_os("FANFOLD_MANY").is_some() { 600 } else { 10 };
    let mut n_folded = 0;
    for seed in 0..n_seeds {
        let messages = agent_messages(30);
        let steps = 1 + (seed as usize % 5);
        let bodies: Vec<Value> =
            (1..=messages.len()).step_by(steps).map(|n| bare(&agent_body(&messages[..n]))).collect();
        n_folded += check(&bodies, seed, "fanfold", 400, &format!("agent {seed}"));
        for kind in [BodyFormat::Anthropic, BodyFormat::Chat] {
            let bodies: Vec<Value> = beginnings(&rich(kind, seed), 2)
                .iter()
                .filter(|body| {
                    serde_json::from_str::<Value>(body).is_ok_and(|body| body["messages"].is_array())
                })
                .map(|body| bare(body))
                .collect();
            let policy = ["fanfold", "hermes", "rules"][seed as usize % 3];
            n_folded += check(&bodies, seed, policy, 200, &format!("{kind:?} {seed}"));
        }
    }
    assert!(n_folded > n_seeds as usize * 3, "{n_folded}");
}

#[test]
fn moved_cache_marks_do_not_invalidate_the_cache() {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let counted = Arc::new(FaultyStore::new(store, usize::MAX, FaultTiming::Before));
    let engine = engine_on(Arc::clone(&counted) as Arc<dyn Store>);
    let messages = agent_messages(20);
    let terms = terms("fanfold", 100_000);
    request(&engine, "s", &agent_body(&marked(&messages[..5])), &terms);
    for n in (7..messages.len()).step_by(2) {
        let n_calls = counted.n_calls.load(Ordering::SeqCst);
        let answer = request(&engine, "s", &agent_body(&marked(&messages[..n])), &terms);
        assert_eq!(answer.n_new, 2, "after {n}");
        // Reads of the session row and its new events, and one commit with the messages and the request.
        assert_eq!(counted.n_calls.load(Ordering::SeqCst) - n_calls, 3, "after {n}");
    }
}

#[test]
fn the_body_of_a_session_has_the_marks_that_were_sent_last() {
    let engine = engine();
    let messages = agent_messages(6);
    let terms = terms("fanfold", 100_000);
    for n in [3, 7, messages.len()] {
        request(&engine, "s", &agent_body(&marked(&messages[..n])), &terms);
    }
    let last = agent_body(&marked(&messages));
    assert_eq!(engine.body(&id("s")).unwrap(), last);
    let other =
        SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(fanfold_engine::MachineClock));
    other.import_line(&engine.export_line(&id("s")).unwrap()).unwrap();
    assert_eq!(other.body(&id("s")).unwrap(), last);
    let rebuilt = other.rebuild(&id("s"), 2, &terms_of).unwrap();
    assert_eq!(rebuilt.body, agent_body(&marked(&messages[..7])));
}

/// In old stores, cache marks are part of the messages and frames have no message styles.
#[test]
fn a_store_of_an_old_version_can_be_used() {
    let engine = engine();
    let messages = agent_messages(4);
    let body = agent_body(&marked(&messages[..5]));
    let session = id("s");
    let texts: Vec<String> = marked(&messages[..5]).iter().map(Value::to_string).collect();
    let list = texts.join(",");
    let (before, after) = body.split_once(&list).unwrap();
    let frame = json!({ "before": before, "between": ",", "after": after }).to_string().into_bytes();
    let mut tip = None;
    texts.iter().for_each(|text| tip = Some(NodeId::new(tip, text)));
    let tip = tip.unwrap();
    let began = SessionEvent::NewTerms(NewTerms {
        terms: BlobId::new(b"fanfold").to_string(),
        window: 100_000,
        reserve: 0,
        format: "anthropic".to_owned(),
        frame: BlobId::new(&frame).to_string(),
    });
    let sent = json!({ "tip": tip.to_string(), "seen": 1, "frame": BlobId::new(&frame).to_string(), "format": "anthropic",
        "policy": "fanfold", "counter": "words", "tokens": 9, "hash": BlobId::new(body.as_bytes()).to_string(),
        "n_bytes": body.len() });
    // A fold of the prompt after the system text. Its original is the list of parts, verbatim.
    let prompt = messages[0]["content"].to_string();
    let handle = Handle::from_content(prompt.as_bytes());
    let fingerprint = &BlobId::new(prompt.as_bytes()).to_string()[..32];
    let fold = json!({ "tip": tip.to_string(), "frame": BlobId::new(&frame).to_string(), "format": "anthropic",
        "n_folds": 1, "tokens": [9, 5], "folded": [[0, 0]],
        "handles": [[handle.to_string(), ["place", ["text", 1]], fingerprint]] });
    let new = |json: &String| NewMessage { json: json.clone(), at: None };
    let ops = vec![
        Op::Create(NewSession {
            id: session.clone(),
            source: "cli".to_owned(),
            format: "anthropic".to_owned(),
            parent: None,
            tip: None,
        }),
        Op::PutBlob(frame),
        Op::PutBlob(b"fanfold".to_vec()),
        Op::Append(session.clone(), texts.iter().map(new).collect()),
        Op::AddEvent(session.clone(), began.encode()),
        Op::AddEvent(session.clone(), NewEvent { kind: "request".to_owned(), body: sent.to_string() }),
        Op::AddEvent(session.clone(), NewEvent { kind: "fold".to_owned(), body: fold.to_string() }),
    ];
    engine.store().commit(&Batch { at: Millis(5), expected_tips: Vec::new(), ops }).unwrap();
    assert_eq!(engine.body(&session).unwrap(), body);
    let rebuilt = engine.rebuild(&session, 1, &terms_of).unwrap();
    assert!(rebuilt.is_same && rebuilt.body == body);
    assert_eq!(engine.recall(&session, handle, &Extent::Whole).unwrap(), prompt);
    // The session continues without the mark, and the old requests can still be rebuilt.
    let grown = agent_body(&marked(&messages));
    let answer = request(&engine, "s", &grown, &terms("fanfold", 100_000));
    assert!(matches!(answer.fold, FoldOutcome::Whole) && answer.is_stored && answer.body == grown);
    assert_eq!(engine.rebuild(&session, 1, &terms_of).unwrap().body, body);
    assert_eq!(engine.rebuild(&session, 2, &terms_of).unwrap().body, grown);
}
