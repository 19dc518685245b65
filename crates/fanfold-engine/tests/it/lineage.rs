//! Forks, rewinds, rotations, and what goes.

use fanfold_core::Extent;
use fanfold_engine::{Back, Engine, FoldOutcome, Retention};
use fanfold_store::{EndReason, Millis, NodeId, SessionFilter, SessionId};
use fanfold_wire::Conversation;
use serde_json::{Value, json};

use crate::setting::{chat, engine, id, long_chat, request, terms, terms_of};

fn tip(engine: &Engine, session: &SessionId) -> Option<NodeId> {
    engine.row(session).unwrap().tip
}

fn user(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

#[test]
fn a_body_that_differs_moves_the_session_and_loses_nothing() {
    let engine = engine();
    let terms = terms("fanfold", 9_000);
    let mut messages = long_chat(4);
    request(&engine, "s", &chat(&messages), &terms);
    let long = tip(&engine, &id("s"));
    // The client cut its history and said something else.
    messages.truncate(4);
    messages.push(user("No, do it otherwise."));
    let answer = request(&engine, "s", &chat(&messages), &terms);
    assert_eq!((answer.n_new, answer.n_dropped, engine.row(&id("s")).unwrap().n_messages), (1, 6, 5));
    let other = tip(&engine, &id("s"));
    assert_ne!(long, other);
    // A body that is shorter is a rewind.
    assert_eq!(request(&engine, "s", &chat(&messages[..3]), &terms).n_dropped, 2);
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, 3);
    assert_eq!(engine.redo(&id("s")).unwrap().n_after, 5);
    assert_eq!(tip(&engine, &id("s")), other);
    assert_eq!(engine.redo(&id("s")).unwrap().n_after, 10);
    assert_eq!(tip(&engine, &id("s")), long);
    assert!(engine.redo(&id("s")).is_err());
    // All of it is still there after what nobody leads to is swept.
    assert_eq!(engine.store().collect_garbage().unwrap(), 0);
}

#[test]
fn a_rewound_session_is_folded_as_one_that_never_went_further() {
    let (straight, winding) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    let (early, late) = (chat(&messages[..30]), chat(&messages));
    request(&winding, "s", &early, &terms);
    request(&winding, "s", &late, &terms);
    engine_rewind(&winding, 30);
    let wanted = request(&straight, "s", &early, &terms).body;
    assert_eq!(request(&winding, "s", &early, &terms).body, wanted);
    for number in 1..=3 {
        assert!(winding.rebuild(&id("s"), number, &terms_of).unwrap().is_same, "request {number}");
    }
}

fn engine_rewind(engine: &Engine, to: u32) {
    assert_eq!(engine.rewind(&id("s"), Back::To(to)).unwrap().n_after, to);
}

#[test]
fn rewind_goes_back_by_turns_and_checkpoints_are_found_by_name() {
    let engine = engine();
    let messages = long_chat(20);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    engine.checkpoint(&id("s"), "before  the\tchange").unwrap();
    let all = messages.len() as u32;
    let step = engine.rewind(&id("s"), Back::Turns(2)).unwrap();
    assert_eq!((step.n_before, messages[step.n_after as usize]["role"].as_str()), (all, Some("user")));
    assert_eq!(engine.restore(&id("s"), "before the change").unwrap().n_after, all);
    let error = engine.restore(&id("s"), "nowhere").unwrap_err();
    assert_eq!(error.hint(), "there are before the change");
    assert!(engine.rewind(&id("s"), Back::Turns(99)).is_err());
    assert!(engine.rewind(&id("s"), Back::To(all + 1)).is_err());
    assert!(engine.pin(&id("s"), all, true).is_err());
}

#[test]
fn every_fold_has_a_checkpoint_before_it() {
    let engine = engine();
    let messages = long_chat(40);
    for n in [10, 40, messages.len()] {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let places = engine.checkpoints(&id("s")).unwrap();
    assert!(places.len() >= 2 && places.iter().all(|place| place.is_auto), "{places:?}");
    engine.restore(&id("s"), &places[0].name).unwrap();
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, places[0].n_messages);
}

