//! Stores on a full disk and on a read-only one: they are read, and written again when there is space.

use std::fs;
use std::path::{Path, PathBuf};

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{CheckMode, SessionFilter, SqliteStore, Store, StoreError};

use crate::shorthand::*;
use crate::small_disk::SmallDisk;

/// A store as its process leaves it when it ends, or, with a log, when it is killed.
fn write_store(disk: &SmallDisk, has_log: bool) -> PathBuf {
    let file = disk.path("s.db");
    let elsewhere = tempfile::tempdir().unwrap();
    let written = if has_log { elsewhere.path().join("s.db") } else { file.clone() };
    let store = SqliteStore::open(&written).unwrap();
    write(&store, vec![create("a"), append("a", &["one", "two"])]);
    write(&store, vec![create("b"), append("b", &["three"])]);
    if has_log {
        for ending in ["", "-wal"] {
            let name = |path: &Path| format!("{}{ending}", path.display());
            fs::copy(name(&written), name(&file)).unwrap();
        }
    }
    file
}

fn check_reads(file: &Path) {
    let store = SqliteStore::open_read_only(file).unwrap();
    assert_eq!(store.sessions(&SessionFilter::default()).unwrap().len(), 2);
    assert_eq!((contents(&store, "a"), contents(&store, "b")), ("one two".into(), "three".into()));
    let spec = SearchSpec { query: Query::parse("three"), limit: 5, ..SearchSpec::default() };
    assert_eq!(store.search(&spec).unwrap().hits.len(), 1);
    assert!(store.check(CheckMode::Report).unwrap().is_empty());
    assert!(matches!(write_at(&store, 2, vec![create("c")]), Err(StoreError::ReadOnly(_))));
}

#[test]
fn sessions_of_a_store_on_a_full_disk_are_read() {
    for has_log in [false, true] {
        let Some(disk) = SmallDisk::mount() else { return };
        let file = write_store(&disk, has_log);
        disk.fill();
        let before = fs::read(&file).unwrap();
        check_reads(&file);
        assert_eq!(fs::read(&file).unwrap(), before, "log: {has_log}");
        assert!(matches!(SqliteStore::open(&file), Err(StoreError::DiskFull)), "log: {has_log}");
        disk.free();
        let store = SqliteStore::open(&file).unwrap();
        write(&store, vec![append("a", &["four"])]);
        assert_eq!((contents(&store, "a"), contents(&store, "b")), ("one two four".into(), "three".into()));
    }
}

#[test]
fn sessions_of_a_read_only_store_are_read() {
    let Some(disk) = SmallDisk::mount() else { return };
    let file = write_store(&disk, false);
    disk.make_read_only();
    check_reads(&file);
}

#[test]
fn a_log_on_a_read_only_disk_is_named_instead_of_left_out() {
    let Some(disk) = SmallDisk::mount() else { return };
    let file = write_store(&disk, true);
    disk.make_read_only();
    let error = SqliteStore::open_read_only(&file).unwrap_err().to_string();
    assert!(error.contains("s.db-wal") && error.contains("hint: copy both files"), "{error}");
    let copy = tempfile::tempdir().unwrap();
    for name in ["s.db", "s.db-wal"] {
        fs::copy(disk.path(name), copy.path().join(name)).unwrap();
    }
    check_reads(&copy.path().join("s.db"));
}

#[test]
fn a_store_that_is_open_is_read_while_its_disk_is_full() {
    let Some(disk) = SmallDisk::mount() else { return };
    let file = write_store(&disk, false);
    let store = SqliteStore::open(&file).unwrap();
    disk.fill();
    let large = "x".repeat(100_000);
    assert!(matches!(write_at(&store, 2, vec![append("a", &[&large])]), Err(StoreError::DiskFull)));
    assert_eq!((contents(&store, "a"), contents(&store, "b")), ("one two".into(), "three".into()));
    check_reads(&file);
    disk.free();
    write(&store, vec![append("a", &["four"])]);
    assert_eq!(contents(&store, "a"), "one two four");
}
