//! Stores on a full disk and on a read-only one: they are read, and written again when there is space.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{CheckMode, SessionFilter, SqliteStore, Store, StoreError};
use tempfile::TempDir;

use crate::shorthand::*;

/// A small file system in memory, unmounted on drop.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a disk; `None`, with a message, where this process may not.
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", "size=2m", "tmpfs"], folder.path());
        if !mounted {
            eprintln!("skipped: no file system can be mounted");
        }
        mounted.then_some(SmallDisk { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fills the disk to the last byte.
    fn fill(&self) {
        let mut file = fs::File::create(self.path("filler")).unwrap();
        for size in [4096, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.path("filler")).unwrap();
    }

    fn make_read_only(&self) {
        assert!(mount(&["-o", "remount,ro"], self.folder.path()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

fn mount(arguments: &[&str], folder: &Path) -> bool {
    let status =
        Command::new("mount").args(arguments).arg(folder).stderr(std::process::Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

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
