//! What a store finds out about itself, and repairs.

use fanfold_store::{CheckMode, Op, Relation, RepairStatus, SqliteStore, Store};

use crate::words::*;

/// A store with two sessions that share two messages, events and bytes.
fn furnish(store: &dyn Store) {
    let kept = fanfold_store::BlobId::new(b"kept");
    write(
        store,
        vec![
            create("a"),
            append("a", &["one", "two", "three"]),
            Op::PutBlob(b"kept".to_vec()),
            note("a", "request", &format!("{{\"body\":\"{kept}\"}}")),
            note("a", "fold", "{}"),
        ],
    );
    let two = node(store, "a", "two");
    write(store, vec![create_from("b", Some(("a", Relation::Fork)), Some(two)), append("b", &["drei"])]);
    write(store, vec![create_from("c", Some(("a", Relation::Rotation)), tip(store, "a"))]);
}

/// Does some harm; then what is found, what a repair says, and what is found after it.
fn check_harm(harm: &str, found: &str, repaired: &str, left: &str) {
    check_in_file(harm, found, repaired, left);
    if let Some(database) = crate::cluster::database() {
        let store = crate::cluster::open(&database);
        furnish(&*store);
        let mut client = postgres::Client::connect(&database, postgres::NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO fanfold; {harm}")).unwrap();
        check_findings(&*store, found, repaired, left);
    }
}

fn check_in_file(harm: &str, found: &str, repaired: &str, left: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    furnish(&store);
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch(harm).unwrap();
    check_findings(&store, found, repaired, left);
}

fn check_findings(store: &dyn Store, found: &str, repaired: &str, left: &str) {
    let tell = |care| {
        let findings = store.check(care).unwrap();
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(tell(CheckMode::Report), found);
    assert_eq!(tell(CheckMode::Report), found, "looking changes nothing");
    assert_eq!(tell(CheckMode::Repair), repaired);
    assert_eq!(tell(CheckMode::Report), left);
}

#[test]
fn a_sound_store_has_no_findings() {
    check_harm("SELECT 1", "", "", "");
    let memory = fanfold_store::MemoryStore::default();
    furnish(&memory);
    assert_eq!(memory.check(CheckMode::Report).unwrap(), []);
}

#[test]
fn a_changed_message_is_named() {
    let found = "message 3: it is not what was written; sessions that have it: a, c (can't be repaired)";
    check_in_file(
        "UPDATE nodes SET json = replace(json, 'three', 'Three') WHERE number = 3",
        found,
        found,
        found,
    );
    let found = "message 1: it is not what was written; sessions that have it: a, b, c (can't be repaired)";
    check_in_file("UPDATE nodes SET json = json || ' ' WHERE number = 1", found, found, found);
}

#[test]
fn a_message_that_is_gone_is_named() {
    let found = "message 3: the messages from 1 up to it are gone from lane 1 (can't be repaired)\n\
         message 4: the messages from 2 up to it are gone from lane 2 (can't be repaired)";
    check_harm("DELETE FROM nodes WHERE number = 2", found, found, found);
}

#[test]
fn a_tip_that_is_gone_is_set_back() {
    check_harm(
        "DELETE FROM nodes WHERE number = 3; DELETE FROM sessions WHERE id = 'c'; UPDATE events SET tip = NULL",
        "session a: its tip is not there; 2 of its 3 messages lead to the last one that is (can be repaired)",
        "session a: its tip is not there; 2 of its 3 messages lead to the last one that is (repaired)",
        "",
    );
    // Also where its lane has nothing else.
    check_harm(
        "DELETE FROM nodes WHERE number = 4",
        "session b: its tip is not there; 2 of its 3 messages lead to the last one that is (can be repaired)\n\
         lane 2: it has no message (can be repaired)",
        "session b: its tip is not there; 2 of its 3 messages lead to the last one that is (repaired)\n\
         lane 2: it has no message (repaired)",
        "",
    );
    check_harm(
        "UPDATE sessions SET tip = 77 WHERE id = 'b'",
        "session b: its tip is not there; 3 of its 3 messages lead to the last one that is (can be repaired)",
        "session b: its tip is not there; 3 of its 3 messages lead to the last one that is (repaired)",
        "",
    );
}

#[test]
fn what_is_left_of_a_session_whose_tip_is_gone_is_not_swept() {
    const HARM: &str = "DELETE FROM nodes WHERE number = (SELECT tip FROM sessions WHERE id = 'b')";
    let check = |store: &dyn Store, harm: &mut dyn FnMut()| {
        furnish(store);
        write(store, vec![append("b", &["vier"]), create("gone"), append("gone", &["gone"])]);
        harm();
        // Another one goes before anybody has looked.
        write(store, vec![Op::Delete(id("gone"))]);
        assert_eq!(store.collect_garbage().unwrap(), 1);
        store.check(CheckMode::Repair).unwrap();
        assert_eq!(session(store, "b").n_messages, 3);
        assert_eq!(word(chain(store, "b").last().unwrap()), "drei");
    };
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let other = rusqlite::Connection::open(store.path()).unwrap();
    check(&store, &mut || other.execute_batch(HARM).unwrap());
    if let Some(database) = crate::cluster::database() {
        let mut client = postgres::Client::connect(&database, postgres::NoTls).unwrap();
        check(&*crate::cluster::open(&database), &mut || {
            client.batch_execute(&format!("SET search_path TO fanfold; {HARM}")).unwrap();
        });
    }
}

#[test]
fn counts_and_lanes_are_made_again() {
    for harm in ["lane = 9", "n_messages = 7", "lane = NULL"] {
        check_harm(
            &format!("UPDATE sessions SET {harm} WHERE id = 'b'"),
            "session b: its tip is message 2 of lane 2, and it says otherwise (can be repaired)",
            "session b: its tip is message 2 of lane 2, and it says otherwise (repaired)",
            "",
        );
    }
    check_harm(
        "UPDATE sessions SET n_events = 1 WHERE id = 'a'",
        "session a: it has 2 events and says 1 (can be repaired)",
        "session a: it has 2 events and says 1 (repaired)",
        "",
    );
    check_harm(
        "UPDATE nodes SET role = 'tool' WHERE number = 2",
        "message 2: it has another role than its message (can be repaired)",
        "message 2: it has another role than its message (repaired)",
        "",
    );
    check_harm(
        "UPDATE sessions SET root = 'b' WHERE id = 'c'",
        "session c: it says that its lineage begins with b, and it begins with a (can be repaired)",
        "session c: it says that its lineage begins with b, and it begins with a (repaired)",
        "",
    );
}

#[test]
fn events_that_are_gone_or_nobodys() {
    let gone = "session a: 1 of its events are gone (can't be repaired)";
    check_harm("DELETE FROM events WHERE seq = 1", gone, gone, gone);
    check_harm(
        "INSERT INTO events (session, seq, at, kind, body) VALUES (99, 0, 0, 'x', '{}')",
        "events: 1 events belong to no session (can be repaired)",
        "events: 1 events belong to no session (repaired)",
        "",
    );
    check_harm(
        "UPDATE events SET tip = 77 WHERE seq = 1",
        "session a: the tip of its event 1 is not there, and is forgotten (can be repaired)",
        "session a: the tip of its event 1 is not there, and is forgotten (repaired)",
        "",
    );
}

#[test]
fn bytes_that_changed_or_that_nobody_names() {
    let place = format!("bytes {}", fanfold_store::BlobId::new(b"kept"));
    let changed = format!("{place}: they are not what was written (can't be repaired)");
    check_in_file("UPDATE blobs SET bytes = x'00'", &changed, &changed, &changed);
    check_harm(
        "UPDATE events SET body = '{}'",
        "bytes: no event names 1 of them, as after a session was deleted (can be repaired)",
        "bytes: no event names 1 of them, as after a session was deleted (repaired)",
        "",
    );
}

#[test]
fn an_empty_lane_goes() {
    check_harm(
        "INSERT INTO lanes (parent, start) VALUES (1, 2)",
        "lane 3: it has no message (can be repaired)",
        "lane 3: it has no message (repaired)",
        "",
    );
}

#[test]
fn a_file_with_bytes_changed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    furnish(&SqliteStore::open(&path).unwrap());
    // All connections are closed, so the log is in the file.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|bytes| bytes == b"three").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let findings = SqliteStore::open(&path).unwrap().check(CheckMode::Report).unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.location == "message 3" && finding.repair == RepairStatus::Impossible),
        "{findings:?}"
    );
    // A whole page of rubbish.
    let page = bytes.len() / 4096 / 2;
    bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let findings = SqliteStore::open(&path).unwrap().check(CheckMode::Report).unwrap();
    assert!(!findings.is_empty());
}