#[test]
fn a_fork_goes_on_with_the_view_that_was_sent() {
    check_fork(&engine());
}

/// Forks and forks of forks, whose parents go.
pub(crate) fn check_fork(engine: &Engine) {
    let terms = terms("fanfold", 400);
    let mut messages = long_chat(30);
    let body = chat(&messages);
    let sent = request(engine, "s", &body, &terms);
    engine.pin(&id("s"), 3, true).unwrap();
    let fork = engine.fork(&id("s"), None, Some("Another way")).unwrap();
    assert_eq!(engine.store().size().unwrap().n_nodes, messages.len() as u64);
    messages.push(user("And now?"));
    let parents = request(engine, "s", &chat(&messages), &terms);
    let forks = request(engine, &fork.0, &chat(&messages), &terms);
    assert_eq!(forks.body, parents.body);
    assert_ne!(sent.body, parents.body);
    assert!(forks.body.contains("stage 0 line 3"), "the pin went with it");
    assert!(engine.rebuild(&fork, 1, &terms_of).unwrap().is_same);
    // The parent goes; the fork misses nothing.
    let handles = engine.handles(&fork).unwrap();
    assert!(handles.len() > 3);
    engine.delete(&id("s")).unwrap();
    engine.clear_cache();
    for handle in handles {
        engine.recall(&fork, handle.parse().unwrap(), &Extent::Whole).unwrap();
    }
    assert_eq!(engine.check_handles(&fork).unwrap().1, Vec::<String>::new());
    assert_eq!(request(engine, &fork.0, &chat(&messages), &terms).body, forks.body);
    assert!(engine.rebuild(&fork, 1, &terms_of).unwrap().is_same);
    // And so does a fork of the fork, when the fork goes.
    let second = engine.fork(&fork, Some(40), None).unwrap();
    assert_eq!(engine.row(&second).unwrap().n_messages, 40);
    let before = request(engine, &second.0, &chat(&messages[..40]), &terms).body;
    engine.delete(&fork).unwrap();
    engine.clear_cache();
    assert_eq!(request(engine, &second.0, &chat(&messages[..40]), &terms).body, before);
    assert_eq!(engine.check_handles(&second).unwrap().1, Vec::<String>::new());
}

/// A client that changed its last words goes another way. What is folded there is made of what was folded before, and a
/// fork from there does not have what was noted on the first way.
#[test]
fn a_fork_from_another_way_has_all_handles_of_that_way() {
    let messages = long_chat(60);
    let terms = terms("fanfold", 400);
    for (n_first, n_second) in [(60, 60), (60, 90), (40, messages.len())] {
        let engine = engine();
        let first = [&messages[..n_first], &[user("This way.")]].concat();
        request(&engine, "s", &chat(&first), &terms);
        let second = [&messages[..n_second], &[user("No, that way.")]].concat();
        assert!(matches!(request(&engine, "s", &chat(&second), &terms).fold, FoldOutcome::Folded(_)));
        let stands = engine
            .with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone())
            .unwrap();
        let fork = engine.fork(&id("s"), None, None).unwrap();
        let (n_handles, broken) = engine.check_handles(&fork).unwrap();
        assert_eq!((n_handles > 0, broken), (true, Vec::new()), "{n_first} and {n_second} messages");
        let given = engine.handles(&fork).unwrap();
        let missing: Vec<_> = stands.iter().filter(|handle| !given.contains(&handle.to_string())).collect();
        assert!(missing.is_empty(), "{n_first} and {n_second} messages: {missing:?}");
    }
}

