//! Stores of earlier schema versions are migrated. Each test undoes the later steps to get an old store.

use fanfold_store::{OpenMode, SqliteStore, Store, StoreError, open};

use crate::cluster;
use crate::shorthand::*;

/// Checks that a migrated store has two messages, accepts a third and finds them.
fn check_migrated(store: &dyn Store) {
    write(store, vec![append("a", &["three"])]);
    assert_eq!(contents(store, "a"), "one two three");
    for word in ["one", "three"] {
        assert_eq!(n_found(store, word), 1, "{word}");
    }
}

#[test]
fn sqlite_store_of_version_1_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    write(&SqliteStore::open(&path).unwrap(), vec![create("a"), append("a", &["one", "two"])]);
    let old = rusqlite::Connection::open(&path).unwrap();
    let first = "DROP TABLE texts; DROP TABLE indexed; DROP TABLE parts; DROP TABLE vocabulary; \
         DELETE FROM marks WHERE name = 'indexed'; PRAGMA user_version = 1";
    old.execute_batch(first).unwrap();
    drop(old);
    assert!(matches!(SqliteStore::open_read_only(&path), Err(StoreError::TooOld { found: 1, .. })));
    check_migrated(&SqliteStore::open(&path).unwrap());
}

#[test]
fn postgres_store_of_version_1_is_migrated() {
    let Some(database) = cluster::database() else { return };
    write(&*cluster::open(&database), vec![create("a"), append("a", &["one", "two"])]);
    let mut client = ::postgres::Client::connect(&database, ::postgres::NoTls).unwrap();
    let first = "SET search_path TO fanfold; DROP TRIGGER nodes_are_pending ON nodes; \
         DROP FUNCTION note_pending; DROP TABLE texts, vocabulary, pending; \
         UPDATE marks SET value = 1 WHERE name = 'version'";
    client.batch_execute(first).unwrap();
    assert!(matches!(open(&database, OpenMode::Read), Err(StoreError::TooOld { found: 1, .. })));
    check_migrated(&*cluster::open(&database));
}
