//! The fourteen defects found in Hermes 0.19, each as a test of the correct behaviour.
//!
//! A test has the number of the defect and the name of the correct behaviour. Its comment describes the defect.

use fanfold_core::{Budget, Extent, Policy, Session, Strategy, Tokens, Words, parse};
use fanfold_engine::{FoldOutcome, LoggedEvent, RewindTarget, SessionEvent};
use fanfold_store::search::{LiveMessages, Query, SearchRequest, SearchSpec, Searcher};
use fanfold_store::{SessionFilter, SessionId};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::faulty_store::{FaultTiming, FaultyStore};
use crate::setup::{chat, engine, engine_on, id, long_chat, request, terms, terms_of};

fn user(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

fn found(
    engine: &fanfold_engine::SessionEngine,
    words: &str,
    live: Option<LiveMessages>,
) -> Vec<(SessionId, u32)> {
    let spec = SearchSpec { query: Query::parse(words), live, limit: 50, ..SearchSpec::default() };
    let hits = engine.store().search(&spec).unwrap();
    hits.hits.iter().map(|hit| (hit.session.id.clone(), hit.node.depth)).collect()
}

/// Hermes compacts at 12 of 13 calls if compaction saves nothing, because its circuit breaker loses its state with
/// a store.
#[test]
fn defect_01_a_useless_fold_is_not_retried_at_every_call() {
    let engine = engine();
    // User text is never folded, and here it fills nearly all of the room.
    let mut messages = vec![user(&"word ".repeat(380))];
    for i in 0..14 {
        messages.push(json!({ "role": "assistant", "content": format!("answer {i}") }));
        messages.push(user("go on"));
        request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
        engine.clear_cache();
    }
    let folds =
        engine.store().events(&id("s"), 0).unwrap().iter().filter(|event| event.kind == "fold").count();
    assert!(folds <= 4, "{folds} folds in 14 calls");
}

/// Hermes truncates results to a line and summarises the rest, which is 2.4 % of the text. Here, all text of folded
/// steps is in the newest view or can be recalled from it, even after many folds.
#[test]
fn defect_02_repeated_folds_lose_no_text() {
    let engine = engine();
    let messages = long_chat(60);
    let mut body = String::new();
    for n in [30, 60, 90, messages.len()] {
        body = request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 700)).body;
    }
    let handles =
        engine.with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone()).unwrap();
    let open = |handle: &fanfold_core::Handle| engine.recall(&id("s"), *handle, &Extent::Whole).unwrap();
    let recalled: String = std::iter::once(body).chain(handles.iter().map(open)).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let lines: Vec<&str> = results.flat_map(|message| message["content"].as_str().unwrap().lines()).collect();
    let lost: Vec<&&str> = lines.iter().filter(|line| !recalled.contains(**line)).collect();
    assert!(lost.is_empty(), "{} of {} lines: {lost:?}", lost.len(), lines.len());
}

/// If its summary fails, Hermes lists the oldest twelve actions, from truncated text.
#[test]
fn defect_10_a_record_that_is_too_long_lists_the_newest_actions() {
    let engine = engine();
    let messages = long_chat(200);
    let terms = terms("fanfold", 2_000);
    for n in (20..messages.len()).step_by(40) {
        request(&engine, "s", &chat(&messages[..n]), &terms);
    }
    let body = request(&engine, "s", &chat(&messages), &terms).body;
    let live = engine.live_messages(&id("s")).unwrap();
    let results = messages.iter().zip(0..).filter(|(message, _)| message["role"] == "tool");
    let is_folded = |place: u32| !live.iter().any(|live| live.contains(&place));
    let folded: Vec<usize> = results.zip(0..).filter(|((_, at), _)| is_folded(*at)).map(|(_, i)| i).collect();
    let named: Vec<usize> =
        folded.iter().copied().filter(|i| body.contains(&format!("stage_{i}.py"))).collect();
    assert!(folded.len() > 150 && named.len() >= 12 && named.len() < folded.len(), "{named:?} of {folded:?}");
    assert!(named.ends_with(&folded[folded.len() - 12..]), "the newest ones: {named:?}");
}

