//! Imports: every message is imported exactly once.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn shown(sandbox: &Sandbox, session: &str) -> Value {
    serde_json::from_str(&sandbox.run(&format!("sessions show {session} --json")).out).unwrap()
}

/// A line of a session of Claude Code.
#[allow(clippy::needless_pass_by_value, reason = "the lines below are easier to read")]
fn claude(uuid: &str, parent: Option<&str>, message: Value) -> Value {
    json!({ "type": message["role"], "uuid": uuid, "parentUuid": parent, "sessionId": "sid", "message": message })
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn reply(id: &str, thought: &str, text: &str) -> Value {
    json!({ "role": "assistant", "id": id, "content": [
        { "type": "thinking", "thinking": thought }, { "type": "text", "text": text }] })
}

#[test]
fn every_message_of_a_claude_code_session_is_found() {
    let sandbox = Sandbox::new();
    let mut subagent = [
        claude("s1", Some("2"), user("count the pangolins")),
        claude("s2", Some("s1"), reply("b", "scales", "eleven")),
    ];
    subagent.iter_mut().for_each(|line| (line["isSidechain"], line["agentId"]) = (json!(true), json!("a7")));
    let [subagent1, subagent2] = subagent;
    let mut all = vec![
        json!({ "type": "summary", "summary": "Zebra hunt", "leafUuid": "2" }),
        claude("1", None, user("look for zebras")),
        claude("2", Some("1"), reply("a", "perhaps quaggas", "there are some")),
        subagent1,
        subagent2,
        claude("3", None, user("they looked for zebras, and went on")),
        claude("4", Some("3"), reply("c", "", "more of them")),
    ];
    let bad = "{\"type\":\"user\",\"uuid\":\n";
    sandbox.write("session.jsonl", &format!("{}{bad}", lines(&all)));
    let ran = sandbox.run("sessions import session.jsonl");
    assert!(ran.err.contains("session.jsonl: skipped 1 line that could not be read"), "{}", ran.err);
    assert!(ran.err.contains("3 sessions imported, 0 known already"), "{}", ran.err);
    for (word, source) in [("quaggas", "claude-code"), ("more", "claude-code")] {
        assert!(sandbox.run(&format!("search {word}")).out.contains(source), "{word}");
    }
    assert!(sandbox.run("search pangolins --source subagent").out.contains("pangolins"));
    assert_eq!(shown(&sandbox, "sid")["title"], "Zebra hunt");
    assert_eq!(shown(&sandbox, "sid#2")["parent"], json!({ "id": "sid", "relation": "rotation" }));
    assert_eq!(shown(&sandbox, "sid-a7")["parent"], json!({ "id": "sid", "relation": "subagent" }));
    assert_eq!(sandbox.run("sessions resume sid").out, "sid#2\n");
    // The session has grown, without an answer yet.
    all.push(claude("5", Some("4"), user("and the okapis?")));
    sandbox.write("session.jsonl", &lines(&all));
    let ran = sandbox.run("sessions import session.jsonl");
    assert!(ran.err.contains("0 sessions imported, 1 continued, 2 known already"), "{}", ran.err);
    assert!(sandbox.run("search okapis").out.contains("sid#2"));
    assert!(sandbox.run("sessions import session.jsonl").err.contains("0 sessions imported, 3 known"));
}

#[test]
fn unanswered_session_is_imported() {
    let sandbox = Sandbox::new();
    sandbox.write("new.jsonl", &lines(&[claude("1", None, user("is anybody there"))]));
    assert!(sandbox.run("sessions import new.jsonl").err.contains("1 session imported"));
    assert!(sandbox.run("search anybody").out.contains("sid"));
}

#[test]
fn every_message_of_a_codex_session_is_found() {
    let sandbox = Sandbox::new();
    let item = |payload: Value| json!({ "timestamp": "2026-11-15T11:00:01Z", "type": "response_item", "payload": payload });
    let message = |role: &str, text: &str| item(json!({ "type": "message", "role": role, "content": text }));
    let thought =
        json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "an aardwolf" }] });
    let search =
        json!({ "type": "web_search_call", "status": "completed", "action": { "query": "binturong" } });
    let all = [
        json!({ "type": "session_meta", "payload": { "id": "y", "instructions": "mind the capybara" } }),
        message("user", "which animals?"),
        item(thought),
        item(search),
        message("assistant", "several"),
        json!({ "type": "compacted", "payload": { "message": "they spoke of dugongs" } }),
        message("user", "go on"),
        message("assistant", "gladly"),
    ];
    sandbox.write("rollout.jsonl", &lines(&all));
    let ran = sandbox.run("sessions import rollout.jsonl");
    assert!(ran.err.contains("2 sessions imported"), "{}", ran.err);
    for word in ["aardwolf", "binturong", "dugongs"] {
        assert!(sandbox.run(&format!("search {word}")).out.contains("codex"), "{word}");
    }
    assert!(sandbox.run("search capybara --role system").out.contains("codex"));
    assert_eq!(shown(&sandbox, "y#2")["parent"], json!({ "id": "y", "relation": "rotation" }));
}

