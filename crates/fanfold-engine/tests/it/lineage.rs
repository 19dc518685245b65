//! Forks, rewinds, rotations, and deletion of sessions.

use fanfold_core::Extent;
use fanfold_engine::{FoldOutcome, Retention, RewindTarget, SessionEngine};
use fanfold_store::{EndReason, Millis, NodeId, SessionFilter, SessionId};
use fanfold_wire::Conversation;
use serde_json::{Value, json};

use crate::setup::{chat, engine, id, long_chat, request, terms, terms_of};

fn tip(engine: &SessionEngine, session: &SessionId) -> Option<NodeId> {
    engine.row(session).unwrap().tip
}

fn user(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

#[test]
fn a_different_body_moves_the_tip_and_loses_no_messages() {
    let engine = engine();
    let terms = terms("fanfold", 9_000);
    let mut messages = long_chat(4);
    request(&engine, "s", &chat(&messages), &terms);
    let long = tip(&engine, &id("s"));
    // The client truncates its history and continues differently.
    messages.truncate(4);
    messages.push(user("No, do it otherwise."));
    let answer = request(&engine, "s", &chat(&messages), &terms);
    assert_eq!((answer.n_new, answer.n_dropped, engine.row(&id("s")).unwrap().n_messages), (1, 6, 5));
    let other = tip(&engine, &id("s"));
    assert_ne!(long, other);
    // A shorter body is a rewind.
    assert_eq!(request(&engine, "s", &chat(&messages[..3]), &terms).n_dropped, 2);
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, 3);
    assert_eq!(engine.redo(&id("s")).unwrap().n_after, 5);
    assert_eq!(tip(&engine, &id("s")), other);
    assert_eq!(engine.redo(&id("s")).unwrap().n_after, 10);
    assert_eq!(tip(&engine, &id("s")), long);
    assert!(engine.redo(&id("s")).is_err());
    // Garbage collection deletes none of the abandoned messages, because events refer to them.
    assert_eq!(engine.store().collect_garbage().unwrap(), 0);
}

#[test]
fn a_rewound_session_is_folded_like_one_that_was_never_longer() {
    let (straight, winding) = (engine(), engine());
    let terms = terms("fanfold", 400);
    let messages = long_chat(30);
    let (early, late) = (chat(&messages[..30]), chat(&messages));
    request(&winding, "s", &early, &terms);
    request(&winding, "s", &late, &terms);
    rewind(&winding, 30);
    let expected = request(&straight, "s", &early, &terms).body;
    assert_eq!(request(&winding, "s", &early, &terms).body, expected);
    for number in 1..=3 {
        assert!(winding.rebuild(&id("s"), number, &terms_of).unwrap().is_same, "request {number}");
    }
}

fn rewind(engine: &SessionEngine, length: u32) {
    assert_eq!(engine.rewind(&id("s"), RewindTarget::Length(length)).unwrap().n_after, length);
}

#[test]
fn rewind_goes_back_by_turns_and_checkpoints_are_found_by_name() {
    let engine = engine();
    let messages = long_chat(20);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    engine.checkpoint(&id("s"), "before  the\tchange").unwrap();
    let all = messages.len() as u32;
    let step = engine.rewind(&id("s"), RewindTarget::TurnsBack(2)).unwrap();
    assert_eq!((step.n_before, messages[step.n_after as usize]["role"].as_str()), (all, Some("user")));
    assert_eq!(engine.restore(&id("s"), "before the change").unwrap().n_after, all);
    let error = engine.restore(&id("s"), "nowhere").unwrap_err();
    assert_eq!(error.hint(), "its checkpoints are before the change");
    assert!(engine.rewind(&id("s"), RewindTarget::TurnsBack(99)).is_err());
    assert!(engine.rewind(&id("s"), RewindTarget::Length(all + 1)).is_err());
    assert!(engine.pin(&id("s"), all, true).is_err());
}

#[test]
fn every_fold_has_a_checkpoint_before_it() {
    let engine = engine();
    let messages = long_chat(40);
    for n in [10, 40, messages.len()] {
        request(&engine, "s", &chat(&messages[..n]), &terms("fanfold", 400));
    }
    let checkpoints = engine.checkpoints(&id("s")).unwrap();
    assert!(
        checkpoints.len() >= 2 && checkpoints.iter().all(|checkpoint| checkpoint.is_auto),
        "{checkpoints:?}"
    );
    engine.restore(&id("s"), &checkpoints[0].name).unwrap();
    assert_eq!(engine.row(&id("s")).unwrap().n_messages, checkpoints[0].n_messages);
}

