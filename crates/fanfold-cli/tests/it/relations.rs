//! Relations of sessions, other profiles, and retention.

use std::time::{SystemTime, UNIX_EPOCH};

use fanfold_store::Millis;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Lines of a session of Claude Code: a question and an answer.
fn claude(session: &str, text: &str, at: &str) -> Vec<Value> {
    let line = |n: usize, role: &str, text: &str| {
        let before = (n > 1).then(|| format!("{text}{}", n - 1));
        json!({ "type": role, "uuid": format!("{text}{n}"), "parentUuid": before, "sessionId": session,
            "timestamp": at, "message": { "role": role, "id": text, "content": [{ "type": "text", "text": text }] } })
    };
    vec![line(1, "user", text), line(2, "assistant", text)]
}

/// The same conversation, written by a subagent of the session.
fn subagent(session: &str, agent: &str, text: &str) -> Vec<Value> {
    let mut lines = claude(session, text, "2026-11-15T10:00:00Z");
    lines.iter_mut().for_each(|line| (line["isSidechain"], line["agentId"]) = (json!(true), json!(agent)));
    lines
}

fn parent(sandbox: &Sandbox, session: &str) -> Value {
    let shown = sandbox.run(&format!("sessions show {session} --json"));
    serde_json::from_str::<Value>(&shown.out).unwrap_or_else(|_| panic!("{}", shown.err))["parent"].clone()
}

#[test]
fn subagents_are_shown_on_both_sides() {
    let sandbox = Sandbox::new();
    // The file of the subagent is imported first.
    sandbox.write("agent-a7.jsonl", &lines(&subagent("sid", "a7", "pangolins")));
    sandbox.write("sid.jsonl", &lines(&claude("sid", "zebras", "2026-11-15T10:00:00Z")));
    let ran = sandbox.run("sessions import agent-a7.jsonl sid.jsonl");
    assert!(ran.code == 0 && ran.err.contains("2 sessions imported, 0 known"), "{}", ran.err);
    assert_eq!(parent(&sandbox, "sid-a7"), json!({ "id": "sid", "relation": "subagent" }));
    let fork = sandbox.run("sessions fork sid").out;
    let shown = sandbox.run("sessions show sid-a7").out;
    assert!(shown.contains("\nsource     subagent\n"), "{shown}");
    assert!(shown.contains("\norigin     subagent of sid\n"), "{shown}");
    let shown = sandbox.run("sessions show sid").out;
    assert!(shown.contains("\nsubagent   sid-a7 (subagent)\n"), "{shown}");
    assert!(shown.contains(&format!("\ncontinued  {} (fork)\n", fork.trim())), "{shown}");
    assert_eq!(sandbox.run("sessions resume sid").out, "sid\n");
    let ran = sandbox.run("sessions import agent-a7.jsonl sid.jsonl");
    assert!(ran.err.contains("0 sessions imported, 2 known"), "{}", ran.err);
    // A subagent is imported without its parent, too.
    let ran = sandbox.run("sessions import agent-a7.jsonl --store other.db");
    assert!(ran.code == 0 && ran.err.contains("1 session imported"), "{}", ran.err);
}

#[test]
fn subagents_join_the_parent_of_their_own_file() {
    let sandbox = Sandbox::new();
    sandbox.write("own.json", &body(&long_chat(2)));
    sandbox.run("fold --session sid own.json -w 40k -q -o x.json");
    let all = [claude("sid", "zebras", "2026-11-15T10:00:00Z"), subagent("sid", "a7", "pangolins")].concat();
    sandbox.write("sid.jsonl", &lines(&all));
    let ran = sandbox.run("sessions import sid.jsonl");
    assert!(ran.err.contains("2 sessions imported"), "{}", ran.err);
    let parent = parent(&sandbox, "sid-a7");
    assert!(parent["relation"] == "subagent" && parent["id"] != "sid", "{parent}");
    assert!(sandbox.run("search zebras").out.contains(parent["id"].as_str().unwrap()));
}

