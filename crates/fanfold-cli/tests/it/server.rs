//! Sessions in PostgreSQL: the same commands, the same bytes.

use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::cluster;
use crate::sandbox::{CommandOutput, Sandbox, body, long_chat};

/// A sandbox whose store is a database.
struct DatabaseSandbox {
    sandbox: Sandbox,
    store: String,
}

impl DatabaseSandbox {
    /// A sandbox with a session of a long chat; `None` without PostgreSQL.
    fn stored_sandbox() -> Option<DatabaseSandbox> {
        let database = DatabaseSandbox { sandbox: Sandbox::new(), store: cluster::database()? };
        database.sandbox.write("chat.json", &body(&long_chat(60)));
        let ran = database.run("fold --session night chat.json -w 12k -o sent.json");
        assert_eq!(ran.code, 0, "{}", ran.err);
        Some(database)
    }

    fn run(&self, line: &str) -> CommandOutput {
        self.sandbox.run(&format!("{line} --store {}", self.store))
    }

    fn json(&self, line: &str) -> Value {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }
}

#[test]
fn postgres_requests_are_rebuilt_and_folds_recalled() {
    let Some(database) = DatabaseSandbox::stored_sandbox() else { return };
    let sent = database.sandbox.read("sent.json");
    let in_a_file = database.sandbox.run("fold --session night chat.json -w 12k --store beside.db");
    assert_eq!(in_a_file.out, sent, "a file gives the same view");
    assert_eq!(database.run("inspect --session night --request 1").out, sent);
    let found = handles_in(&sent);
    assert!(found.len() > 3);
    for handle in found.iter().step_by(found.len() / 4) {
        let from_database = database.run(&format!("recall --session night {handle}"));
        let from_file = database.sandbox.run(&format!("recall --session night {handle} --store beside.db"));
        assert!(
            from_database.code == 0 && !from_database.out.is_empty() && from_database.out == from_file.out,
            "{handle}: {}",
            from_database.err
        );
    }
    let ran = database.run("doctor --requests");
    assert_eq!((ran.code, ran.out.contains("no problems")), (0, true), "{}{}", ran.out, ran.err);
}

#[test]
fn postgres_sessions_rewind_redo_and_fork() {
    let Some(database) = DatabaseSandbox::stored_sandbox() else { return };
    assert_eq!(database.run("sessions rewind night --to 10").code, 0);
    assert_eq!(database.json("sessions show night --json")["messages"], 10);
    assert_eq!(database.run("sessions redo night").code, 0);
    database.run("sessions title night Task");
    let fork = database.run("sessions fork night --at 5").out;
    let next = database.run("sessions rotate night").out;
    assert_eq!(database.run("sessions resume night").out, next);
    let list = database.json("sessions list --json");
    let row = |id: &str| list.as_array().unwrap().iter().find(|row| row["id"] == id.trim()).unwrap().clone();
    assert_eq!((&row(&fork)["messages"], &row(&next)["title"]), (&json!(5), &json!("Task #2")));
    assert_eq!(row("night")["ended"]["reason"], "compression");
    assert_eq!(database.run("sessions delete night").code, 0);
    assert_eq!(database.run("doctor --requests").code, 0);
}

#[test]
fn sessions_move_between_postgres_and_file() {
    let Some(database) = DatabaseSandbox::stored_sandbox() else { return };
    database.run("sessions export --all -o all.jsonl");
    database.sandbox.run("--quiet sessions import all.jsonl --store other.db");
    let there = database.sandbox.run("inspect --session night --request 1 --store other.db");
    assert_eq!(there.out, database.sandbox.read("sent.json"));
    assert!(database.run("sessions import all.jsonl").err.contains("1 known already"));
    let found = database.json("search hundredth record --json");
    assert_eq!((&found["mode"], &found["results"][0]["session_id"]), (&json!("discover"), &json!("night")));
    let live = database.json("search take_0_7 --current night --json");
    assert_eq!(live["results"][0]["folded"], true, "{live}");
}
