//! Sessions that continue in memory while their database fails.

use std::sync::Arc;

use fanfold_store::{FallbackStore, Millis, SqliteStore, Store, StoreError};

use crate::shorthand::*;

#[test]
fn errors_are_returned_until_a_session_is_held() {
    let store = FallbackStore::new(Err(&StoreError::DiskFull));
    assert!(matches!(write_at(&store, 1, vec![create("a")]), Err(StoreError::Unavailable(_))));
    assert!(!store.hold(&id("a"), &StoreError::Conflict(id("a")), Millis(1), || None));
    assert!(store.outage().is_none() && store.restore().is_none());
    assert!(store.hold(&id("a"), &StoreError::DiskFull, Millis(1), || None));
    assert!(!store.hold(&id("a"), &StoreError::DiskFull, Millis(1), || None), "it is in memory already");
    write(&store, vec![create("a"), append("a", &["one", "two"])]);
    assert_eq!(contents(&store, "a"), "one two");
    let outage = store.outage().unwrap();
    assert!(outage.error.starts_with("no space left") && outage.since == Millis(1), "{outage:?}");
    assert_eq!((outage.n_sessions, outage.n_messages), (1, 2));
}

#[test]
fn waiting_sessions_are_written_to_a_database_that_is_opened_later() {
    let store = FallbackStore::new(Err(&StoreError::NoStore));
    store.hold(&id("a"), &StoreError::NoStore, Millis(1), || None);
    write_at(&store, 5, vec![create("a"), append("a", &["one"]), note("a", "first", "{}")]).unwrap();
    write_at(&store, 9, vec![append("a", &["two"]), note("a", "second", "{}")]).unwrap();
    assert!(store.restore().unwrap().error.is_some());
    let database = Arc::new(SqliteStore::in_memory());
    store.replace_database(Ok(Arc::clone(&database) as Arc<dyn Store>));
    let restored = store.restore().unwrap();
    assert_eq!((restored.sessions, restored.n_messages), (vec![id("a")], 2));
    assert!(store.outage().is_none() && !store.is_held(&id("a")));
    assert_eq!(contents(&*database, "a"), "one two");
    let events = database.events(&id("a"), 0).unwrap();
    assert_eq!(events.iter().map(|event| event.at).collect::<Vec<_>>(), [Millis(5), Millis(9)]);
    assert_ne!(events[0].tip, events[1].tip);
}

#[test]
fn memory_of_waiting_sessions_is_bounded() {
    let store = FallbackStore::new(Err(&StoreError::DiskFull));
    let large = "x".repeat(30 << 20);
    for name in ["a", "b", "c"] {
        store.hold(&id(name), &StoreError::DiskFull, Millis(1), || None);
        write(&store, vec![create(name), append(name, &[name, &large])]);
    }
    assert_eq!(store.take_dropped(), [id("a")]);
    assert!(!store.is_held(&id("a")) && store.is_held(&id("c")));
    let outage = store.outage().unwrap();
    assert_eq!((outage.n_sessions, outage.n_dropped, outage.n_messages), (2, 1, 4));
}
