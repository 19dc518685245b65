//! Sessions in PostgreSQL: the same commands, the same bytes.

use serde_json::{Value, json};

use crate::cluster;
use crate::sandbox::{CommandOutput, Sandbox, body, long_chat};
use crate::sessions::handles;

/// A sandbox whose store is a database.
struct Served {
    sandbox: Sandbox,
    store: String,
}

impl Served {
    /// One with a session of a long chat; none without PostgreSQL.
    fn stored_sandbox() -> Option<Served> {
        let served = Served { sandbox: Sandbox::new(), store: cluster::database()? };
        served.sandbox.write("chat.json", &body(&long_chat(60)));
        let ran = served.run("fold --session night chat.json -w 12k -o sent.json");
        assert_eq!(ran.code, 0, "{}", ran.err);
        Some(served)
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
    let Some(served) = Served::stored_sandbox() else { return };
    let sent = served.sandbox.read("sent.json");
    let in_a_file = served.sandbox.run("fold --session night chat.json -w 12k --store beside.db");
    assert_eq!(in_a_file.out, sent, "a file says the same");
    assert_eq!(served.run("inspect --session night --request 1").out, sent);
    let found = handles(&sent);
    assert!(found.len() > 3);
    for handle in found.iter().step_by(found.len() / 4) {
        let here = served.run(&format!("recall --session night {handle}"));
        let beside = served.sandbox.run(&format!("recall --session night {handle} --store beside.db"));
        assert!(here.code == 0 && !here.out.is_empty() && here.out == beside.out, "{handle}: {}", here.err);
    }
    let ran = served.run("doctor --requests");
    assert_eq!((ran.code, ran.out.contains("no problems")), (0, true), "{}{}", ran.out, ran.err);
}

#[test]
fn postgres_sessions_rewind_redo_and_fork() {
    let Some(served) = Served::stored_sandbox() else { return };
    assert_eq!(served.run("sessions rewind night --to 10").code, 0);
    assert_eq!(served.json("sessions show night --json")["messages"], 10);
    assert_eq!(served.run("sessions redo night").code, 0);
    served.run("sessions title night Task");
    let fork = served.run("sessions fork night --at 5").out;
    let next = served.run("sessions rotate night").out;
    assert_eq!(served.run("sessions resume night").out, next);
    let list = served.json("sessions list --json");
    let of = |id: &str| list.as_array().unwrap().iter().find(|row| row["id"] == id.trim()).unwrap().clone();
    assert_eq!((&of(&fork)["messages"], &of(&next)["title"]), (&json!(5), &json!("Task #2")));
    assert_eq!(of("night")["ended"]["reason"], "compression");
    assert_eq!(served.run("sessions delete night").code, 0);
    assert_eq!(served.run("doctor --requests").code, 0);
}

#[test]
fn sessions_move_between_postgres_and_file() {
    let Some(served) = Served::stored_sandbox() else { return };
    served.run("sessions export --all -o all.jsonl");
    served.sandbox.run("--quiet sessions import all.jsonl --store other.db");
    let there = served.sandbox.run("inspect --session night --request 1 --store other.db");
    assert_eq!(there.out, served.sandbox.read("sent.json"));
    assert!(served.run("sessions import all.jsonl").err.contains("1 known already"));
    let found = served.json("search hundredth record --json");
    assert_eq!((&found["mode"], &found["results"][0]["session_id"]), (&json!("discover"), &json!("night")));
    let live = served.json("search take_0_7 --current night --json");
    assert_eq!(live["results"][0]["folded"], true, "{live}");
}
