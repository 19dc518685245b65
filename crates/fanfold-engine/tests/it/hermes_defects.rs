//! What users of another engine suffer from, each as a promise of ours that would not hold there.
//!
//! The fourteen are those found in Hermes 0.19; a test is named after its number and what is promised instead, and says
//! what theirs does.

use fanfold_core::{Budget, Extent, Policy, Session, Strategy, Tokens, Words, parse};
use fanfold_engine::{Back, FoldOutcome, LoggedEvent, SessionEvent};
use fanfold_store::search::{LiveMessages, Query, SearchRequest, SearchSpec, Searcher};
use fanfold_store::{SessionFilter, SessionId};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::faulty::{Faulty, When};
use crate::setting::{chat, engine, engine_on, id, long_chat, request, terms, terms_of};

fn user(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

fn found(engine: &fanfold_engine::Engine, words: &str, live: Option<LiveMessages>) -> Vec<(SessionId, u32)> {
    let find = SearchSpec { query: Query::parse(words), live, limit: 50, ..SearchSpec::default() };
    let hits = engine.store().search(&find).unwrap();
    hits.hits.iter().map(|found| (found.session.id.clone(), found.node.depth)).collect()
}

/// A prompt that can't be made smaller is not folded again and again, with a store or without. Theirs compacts at 12 of
/// 13 calls: with a store, its breaker forgets.
#[test]
fn defect_01_what_cannot_be_won_is_not_tried_at_every_call() {
    let engine = engine();
    // Words of a person's are not folded: nearly all of the room is taken by them.
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

/// What stands for old steps is made of the originals: after fold upon fold, all of their text is behind the handles of
/// the newest view or in it. Theirs cuts results to a line first and has the summary written of what is left: 2.4 % of
/// the text.
#[test]
fn defect_02_a_digest_is_made_of_originals() {
    let engine = engine();
    let messages = long_chat(60);
    let mut body = String::new();
    for n in [30, 60, 90, messages.len()] {
        body = request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 700)).body;
    }
    let handles =
        engine.with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone()).unwrap();
    let open = |handle: &fanfold_core::Handle| engine.recall(&id("s"), *handle, &Extent::Whole).unwrap();
    let all: String = std::iter::once(body).chain(handles.iter().map(open)).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let lines: Vec<&str> = results.flat_map(|message| message["content"].as_str().unwrap().lines()).collect();
    let lost: Vec<&&str> = lines.iter().filter(|line| !all.contains(**line)).collect();
    assert!(lost.is_empty(), "{} of {} lines: {lost:?}", lost.len(), lines.len());
}

/// Where not everything can be named, the newest is. Theirs names the oldest twelve actions when its summary fails,
/// each from a text that was cut before.
#[test]
fn defect_10_the_newest_of_what_was_folded_is_named() {
    let engine = engine();
    let messages = long_chat(200);
    let terms = terms("fanfold", 2_000);
    for n in (20..messages.len()).step_by(40) {
        request(&engine, "s", &chat(&messages[..n]), &terms);
    }
    let body = request(&engine, "s", &chat(&messages), &terms).body;
    let live = engine.live(&id("s")).unwrap();
    let results = messages.iter().zip(0..).filter(|(message, _)| message["role"] == "tool");
    let is_folded = |place: u32| !live.iter().any(|live| live.contains(&place));
    let folded: Vec<usize> = results.zip(0..).filter(|((_, at), _)| is_folded(*at)).map(|(_, i)| i).collect();
    let named: Vec<usize> =
        folded.iter().copied().filter(|i| body.contains(&format!("stage_{i}.py"))).collect();
    assert!(folded.len() > 150 && named.len() >= 12 && named.len() < folded.len(), "{named:?} of {folded:?}");
    assert_eq!(named, folded[folded.len() - named.len()..], "the newest of them, without a gap");
}

/// A second fold that fails leaves the first one standing. Theirs wipes the first summary when the model refuses the
/// second one.
#[test]
fn defect_03_a_fold_that_fails_does_not_undo_the_one_before() {
    let inner: Arc<dyn fanfold_store::Store> = Arc::new(fanfold_store::MemoryStore::default());
    let calm = engine_on(Arc::clone(&inner));
    let terms = terms("fanfold", 400);
    let messages = long_chat(40);
    request(&calm, "s", &chat(&messages[..50]), &terms);
    let before = calm.handles(&id("s")).unwrap();
    assert!(!before.is_empty());
    for fails_at in 0..12 {
        let failing = engine_on(Arc::new(Faulty::new(Arc::clone(&inner), fails_at, When::Before)));
        request(&failing, "s", &chat(&messages), &terms);
        let after = calm.handles(&id("s")).unwrap();
        assert!(before.iter().all(|handle| after.contains(handle)));
        assert_eq!(calm.check_handles(&id("s")).unwrap().1, Vec::<String>::new());
    }
}

/// What was folded away of one's own session is found, scrolled to and read; only what is live is left out. Theirs
/// finds nothing of one's own session, refuses to scroll to it and reads only what is live.
#[test]
fn defect_04_own_folded_turns_are_found() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    let live = LiveMessages { session: id("s"), depths: engine.live(&id("s")).unwrap() };
    let old = found(&engine, "batch_0_7", Some(live.clone()));
    assert_eq!(old, [(id("s"), 3)], "folded away, so found");
    assert_eq!(found(&engine, "batch_39_7", Some(live)), [], "in the view, so left out");
    assert_eq!(found(&engine, "batch_39_7", None).len(), 1);
}

