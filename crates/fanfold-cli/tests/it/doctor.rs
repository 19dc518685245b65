//! Damaged stores, and stores that cannot grow.

use std::process::Command;

use serde_json::Value;

use crate::sandbox::{CommandOutput, Sandbox, body, long_chat};

/// A store of three sessions in one file.
fn stored_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c"] {
        let mut messages = long_chat(20);
        messages.push(serde_json::json!({ "role": "user", "content": format!("now {name}") }));
        sandbox.write("chat.json", &body(&messages));
        let ran = sandbox.run(&format!("fold --session {name} chat.json -w 5k -o {name}.json --store x.db"));
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    assert_eq!(sandbox.run("search hundredth --store x.db").code, 0);
    sandbox
}

/// Overwrites the first page of a table or an index with random bytes.
fn corrupt(sandbox: &Sandbox, name: &str) {
    let path = sandbox.path("x.db");
    let text = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let file = rusqlite::Connection::open(&path).unwrap();
    let page = file.query_row(text, [name], |row| row.get::<_, u32>(0)).unwrap() as usize;
    drop(file);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
}

fn is_circular(ran: &CommandOutput) -> bool {
    ran.err.contains("hint: `fanfold doctor` reports")
}

#[test]
fn damage_is_reported_and_repaired() {
    for name in ["texts_data", "nodes_by_id", "events_by_session", "sessions_by_time"] {
        let sandbox = stored_sandbox();
        corrupt(&sandbox, name);
        let ran = sandbox.run("doctor --store x.db");
        assert!(ran.code == 1 && ran.out.contains("(can be repaired)"), "{name}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("hint: `fanfold doctor --repair`"), "{name}: {}", ran.err);
        let ran = sandbox.run("doctor --repair --store x.db");
        assert!(ran.code == 0 && ran.out.contains("(repaired)"), "{name}: {}{}", ran.out, ran.err);
        let ran = sandbox.run("doctor --requests --store x.db");
        assert!(ran.code == 0 && ran.out.ends_with("no problems\n"), "{name}: {}{}", ran.out, ran.err);
        assert_eq!(sandbox.run("inspect --session b --request 1 --store x.db").out, sandbox.read("b.json"));
        assert!(sandbox.run("search hundredth --store x.db").out.contains("hundredth"), "{name}");
    }
}

#[test]
fn damaged_session_does_not_hide_others() {
    let sandbox = stored_sandbox();
    let file = rusqlite::Connection::open(sandbox.path("x.db")).unwrap();
    let last = "DELETE FROM nodes WHERE number = (SELECT tip FROM sessions WHERE id = 'b')";
    assert_eq!(file.execute(last, []).unwrap(), 1);
    drop(file);
    let ran = sandbox.run("doctor --store x.db");
    assert!(ran.out.contains("session b: its tip is missing"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("3 sessions"), "{}{}", ran.out, ran.err);
    let ran = sandbox.run("sessions export --all --store x.db");
    let ids: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = ids.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(ids, ["a", "c"], "{}", ran.err);
    assert!(ran.code == 1 && ran.err.contains("1 session not written"), "{}", ran.err);
    assert!(ran.err.contains("session b points at a missing message"), "{}", ran.err);
    let ran = sandbox.run("sessions list --store x.db");
    let ids: Vec<&str> = ran.out.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(ids, ["c", "a"], "{}", ran.err);
    assert!(ran.code == 1 && ran.err.contains("1 session not listed: "), "{}", ran.err);
    assert!(ran.err.contains("session b points at a missing message\n\nhint: "), "{}", ran.err);
    let ran = sandbox.run("sessions list --json -n 1 --store x.db");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()[0]["id"], "c");
    // The others are found by their numbers and the beginnings of their ids.
    sandbox.run("sessions title c Third --store x.db");
    for name in ["1", "Third"] {
        let shown = sandbox.run(&format!("sessions show {name} --store x.db"));
        assert!(shown.out.starts_with("session    c\n"), "{}{}", shown.out, shown.err);
    }
    let ran = sandbox.run("search --store x.db");
    let ids: Vec<&str> = ran.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!((ran.code, ids), (0, vec!["c", "a"]), "{}", ran.err);
    assert_eq!(sandbox.run("sessions prune --days 0 --dry-run --store x.db").out, "c\na\n");
    let next = sandbox.run("sessions rotate c --store x.db").out;
    assert!(sandbox.run(&format!("sessions show {} --store x.db", next.trim())).out.contains("Third #2"));
    sandbox.run(&format!("sessions delete {} --store x.db", next.trim()));
    sandbox.run("doctor --repair --store x.db");
    assert_eq!(sandbox.run("sessions export --all --store x.db").out.lines().count(), 3);
    assert_eq!(sandbox.run("sessions list --store x.db").code, 0);
}

#[test]
fn changed_requests_and_originals_are_reported() {
    let sandbox = stored_sandbox();
    let change = |name: &str, kind: &str, text: &str| {
        let file = rusqlite::Connection::open(sandbox.path("x.db")).unwrap();
        let condition = "session = (SELECT key FROM sessions WHERE id = ?1) AND kind = ?2";
        let text = format!("UPDATE events SET body = {text} WHERE {condition}");
        assert_eq!(file.execute(&text, [name, kind]).unwrap(), 1);
    };
    change("b", "request", "json_set(body, '$.hash', printf('%064d', 0))");
    assert_eq!(sandbox.run("doctor --store x.db").code, 0);
    let ran = sandbox.run("doctor --requests --store x.db");
    let expected = "session b: request 1 cannot be rebuilt byte for byte";
    assert!(ran.code == 1 && ran.out.contains(expected), "{}{}", ran.out, ran.err);
    let ran = sandbox.run("inspect --session b --request 1 --store x.db");
    assert_eq!((ran.code, &ran.out), (1, &sandbox.read("b.json")));
    assert!(ran.err.contains("NOT the bytes that were sent"), "{}", ran.err);
    change("a", "fold", "json_set(body, '$.handles[0][2]', '00')");
    let ran = sandbox.run("doctor --store x.db");
    assert!(ran.code == 1 && ran.out.contains("session a: the handle "), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("does not recall its original"), "{}", ran.out);
}

#[test]
fn file_without_a_store_has_its_own_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("x.db", &"this is not a database ".repeat(1_000));
    for line in ["doctor --store x.db", "doctor --repair --store x.db"] {
        let ran = sandbox.run(line);
        assert!(ran.code == 1 && !is_circular(&ran), "{}", ran.err);
    }
    assert!(sandbox.read("x.db").starts_with("this is not a database"));
    assert!(is_circular(&sandbox.run("sessions list --store x.db")));
}