#[test]
fn a_fork_continues_with_the_sent_view() {
    check_fork(&engine());
}

/// Checks forks, and forks of forks, before and after their parents are deleted.
pub(crate) fn check_fork(engine: &SessionEngine) {
    let terms = terms("fanfold", 400);
    let mut messages = long_chat(30);
    let body = chat(&messages);
    let sent = request(engine, "s", &body, &terms);
    engine.pin(&id("s"), 3, true).unwrap();
    let fork = engine.fork(&id("s"), None, Some("Another way")).unwrap();
    assert_eq!(engine.store().size().unwrap().n_nodes, messages.len() as u64);
    messages.push(user("And now?"));
    let from_parent = request(engine, "s", &chat(&messages), &terms);
    let from_fork = request(engine, &fork.0, &chat(&messages), &terms);
    assert_eq!(from_fork.body, from_parent.body);
    assert_ne!(sent.body, from_parent.body);
    assert!(from_fork.body.contains("stage 0 line 3"), "the fork inherits the pin");
    assert!(engine.rebuild(&fork, 1, &terms_of).unwrap().is_same);
    // The fork is complete without its parent.
    let handles = engine.handles(&fork).unwrap();
    assert!(handles.len() > 3);
    engine.delete(&id("s")).unwrap();
    engine.clear_cache();
    for handle in handles {
        engine.recall(&fork, handle.parse().unwrap(), &Extent::Whole).unwrap();
    }
    assert_eq!(engine.check_handles(&fork).unwrap().1, Vec::<String>::new());
    assert_eq!(request(engine, &fork.0, &chat(&messages), &terms).body, from_fork.body);
    assert!(engine.rebuild(&fork, 1, &terms_of).unwrap().is_same);
    // So is a fork of the fork.
    let second = engine.fork(&fork, Some(40), None).unwrap();
    assert_eq!(engine.row(&second).unwrap().n_messages, 40);
    let before = request(engine, &second.0, &chat(&messages[..40]), &terms).body;
    engine.delete(&fork).unwrap();
    engine.clear_cache();
    assert_eq!(request(engine, &second.0, &chat(&messages[..40]), &terms).body, before);
    assert_eq!(engine.check_handles(&second).unwrap().1, Vec::<String>::new());
}

/// Folds after an edit reuse folds from before it. Their handles must be recorded again, because a fork of the new
/// branch does not inherit the events of the old one.
#[test]
fn a_fork_of_an_edited_branch_has_all_its_handles() {
    let messages = long_chat(60);
    let terms = terms("fanfold", 400);
    for (n_first, n_second) in [(60, 60), (60, 90), (40, messages.len())] {
        let engine = engine();
        let first = [&messages[..n_first], &[user("This way.")]].concat();
        request(&engine, "s", &chat(&first), &terms);
        let second = [&messages[..n_second], &[user("No, that way.")]].concat();
        assert!(matches!(request(&engine, "s", &chat(&second), &terms).fold, FoldOutcome::Folded(_)));
        let in_view = engine
            .with_cached(&id("s"), |followed| followed.session.view().unwrap().handles.clone())
            .unwrap();
        let fork = engine.fork(&id("s"), None, None).unwrap();
        let (n_handles, broken) = engine.check_handles(&fork).unwrap();
        assert_eq!((n_handles > 0, broken), (true, Vec::new()), "{n_first} and {n_second} messages");
        let recorded = engine.handles(&fork).unwrap();
        let missing: Vec<_> =
            in_view.iter().filter(|handle| !recorded.contains(&handle.to_string())).collect();
        assert!(missing.is_empty(), "{n_first} and {n_second} messages: {missing:?}");
    }
}

