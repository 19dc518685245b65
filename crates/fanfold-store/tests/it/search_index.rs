//! Indexes that lag behind or are corrupt: a search finds the same.

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{CheckMode, Op, OpenMode, RepairStatus, SqliteStore, Store};

use crate::shorthand::*;

fn n_found(store: &dyn Store, query: &str) -> usize {
    let find = SearchSpec { query: Query::parse(query), limit: 1_000, ..SearchSpec::default() };
    store.search(&find).unwrap().hits.len()
}

fn count(file: &rusqlite::Connection, text: &str) -> i64 {
    file.query_row(text, [], |row| row.get(0)).unwrap()
}

#[test]
fn read_only_sqlite_store_finds_unindexed_messages() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, vec![create("a"), append("a", &["first one", "first two"])]);
    assert_eq!(n_found(&store, "first"), 2);
    write(&store, vec![append("a", &["then three", "then first"])]);
    let reader = SqliteStore::open_read_only(folder.path()).unwrap();
    let file = rusqlite::Connection::open(store.path()).unwrap();
    for (query, n) in
        [("first", 3), ("then", 2), ("*thre*", 1), ("fir*", 3), ("\"then first\"", 1), ("none", 0)]
    {
        assert_eq!(n_found(&reader, query), n, "{query}");
    }
    assert_eq!(count(&file, "SELECT count(*) FROM indexed"), 2);
    assert_eq!(n_found(&store, "then"), 2);
    assert_eq!(count(&file, "SELECT count(*) FROM indexed"), 4);
    assert_eq!(n_found(&reader, "first"), 3);
}

#[test]
fn read_only_postgres_store_finds_unindexed_messages() {
    let Some(database) = crate::cluster::database() else { return };
    let store = crate::cluster::open(&database);
    write(&*store, vec![create("a"), append("a", &["first one", "then first"])]);
    let reader = fanfold_store::open(&database, OpenMode::Read).unwrap();
    assert_eq!(n_found(&*reader, "first"), 2);
    assert_eq!(n_found(&*reader, "*irs*"), 2);
    assert_eq!(n_found(&*store, "first"), 2);
    assert_eq!(n_found(&*reader, "first"), 2);
}

#[test]
fn garbage_collection_removes_words_from_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, vec![create("a"), append("a", &["hunter2 password", "open password"]), create("b")]);
    write(&store, vec![append("b", &["my password"])]);
    assert_eq!(n_found(&store, "password"), 3);
    write(&store, vec![Op::Delete(id("a"))]);
    assert_eq!(store.collect_garbage().unwrap(), 2);
    let file = rusqlite::Connection::open(store.path()).unwrap();
    let words = |word: &str| count(&file, &format!("SELECT count(*) FROM vocabulary WHERE word = '{word}'"));
    assert_eq!((words("hunter2"), words("open"), words("password")), (0, 0, 1));
    assert_eq!(count(&file, "SELECT count(*) FROM indexed"), 1);
    assert_eq!(count(&file, "SELECT count(*) FROM parts WHERE word LIKE '%unter%'"), 0);
    assert!(store.check(CheckMode::Report).unwrap().is_empty());
}

/// Damages an index with SQL, and checks that the damage is detected and repaired.
fn check_repair(damage: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let messages: Vec<String> = (0..400).map(|i| format!("message word{i}")).collect();
    write(&store, vec![create("a"), append("a", &messages.iter().map(String::as_str).collect::<Vec<_>>())]);
    assert_eq!(n_found(&store, "message"), 400);
    assert!(store.check(CheckMode::Report).unwrap().is_empty());
    let file = rusqlite::Connection::open(store.path()).unwrap();
    file.execute_batch(damage).unwrap();
    drop(file);
    let findings = store.check(CheckMode::Report).unwrap();
    assert!(
        findings.iter().any(|finding| finding.repair == RepairStatus::Possible),
        "{damage}: {findings:?}"
    );
    let repaired = store.check(CheckMode::Repair).unwrap();
    assert!(repaired.iter().all(|finding| finding.repair == RepairStatus::Done), "{damage}: {repaired:?}");
    assert_eq!(store.check(CheckMode::Report).unwrap(), [], "{damage}");
    assert_eq!(n_found(&store, "message"), 400);
    assert_eq!(n_found(&store, "*ord399*"), 1);
}

#[test]
fn check_detects_unindexed_messages() {
    check_repair("DELETE FROM indexed WHERE number = 7");
    check_repair("UPDATE indexed SET lane = 99 WHERE number = 7");
    check_repair("DELETE FROM texts WHERE rowid = 7");
    check_repair("INSERT INTO indexed VALUES (5000, 1, 5000, 1, 1)");
}

#[test]
fn check_detects_a_corrupt_index() {
    check_repair("DELETE FROM texts_data WHERE id > 10 AND id % 3 = 0");
    check_repair("UPDATE parts_data SET block = zeroblob(30) WHERE id > 10");
}

#[test]
fn search_of_a_large_backlog_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let texts: Vec<String> = (0..6_000).map(|i| format!("a number{i}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    write(&SqliteStore::open(&path).unwrap(), vec![create("s"), append("s", &texts)]);
    let find = |store: &dyn Store, query: &str| {
        let spec = SearchSpec { query: Query::parse(query), limit: 1, ..SearchSpec::default() };
        let hits = store.search(&spec).unwrap();
        (hits.hits.len(), hits.is_bounded)
    };
    // A store that is open for reading indexes nothing.
    let reading = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(find(&reading, "number5999"), (1, true));
    assert_eq!(find(&reading, "number1000"), (0, true));
    drop(reading);
    let store = SqliteStore::open(&path).unwrap();
    while store
        .search(&SearchSpec { query: Query::parse("number1000"), limit: 1, ..SearchSpec::default() })
        .unwrap()
        .is_bounded
    {}
    assert_eq!(find(&store, "number1000"), (1, false));
}
