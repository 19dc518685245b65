//! SQLite files with corrupt pages: derived data is rebuilt, and other losses are reported.

use std::path::Path;

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{CheckMode, Finding, RepairStatus, SqliteStore, Store, StoreError};

use crate::shorthand::*;

const PAGE: usize = 4096;
const N_MESSAGES: usize = 600;

/// Creates a store with some hundred messages, a fork, a title, events, a blob and an index.
fn create_store(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    let messages: Vec<String> =
        (0..N_MESSAGES).map(|i| format!("message word{i} {}", "long ".repeat(30))).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let kept = fanfold_store::BlobId::new(b"kept");
    let named = note("a", "request", &format!("{{\"body\":\"{kept}\"}}"));
    write(
        &store,
        vec![create("a"), append("a", &messages), fanfold_store::Op::PutBlob(b"kept".to_vec()), named],
    );
    let fork = Some(("a", fanfold_store::Relation::Fork));
    write(
        &store,
        vec![create_from("b", fork, tip(&store, "a")), append("b", &["then"]), title("b", "Title")],
    );
    write(&store, vec![create("gone"), append("gone", &["gone"]), fanfold_store::Op::Delete(id("gone"))]);
    store.collect_garbage().unwrap();
    assert_eq!(n_found(&store, "message"), N_MESSAGES);
}

fn n_found(store: &dyn Store, query: &str) -> usize {
    let find = SearchSpec { query: Query::parse(query), limit: 1_000, ..SearchSpec::default() };
    store.search(&find).unwrap().hits.len()
}