/// Hermes deletes the first summary if the model refuses to write the second one.
#[test]
fn defect_03_a_failed_fold_does_not_undo_the_last_one() {
    let inner: Arc<dyn fanfold_store::Store> = Arc::new(fanfold_store::SqliteStore::in_memory());
    let healthy = engine_on(Arc::clone(&inner));
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&healthy, "s", &chat(&messages[..50]), &terms);
    let before = healthy.handles(&id("s")).unwrap();
    assert!(!before.is_empty());
    for fails_at in 0..12 {
        let failing =
            engine_on(Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, FaultTiming::Before)));
        request(&failing, "s", &chat(&messages), &terms);
        let after = healthy.handles(&id("s")).unwrap();
        assert!(before.iter().all(|handle| after.contains(handle)));
        assert_eq!(healthy.check_handles(&id("s")).unwrap().1, Vec::<String>::new());
    }
}

/// The search of Hermes finds no messages of the current session, not even compacted ones.
#[test]
fn defect_04_folded_turns_of_the_current_session_are_found() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    let live = LiveMessages { session: id("s"), depths: engine.live_messages(&id("s")).unwrap() };
    let old = found(&engine, "batch_0_7", Some(live.clone()));
    assert_eq!(old, [(id("s"), 3)], "folded, so found");
    assert_eq!(found(&engine, "batch_39_7", Some(live)), [], "in the view, so left out");
    assert_eq!(found(&engine, "batch_39_7", None).len(), 1);
}

/// Hermes has 58 messages in memory and 54 in its store after a compaction; the last user turn is missing.
#[test]
fn defect_05_a_fold_keeps_the_tail_in_view_and_store() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    engine.record_note(&id("s"), &SessionEvent::FoldRequested { from: Some(2), to: Some(30) }).unwrap();
    let body = request(&engine, "s", &chat(&messages), &terms("fanfold", 400)).body;
    let row = engine.row(&id("s")).unwrap();
    assert_eq!(row.n_messages as usize, messages.len());
    let stored = engine.store().chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
    assert!(stored.iter().zip(&messages).all(|(node, message)| message.to_string().as_str() == &*node.json));
    let last_user = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    assert!(body.contains(last_user["content"].as_str().unwrap()));
}

/// Hermes stores the tail again at each compaction: 126 messages become 429 rows, and a search finds one of them
/// five times.
#[test]
fn defect_06_folds_do_not_duplicate_messages() {
    let engine = engine();
    let messages = long_chat(40);
    for n in [20, 40, 60, messages.len()] {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    assert_eq!(engine.store().size().unwrap().n_nodes, messages.len() as u64);
    assert_eq!(found(&engine, "batch_3_7", None).len(), 1);
}

/// Hermes finds rewound messages if the query has two Chinese characters.
#[test]
fn defect_07_rewound_messages_are_not_found() {
    let engine = engine();
    let messages = vec![user("erstens"), user("日本語の秘密"), user("drittens")];
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    assert_eq!(found(&engine, "秘密", None).len(), 1);
    engine.rewind(&id("s"), RewindTarget::Length(1)).unwrap();
    for words in ["秘密", "密", "日本語", "dritt*", "drittens"] {
        assert_eq!(found(&engine, words, None), [], "{words}");
    }
    engine.redo(&id("s")).unwrap();
    assert_eq!(found(&engine, "秘密", None).len(), 1);
}

/// Hermes throws on such arguments and compacts nothing.
#[test]
fn defect_08_calls_with_invalid_arguments_are_folded() {
    for arguments in [Value::Null, json!(7), json!({ "a": null }), json!("null"), json!("{broken")] {
        let engine = engine();
        let mut messages = long_chat(30);
        for message in &mut messages {
            if let Some(call) = message.get_mut("tool_calls").and_then(|calls| calls.get_mut(0)) {
                call["function"]["arguments"] = arguments.clone();
            }
        }
        let answer = request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
        assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{arguments}: {:?}", answer.fold);
        assert_eq!(engine.check_handles(&id("s")).unwrap().1, Vec::<String>::new());
    }
}

/// Hermes reports the end of the session to its engine at each compaction, without the id of the next session.
#[test]
fn defect_09_a_fold_does_not_end_the_session() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    assert_eq!(engine.row(&id("s")).unwrap().ended, None);
    request(&engine, "t", &chat(&messages[..4]), &terms("fanfold", 400));
    assert!(engine.handles(&id("t")).unwrap().is_empty());
    assert_eq!(engine.store().sessions(&SessionFilter::default()).unwrap().len(), 2);
}

