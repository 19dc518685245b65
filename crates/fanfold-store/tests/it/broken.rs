//! Files with a page of rubbish in them: what follows from the rest is made anew, and what does not is named.

use std::path::Path;

use fanfold_store::search::{Query, SearchSpec};
use fanfold_store::{CheckMode, Finding, RepairStatus, SqliteStore, Store, StoreError};

use crate::words::*;

const PAGE: usize = 4096;
const N_MESSAGES: usize = 600;

/// A store with some hundred messages, a fork, a title, events, bytes and an index; all of it in one file.
fn furnish(path: &Path) {
    let store = SqliteStore::open(path).unwrap();
    let said: Vec<String> =
        (0..N_MESSAGES).map(|i| format!("message word{i} {}", "long ".repeat(30))).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let kept = fanfold_store::BlobId::new(b"kept");
    let named = note("a", "request", &format!("{{\"body\":\"{kept}\"}}"));
    write(&store, vec![create("a"), append("a", &said), fanfold_store::Op::PutBlob(b"kept".to_vec()), named]);
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

/// The tables and indexes with their first pages.
fn roots(path: &Path) -> Vec<(String, usize)> {
    let file = rusqlite::Connection::open(path).unwrap();
    let mut all = file.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 1").unwrap();
    all.query_map([], |row| Ok((row.get(0)?, row.get::<_, u32>(1)? as usize)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn spoil(path: &Path, page: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(page - 1) * PAGE..page * PAGE].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

fn kept_beside(path: &Path) -> std::path::PathBuf {
    path.with_extension("db.broken")
}

fn is_all_there(store: &dyn Store, what: &str) {
    let chain = store.chain(tip(store, "b").unwrap(), 0..u32::MAX).unwrap();
    assert_eq!(chain.len(), N_MESSAGES + 1, "{what}");
    assert_eq!(&*chain[N_MESSAGES].json, json("then"), "{what}");
    assert_eq!(session(store, "b").title.as_deref(), Some("Title"), "{what}");
    assert_eq!(store.events(&id("a"), 0).unwrap().len(), 1, "{what}");
    assert_eq!(
        store.blob(fanfold_store::BlobId::new(b"kept")).unwrap().as_deref(),
        Some(&b"kept"[..]),
        "{what}"
    );
    assert_eq!(n_found(store, "message"), N_MESSAGES, "{what}");
    assert_eq!(n_found(store, "*ord599*"), 1, "{what}");
    assert_eq!(n_found(store, "gone"), 0, "{what}");
}

#[test]
fn what_follows_from_the_rest_is_made_anew_wherever_a_file_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound.db");
    furnish(&sound);
    let roots = roots(&sound);
    assert!(roots.len() > 20, "{roots:?}");
    for (name, page) in roots {
        let path = folder.path().join("x.db");
        std::fs::copy(&sound, &path).unwrap();
        let _ = std::fs::remove_file(kept_beside(&path));
        spoil(&path, page);
        let harmed = std::fs::read(&path).unwrap();
        let found = SqliteStore::open_read_only(&path).unwrap().check(CheckMode::Report).unwrap();
        assert!(!found.is_empty(), "{name}");
        let store = SqliteStore::open(&path).unwrap();
        let repaired = store.check(CheckMode::Repair).unwrap();
        let is_whole = |findings: &[Finding], cure| findings.iter().all(|finding| finding.repair == cure);
        if ["lanes", "nodes", "sessions", "events", "blobs"].contains(&&*name) {
            assert!(
                repaired.iter().any(|finding| finding.repair == RepairStatus::Impossible),
                "{name}: {repaired:?}"
            );
            continue;
        }
        // What else is remembered by name is the one thing that is lost without harm.
        if name != "marks" {
            assert!(is_whole(&found, RepairStatus::Possible), "{name}: {found:?}");
            assert!(is_whole(&repaired, RepairStatus::Done), "{name}: {repaired:?}");
        }
        assert_eq!(store.check(CheckMode::Report).unwrap(), [], "{name}");
        is_all_there(&store, &name);
        write(&store, vec![append("b", &["and on"])]);
        if kept_beside(&path).exists() {
            assert_eq!(
                std::fs::read(kept_beside(&path)).unwrap()[(page - 1) * PAGE..page * PAGE],
                harmed[(page - 1) * PAGE..page * PAGE],
                "{name}"
            );
        }
    }
}

#[test]
fn rows_on_both_sides_of_broken_pages_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    furnish(&path);
    let bytes = std::fs::read(&path).unwrap();
    // Two pages of messages, some way apart.
    let pages: Vec<usize> = ["word200 ", "word400 "]
        .iter()
        .map(|word| {
            let at = |i: &usize| bytes[*i..].starts_with(word.as_bytes()) && bytes[i - 8..*i] == *b"message ";
            (0..bytes.len()).find(at).unwrap() / PAGE + 1
        })
        .collect();
    pages.iter().for_each(|page| spoil(&path, *page));
    let store = SqliteStore::open(&path).unwrap();
    let findings = store.check(CheckMode::Repair).unwrap();
    let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|text| text.contains("some rows of its table nodes")), "{told:#?}");
    let n_left = n_found(&store, "message");
    assert!((N_MESSAGES - 60..N_MESSAGES).contains(&n_left), "{n_left}: {told:#?}");
    for word in ["word0", "word150", "word300", "word599"] {
        assert_eq!(n_found(&store, word), 1, "{word}: {told:#?}");
    }
    assert!(kept_beside(&path).exists());
}

#[test]
fn a_file_that_others_have_open_is_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    furnish(&path);
    let (_, page) = roots(&path).into_iter().find(|(name, _)| name == "vocabulary").unwrap();
    spoil(&path, page);
    let other = SqliteStore::open_read_only(&path).unwrap();
    let patience = fanfold_store::BusyPolicy { tries: 1, wait: std::time::Duration::ZERO, pause_ms: 0..1 };
    let store = SqliteStore::open_with(&path, patience).unwrap();
    let findings = store.check(CheckMode::Repair).unwrap();
    assert!(findings.iter().any(|finding| finding.text.contains("stop the others")), "{findings:?}");
    assert!(!kept_beside(&path).exists());
    drop(other);
    store.check(CheckMode::Repair).unwrap();
    assert_eq!(store.check(CheckMode::Report).unwrap(), []);
    is_all_there(&store, "alone");
}

#[test]
fn a_file_without_a_readable_beginning_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    furnish(&path);
    spoil(&path, 1);
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Broken(_))));
}