/// What is said to stay stays: a fold moves no boundary in the store, and the tail is untouched. Theirs keeps 58 messages
/// in memory and 54 in its store, without the last turn of the user.
#[test]
fn defect_05_the_tail_that_was_promised_is_there() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    engine.happened(&id("s"), &SessionEvent::FoldRequested { from: Some(2), to: Some(30) }).unwrap();
    let body = request(&engine, "s", &chat(&messages), &terms("fanfold", 400)).body;
    let row = engine.row(&id("s")).unwrap();
    assert_eq!(row.n_messages as usize, messages.len());
    let kept = engine.store().chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
    assert!(kept.iter().zip(&messages).all(|(node, message)| message.to_string().as_str() == &*node.json));
    let last_user = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    assert!(body.contains(last_user["content"].as_str().unwrap()));
}

/// A fold copies nothing: each message is there once, and found once. Theirs writes the tail again each time: 126
/// messages become 429 rows, and one of them is found five times.
#[test]
fn defect_06_folds_store_nothing_again() {
    let engine = engine();
    let messages = long_chat(40);
    for n in [20, 40, 60, messages.len()] {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    assert_eq!(engine.store().size().unwrap().n_nodes, messages.len() as u64);
    assert_eq!(found(&engine, "batch_3_7", None).len(), 1);
}

/// What was rewound is seen by no search, however short the word and whatever the script. Theirs shows it where two
/// Chinese characters are looked for.
#[test]
fn defect_07_what_was_rewound_is_not_found() {
    let engine = engine();
    let messages = vec![user("erstens"), user("日本語の秘密"), user("drittens")];
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    assert_eq!(found(&engine, "秘密", None).len(), 1);
    engine.rewind(&id("s"), Back::To(1)).unwrap();
    for words in ["秘密", "密", "日本語", "dritt*", "drittens"] {
        assert_eq!(found(&engine, words, None), [], "{words}");
    }
    engine.redo(&id("s")).unwrap();
    assert_eq!(found(&engine, "秘密", None).len(), 1);
}

/// Arguments that are null, missing or no text crash nothing. Theirs throws, and nothing is compacted.
#[test]
fn defect_08_null_arguments_are_folded_like_any_other() {
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

/// A fold ends no session, and a new session is known by its own id from its first request on. Theirs tells its engine
/// that the session ended at each compaction, and does not tell it the id of the next one.
#[test]
fn defect_09_a_fold_is_no_end_and_a_new_session_is_another_one() {
    let engine = engine();
    let messages = long_chat(40);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 400));
    assert_eq!(engine.row(&id("s")).unwrap().ended, None);
    request(&engine, "t", &chat(&messages[..4]), &terms("fanfold", 400));
    assert!(engine.handles(&id("t")).unwrap().is_empty());
    assert_eq!(engine.store().sessions(&SessionFilter::default()).unwrap().len(), 2);
}

/// A larger window never folds earlier than a smaller one, and none only when it is as good as full. Theirs waits for
/// 97.7 % of a window of 65,536 tokens, and folds one of 512,000 at 128,000 tokens less than one of 511,999.
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

/// A fork is a result of its own, and what is shown around it is of one way: not what was rewound, and nothing of its
/// parent's way. Theirs shows a branch as its parent, and live, archived and rewound rows beside one another.
#[test]
fn defect_12_forks_are_results_of_their_own() {
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
    engine.rewind(&fork, Back::To(5)).unwrap();
    let search = Searcher::new(engine.store());
    let ask = |request: SearchRequest| search.answer_json(&request);
    let reply = ask(SearchRequest { query: Some("zebra".into()), ..SearchRequest::default() });
    let number = reply["results"][0]["match_message_id"].as_i64();
    assert_eq!(reply["results"][0]["session_id"], fork.0.as_str(), "{reply}");
    let around = ask(SearchRequest {
        session_id: Some(fork.0),
        around_message_id: number,
        ..SearchRequest::default()
    });
    let shown = around["messages"].to_string();
    assert!(shown.contains("zebra") && shown.contains("batch_0_3"), "{around}");
    assert!(!shown.contains("okapi") && !shown.contains("batch_1_3"), "{around}");
}

/// What is sent is bounded at every moment, whatever is folded, and is checked before it leaves. Theirs sends 914,000
/// characters to have them summarised, and takes whatever comes back.
#[test]
fn defect_13_what_is_sent_is_bounded() {
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

/// What the store did not take does not leave: memory and disk never differ. Theirs swallows the failure and goes on in
/// memory alone.
#[test]
fn defect_14_nothing_leaves_that_is_not_in_the_store() {
    let inner: Arc<dyn fanfold_store::Store> = Arc::new(fanfold_store::MemoryStore::default());
    let messages = long_chat(40);
    let terms = terms("fanfold", 400);
    for fails_at in 0..12 {
        let faulty = Arc::new(Faulty::new(Arc::clone(&inner), fails_at, When::Before));
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
                let calm = engine_on(Arc::clone(&inner));
                assert_eq!(calm.rebuild(&id(&session), 1, &terms_of).unwrap().body, answer.body);
            }
            _ => assert_eq!(answer.body, chat(&messages)),
        }
    }
}