#[test]
fn rotations_are_numbered_and_resumed_at_their_end() {
    let engine = engine();
    request(&engine, "s", &chat(&long_chat(3)), &terms("fanfold", 9_000));
    engine.set_title(&id("s"), "Task").unwrap();
    engine.set_goal(&id("s"), "ship it").unwrap();
    let second = engine.rotate(&id("s")).unwrap();
    let third = engine.rotate(&second).unwrap();
    let titles: Vec<_> =
        [id("s"), second.clone(), third.clone()].iter().map(|id| engine.row(id).unwrap().title).collect();
    assert_eq!(titles, ["Task", "Task #2", "Task #3"].map(|title| Some(title.to_owned())));
    assert_eq!(engine.newest(&id("s")).unwrap().id, third);
    assert_eq!(engine.row(&third).unwrap().goal.as_deref(), Some("ship it"));
    assert_eq!(engine.row(&third).unwrap().root, id("s"));
    assert!(engine.rotate(&second).unwrap_err().to_string().contains("compression"));
    let fork = engine.fork(&third, Some(2), None).unwrap();
    assert_eq!(engine.newest(&id("s")).unwrap().id, third, "a fork is no continuation");
    assert_eq!(engine.newest(&fork).unwrap().id, fork);
}

#[test]
fn sessions_are_found_by_what_people_write() {
    let engine = engine();
    for name in ["20261115-141500-aaaaaa", "20261115-141500-bbbbbb", "20261116-101112-cccccc"] {
        request(&engine, name, &chat(&long_chat(1)), &terms("fanfold", 9_000));
    }
    let found = |name: &str| engine.find(name).map(|row| row.id.0).map_err(|error| error.to_string());
    assert_eq!(found("20261116").unwrap(), "20261116-101112-cccccc");
    assert_eq!(found("1").unwrap(), "20261116-101112-cccccc");
    assert_eq!(found("3").unwrap(), "20261115-141500-aaaaaa");
    assert!(found("20261115").unwrap_err().contains("20261115-141500-bbbbbb"));
    assert_eq!(found("zzz").unwrap_err(), "there is no session zzz");
    engine.set_title(&id("20261115-141500-aaaaaa"), "Night run").unwrap();
    assert_eq!(found("Night run").unwrap(), "20261115-141500-aaaaaa");
    let taken = engine.set_title(&id("20261116-101112-cccccc"), " Night  run").unwrap_err();
    assert!(taken.to_string().contains("20261115-141500-aaaaaa"));
}

#[test]
fn retention_lets_old_sessions_go_and_keeps_what_others_share() {
    let engine = engine();
    let messages = long_chat(6);
    request(&engine, "old", &chat(&messages), &terms("fanfold", 9_000));
    request(&engine, "new", &chat(&messages[..4]), &terms("fanfold", 9_000));
    let retention =
        Retention { before: engine.row(&id("new")).unwrap().updated_at, source: None, only_ended: false };
    let pruned = engine.prune(&retention).unwrap();
    assert_eq!(pruned.sessions, [id("old")]);
    assert_eq!(pruned.n_messages, messages.len() as u64 - 4);
    assert!(matches!(
        request(&engine, "new", &chat(&messages[..4]), &terms("fanfold", 9_000)).fold,
        FoldOutcome::Whole
    ));
    let ended = Retention { before: Millis(i64::MAX), source: None, only_ended: true };
    assert_eq!(engine.prune(&ended).unwrap().sessions, []);
}

#[test]
fn one_that_was_gone_on_with_after_its_rotation_is_the_newest() {
    let engine = engine();
    let (terms, messages) = (terms("fanfold", 9_000), long_chat(3));
    request(&engine, "s", &chat(&messages[..4]), &terms);
    let second = engine.rotate(&id("s")).unwrap();
    assert_eq!(engine.newest(&id("s")).unwrap().id, second);
    // Both were written to at once, and the one that goes on is the first.
    let ids = |rows: Vec<fanfold_store::SessionRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(engine.sessions(&SessionFilter::default()).unwrap()), [second.clone(), id("s")]);
    let first = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    assert_eq!(ids(engine.sessions(&first).unwrap()), std::slice::from_ref(&second));
    assert_eq!(engine.find("1").unwrap().id, second);
    request(&engine, "s", &chat(&messages), &terms);
    assert!(engine.row(&id("s")).unwrap().ended.is_none());
    assert_eq!(engine.newest(&id("s")).unwrap().id, id("s"));
    assert_eq!(engine.newest(&second).unwrap().id, second);
}