/// Returns the tables and indexes with their root pages.
fn roots(path: &Path) -> Vec<(String, usize)> {
    let file = rusqlite::Connection::open(path).unwrap();
    let mut all = file.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 1").unwrap();
    all.query_map([], |row| Ok((row.get(0)?, row.get::<_, u32>(1)? as usize)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn corrupt_page(path: &Path, page: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(page - 1) * PAGE..page * PAGE].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

/// The path of the copy that a repair makes of the corrupt file.
fn backup_path(path: &Path) -> std::path::PathBuf {
    path.with_extension("db.broken")
}

fn assert_complete(store: &dyn Store, case: &str) {
    let chain = store.chain(tip(store, "b").unwrap(), 0..u32::MAX).unwrap();
    assert_eq!(chain.len(), N_MESSAGES + 1, "{case}");
    assert_eq!(&*chain[N_MESSAGES].json, json("then"), "{case}");
    assert_eq!(session(store, "b").title.as_deref(), Some("Title"), "{case}");
    assert_eq!(store.events(&id("a"), 0).unwrap().len(), 1, "{case}");
    assert_eq!(
        store.blob(fanfold_store::BlobId::new(b"kept")).unwrap().as_deref(),
        Some(&b"kept"[..]),
        "{case}"
    );
    assert_eq!(n_found(store, "message"), N_MESSAGES, "{case}");
    assert_eq!(n_found(store, "*ord599*"), 1, "{case}");
    assert_eq!(n_found(store, "gone"), 0, "{case}");
}

#[test]
fn derived_data_is_rebuilt_after_any_corrupt_page() {
    let folder = tempfile::tempdir().unwrap();
    let intact = folder.path().join("intact.db");
    create_store(&intact);
    let roots = roots(&intact);
    assert!(roots.len() > 20, "{roots:?}");
    for (name, page) in roots {
        let path = folder.path().join("x.db");
        std::fs::copy(&intact, &path).unwrap();
        let _ = std::fs::remove_file(backup_path(&path));
        corrupt_page(&path, page);
        let corrupt = std::fs::read(&path).unwrap();
        let found = SqliteStore::open_read_only(&path).unwrap().check(CheckMode::Report).unwrap();
        assert!(!found.is_empty(), "{name}");
        let store = SqliteStore::open(&path).unwrap();
        let repaired = store.check(CheckMode::Repair).unwrap();
        let all_have_status =
            |findings: &[Finding], status| findings.iter().all(|finding| finding.repair == status);
        // All rows of these tables are on the page. Other rows are restored from pages and indexes.
        if ["events", "blobs"].contains(&&*name) {
            assert!(
                repaired.iter().any(|finding| finding.repair == RepairStatus::Impossible),
                "{name}: {repaired:?}"
            );
            continue;
        }
        // The named values are the only other data that cannot be derived; losing them is tolerable.
        if name != "marks" {
            assert!(all_have_status(&found, RepairStatus::Possible), "{name}: {found:?}");
            assert!(all_have_status(&repaired, RepairStatus::Done), "{name}: {repaired:?}");
        }
        assert_eq!(store.check(CheckMode::Report).unwrap(), [], "{name}");
        assert_complete(&store, &name);
        write(&store, vec![append("b", &["and on"])]);
        if backup_path(&path).exists() {
            assert_eq!(
                std::fs::read(backup_path(&path)).unwrap()[(page - 1) * PAGE..page * PAGE],
                corrupt[(page - 1) * PAGE..page * PAGE],
                "{name}"
            );
        }
    }
}

#[test]
fn rows_on_both_sides_of_corrupt_pages_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    create_store(&path);
    let bytes = std::fs::read(&path).unwrap();
    // Two distant pages of messages.
    let pages: Vec<usize> = ["word200 ", "word400 "]
        .iter()
        .map(|word| {
            let at = |i: &usize| bytes[*i..].starts_with(word.as_bytes()) && bytes[i - 8..*i] == *b"message ";
            (0..bytes.len()).find(at).unwrap() / PAGE + 1
        })
        .collect();
    pages.iter().for_each(|page| corrupt_page(&path, *page));
    let store = SqliteStore::open(&path).unwrap();
    let findings = store.check(CheckMode::Repair).unwrap();
    let report: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(report.iter().any(|text| text.contains("rows of its table nodes are lost")), "{report:#?}");
    let n_salvaged = n_found(&store, "long");
    assert!((N_MESSAGES - 60..N_MESSAGES).contains(&n_salvaged), "{n_salvaged}: {report:#?}");
    for word in ["word0", "word150", "word300", "word599"] {
        assert_eq!(n_found(&store, word), 1, "{word}: {report:#?}");
    }
    assert!(backup_path(&path).exists());
}

#[test]
fn file_with_other_connections_is_not_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    create_store(&path);
    let (_, page) = roots(&path).into_iter().find(|(name, _)| name == "vocabulary").unwrap();
    corrupt_page(&path, page);
    let other = SqliteStore::open_read_only(&path).unwrap();
    let busy_policy = fanfold_store::BusyPolicy { tries: 1, wait: std::time::Duration::ZERO, pause_ms: 0..1 };
    let store = SqliteStore::open_with(&path, busy_policy).unwrap();
    let findings = store.check(CheckMode::Repair).unwrap();
    assert!(findings.iter().any(|finding| finding.text.contains("stop the others")), "{findings:?}");
    assert!(!backup_path(&path).exists());
    drop(other);
    store.check(CheckMode::Repair).unwrap();
    assert_eq!(store.check(CheckMode::Report).unwrap(), []);
    assert_complete(&store, "without other connections");
}

#[test]
fn file_with_a_corrupt_header_is_opened_by_a_check_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    create_store(&path);
    corrupt_page(&path, 1);
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Corrupt(_))));
    let check =
        |mode| fanfold_store::open_to_check(path.to_str().unwrap(), mode).unwrap().check(mode).unwrap();
    assert!(check(CheckMode::Report).iter().all(|finding| finding.repair == RepairStatus::Possible));
    assert!(check(CheckMode::Repair).iter().all(|finding| finding.repair == RepairStatus::Done));
    assert_complete(&SqliteStore::open(&path).unwrap(), "header");
}