/// Hermes waits until 97.7 % of a window of 65,536 tokens are full, and compacts a window of 512,000 tokens 128,000
/// tokens earlier than one of 511,999.
#[test]
fn defect_11_the_threshold_grows_with_the_window() {
    for strategy in [Strategy::Aggressive, Strategy::Moderate, Strategy::Light, Strategy::Threshold(500)] {
        let mut last = Tokens::ZERO;
        for window in (1_000..1_200_000).step_by(997).chain([65_535, 65_536, 511_999, 512_000, 512_001]) {
            let trigger = strategy.trigger(Budget::of_window(Tokens(window))).unwrap();
            assert!(trigger.0 * 100 <= window * 96, "{window}: {trigger:?}");
            let before = strategy.trigger(Budget::of_window(Tokens(window - 1))).unwrap();
            assert!(trigger >= before, "{window}");
            last = trigger;
        }
        assert!(last > Tokens::ZERO);
    }
}

/// Hermes shows a branch as its parent, and mixes live, archived and rewound rows.
#[test]
fn defect_12_a_search_shows_the_branch_of_the_match() {
    let engine = engine();
    let mut messages = long_chat(3);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    let fork = engine.fork(&id("s"), Some(4), None).unwrap();
    messages.truncate(4);
    messages.push(user("only the fork says zebra"));
    request(&engine, &fork.0, &chat(&messages), &terms("fanfold", 9_000));
    assert_eq!(found(&engine, "zebra", None), [(fork.clone(), 4)]);
    request(
        &engine,
        &fork.0,
        &chat(&[&messages[..], &[user("an okapi that is taken back")]].concat()),
        &terms("fanfold", 9_000),
    );
    engine.rewind(&fork, RewindTarget::Length(5)).unwrap();
    let search = Searcher::new(engine.store());
    let answer = |request: SearchRequest| search.answer_json(&request);
    let reply = answer(SearchRequest { query: Some("zebra".into()), ..SearchRequest::default() });
    let number = reply["results"][0]["match_message_id"].as_i64();
    assert_eq!(reply["results"][0]["session_id"], fork.0.as_str(), "{reply}");
    let around = answer(SearchRequest {
        session_id: Some(fork.0),
        around_message_id: number,
        ..SearchRequest::default()
    });
    let excerpt = around["messages"].to_string();
    assert!(excerpt.contains("zebra") && excerpt.contains("batch_0_3"), "{around}");
    assert!(!excerpt.contains("okapi") && !excerpt.contains("batch_1_3"), "{around}");
}

/// Hermes sends 914,000 characters to the summary model and accepts any answer.
#[test]
fn defect_13_every_view_fits_its_room() {
    let room = Tokens(2_000);
    let mut session = Session::new(Policy::fanfold(), Budget::with_reserve(room, Tokens::ZERO), &Words);
    for i in 0..300 {
        let text =
            format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {}", "words of it ".repeat(60));
        parse(&text).unwrap().into_iter().for_each(|entry| _ = session.append(entry));
        let tokens = session.view().map(|view| view.tokens).map_err(|refusal| refusal.to_string());
        assert!(matches!(tokens, Ok(tokens) if tokens <= room), "after {i}: {tokens:?}");
    }
    assert!(session.transcript().total().0 > 20 * room.0);
}

/// Hermes ignores errors of the store and continues in memory alone.
#[test]
fn defect_14_a_folded_view_is_sent_only_after_it_is_stored() {
    let inner: Arc<dyn fanfold_store::Store> = Arc::new(fanfold_store::SqliteStore::in_memory());
    let messages = long_chat(40);
    let terms = terms("fanfold", 400);
    for fails_at in 0..12 {
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner), fails_at, FaultTiming::Before));
        let engine = engine_on(Arc::clone(&faulty) as Arc<dyn fanfold_store::Store>);
        let session = format!("s{fails_at}");
        let answer = request(&engine, &session, &chat(&messages), &terms);
        let Ok(events) = inner.events(&id(&session), 0) else {
            assert!(!answer.is_stored);
            continue;
        };
        let notes: Vec<SessionEvent> =
            events.iter().filter_map(LoggedEvent::decode).map(|noted| noted.event).collect();
        let n_requests = notes.iter().filter(|note| matches!(note, SessionEvent::Request(_))).count();
        match answer.fold {
            FoldOutcome::Folded(_) => {
                assert_eq!(n_requests, 1);
                let healthy = engine_on(Arc::clone(&inner));
                assert_eq!(healthy.rebuild(&id(&session), 1, &terms_of).unwrap().body, answer.body);
            }
            _ => assert_eq!(answer.body, chat(&messages)),
        }
    }
}