#[test]
fn sessions_end_for_a_reason_and_go_on_when_something_is_said() {
    let engine = engine();
    let body = chat(&long_chat(3));
    for name in ["new", "helps", "left"] {
        request(&engine, name, &body, &terms("fanfold", 9_000));
    }
    engine.set_goal(&id("left"), "ship it").unwrap();
    engine.end(&id("new"), EndReason::Reset).unwrap();
    engine.end(&id("helps"), EndReason::Subagent).unwrap();
    let fork = engine.branch(&id("left"), Some(3), Some("Other way")).unwrap();
    let why = |name: &str| engine.row(&id(name)).unwrap().ended.map(|(_, why)| why);
    let reasons = ["new", "helps", "left"].map(why);
    assert_eq!(reasons, [EndReason::Reset, EndReason::Subagent, EndReason::Branched].map(Some));
    let fork = engine.row(&fork).unwrap();
    assert_eq!((fork.goal.as_deref(), fork.n_messages, fork.ended), (Some("ship it"), 3, None));
    assert_eq!(engine.row(&id("left")).unwrap().goal, None);
    let again = engine.end(&id("new"), EndReason::Branched).unwrap_err();
    assert!(again.to_string().contains("has ended (reset)"), "{again}");
    assert!(engine.branch(&id("left"), None, None).is_err());
    request(&engine, "new", &body, &terms("fanfold", 9_000));
    assert_eq!(why("new"), None);
    let ended = Retention { before: Millis(i64::MAX), source: None, only_ended: true };
    let mut gone = engine.prune(&ended).unwrap().sessions;
    gone.sort();
    assert_eq!(gone, [id("helps"), id("left")]);
}

#[test]
fn the_beginning_of_an_id_is_no_name_to_keep_something_under() {
    let engine = engine();
    request(&engine, "feature-login", &chat(&long_chat(3)), &terms("fanfold", 9_000));
    engine.set_title(&id("feature-login"), "Login").unwrap();
    let kept = |name: &str| engine.to_go_on_with(name).map(|row| row.map(|row| row.id.0));
    for name in ["feature-login", "Login", "1"] {
        assert_eq!(kept(name).unwrap().as_deref(), Some("feature-login"), "{name}");
    }
    assert_eq!(kept("feature-logout").unwrap(), None);
    let error = kept("feature").unwrap_err();
    assert!(error.to_string().contains("feature-login"), "{error}");
}

#[test]
fn a_body_that_has_nothing_of_a_session_is_told_from_its_edits() {
    let engine = engine();
    let messages = long_chat(30);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    let is_related = |messages: &[Value]| {
        let (conversation, _) = Conversation::decode(chat(messages), None).unwrap();
        engine.is_related(&id("s"), &conversation).unwrap()
    };
    assert_eq!(messages[0]["role"], "system");
    let other = [messages[0].clone(), user("What is the capital of France?")];
    assert!(!is_related(&other), "the instructions alone are nothing in common");
    assert!(!is_related(&[]));
    assert!(is_related(&messages) && is_related(&messages[..2]));
    let instructed = [&[json!({ "role": "system", "content": "new" })], &messages[1..]].concat();
    assert!(is_related(&instructed), "other instructions, the same conversation");
    let cut = [&[user("What was said before.")], &messages[40..]].concat();
    assert!(is_related(&cut), "the beginning was cut off");
    engine.rewind(&id("s"), Back::To(0)).unwrap();
    assert!(is_related(&other), "an empty one takes any");
}