#[test]
fn rotations_have_numbered_titles_and_continue_in_the_last_one() {
    let engine = engine();
    request(&engine, "s", &chat(&long_chat(3)), &terms("fanfold", 9_000));
    engine.set_title(&id("s"), "Task").unwrap();
    engine.set_goal(&id("s"), "ship it").unwrap();
    let second = engine.rotate(&id("s")).unwrap();
    let third = engine.rotate(&second).unwrap();
    let titles: Vec<_> =
        [id("s"), second.clone(), third.clone()].iter().map(|id| engine.row(id).unwrap().title).collect();
    assert_eq!(titles, ["Task", "Task #2", "Task #3"].map(|title| Some(title.to_owned())));
    assert_eq!(engine.latest_rotation(&id("s")).unwrap().id, third);
    assert_eq!(engine.row(&third).unwrap().goal.as_deref(), Some("ship it"));
    assert_eq!(engine.row(&third).unwrap().root, id("s"));
    assert!(engine.rotate(&second).unwrap_err().to_string().contains("compression"));
    let fork = engine.fork(&third, Some(2), None).unwrap();
    assert_eq!(engine.latest_rotation(&id("s")).unwrap().id, third, "a fork is not a continuation");
    assert_eq!(engine.latest_rotation(&fork).unwrap().id, fork);
}

#[test]
fn sessions_are_found_by_prefix_number_and_title() {
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
fn prune_deletes_old_sessions_and_keeps_shared_messages() {
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
fn a_session_reopened_after_its_rotation_is_the_latest() {
    let engine = engine();
    let (terms, messages) = (terms("fanfold", 9_000), long_chat(3));
    request(&engine, "s", &chat(&messages[..4]), &terms);
    let second = engine.rotate(&id("s")).unwrap();
    assert_eq!(engine.latest_rotation(&id("s")).unwrap().id, second);
    // Both have the same update time, and the open one comes first.
    let ids = |rows: Vec<fanfold_store::SessionRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(engine.sessions(&SessionFilter::default()).unwrap()), [second.clone(), id("s")]);
    let first = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    assert_eq!(ids(engine.sessions(&first).unwrap()), std::slice::from_ref(&second));
    assert_eq!(engine.find("1").unwrap().id, second);
    request(&engine, "s", &chat(&messages), &terms);
    assert!(engine.row(&id("s")).unwrap().ended.is_none());
    assert_eq!(engine.latest_rotation(&id("s")).unwrap().id, id("s"));
    assert_eq!(engine.latest_rotation(&second).unwrap().id, second);
}

#[test]
fn an_ended_session_has_a_reason_and_is_reopened_by_a_request() {
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
    let mut deleted = engine.prune(&ended).unwrap().sessions;
    deleted.sort();
    assert_eq!(deleted, [id("helps"), id("left")]);
}

#[test]
fn an_id_prefix_does_not_select_a_session_to_continue() {
    let engine = engine();
    request(&engine, "feature-login", &chat(&long_chat(3)), &terms("fanfold", 9_000));
    engine.set_title(&id("feature-login"), "Login").unwrap();
    let found = |name: &str| engine.find_to_continue(name).map(|row| row.map(|row| row.id.0));
    for name in ["feature-login", "Login", "1"] {
        assert_eq!(found(name).unwrap().as_deref(), Some("feature-login"), "{name}");
    }
    assert_eq!(found("feature-logout").unwrap(), None);
    let error = found("feature").unwrap_err();
    assert!(error.to_string().contains("feature-login"), "{error}");
}

#[test]
fn an_unrelated_body_is_distinguished_from_an_edited_one() {
    let engine = engine();
    let messages = long_chat(30);
    request(&engine, "s", &chat(&messages), &terms("fanfold", 9_000));
    let is_related = |messages: &[Value]| {
        let (conversation, _) = Conversation::decode(chat(messages), None).unwrap();
        engine.is_related(&id("s"), &conversation).unwrap()
    };
    assert_eq!(messages[0]["role"], "system");
    let other = [messages[0].clone(), user("What is the capital of France?")];
    assert!(!is_related(&other), "equal instructions alone do not relate two conversations");
    assert!(!is_related(&[]));
    assert!(is_related(&messages) && is_related(&messages[..2]));
    let instructed = [&[json!({ "role": "system", "content": "new" })], &messages[1..]].concat();
    assert!(is_related(&instructed), "other instructions, the same conversation");
    let truncated = [&[user("What was said before.")], &messages[40..]].concat();
    assert!(is_related(&truncated), "the beginning was cut off");
    engine.rewind(&id("s"), RewindTarget::Length(0)).unwrap();
    assert!(is_related(&other), "an empty session is related to any body");
}