#[test]
fn hermes_reasoning_is_found() {
    let sandbox = Sandbox::new();
    let database = rusqlite::Connection::open(sandbox.path("state.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, system_prompt TEXT,
               parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, title TEXT);
             CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
               tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, reasoning TEXT, reasoning_content TEXT);
             INSERT INTO sessions VALUES ('h', 'cli', 'm', '', NULL, 1.0, 9.0, NULL, 'Task');
             INSERT INTO messages (session_id, role, content, timestamp, reasoning, reasoning_content) VALUES
               ('h', 'user', 'first', 1.0, NULL, NULL),
               ('h', 'assistant', 'one', 2.0, 'the fossa', NULL),
               ('h', 'assistant', 'two', 3.0, 'the fossa again', 'the tenrec'),
               ('h', 'assistant', 'three', 4.0, 'the numbat', '');",
        )
        .unwrap();
    drop(database);
    assert_eq!(sandbox.run("sessions import state.db").code, 0);
    for word in ["fossa", "tenrec", "numbat"] {
        assert!(sandbox.run(&format!("search {word}")).out.contains(word), "{word}");
    }
}

#[test]
fn grown_exports_are_imported_once() {
    let sandbox = Sandbox::new();
    for (n, expected) in
        [(8, "1 session imported, 0 known"), (12, "0 sessions imported, 1 continued, 0 known")]
    {
        sandbox.write("chat.json", &body(&long_chat(n)));
        sandbox.run("fold --session t chat.json -w 4k -q -o sent.json --store there.db");
        sandbox.run("-q sessions export --all -o all.jsonl --store there.db");
        let ran = sandbox.run("sessions import all.jsonl");
        assert!(ran.err.contains(expected), "{}", ran.err);
        for _ in 0..2 {
            let ran = sandbox.run("sessions import all.jsonl");
            assert!(ran.err.contains("0 sessions imported, 1 known already"), "{}", ran.err);
        }
    }
    assert_eq!(sandbox.run("sessions export t -f raw").out, sandbox.read("chat.json"));
    assert_eq!(sandbox.run("inspect --session t --request 2").out, sandbox.read("sent.json"));
    assert_eq!(sandbox.run("doctor --requests").code, 0);
}

#[test]
fn imported_lineages_keep_their_sessions() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(8)));
    sandbox.write("own.json", &body(&[user("something of my own")]));
    sandbox.run("fold --session t chat.json -w 40k -q -o x.json --store there.db");
    let child = sandbox.run("-q sessions rotate t --store there.db").out.trim().to_owned();
    sandbox.run("-q sessions export --all -o all.jsonl --store there.db");
    sandbox.run("fold --session t own.json -w 40k -q -o x.json");
    let ran = sandbox.run("sessions import all.jsonl");
    assert!(ran.err.contains("2 sessions imported"), "{}", ran.err);
    let parent = shown(&sandbox, &child)["parent"]["id"].as_str().unwrap().to_owned();
    assert_ne!(parent, "t");
    assert_eq!(shown(&sandbox, &parent)["messages"], 18);
    assert_eq!(sandbox.run("sessions resume t").out, "t\n");
    assert!(sandbox.run("sessions import all.jsonl").err.contains("0 sessions imported, 2 known"));
}

