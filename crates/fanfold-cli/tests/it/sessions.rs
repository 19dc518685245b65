//! Stored sessions: their folds, their requests.

use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::sandbox::{CommandOutput, Sandbox, body, long_chat};

/// A store with one session of a long chat.
fn stored_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("fold --session night chat.json -w 12k -o sent.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    sandbox
}

/// Replaces times and ids, which differ in each run.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_moment = digits >= 4 && word.contains(['-', ':']) && !word.contains("bytes");
        let is_id = digits >= 14 || word.trim().len() == 16 && digits > 2;
        let end = if word.ends_with('\n') { "\n" } else { " " };
        if is_moment || is_id { out.push_str(&format!("…{end}")) } else { out.push_str(word) }
    }
    out
}

fn check(ran: &CommandOutput, expected: &Expect) {
    expected.assert_eq(without_times(&format!("{}{}", ran.out, ran.err)).trim_start());
}

#[test]
fn sessions_are_listed_and_shown() {
    let sandbox = stored_sandbox();
    check(
        &sandbox.run("sessions list"),
        &expect![[r#"
              1  night  … …     132 messages  cli      Find out why the night run loses every hundredth record.
        "#]],
    );
    sandbox.run("sessions title 1 The night run");
    sandbox.run("sessions goal night find the record");
    check(
        &sandbox.run("sessions show night"),
        &expect![[r#"
            session    night
            title      The night run
            goal       find the record
            source     cli
            format     chat
            model      gpt-4o
            started    … …
            updated    … …
            messages   132
            folds      72 handles
              … …  folded for a window of 12,000 tokens from here on
              … …  checkpoint "before fold 10"
              … …  fold 10: 8,801 → 4,757 tokens, 72 handles
              … …  request of 17,257 bytes
        "#]],
    );
    let all: Value = serde_json::from_str(&sandbox.run("sessions list --json").out).unwrap();
    assert_eq!(all[0]["title"], "The night run");
}

#[test]
fn requests_are_rebuilt_and_folds_recalled() {
    let sandbox = stored_sandbox();
    let sent = sandbox.read("sent.json");
    let again = sandbox.run("inspect --session night --request 1");
    assert_eq!((again.code, &again.out), (0, &sent));
    assert!(again.err.contains("the bytes that were sent"), "{}", again.err);
    let found = handles_in(&sent);
    assert!(found.len() > 3);
    for handle in found {
        let ran = sandbox.run(&format!("recall --session night {handle}"));
        assert!(ran.code == 0 && !ran.out.is_empty(), "{handle}: {}", ran.err);
    }
    let ran = sandbox.run("recall --session night 000000");
    assert!(
        ran.code == 1 && ran.err.contains("hint: `fanfold inspect --session night --ledger`"),
        "{}",
        ran.err
    );
    let ran = sandbox.run("recall --session night #9999");
    assert!(
        ran.code == 1 && ran.err.contains("hint: `fanfold show --session night` prints the conversation"),
        "{}",
        ran.err
    );
    check(
        &sandbox.run("doctor --requests"),
        &expect![[r#"
            1 session, 72 handles, 1 request: no problems
        "#]],
    );
    assert!(sandbox.run("show --session night --folded").out.contains("fanfold"));
    let ledger = sandbox.run("inspect --session night --ledger --json").out;
    assert!(serde_json::from_str::<Value>(&ledger).unwrap()["receipts"].as_array().unwrap().len() > 1);
    assert!(sandbox.run("inspect --session night --request 7").err.contains("counted from 1 to 1"));
}

#[test]
fn sessions_rewind_redo_and_fork() {
    let sandbox = stored_sandbox();
    check(&sandbox.run("sessions checkpoint night before the change"), &expect![[""]]);
    check(
        &sandbox.run("sessions rewind night --turns 2"),
        &expect![[r#"
            night: 97 messages, before 132
        "#]],
    );
    check(
        &sandbox.run("sessions redo night"),
        &expect![[r#"
            night: 132 messages, before 97
        "#]],
    );
    sandbox.run("sessions rewind night --to 10");
    check(
        &sandbox.run("sessions restore night before the change"),
        &expect![[r#"
        night: 132 messages, before 10
    "#]],
    );
    check(
        &sandbox.run("sessions restore night nowhere"),
        &expect![[r#"
            error: session night has no checkpoint "nowhere"

            hint: its checkpoints are before fold 10, before the change
        "#]],
    );
    sandbox.run("sessions title night Task");
    let fork = sandbox.run("sessions fork night --at 5").out;
    let next = sandbox.run("sessions rotate night").out;
    assert_eq!(sandbox.run("sessions resume night").out, next);
    assert_eq!(sandbox.run("sessions rotate night").code, 1);
    let list: Value = serde_json::from_str(&sandbox.run("sessions list --json").out).unwrap();
    let row = |id: &str| list.as_array().unwrap().iter().find(|row| row["id"] == id.trim()).unwrap().clone();
    assert_eq!((&row(&fork)["messages"], &row(&fork)["parent"]["relation"]), (&json!(5), &json!("fork")));
    assert_eq!(
        (&row(&next)["title"], &row("night")["ended"]["reason"]),
        (&json!("Task #2"), &json!("compression"))
    );
    assert_eq!(sandbox.run("sessions delete night").code, 0);
    assert_eq!(sandbox.run("doctor --requests").code, 0);
    assert_eq!(sandbox.run("sessions show night").code, 1);
}

#[test]
fn exports_are_imported_into_another_store() {
    let sandbox = stored_sandbox();
    sandbox.run("sessions export --all -o all.jsonl");
    sandbox.run("--quiet sessions import all.jsonl --store other.db");
    assert_eq!(
        sandbox.run("inspect --session night --request 1 --store other.db").out,
        sandbox.read("sent.json")
    );
    check(
        &sandbox.run("sessions import all.jsonl --store other.db"),
        &expect![[r#"
        0 sessions imported, 1 known already
    "#]],
    );
    assert_eq!(sandbox.run("sessions export night -f raw").out, sandbox.read("chat.json"));
    let line: Value = serde_json::from_str(&sandbox.run("sessions export night -f sharegpt").out).unwrap();
    let turns = line["conversations"].as_array().unwrap();
    assert_eq!(
        (&turns[0]["from"], &turns[1]["from"], &turns[2]["from"]),
        (&json!("system"), &json!("human"), &json!("gpt"))
    );
    assert!(turns[2]["value"].as_str().unwrap().contains("<tool_call>"));
    assert!(turns[3]["value"].as_str().unwrap().contains("<tool_response>"));
    // A ShareGPT export can be imported, too.
    sandbox.write("one.json", &line.to_string());
    assert!(sandbox.run("sessions import one.json --store third.db").err.contains("1 session imported"));
}

#[test]
fn bodies_of_every_format_are_imported_verbatim() {
    use fanfold_testkit::generators::bodies::{BodyFormat, rich};
    let sandbox = Sandbox::new();
    for (i, kind) in BodyFormat::ALL.into_iter().enumerate() {
        let text = rich(kind, 3);
        sandbox.write("one.json", &text);
        let store = format!("store{i}.db");
        let ran = sandbox.run(&format!("sessions import one.json --store {store}"));
        assert!(ran.err.contains("1 session imported"), "{kind:?}: {}", ran.err);
        assert_eq!(sandbox.run(&format!("sessions export 1 -f raw --store {store}")).out, text, "{kind:?}");
    }
}

#[test]
fn hermes_import_includes_compacted_messages() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("state.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, system_prompt TEXT,
               parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, title TEXT);
             CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
               tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, reasoning_content TEXT,
               active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0);
             INSERT INTO sessions VALUES ('a', 'cli', 'm', 'be kind', NULL, 1.0, 9.0, 'compression', 'Task');
             INSERT INTO sessions VALUES ('b', 'cli', 'm', '', 'a', 2.0, NULL, NULL, 'Task #2');
             INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp, active, compacted) VALUES
               ('a', 'user', 'first', NULL, NULL, 1.0, 0, 1),
               ('a', 'assistant', '', NULL, '[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]', 2.0, 0, 1),
               ('a', 'tool', 'out', 'c', NULL, 3.0, 0, 1),
               ('a', 'user', 'rewound', NULL, NULL, 4.0, 0, 0),
               ('a', 'user', 'last', NULL, NULL, 5.0, 0, 1),
               ('a', 'user', '[summary]', NULL, NULL, 6.0, 1, 0),
               ('a', 'user', 'last', NULL, NULL, 5.0, 1, 0),
               ('a', 'assistant', char(0) || 'json:[{\"type\":\"text\",\"text\":\"new\"}]', NULL, NULL, 7.0, 1, 0),
               ('b', 'user', 'on', NULL, NULL, 8.0, 1, 0);",
        )
        .unwrap();
    drop(database);
    check(
        &sandbox.run("sessions import state.db"),
        &expect![[r#"
        2 sessions imported, 0 known already
    "#]],
    );
    check(
        &sandbox.run("show --session a"),
        &expect![[r#"
            system  be kind
            user    first
            call    ls {}
            result  out
            user    last
            user    [summary]
            say     new
        "#]],
    );
    let b: Value = serde_json::from_str(&sandbox.run("sessions show b --json").out).unwrap();
    assert_eq!(b["parent"], json!({ "id": "a", "relation": "rotation" }));
    assert_eq!(sandbox.run("sessions resume a").out, "b\n");
}

#[test]
fn sessions_of_agents_are_imported() {
    let sandbox = Sandbox::new();
    let claude = [
        json!({ "type": "user", "uuid": "1", "parentUuid": null, "sessionId": "x", "timestamp": "2026-11-15T10:00:00Z",
            "message": { "role": "user", "content": "look at zebra.rs" } }),
        json!({ "type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "x", "timestamp": "2026-11-15T10:00:05Z",
            "message": { "id": "m", "model": "claude-opus-5-5", "role": "assistant",
                "content": [{ "type": "text", "text": "It is striped." }] } }),
    ];
    let lines: Vec<String> = claude.iter().map(ToString::to_string).collect();
    sandbox.write("session.jsonl", &lines.join("\n"));
    assert!(sandbox.run("sessions import session.jsonl").err.contains("1 session imported"));
    let ran = sandbox.run("search striped");
    assert!(ran.out.contains("claude-code") && ran.out.contains("striped"), "{}{}", ran.out, ran.err);
    let codex = [
        json!({ "timestamp": "2026-11-15T11:00:00Z", "type": "session_meta", "payload": { "id": "y" } }),
        json!({ "timestamp": "2026-11-15T11:00:01Z", "type": "response_item", "payload": { "type": "message",
            "role": "user", "content": [{ "type": "input_text", "text": "and the okapi?" }] } }),
        json!({ "timestamp": "2026-11-15T11:00:02Z", "type": "response_item", "payload": { "type": "message",
            "role": "assistant", "content": [{ "type": "output_text", "text": "Also striped, behind." }] } }),
    ];
    let lines: Vec<String> = codex.iter().map(ToString::to_string).collect();
    sandbox.write("rollout.jsonl", &lines.join("\n"));
    assert!(sandbox.run("sessions import rollout.jsonl").err.contains("1 session imported"));
    assert!(sandbox.run("search okapi").out.contains("codex"));
}

#[test]
fn search_discovers_scrolls_reads_and_browses() {
    let sandbox = stored_sandbox();
    let ran = sandbox.run("search hundredth record --json");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&found["mode"], &found["results"][0]["session_id"]), (&json!("discover"), &json!("night")));
    let number = &found["results"][0]["match_message_id"];
    let around: Value =
        serde_json::from_str(&sandbox.run(&format!("search --session night --around {number} --json")).out)
            .unwrap();
    assert_eq!((&around["mode"], &around["session_id"]), (&json!("scroll"), &json!("night")));
    let read: Value = serde_json::from_str(&sandbox.run("search --session 1 --json").out).unwrap();
    assert_eq!((&read["mode"], &read["message_count"]), (&json!("read"), &json!(132)));
    let browse: Value = serde_json::from_str(&sandbox.run("search --json").out).unwrap();
    assert_eq!(browse["mode"], "browse");
    assert!(sandbox.run("search hundredth").out.contains("night"));
    assert!(sandbox.run("search --session night").out.contains("messages left out"));
    assert_eq!(sandbox.run("search xylophone").code, 0);
    // Messages in the caller's view are left out, folded ones are found.
    let live = sandbox.run("search take_0_7 --current night --json").out;
    assert_eq!(serde_json::from_str::<Value>(&live).unwrap()["results"][0]["folded"], true, "{live}");
    let last = sandbox.run("search stage_59 --current night --role tool --json").out;
    assert!(!last.contains("\"match_message_id\": 132"), "{last}");
    // Another profile is opened read-only.
    sandbox.run("fold --session other chat.json -w 900k -q --profile work -o x.json");
    let other = sandbox.run("search hundredth --other-profile work --json").out;
    assert_eq!(serde_json::from_str::<Value>(&other).unwrap()["profile"], "work", "{other}");
    assert!(
        sandbox.run("search hundredth --other-profile nobody").err.contains("profiles are default, work")
    );
    assert!(sandbox.run("search a --since yesterday").err.contains("write it as 2026-11-15"));
}

#[test]
fn missing_store_is_an_error() {
    let sandbox = Sandbox::new();
    check(
        &sandbox.run("sessions list"),
        &expect![[r#"
            error: there is no store at HERE/.local/share/fanfold/default.db

            hint: store a session first: fanfold fold --session new chat.json
        "#]],
    );
    let ran = sandbox.run("sessions list --profile ../x");
    assert!(ran.err.contains("hint: use letters"), "{}", ran.err);
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = sandbox.run("fold --session s chat.json -w 200 --user-text never");
    assert_eq!((ran.code, &*ran.out), (3, ""));
    sandbox.write("noise.db", "not a database, but long enough to look like one to a careless reader");
    for line in
        ["fold --session s -w 12k --store noise.db", "fold --session s chat.json --dry-run --store noise.db"]
    {
        let ran = sandbox.run(line);
        assert_eq!((ran.code, &*ran.out), (1, ""), "{line}: {}", ran.err);
    }
}

#[test]
fn concurrent_folds_of_a_session_fold_once() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(50)));
    sandbox.write("start.json", &body(&long_chat(3)));
    sandbox.run("fold --session s start.json -w 12k -o x.json");
    let start = |i: usize| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
        command.env_clear().env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
        command.args(["fold", "--session", "s", "chat.json", "-w", "12k", "-q", "-o"]);
        command.arg(format!("out{i}.json")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let first = sandbox.read("out0.json");
    assert!((1..4).all(|i| sandbox.read(&format!("out{i}.json")) == first));
    let shown: Value = serde_json::from_str(&sandbox.run("sessions show s --json").out).unwrap();
    let kinds: Vec<&str> =
        shown["happened"].as_array().unwrap().iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "fold").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "request").count(), 5, "{kinds:?}");
    assert_eq!(sandbox.run("doctor --requests").code, 0);
}