/// The lines of an export of all sessions.
fn exported(sandbox: &Sandbox) -> Vec<Value> {
    let ran = sandbox.run("sessions export --all --store x.db");
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Repairs the store, whose damage is then gone, and returns its export.
fn repaired(sandbox: &Sandbox, case: &str) -> Vec<Value> {
    let ran = sandbox.run("doctor --store x.db");
    assert!(ran.code == 1 && ran.err.contains("--repair"), "{case}: {}{}", ran.out, ran.err);
    let ran = sandbox.run("doctor --repair --store x.db");
    assert!(!ran.out.is_empty(), "{case}: {}", ran.err);
    let report: Value = serde_json::from_str(&sandbox.run("doctor --json --store x.db").out).unwrap();
    assert_eq!(report["sessions"], 3, "{case}: {report:#} {}", ran.out);
    exported(sandbox)
}

#[test]
fn lost_page_of_the_sessions_keeps_all_of_them() {
    let sandbox = stored_sandbox();
    let before = exported(&sandbox);
    corrupt(&sandbox, "sessions");
    let after = repaired(&sandbox, "sessions");
    for (before, after) in before.iter().zip(&after) {
        for key in ["id", "format", "messages", "events", "blobs"] {
            assert_eq!(before[key], after[key], "{key} of {}", before["id"]);
        }
    }
    let chat = sandbox.read("chat.json");
    let sent = sandbox.run("fold --session c chat.json -w 5k --store x.db");
    assert!(sent.code == 0 && sent.out == sandbox.read("c.json"), "{} {chat:.40}", sent.err);
    let ran = sandbox.run("doctor --requests --store x.db");
    assert!(ran.code == 0 && ran.out.ends_with("no problems\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn cut_file_and_damaged_header_are_repaired() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("last page", |bytes| bytes.truncate(bytes.len() - 4096)),
        ("end of the last page", |bytes| bytes.truncate(bytes.len() - 100)),
        ("header", |bytes| bytes[..100].fill(0)),
        ("first page", |bytes| bytes[..4096].fill(0xa5)),
    ];
    for (case, damage) in damages {
        let sandbox = stored_sandbox();
        let n_messages = |lines: &[Value]| -> usize {
            lines.iter().map(|line| line["messages"].as_array().map_or(0, Vec::len)).sum()
        };
        let n_before = n_messages(&exported(&sandbox));
        let mut bytes = std::fs::read(sandbox.path("x.db")).unwrap();
        damage(&mut bytes);
        std::fs::write(sandbox.path("x.db"), &bytes).unwrap();
        assert_eq!(n_messages(&repaired(&sandbox, case)), n_before, "{case}");
        assert!(sandbox.path("x.db.broken").exists(), "{case}");
    }
}

#[test]
fn byte_that_is_not_utf8_hides_no_session() {
    let sandbox = stored_sandbox();
    let file = rusqlite::Connection::open(sandbox.path("x.db")).unwrap();
    let broken = "UPDATE nodes SET json = CAST(replace(CAST(json AS BLOB), CAST('hundredth' AS BLOB), \
         x'68ff64726564') AS TEXT) WHERE number = 2";
    assert_eq!(file.execute(broken, []).unwrap(), 1);
    drop(file);
    let ran = sandbox.run("search hundredth --store x.db");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(exported(&sandbox).len(), 3);
    let ran = sandbox.run("doctor --store x.db");
    assert!(ran.out.contains("message 2: it is not UTF-8"), "{}{}", ran.out, ran.err);
    assert_eq!(repaired(&sandbox, "byte").len(), 3);
    // The same conversation is stored again.
    let ran = sandbox.run("fold --session d chat.json -w 5k --store x.db");
    assert!(ran.code == 0 && ran.out == sandbox.read("c.json"), "{}", ran.err);
    assert_eq!(exported(&sandbox).len(), 4);
    let ran = sandbox.run("doctor --store x.db");
    assert!(ran.out.ends_with("no problems\n"), "{}{}", ran.out, ran.err);
}

#[test]
#[cfg(unix)]
fn file_size_limit_is_a_write_error() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let mut command = Command::new("sh");
    let line = "ulimit -f 100; exec \"$@\"";
    command.args(["-c", line, "sh"]).arg(assert_cmd::cargo::cargo_bin("fanfold"));
    command.args(["fold", "--session", "a", "chat.json", "-w", "16k", "--store", "x.db", "-o", "out.json"]);
    command.env_clear().env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    let done = command.output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    // The process reported the error and was not killed by the signal.
    assert!(done.status.code().is_some(), "{:?} {err}", done.status);
    assert!(err.contains("no space left to write the store"), "{err}");
    let ran = sandbox.run("sessions list --store x.db");
    assert!(!ran.err.contains("version 0"), "{}", ran.err);
    let ran = sandbox.run("fold --session a chat.json -w 16k --store x.db -o out.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(sandbox.run("doctor --store x.db").code, 0);
}

#[test]
fn files_of_other_programs_are_refused() {
    let sandbox = Sandbox::new();
    let other = rusqlite::Connection::open(sandbox.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    sandbox.write("chat.json", &body(&long_chat(3)));
    sandbox.write("empty.db", "");
    for line in ["sessions list --store other.db", "fold --session a chat.json -w 16k --store other.db"] {
        let ran = sandbox.run(line);
        assert!(
            ran.err.contains("other.db could not be opened: it is another program's database"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("use a separate file for the store"), "{}", ran.err);
    }
    let ran = sandbox.run("sessions list --store empty.db");
    assert!(ran.err.contains("it does not contain a fanfold store yet\n"), "{}", ran.err);
    assert!(ran.err.contains("hint: store a session first"), "{}", ran.err);
}
