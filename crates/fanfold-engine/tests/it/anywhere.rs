//! Handles whose session nobody named, and how sessions stand.

use fanfold_core::{Extent, Handle};
use fanfold_engine::{Back, Engine, FoldOutcome, FoldRecord, OpError, SessionEvent, Sought};
use serde_json::json;

use crate::setting::{chat, engine, id, long_chat, request, terms};

fn seek(engine: &Engine, handle: &str) -> Sought {
    let handle: Handle = handle.parse().unwrap();
    engine.recall_anywhere(handle, &Extent::Whole, None, &|| false).unwrap()
}

fn folded(engine: &Engine, session: &str, n_steps: usize) -> Vec<String> {
    let answer = request(engine, session, &chat(&long_chat(n_steps)), &terms("fanfold", 400));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)));
    engine.handles(&id(session)).unwrap()
}

#[test]
fn a_handle_opens_without_its_session() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    request(&engine, "new", &chat(&long_chat(1)), &terms("fanfold", 9_000));
    for handle in &handles {
        let found = seek(&engine, handle).found.unwrap();
        let named = engine.recall(&id("old"), handle.parse().unwrap(), &Extent::Whole).unwrap();
        assert_eq!((found.session, found.content, found.otherwise_in), (id("old"), named, None));
    }
    let sought = seek(&engine, "000000");
    assert!(sought.found.is_none() && sought.is_all);
    assert_eq!(sought.n_sessions, 2);
}

#[test]
fn looking_ends_when_it_is_told_to() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    let handle: Handle = handles[0].parse().unwrap();
    let sought = engine.recall_anywhere(handle, &Extent::Whole, None, &|| true).unwrap();
    assert!(sought.found.is_none() && !sought.is_all);
}

#[test]
fn a_fork_whose_parent_went_has_its_handles() {
    let engine = engine();
    let handles = folded(&engine, "old", 30);
    let fork = engine.fork(&id("old"), None, None).unwrap();
    let wanted = engine.recall(&fork, handles[0].parse().unwrap(), &Extent::Whole).unwrap();
    engine.delete(&id("old")).unwrap();
    let found = seek(&engine, &handles[0]).found.unwrap();
    assert_eq!((found.session, found.content), (fork, wanted));
}

#[test]
fn another_meaning_of_a_handle_is_told() {
    let engine = engine();
    let handles = folded(&engine, "one", 30);
    request(&engine, "two", &chat(&long_chat(2)), &terms("fanfold", 9_000));
    // Six digits are few: two sessions may give the same ones to different originals.
    let tip = engine.row(&id("two")).unwrap().tip.unwrap().to_string();
    let words = json!(["words", [], "something else"]);
    let print = blake3::hash(b"something else").to_string()[..32].to_owned();
    let fold = FoldRecord {
        tip,
        frame: String::new(),
        format: "chat".into(),
        n_folds: 1,
        tokens: (2, 1),
        folded: Vec::new(),
        handles: vec![(handles[0].clone(), words, print)],
    };
    engine.happened(&id("two"), &SessionEvent::Fold(fold)).unwrap();
    let found = seek(&engine, &handles[0]).found.unwrap();
    assert_eq!((found.session, found.content.as_str()), (id("two"), "something else"));
    assert_eq!(found.otherwise_in, Some(id("one")));
    // Whoever is named first is asked first.
    let handle: Handle = handles[0].parse().unwrap();
    let first = engine.recall_anywhere(handle, &Extent::Whole, Some(&id("one")), &|| false).unwrap();
    let found = first.found.unwrap();
    assert_eq!((found.session, found.otherwise_in), (id("one"), Some(id("two"))));
}

#[test]
fn a_session_stands_where_its_notes_say() {
    let engine = engine();
    folded(&engine, "s", 30);
    engine.pin(&id("s"), 3, true).unwrap();
    engine.pin(&id("s"), 5, true).unwrap();
    engine.pin(&id("s"), 3, false).unwrap();
    let standing = engine.standing(&id("s")).unwrap();
    assert_eq!((standing.window, standing.n_requests), (Some((400, 0)), 1));
    assert!(standing.tokens.is_some_and(|tokens| tokens > 0 && tokens <= 400), "{:?}", standing.tokens);
    assert!(standing.n_folds > 0 && standing.n_handles > 0);
    let (before, after) = standing.last_fold.unwrap();
    assert!(after < before);
    assert_eq!(standing.pins, [5]);
    // What was noted behind messages that were rewound no longer holds.
    engine.rewind(&id("s"), Back::To(4)).unwrap();
    let standing = engine.standing(&id("s")).unwrap();
    assert_eq!((standing.n_folds, standing.pins), (0, Vec::new()));
    engine.happened(&id("s"), &SessionEvent::Refused { limit: Some(300) }).unwrap();
    assert_eq!(engine.standing(&id("s")).unwrap().window, Some((300, 0)), "what the provider takes counts");
    assert!(matches!(engine.standing(&id("nobody")), Err(OpError::Store(_))));
}
