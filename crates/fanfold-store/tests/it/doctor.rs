//! Consistency checks and repairs.

use fanfold_store::{CheckMode, Op, Relation, SqliteStore, Store};

use crate::shorthand::*;

/// Fills a store with sessions that share messages, events and a blob.
fn fill_store(store: &dyn Store) {
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

/// Damages a store with SQL, and checks the findings, the findings of a repair, and the remaining findings.
fn check_damage(damage: &str, found: &str, repaired: &str, remaining: &str) {
    check_in_file(damage, found, repaired, remaining);
    if let Some(database) = crate::cluster::database() {
        let store = crate::cluster::open(&database);
        fill_store(&*store);
        let mut client = postgres::Client::connect(&database, postgres::NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO fanfold; {damage}")).unwrap();
        check_findings(&*store, found, repaired, remaining);
    }
}

fn check_in_file(damage: &str, found: &str, repaired: &str, remaining: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill_store(&store);
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute_batch(damage).unwrap();
    check_findings(&store, found, repaired, remaining);
}

fn check_findings(store: &dyn Store, found: &str, repaired: &str, remaining: &str) {
    let findings_text = |mode| {
        let findings = store.check(mode).unwrap();
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(findings_text(CheckMode::Report), found);
    assert_eq!(findings_text(CheckMode::Report), found, "reporting changes nothing");
    assert_eq!(findings_text(CheckMode::Repair), repaired);
    assert_eq!(findings_text(CheckMode::Report), remaining);
}

#[test]
fn intact_store_has_no_findings() {
    check_damage("SELECT 1", "", "", "");
    let memory = fanfold_store::SqliteStore::in_memory();
    fill_store(&memory);
    assert_eq!(memory.check(CheckMode::Report).unwrap(), []);
}

#[test]
fn changed_message_is_reported() {
    let check = |damage: &str, number: u32, sessions: &str| {
        let text = format!(
            "message {number}: its content does not match its id; a repair keeps what is readable; \
             sessions with it: {sessions}"
        );
        check_in_file(damage, &format!("{text} (can be repaired)"), &format!("{text} (repaired)"), "");
    };
    check("UPDATE nodes SET json = replace(json, 'three', 'Three') WHERE number = 3", 3, "a, c");
    check("UPDATE nodes SET json = json || ' ' WHERE number = 1", 1, "a, b, c");
    check("UPDATE nodes SET json = '{' WHERE number = 1", 1, "a, b, c");
}

#[test]
fn missing_message_is_replaced_by_a_placeholder() {
    let text = |end: &str| {
        let line = |number, depth, lane| {
            format!(
                "message {number}: the messages before it from depth {depth} are missing from lane {lane}; \
                 a repair puts placeholders there ({end})"
            )
        };
        format!("{}\n{}", line(3, 1, 1), line(4, 2, 2))
    };
    check_damage("DELETE FROM nodes WHERE number = 2", &text("can be repaired"), &text("repaired"), "");
}

#[test]
fn missing_tip_is_reset() {
    check_damage(
        "DELETE FROM nodes WHERE number = 3; DELETE FROM sessions WHERE id = 'c'; UPDATE events SET tip = NULL",
        "session a: its tip is missing; a repair resets it to message 2 of 3 (can be repaired)",
        "session a: its tip is missing; a repair resets it to message 2 of 3 (repaired)",
        "",
    );
    // The tip is the only message of its lane.
    check_damage(
        "DELETE FROM nodes WHERE number = 4",
        "session b: its tip is missing; a repair resets it to message 2 of 3 (can be repaired)\n\
         lane 2: it has no messages (can be repaired)",
        "session b: its tip is missing; a repair resets it to message 2 of 3 (repaired)\n\
         lane 2: it has no messages (repaired)",
        "",
    );
    check_damage(
        "UPDATE sessions SET tip = 77 WHERE id = 'b'",
        "session b: its tip is missing; a repair resets it to message 3 of 3 (can be repaired)",
        "session b: its tip is missing; a repair resets it to message 3 of 3 (repaired)",
        "",
    );
}

#[test]
fn garbage_collection_preserves_a_session_with_a_missing_tip() {
    const DAMAGE: &str = "DELETE FROM nodes WHERE number = (SELECT tip FROM sessions WHERE id = 'b')";
    let check = |store: &dyn Store, damage: &mut dyn FnMut()| {
        fill_store(store);
        write(store, vec![append("b", &["vier"]), create("gone"), append("gone", &["gone"])]);
        damage();
        // Another session is deleted before the damage is noticed.
        write(store, vec![Op::Delete(id("gone"))]);
        assert_eq!(store.collect_garbage().unwrap(), 1);
        store.check(CheckMode::Repair).unwrap();
        assert_eq!(session(store, "b").n_messages, 3);
        assert_eq!(content(chain(store, "b").last().unwrap()), "drei");
    };
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let other = rusqlite::Connection::open(store.path()).unwrap();
    check(&store, &mut || other.execute_batch(DAMAGE).unwrap());
    if let Some(database) = crate::cluster::database() {
        let mut client = postgres::Client::connect(&database, postgres::NoTls).unwrap();
        check(&*crate::cluster::open(&database), &mut || {
            client.batch_execute(&format!("SET search_path TO fanfold; {DAMAGE}")).unwrap();
        });
    }
}

#[test]
fn derived_columns_are_repaired() {
    for damage in ["lane = 9", "n_messages = 7", "lane = NULL"] {
        check_damage(
            &format!("UPDATE sessions SET {damage} WHERE id = 'b'"),
            "session b: its lane or length does not match its tip, at depth 2 of lane 2 (can be repaired)",
            "session b: its lane or length does not match its tip, at depth 2 of lane 2 (repaired)",
            "",
        );
    }
    check_damage(
        "UPDATE sessions SET n_events = 1 WHERE id = 'a'",
        "session a: its event count is 1, but its next sequence number is 2 (can be repaired)",
        "session a: its event count is 1, but its next sequence number is 2 (repaired)",
        "",
    );
    check_damage(
        "UPDATE nodes SET role = 'tool' WHERE number = 2",
        "message 2: its role does not match its content (can be repaired)",
        "message 2: its role does not match its content (repaired)",
        "",
    );
    check_damage(
        "UPDATE sessions SET root = 'b' WHERE id = 'c'",
        "session c: the root of its lineage is recorded as b instead of a (can be repaired)",
        "session c: the root of its lineage is recorded as b instead of a (repaired)",
        "",
    );
}

/// The chain is a, c, b, but b is stored before c.
#[test]
fn wrong_roots_of_a_chain_are_corrected_by_one_repair() {
    check_damage(
        "UPDATE sessions SET root = 'x' WHERE id = 'c'; \
         UPDATE sessions SET root = 'y', parent = 'c', relation = 'rotation' WHERE id = 'b'",
        "session b: the root of its lineage is recorded as y instead of a (can be repaired)\n\
         session c: the root of its lineage is recorded as x instead of a (can be repaired)",
        "session b: the root of its lineage is recorded as y instead of a (repaired)\n\
         session c: the root of its lineage is recorded as x instead of a (repaired)",
        "",
    );
}

#[test]
fn missing_and_orphaned_events_are_reported() {
    let missing = "session a: 1 of its events are missing (can't be repaired)";
    check_damage("DELETE FROM events WHERE seq = 1", missing, missing, missing);
    check_damage(
        "INSERT INTO events (session, seq, at, kind, body) VALUES (99, 0, 0, 'x', '{}')",
        "events: 1 events belong to no session; a repair deletes them (can be repaired)",
        "events: 1 events belong to no session; a repair deletes them (repaired)",
        "",
    );
    check_damage(
        "UPDATE events SET tip = 77 WHERE seq = 1",
        "session a: the tip of its event 1 is missing; a repair removes the reference (can be repaired)",
        "session a: the tip of its event 1 is missing; a repair removes the reference (repaired)",
        "",
    );
}

#[test]
fn changed_and_unreferenced_blobs_are_reported() {
    let id = fanfold_store::BlobId::new(b"kept");
    let changed = format!("blob {id}: its content does not match its id (can't be repaired)");
    check_in_file("UPDATE blobs SET bytes = x'00'", &changed, &changed, &changed);
    check_damage(
        "UPDATE events SET body = '{}'",
        "blobs: no event refers to 1 of them, as after deleting a session (can be repaired)",
        "blobs: no event refers to 1 of them, as after deleting a session (repaired)",
        "",
    );
}

#[test]
fn empty_lane_is_deleted() {
    check_damage(
        "INSERT INTO lanes (parent, start) VALUES (1, 2)",
        "lane 3: it has no messages (can be repaired)",
        "lane 3: it has no messages (repaired)",
        "",
    );
}

#[test]
fn changed_bytes_in_the_file_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    fill_store(&SqliteStore::open(&path).unwrap());
    // All connections are closed, so the log has been copied to the file.
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|bytes| bytes == b"three").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let findings = SqliteStore::open(&path).unwrap().check(CheckMode::Report).unwrap();
    assert!(findings.iter().any(|finding| finding.location == "message 3"), "{findings:?}");
    // Overwrite a whole page.
    let page = bytes.len() / 4096 / 2;
    bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let findings = SqliteStore::open(&path).unwrap().check(CheckMode::Report).unwrap();
    assert!(!findings.is_empty());
}

/// Runs a test on a damaged SQLite store, and on a damaged PostgreSQL store if `in_postgres`.
fn repair_damage(damage: &str, in_postgres: bool, test: &dyn Fn(&dyn Store)) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill_store(&store);
    rusqlite::Connection::open(store.path()).unwrap().execute_batch(damage).unwrap();
    store.check(CheckMode::Repair).unwrap();
    test(&store);
    if let Some(database) = crate::cluster::database().filter(|_| in_postgres) {
        let store = crate::cluster::open(&database);
        fill_store(&*store);
        let mut client = postgres::Client::connect(&database, postgres::NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO fanfold; {damage}")).unwrap();
        store.check(CheckMode::Repair).unwrap();
        test(&*store);
    }
}

#[test]
fn conversation_with_a_lost_message_is_stored_again() {
    for number in 1..=3 {
        repair_damage(&format!("DELETE FROM nodes WHERE number = {number}"), true, &|store| {
            write(store, vec![create("again"), append("again", &["one", "two", "three", "four"])]);
            assert_eq!(contents(store, "again"), "one two three four");
            let kept = contents(store, "b");
            assert!(kept.ends_with(" drei") && kept.split(' ').count() >= 3, "{number}: {kept}");
            assert_eq!(store.check(CheckMode::Report).unwrap(), [], "{number}");
        });
    }
}

#[test]
fn lost_lane_is_found_by_the_ids_of_its_messages() {
    repair_damage("DELETE FROM lanes WHERE lane = 2", true, &|store| {
        assert_eq!(contents(store, "b"), "one two drei");
        assert_eq!(store.check(CheckMode::Report).unwrap(), []);
    });
    repair_damage("DELETE FROM lanes WHERE lane = 1", true, &|store| {
        assert_eq!(contents(store, "b"), "one two drei");
        assert_eq!(contents(store, "c"), "one two three");
    });
}

#[test]
fn message_at_an_impossible_depth_is_removed() {
    repair_damage("UPDATE nodes SET depth = 4000000 WHERE number = 3", true, &|store| {
        assert_eq!(contents(store, "b"), "one two drei");
        assert_eq!(store.check(CheckMode::Report).unwrap(), []);
    });
}

/// Replaces the first byte of a text by one that is not UTF-8.
const BROKEN: &str = "CAST(x'ff' || substr(CAST(json AS BLOB), 2) AS TEXT)";

#[test]
fn message_that_is_not_utf8_hides_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill_store(&store);
    write(&store, vec![create("d"), append("d", &["one more", "two more"])]);
    assert_eq!(n_found(&store, "one"), 2);
    let broken = "CAST(replace(CAST(json AS BLOB), CAST('one' AS BLOB), x'6f6eff') AS TEXT)";
    let other = rusqlite::Connection::open(store.path()).unwrap();
    other.execute(&format!("UPDATE nodes SET json = {broken} WHERE number = 1"), []).unwrap();
    // The index still has the word, and the message is shown with U+FFFD.
    let search = fanfold_store::search::Searcher::new(&store);
    let request = fanfold_store::search::SearchRequest { query: Some("one".into()), ..Default::default() };
    let reply = search.answer_json(&request);
    assert_eq!(reply["count"], 2, "{reply}");
    let tip = tip(&store, "a").unwrap();
    let error = store.chain(tip, 0..u32::MAX).unwrap_err().to_string();
    assert!(error.contains("message 1 is not UTF-8"), "{error}");
    assert_eq!(content(&store.readable_chain(tip, 0..u32::MAX).unwrap()[0]), "on\u{fffd}");
    let found: Vec<String> =
        store.check(CheckMode::Report).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "message 1: it is not UTF-8; a repair keeps what is readable; sessions with it: a, b, c (can be repaired)"
        ]
    );
    store.check(CheckMode::Repair).unwrap();
    assert_eq!(store.check(CheckMode::Report).unwrap(), []);
    assert_eq!(contents(&store, "b"), "on\u{fffd} two drei");
}

#[test]
fn other_texts_that_are_not_utf8_are_repaired() {
    let body = BROKEN.replace("json", "body");
    let title = BROKEN.replace("json", "'Title'");
    for damage in [
        format!("UPDATE events SET body = {body} WHERE seq = 1"),
        format!("UPDATE sessions SET title = {title} WHERE id = 'a'"),
        format!("UPDATE sessions SET id = {} WHERE id = 'a'", BROKEN.replace("json", "id")),
    ] {
        repair_damage(&damage, false, &|store| {
            let sessions = store.sessions(&fanfold_store::SessionFilter::default()).unwrap();
            assert_eq!(sessions.len(), 3);
            for row in sessions {
                store.events(&row.id, 0).unwrap();
            }
            assert_eq!(store.check(CheckMode::Report).unwrap(), [], "{damage}");
        });
    }
}
