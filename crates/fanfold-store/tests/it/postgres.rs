//! Tests of the PostgreSQL store only.

use fanfold_store::{OpenMode, StoreError, open};

use crate::cluster;
use crate::shorthand::*;

/// Drops the store in a database.
pub(crate) fn drop_store(address: &str) {
    let mut client = ::postgres::Client::connect(address, ::postgres::NoTls).unwrap();
    client
        .batch_execute("SET client_min_messages TO warning; DROP SCHEMA IF EXISTS fanfold CASCADE")
        .unwrap();
}

#[test]
fn newer_schema_is_rejected() {
    let Some(database) = cluster::database() else { return };
    write(&*cluster::open(&database), vec![create("a")]);
    let mut client = ::postgres::Client::connect(&database, ::postgres::NoTls).unwrap();
    client.batch_execute("UPDATE fanfold.marks SET value = 99 WHERE name = 'version'").unwrap();
    for mode in [OpenMode::Write, OpenMode::Read] {
        assert!(matches!(open(&database, mode), Err(StoreError::TooNew { found: 99, .. })));
    }
}

#[test]
fn read_only_mode_creates_nothing() {
    let Some(database) = cluster::database() else { return };
    assert!(matches!(open(&database, OpenMode::Read), Err(StoreError::NoStore)));
    write(&*cluster::open(&database), vec![create("a"), append("a", &["one"])]);
    let reader = open(&database, OpenMode::Read).unwrap();
    assert_eq!(contents(&*reader, "a"), "one");
    assert!(matches!(write_at(&*reader, 2, vec![create("b")]), Err(StoreError::ReadOnly(_))));
}

#[test]
fn broken_connection_is_replaced() {
    let Some(database) = cluster::database() else { return };
    let store = cluster::open(&database);
    write(&*store, vec![create("a")]);
    let mut other = ::postgres::Client::connect(&database, ::postgres::NoTls).unwrap();
    for word in ["one", "two", "three"] {
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert!(!other.query(kill, &[]).unwrap().is_empty());
        write(&*store, vec![append("a", &[word])]);
    }
    assert_eq!(contents(&*store, "a"), "one two three");
}

#[test]
fn unreachable_server_is_reported() {
    let error = open("postgres://postgres@%2Fnowhere/none", OpenMode::Write).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("the database none at") && text.contains("/nowhere"), "{text}");
    assert!(text.ends_with("hint: check the address and that the server is running"), "{text}");
    assert!(matches!(
        open("postgres://host:x/y", OpenMode::Write).err(),
        Some(StoreError::InvalidAddress(_))
    ));
}

#[test]
fn concurrent_equal_messages_are_stored_once() {
    let Some(database) = cluster::database() else { return };
    let stores: Vec<_> = (0..4).map(|_| cluster::open(&database)).collect();
    std::thread::scope(|scope| {
        for (i, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let name = format!("s{i}");
                write(&**store, vec![create(&name)]);
                // All sessions append the same messages, then different ones.
                for n in 0..20 {
                    write(&**store, vec![append(&name, &[&format!("w{n}")])]);
                }
                write(&**store, vec![append(&name, &[&name, "end"])]);
            });
        }
    });
    let all: Vec<String> = (0..20).map(|n| format!("w{n}")).collect();
    for i in 0..4 {
        assert_eq!(contents(&*stores[0], &format!("s{i}")), format!("{} s{i} end", all.join(" ")));
    }
    assert_eq!(stores[0].size().unwrap().n_nodes, 20 + 4 * 2);
}

#[test]
fn second_role_uses_the_store_after_the_grants_that_the_error_names() {
    let Some(database) = cluster::database() else { return };
    write(&*cluster::open(&database), vec![create("a"), append("a", &["one"])]);
    let mut client = ::postgres::Client::connect(&database, ::postgres::NoTls).unwrap();
    client.batch_execute("CREATE ROLE second LOGIN").unwrap();
    let address = database.replace("postgres@", "second@");
    let error = open(&address, OpenMode::Write).err().unwrap().to_string();
    let (_, grants) = error.split_once("use it with: ").unwrap_or_else(|| panic!("{error}"));
    client.batch_execute(&grants.replace("ROLE", "second")).unwrap();
    let second = cluster::open(&address);
    write(&*second, vec![create("b"), append("b", &["two"]), append("a", &["three"])]);
    assert_eq!(n_found(&*second, "two"), 1);
    write(&*second, vec![fanfold_store::Op::Delete(id("b"))]);
    second.collect_garbage().unwrap();
    assert_eq!(second.check(fanfold_store::CheckMode::Repair).unwrap(), []);
    assert_eq!(contents(&*cluster::open(&database), "a"), "one three");
}
