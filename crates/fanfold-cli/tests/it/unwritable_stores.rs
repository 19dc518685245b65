//! Full disks, read-only stores and files that are no stores: conversations are folded, and what is stored is shown.

use crate::sandbox::{Sandbox, body, long_chat};
use crate::small_disk::SmallDisk;

/// A sandbox with a conversation and its beginning.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("start.json", &body(&long_chat(30)));
    sandbox.write("chat.json", &body(&long_chat(60)));
    sandbox
}

/// Folds the conversation in a session that has its beginning. Returns the view.
fn stored_view(sandbox: &Sandbox, store: &str) -> String {
    let ran = sandbox.run(&format!("fold --session s start.json -w 16k -o /dev/null --store {store}"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let expected = sandbox.run("fold --session s start.json -w 16k --store expected.db");
    assert_eq!(expected.code, 0);
    sandbox.run("fold --session s chat.json -w 16k --store expected.db").out
}

/// Checks that a conversation is folded to a view with a warning that names the store and the next step.
fn check_folded(sandbox: &Sandbox, store: &str, expected: &str, reason: &str) {
    let ran = sandbox.run(&format!("fold --session s chat.json -w 16k --store {store}"));
    assert_eq!((ran.code, ran.out.as_str()), (0, expected), "{store}: {}", ran.err);
    assert_eq!(ran.err.matches("warning: ").count(), 1, "{}", ran.err);
    let warning = ran.err.lines().find(|line| line.contains("warning: ")).unwrap();
    assert!(warning.contains(store) && warning.contains(reason), "{store}: {warning}");
    assert!(warning.contains("the conversation is folded, but not stored"), "{warning}");
    assert!(ran.err.contains("s: not stored"), "{}", ran.err);
}

/// Checks that a session is listed, shown, found and exported.
fn check_shown(sandbox: &Sandbox, store: &str) {
    let commands = [
        "sessions list",
        "sessions show s",
        "search pytest",
        "sessions export s",
        "sessions export --all",
        "doctor",
    ];
    for command in commands {
        let ran = sandbox.run(&format!("{command} --store {store}"));
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        assert!(command == "search pytest" || ran.out.contains('s'), "{command}: {}", ran.out);
    }
    let n_messages = format!("{} messages", long_chat(30).len());
    assert!(sandbox.run(&format!("sessions list --store {store}")).out.contains(&n_messages));
}

#[test]
fn a_full_disk_does_not_turn_folding_off() {
    let Some(disk) = SmallDisk::mount() else { return };
    let sandbox = sandbox();
    let store = disk.path("s.db").display().to_string();
    let expected = stored_view(&sandbox, &store);
    assert!(expected.len() < sandbox.read("chat.json").len() / 2);
    let listed = sandbox.run(&format!("sessions list --store {store}")).out;
    disk.fill();
    check_folded(&sandbox, &store, &expected, "no space left to write the store");
    let json = sandbox.run(&format!("fold --session s chat.json -w 16k --json --store {store}"));
    assert!(json.code == 0 && json.out.contains("\"kept\": false"), "{}", json.err);
    assert_eq!(sandbox.run(&format!("sessions list --store {store}")).out, listed);
    check_shown(&sandbox, &store);
    disk.free();
    let ran = sandbox.run(&format!("fold --session s chat.json -w 16k --store {store}"));
    assert_eq!((ran.code, ran.out), (0, expected), "{}", ran.err);
    assert!(!ran.err.contains("warning") && ran.err.contains("new messages stored"), "{}", ran.err);
    assert_eq!(sandbox.run(&format!("doctor --requests --store {store}")).code, 0);
}

#[test]
fn sessions_of_a_read_only_store_are_listed() {
    let Some(disk) = SmallDisk::mount() else { return };
    let sandbox = sandbox();
    let store = disk.path("s.db").display().to_string();
    let expected = stored_view(&sandbox, &store);
    disk.make_read_only();
    check_shown(&sandbox, &store);
    check_folded(&sandbox, &store, &expected, "could not be opened");
}

#[test]
fn a_file_that_is_no_store_does_not_turn_folding_off() {
    let sandbox = sandbox();
    let fresh = sandbox.run("fold --session s chat.json -w 16k --store fresh.db").out;
    sandbox.write("noise.db", "not a database, but long enough to look like one to a careless reader");
    let other = rusqlite::Connection::open(sandbox.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    sandbox.write("folder.db/sessions.db/file", "");
    sandbox.write("file", "");
    let stores = [
        ("noise.db", "not a database"),
        ("other.db", "another program's database"),
        ("folder.db", "could not be opened"),
        ("file/s.db", "could not be opened"),
    ];
    for (store, reason) in stores {
        check_folded(&sandbox, store, &fresh, reason);
    }
    // Without a file, the conversation itself is in the store.
    let ran = sandbox.run("fold --session s -w 16k --store noise.db");
    assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
}
