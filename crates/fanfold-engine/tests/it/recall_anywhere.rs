//! Recalls without a session id, and the status of sessions.

use fanfold_core::{Extent, Handle};
use fanfold_engine::{
    FoldOutcome, FoldRecord, HandleSearch, OpError, RewindTarget, SessionEngine, SessionEvent,
    nearest_handles,
};
use serde_json::json;

use crate::setup::{chat, engine, id, long_chat, request, terms};

fn search(engine: &SessionEngine, handle: &str) -> HandleSearch {
    let handle: Handle = handle.parse().unwrap();
    engine.recall_anywhere(handle, &Extent::Whole, None, &|| false).unwrap()
}

fn folded(engine: &SessionEngine, session: &str, n_steps: usize) -> Vec<String> {
    let answer = request(engine, session, &chat(&long_chat(n_steps)), &terms("fanfold", 400));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)));
    engine.handles(&id(session)).unwrap()
}

#[test]
fn a_handle_is_recalled_without_its_session() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    request(&engine, "new", &chat(&long_chat(1)), &terms("fanfold", 9_000));
    for handle in &handles {
        let found = search(&engine, handle).found.unwrap();
        let named = engine.recall(&id("old"), handle.parse().unwrap(), &Extent::Whole).unwrap();
        assert_eq!((found.session, found.content, found.conflicting_session), (id("old"), named, None));
    }
    let missing = search(&engine, "000000");
    assert!(missing.found.is_none() && missing.is_complete);
    assert_eq!(missing.n_sessions, 2);
}

#[test]
fn folded_lines_are_found_without_a_handle() {
    let engine = engine();
    folded(&engine, "old", 30);
    let found = engine.search_folded(&id("old"), "E").unwrap();
    assert!(found.starts_with('#'), "{found}");
    let handle: Handle = found.split_once(' ').unwrap().0.parse().unwrap();
    assert!(engine.recall(&id("old"), handle, &Extent::Whole).is_ok(), "{found}");
    assert_eq!(engine.search_folded(&id("old"), "no such words").unwrap(), "");
    request(&engine, "new", &chat(&long_chat(1)), &terms("fanfold", 9_000));
    assert_eq!(engine.search_folded(&id("new"), "E").unwrap(), "", "nothing is folded");
}

#[test]
fn only_similar_hashes_are_suggested() {
    let known = ["#12", "#29", "291000", "290000", "119227"].map(str::to_owned);
    let near = |handle: &str| nearest_handles(handle.parse().unwrap(), known.clone());
    assert_eq!(near("291227"), ["291000", "290000"]);
    assert_eq!(near("#12"), [""; 0]);
    assert_eq!(near("777777"), [""; 0]);
}

#[test]
fn the_search_stops_on_request() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    let handle: Handle = handles[0].parse().unwrap();
    let search = engine.recall_anywhere(handle, &Extent::Whole, None, &|| true).unwrap();
    assert!(search.found.is_none() && !search.is_complete);
}

#[test]
fn a_fork_of_a_deleted_session_has_its_handles() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    let fork = engine.fork(&id("old"), None, None).unwrap();
    let expected = engine.recall(&fork, handles[0].parse().unwrap(), &Extent::Whole).unwrap();
    engine.delete(&id("old")).unwrap();
    let found = search(&engine, &handles[0]).found.unwrap();
    assert_eq!((found.session, found.content), (fork, expected));
}

#[test]
fn a_conflicting_handle_of_another_session_is_reported() {
    let engine = engine();
    for session in ["one", "two"] {
        request(&engine, session, &chat(&long_chat(2)), &terms("fanfold", 9_000));
        // Handles of earlier versions have six digits, so two sessions may use one for different originals.
        let words = format!("the words of {session}");
        let fold = FoldRecord {
            tip: engine.row(&id(session)).unwrap().tip.unwrap().to_string(),
            frame: String::new(),
            format: "chat".into(),
            n_folds: 1,
            tokens: (2, 1),
            folded: Vec::new(),
            handles: vec![(
                "123456".to_owned(),
                json!(["words", [], words]),
                blake3::hash(words.as_bytes()).to_string()[..32].to_owned(),
            )],
        };
        engine.record_note(&id(session), &SessionEvent::Fold(fold)).unwrap();
    }
    let found = search(&engine, "123456").found.unwrap();
    assert_eq!((found.session, found.content.as_str()), (id("two"), "the words of two"));
    assert_eq!(found.conflicting_session, Some(id("one")));
    // The preferred session is searched first.
    let handle: Handle = "123456".parse().unwrap();
    let first = engine.recall_anywhere(handle, &Extent::Whole, Some(&id("one")), &|| false).unwrap();
    let found = first.found.unwrap();
    assert_eq!((found.session, found.conflicting_session), (id("one"), Some(id("two"))));
}

#[test]
fn the_status_of_a_session_comes_from_its_log() {
    let engine = engine();
    folded(&engine, "s", 30);
    engine.pin(&id("s"), 3, true).unwrap();
    engine.pin(&id("s"), 5, true).unwrap();
    engine.pin(&id("s"), 3, false).unwrap();
    let overview = engine.session_overview(&id("s")).unwrap();
    assert_eq!((overview.window, overview.n_requests), (Some((400, 0)), 1));
    assert!(overview.tokens.is_some_and(|tokens| tokens > 0 && tokens <= 400), "{:?}", overview.tokens);
    assert!(overview.n_folds > 0 && overview.n_handles > 0);
    let (before, after) = overview.last_fold.unwrap();
    assert!(after < before);
    assert_eq!(overview.pins, [5]);
    // Events after rewound messages do not count.
    engine.rewind(&id("s"), RewindTarget::Length(4)).unwrap();
    let overview = engine.session_overview(&id("s")).unwrap();
    assert_eq!((overview.n_folds, overview.pins), (0, Vec::new()));
    engine.record_note(&id("s"), &SessionEvent::Refused { limit: Some(300) }).unwrap();
    assert_eq!(engine.session_overview(&id("s")).unwrap().window, Some((300, 0)), "the provider's limit");
    assert!(matches!(engine.session_overview(&id("nobody")), Err(OpError::Store(_))));
}