/// Sessions of Hermes: a rotated one and its continuations.
fn hermes(sandbox: &Sandbox) {
    let database = rusqlite::Connection::open(sandbox.path("state.db")).unwrap();
    let tables = "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
          parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, title TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
          tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL);
        INSERT INTO sessions VALUES
          ('a', 'cli', 'm', NULL, '', NULL, 1.0, 9.0, 'compression', 'Task'),
          ('b', 'cli', 'm', '{}', '', 'a', 2.0, NULL, NULL, 'Task #2'),
          ('c', 'subagent', 'm', '{}', '', 'a', 3.0, NULL, NULL, NULL),
          ('d', 'cli', 'm', '{\"_delegate_from\":\"a\"}', '', 'a', 4.0, NULL, NULL, NULL),
          ('e', 'cli', 'm', '{\"_branched_from\":\"a\"}', '', 'a', 5.0, NULL, NULL, NULL),
          ('f', 'cli', 'm', NULL, '', 'b', 6.0, NULL, NULL, NULL);";
    database.execute_batch(tables).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?1, 'user', 'word' || ?1, 7.0)";
        database.execute(insert, [name]).unwrap();
    }
}

#[test]
fn hermes_import_keeps_relations() {
    let sandbox = Sandbox::new();
    hermes(&sandbox);
    assert!(sandbox.run("sessions import state.db").err.contains("6 sessions imported"));
    let relations = ["b", "c", "d", "e", "f"].map(|name| parent(&sandbox, name)["relation"].clone());
    assert_eq!(relations, ["rotation", "subagent", "subagent", "fork", "fork"].map(Value::from));
    assert_eq!(sandbox.run("sessions resume a").out, "b\n");
    assert!(sandbox.run("sessions import state.db").err.contains("0 sessions imported, 6 known already"));
    // A session here with the same id as a Hermes session is not a parent.
    sandbox.write("own.json", &body(&long_chat(2)));
    sandbox.run("fold --session a own.json -w 40k -q -o x.json --store other.db");
    sandbox.run("sessions import state.db --store other.db");
    let shown = sandbox.run("sessions show b --json --store other.db").out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["parent"]["id"].is_string() && shown["parent"]["id"] != "a", "{shown}");
    assert_eq!(sandbox.run("sessions resume a --store other.db").out, "a\n");
}

#[test]
fn search_leaves_other_profiles_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(3)));
    sandbox.run("fold --session own chat.json -w 40k -q -o x.json");
    sandbox.run("fold --session theirs chat.json -w 40k -q -o x.json --profile work");
    let file = sandbox.path(".local/share/fanfold/work.db");
    let before = std::fs::read(&file).unwrap();
    let found = sandbox.run("search hundredth --other-profile work");
    assert!(found.out.contains("theirs") && !found.out.contains("own"), "{}{}", found.out, found.err);
    assert_eq!(sandbox.run("sessions list --profile work --json").out.matches("\"id\": ").count(), 1);
    assert!(std::fs::read(&file).unwrap() == before, "a read-only search does not index");
}

#[test]
fn prune_counts_in_days() {
    let sandbox = Sandbox::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    for (name, days) in [("new", 3), ("old", 40)] {
        let at = Millis(now - days * 86_400_000).to_string().replace(' ', "T") + "Z";
        sandbox.write(&format!("{name}.jsonl"), &lines(&claude(name, name, &at)));
    }
    assert!(sandbox.run("sessions import new.jsonl old.jsonl").err.contains("2 sessions imported"));
    assert_eq!(sandbox.run("sessions prune --days 30 --dry-run").out, "old\n");
    let ran = sandbox.run("sessions prune --days 30");
    assert!(ran.err.contains("deleted: 1 session, 2 messages"), "{}", ran.err);
    assert_eq!(sandbox.run("sessions show old").code, 1);
    assert_eq!(sandbox.run("sessions show new").code, 0);
}
