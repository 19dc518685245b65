//! Tests of the SQLite store only.

use std::fs;
use std::time::Duration;

use fanfold_store::{BusyPolicy, OpenMode, SessionFilter, SqliteStore, Store, StoreError, open};

use crate::shorthand::*;

fn message(result: Result<impl Sized, StoreError>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn store_can_be_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/x.db");
    let address = format!("sqlite:{}", path.display());
    write(&*open(&address, OpenMode::Write).unwrap(), vec![create("a"), append("a", &["one", "two"])]);
    assert_eq!(contents(&*open(path.to_str().unwrap(), OpenMode::Write).unwrap(), "a"), "one two");
    assert_eq!(contents(&*open(&address, OpenMode::Read).unwrap(), "a"), "one two");
}

#[test]
fn closing_leaves_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, vec![create("a"), append("a", &["one"])]);
    assert_eq!(contents(&store, "a"), "one");
    drop(store);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn store_in_a_folder_has_a_default_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(store.path(), folder.path().join("sessions.db"));
}

#[cfg(unix)]
#[test]
fn files_are_accessible_to_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("in/x.db")).unwrap();
    write(&store, vec![create("a")]);
    for file in ["in/x.db", "in/x.db-wal"] {
        assert_eq!(
            fs::metadata(folder.path().join(file)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{file}"
        );
    }
    assert_eq!(fs::metadata(folder.path().join("in")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn invalid_addresses_are_rejected() {
    let hint = "hint: a file, a folder, sqlite:FILE, postgres://USER@HOST/DATABASE or memory:";
    for address in ["", "mysql://x/y", "sqlite:"] {
        assert!(message(open(address, OpenMode::Write)).ends_with(hint), "{address}");
    }
    assert!(open("memory:", OpenMode::Write).is_ok());
}

#[test]
fn newer_store_is_not_modified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(SqliteStore::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::TooNew { found: 99, .. })));
    assert!(matches!(SqliteStore::open_read_only(&path), Err(StoreError::TooNew { found: 99, .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn older_store_cannot_be_read_before_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(SqliteStore::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 0).unwrap();
    assert!(matches!(SqliteStore::open_read_only(&path), Err(StoreError::TooOld { found: 0, .. })));
}

#[test]
fn foreign_files_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (other, text) = (folder.path().join("other.db"), folder.path().join("text"));
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    for opened in [SqliteStore::open(&other), SqliteStore::open_read_only(&other)] {
        let message = message(opened);
        assert!(
            message.starts_with("it is another program's database\n\nhint: use a separate file"),
            "{message}"
        );
    }
    let empty = folder.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    let message_of_empty = message(SqliteStore::open_read_only(&empty));
    assert!(message_of_empty.starts_with("it does not contain a fanfold store yet"), "{message_of_empty}");
    drop(SqliteStore::open(&empty).unwrap());
    SqliteStore::open_read_only(&empty).unwrap();
    fs::write(&text, "no database, and long enough to be seen as none".repeat(99)).unwrap();
    assert!(matches!(SqliteStore::open(&text), Err(StoreError::Corrupt(_))));
    assert!(message(SqliteStore::open_read_only(&folder.path().join("missing"))).contains("unable to open"));
}

#[test]
fn read_only_store_rejects_writes() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, vec![create("a"), append("a", &["one"])]);
    let reader = SqliteStore::open_read_only(folder.path()).unwrap();
    assert!(matches!(write_at(&reader, 2, vec![create("b")]), Err(StoreError::ReadOnly(_))));
    assert!(matches!(reader.collect_garbage(), Err(StoreError::ReadOnly(_))));
    // The reader sees later commits.
    write(&store, vec![append("a", &["two"])]);
    assert_eq!(contents(&reader, "a"), "one two");
}

#[cfg(unix)]
#[test]
fn store_in_a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    write(&SqliteStore::open(folder.path()).unwrap(), vec![create("a"), append("a", &["one"])]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let reader = SqliteStore::open_read_only(folder.path()).unwrap();
    assert_eq!((contents(&reader, "a"), fs::read_dir(folder.path()).unwrap().count()), ("one".into(), 1));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn readers_do_not_wait_for_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, vec![create("a"), append("a", &["one"])]);
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM sessions").unwrap();
    let start = std::time::Instant::now();
    assert_eq!(
        (contents(&store, "a"), store.sessions(&SessionFilter::default()).unwrap().len()),
        ("one".into(), 1)
    );
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
}

#[test]
fn writer_gives_up_after_the_maximum_of_tries() {
    let folder = tempfile::tempdir().unwrap();
    let busy_policy = BusyPolicy { tries: 3, wait: Duration::from_millis(5), pause_ms: 1..3 };
    let store = SqliteStore::open_with(folder.path(), busy_policy).unwrap();
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(write_at(&store, 1, vec![create("a")]), Err(StoreError::Busy { tries: 3 })));
    other.execute_batch("COMMIT").unwrap();
    write(&store, vec![create("a")]);
}

#[test]
fn writer_waits_for_the_write_lock() {
    let folder = tempfile::tempdir().unwrap();
    let busy_policy = BusyPolicy { tries: 15, wait: Duration::from_millis(20), pause_ms: 5..20 };
    let store = SqliteStore::open_with(folder.path(), busy_policy).unwrap();
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&store, vec![create("a")]));
        // Longer than one attempt waits, and shorter than all of them together.
        std::thread::sleep(Duration::from_millis(60));
        other.execute_batch("COMMIT").unwrap();
        writer.join().unwrap();
    });
    assert_eq!(session(&store, "a").n_messages, 0);
}