#[test]
fn sharegpt_lines_are_imported_as_sessions() {
    let sandbox = Sandbox::new();
    for (name, n) in [("a", 2), ("b", 3), ("c", 4)] {
        sandbox.write("chat.json", &body(&long_chat(n)));
        sandbox.run(&format!("fold --session {name} chat.json -w 40k -q -o x.json"));
    }
    sandbox.run("sessions export --all -f sharegpt -o sg.jsonl");
    let ran = sandbox.run("sessions import sg.jsonl --store other.db");
    assert!(ran.code == 0 && ran.err.contains("3 sessions imported"), "{}", ran.err);
    let ran = sandbox.run("sessions import sg.jsonl --store other.db");
    assert!(ran.err.contains("0 sessions imported, 3 known already"), "{}", ran.err);
}

#[test]
fn bad_file_does_not_prevent_other_imports() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", &body(&long_chat(2)));
    sandbox.write("bad.json", "{\"model\": 3");
    sandbox.write("two.json", &body(&long_chat(3)));
    let ran = sandbox.run("sessions import one.json bad.json missing.json two.json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("2 sessions imported, 0 known already"), "{}", ran.err);
    assert!(ran.err.contains("bad.json") && ran.err.contains("missing.json"), "{}", ran.err);
    // So within one file.
    sandbox.run("-q sessions export --all -o all.jsonl");
    let all = sandbox.read("all.jsonl");
    let (first, second) = all.split_once('\n').unwrap();
    sandbox.write("all.jsonl", &format!("{first}\n{{\"fanfold\":1}}\n{second}"));
    let ran = sandbox.run("sessions import all.jsonl --store other.db");
    assert!(ran.code == 1 && ran.err.contains("2 sessions imported"), "{}", ran.err);
    assert!(ran.err.contains("all.jsonl: line 2:"), "{}", ran.err);
}

#[test]
fn sharegpt_export_redacts_secrets() {
    let sandbox = Sandbox::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let call = json!({ "id": "c", "type": "function", "function": { "name": "bash",
        "arguments": json!({ "command": format!("curl -H 'token: {secret}'") }).to_string() } });
    let messages = [
        user(&format!("use {secret}")),
        json!({ "role": "assistant", "content": "", "reasoning_content": format!("so {secret}"), "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "c", "content": format!("sent {secret}") }),
        json!({ "role": "assistant", "content": format!("{secret} it was") }),
    ];
    sandbox.write("chat.json", &body(&messages));
    sandbox.run("fold --session s chat.json -w 40k -q -o x.json");
    let n_secrets = |line: &str| {
        let ran = sandbox.run(line);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out.matches(&secret).count()
    };
    assert_eq!(n_secrets("sessions export s -f sharegpt"), 0);
    assert!(sandbox.run("sessions export s -f sharegpt").out.contains("it was"));
    assert_eq!(n_secrets("sessions export s -f sharegpt --with-secrets"), 5);
    assert_eq!(n_secrets("sessions export s -f raw"), 5);
    assert_eq!(sandbox.run("sessions export s -f raw").out, sandbox.read("chat.json"));
}

#[test]
fn sharegpt_export_redacts_multiline_secrets() {
    let sandbox = Sandbox::new();
    let begin = ["-----BEGIN RSA", "PRIVATE KEY-----"].join(" ");
    let key = format!("{begin}\nMIIEowIBAAKCAQEAx7Yq\nR0dTqkVbW9sLmZp3\n-----END RSA PRIVATE KEY-----");
    let call = json!({ "id": "c", "type": "function", "function": { "name": "write",
        "arguments": json!({ "path": "id_rsa", "content": key }).to_string() } });
    let messages = [
        user("keep it"),
        json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "c", "content": format!("wrote {key}") }),
    ];
    sandbox.write("chat.json", &body(&messages));
    sandbox.run("fold --session s chat.json -w 40k -q -o x.json");
    let out = sandbox.run("sessions export s -f sharegpt").out;
    assert!(out.contains("id_rsa") && !out.contains("MIIEow") && !out.contains("R0dTqk"), "{out}");
}

#[test]
fn session_id_may_contain_a_slash() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(2)));
    sandbox.run("fold --session x/y chat.json -w 40k -q -o x.json");
    assert!(sandbox.run("search --session x/y").out.contains("hundredth"));
    assert!(sandbox.run("search hundredth --session x/y").out.contains("x/y"));
    assert!(sandbox.run("search --session z/y").err.contains("there is no profile \"z\""));
    let ran = sandbox.run("search hundredth -n 50");
    assert!(ran.err.contains("at most 10 results are shown"), "{}", ran.err);
    assert_eq!(sandbox.run("search -- rm -rf /usr").code, 0);
}
