//! The answers of the tools: the same as on the command line, and limited in length.

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use super::stored_session::{FIRST_LINE, StoredSession};
use crate::sandbox::{body, long_chat};

/// Maximum length of an answer, in bytes.
const MAX_BYTES: usize = 25_000;

fn search_command(stored: &StoredSession, line: &str) -> Value {
    let ran = stored.sandbox.run(&format!("search {line} --json --store s.db"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn mcp_search_matches_the_command() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let browsed = client.call("search", json!({})).json();
    assert_eq!((browsed["mode"].as_str(), &browsed), (Some("browse"), &search_command(&stored, "")));
    let read = client.call("search", json!({ "session_id": "night" })).json();
    assert_eq!((read["mode"].as_str(), read["message_count"].as_u64()), (Some("read"), Some(66)));
    let found = client.call("search", json!({ "query": "hundredth record", "limit": 1 })).json();
    let printed = search_command(&stored, "hundredth record --limit 1");
    assert_eq!(found["mode"], "discover");
    for field in ["session_id", "match_message_id", "snippet", "matched_role", "messages_after"] {
        assert_eq!(found["results"][0][field], printed["results"][0][field], "{field}");
    }
    let number = found["results"][0]["match_message_id"].clone();
    let around = json!({ "session_id": "night", "around_message_id": number, "window": 1 });
    let scrolled = client.call("search", around).json();
    assert_eq!(scrolled, search_command(&stored, &format!("--session night --around {number} --window 1")));
    assert_eq!(
        scrolled["messages"].as_array().unwrap().iter().filter(|one| one["anchor"] == true).count(),
        1
    );
    // Fields that narrow the search.
    let none = client.call("search", json!({ "query": "hundredth", "since": "2999-01-01" })).json();
    assert_eq!(none["count"], 0, "{none}");
    let some = client.call("search", json!({ "query": "hundredth", "before": "2999-01-01", "role": "user" }));
    assert_eq!(some.json()["results"][0]["matched_role"], "user");
    let wrong = client.call("search", json!({ "query": "x", "since": "yesterday" }));
    assert!(wrong.error().contains("`since` is not a date"));
}

#[test]
fn search_excludes_the_view_and_finds_folds() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &["--session", "night"]);
    // The view contains the user's text; the first tool result was folded.
    assert_eq!(client.call("search", json!({ "query": "hundredth" })).json()["count"], 0);
    let folded = client.call("search", json!({ "query": "take_0_0" })).json();
    assert_eq!(folded["results"][0]["folded"], true, "{folded}");
    assert_eq!(client.call("status", json!({})).json()["session_id"], "night");
    let mut without_session = Client::start_and_initialize(&stored, &[]);
    assert_eq!(without_session.call("search", json!({ "query": "hundredth" })).json()["count"], 1);
}

#[test]
fn handles_are_recalled_in_any_notation() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let mut first = None;
    for handle in &stored.handles {
        let original = stored.original(handle);
        let called = client.call("recall", json!({ "handle": handle }));
        assert_eq!(called.text(), original, "{handle}");
        assert_eq!(called.texts.len(), 1, "a complete original has no second block: {:?}", called.texts);
        if original.contains(FIRST_LINE) {
            first = Some(handle.clone());
        }
    }
    let handle = first.expect("the first result is behind one of the handles");
    let original = stored.original(&handle);
    for written in [
        json!(format!("[{handle}]")),
        json!(format!("[{handle}] [read] src/stage_0.py")),
        json!(format!("recall {handle}")),
        json!(format!("night/{handle}")),
        json!(handle.trim_start_matches('#')),
    ] {
        assert_eq!(client.call("recall", json!({ "handle": written })).text(), original, "{written}");
    }
    let lines = client.call("recall", json!({ "handle": handle, "lines": "2-3", "session_id": "night" }));
    let wanted: Vec<&str> = original.split('\n').skip(1).take(2).collect();
    assert_eq!(lines.text(), wanted.join("\n"));
    let hits = client.call("recall", json!({ "handle": handle, "search": "TAKE_0_0(" }));
    assert!(hits.text().contains(FIRST_LINE), "{:?}", hits.texts);
    let nothing = client.call("recall", json!({ "handle": handle, "search": "no such words" }));
    assert!(nothing.text().starts_with("none of the "), "{:?}", nothing.texts);
}

#[test]
fn search_without_a_handle_finds_folded_lines() {
    let stored = StoredSession::new();
    let search = json!({ "search": "TAKE_0_0(" });
    let mut client = Client::start_and_initialize(&stored, &["--session", "night"]);
    let found = client.call("recall", search.clone());
    assert!(found.text().starts_with('#') && found.text().contains(FIRST_LINE), "{:?}", found.texts);
    let nothing = client.call("recall", json!({ "search": "no such words" }));
    assert_eq!(nothing.text(), "no folded line contains `no such words`");
    let mut without_session = Client::start_and_initialize(&stored, &[]);
    assert!(without_session.call("recall", search).error().contains("give a session_id"));
    let named = json!({ "search": "TAKE_0_0(", "session_id": "night" });
    assert_eq!(without_session.call("recall", named).texts, found.texts);
    let ran = stored.sandbox.run("recall --session night --search TAKE_0_0( --store s.db");
    assert_eq!((ran.code, ran.out.trim_end()), (0, found.text().trim_end()), "{}", ran.err);
}

#[test]
fn a_wrong_step_number_error_counts_the_steps() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &["--session", "night"]);
    let error = client.call("recall", json!({ "handle": "#999" })).error().to_owned();
    assert!(error.starts_with("there is no #999: the conversation has "), "{error}");
    let mut without_session = Client::start_and_initialize(&stored, &[]);
    let error = without_session.call("recall", json!({ "handle": "#999" })).error().to_owned();
    assert!(error.contains("has the handle #999") && error.contains("give the session_id"), "{error}");
}

#[test]
fn failed_recall_has_a_hint() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let nowhere = client.call("recall", json!({ "handle": "000000" }));
    assert!(nowhere.error().starts_with("none of the 1 sessions has the handle 000000"));
    let named = client.call("recall", json!({ "handle": "000000", "session_id": "night" }));
    assert!(named.error().contains("leave session_id out"));
    let word = client.call("recall", json!({ "handle": "the parser" }));
    assert!(word.error().starts_with("`the parser` is not a handle"));
    let lines = client.call("recall", json!({ "handle": stored.handles[0], "lines": "90000-" }));
    assert!(lines.error().contains("leave lines out"));
    let both = client.call("recall", json!({ "handle": stored.handles[0], "lines": "1", "search": "x" }));
    assert!(both.error().contains("give one of them"));
    assert!(client.call("recall", json!({ "handle": "message 99999" })).error().contains("no message 99999"));
}

#[test]
fn rewound_messages_are_not_shown() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let read = client.call("search", json!({ "session_id": "night" })).json();
    let number = read["messages"].as_array().unwrap().last().unwrap()["id"].clone();
    let last = json!({ "handle": format!("message {number}") });
    assert!(!client.call("recall", last.clone()).text().is_empty());
    assert_eq!(stored.sandbox.run("sessions rewind night --to 10 --store s.db").code, 0);
    let recalled = client.call("recall", last);
    assert!(recalled.error().starts_with(&format!("there is no message {number}")), "{:?}", recalled.texts);
}

#[test]
fn long_answers_are_truncated_with_a_continuation() {
    let stored = StoredSession::new();
    let mut messages = long_chat(3);
    let long: String = (0..9_000).map(|i| format!("row {i} of the wide table\n")).collect();
    messages.push(json!({ "role": "user", "content": format!("Here is all of it: zebra\n{long}") }));
    stored.sandbox.write("wide.json", &body(&messages));
    let ran = stored.sandbox.run("fold wide.json --session wide --window 1m --store s.db");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut client = Client::start_and_initialize(&stored, &[]);
    let found = client.call("search", json!({ "query": "zebra" }));
    assert!(found.text().len() <= MAX_BYTES, "{} bytes", found.text().len());
    let found = found.json();
    assert!(found["note"].as_str().unwrap().contains("message ID"), "{found}");
    let number = &found["results"][0]["match_message_id"];
    // Following the continuation in each answer gives the whole text.
    let (mut whole, mut lines) = (String::new(), "1-".to_owned());
    for _ in 0..40 {
        let part = client.call("recall", json!({ "handle": format!("message {number}"), "lines": lines }));
        assert!(part.text().len() <= MAX_BYTES);
        whole.push_str(part.text());
        let Some(rest) = part.texts.get(1) else { break };
        whole.push('\n');
        lines = rest.split_once("\"lines\": \"").unwrap().1.split('"').next().unwrap().to_owned();
    }
    assert_eq!(whole, format!("Here is all of it: zebra\n{long}"));
    let every = json!({ "query": "stage", "limit": 10, "window": 20, "max_chars": 100_000 });
    assert!(client.call("search", every).text().len() <= MAX_BYTES);
}

#[test]
fn status_reports_how_full_the_window_is() {
    let stored = StoredSession::new();
    for line in ["goal night find the lost record", "title night Night run", "pin night 1 5"] {
        assert_eq!(stored.sandbox.run(&format!("sessions {line} --store s.db")).code, 0, "{line}");
    }
    let mut client = Client::start_and_initialize(&stored, &[]);
    let status = client.call("status", json!({ "session_id": "Night run" })).json();
    assert_eq!(
        (status["window"].as_u64(), status["goal"].as_str()),
        (Some(8_000), Some("find the lost record"))
    );
    assert_eq!(status["pins"], json!([1, 5]), "{status}");
    assert!(status["folds"].as_u64().unwrap() > 0 && status["handles"].as_u64().unwrap() > 0, "{status}");
    let tokens = status["tokens"].as_u64().unwrap();
    assert_eq!(tokens + status["tokens_left"].as_u64().unwrap(), 6_000, "the room of a window of 8,000");
    let newest = client.call("status", json!({})).json();
    assert_eq!(newest["sessions"][0], status);
}

#[test]
fn server_survives_changes_of_the_store_file() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    stored
        .sandbox
        .write("more.json", &body(&[json!({ "role": "user", "content": "a walrus in the harbour" })]));
    assert_eq!(stored.sandbox.run("fold more.json --session more --store s.db").code, 0);
    let found = client.call("search", json!({ "query": "walrus" })).json();
    assert_eq!(found["results"][0]["session_id"], "more", "messages written by another process are found");
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(stored.sandbox.path(&format!("s.db{end}"))));
    }
    for tool in ["status", "search"] {
        assert!(client.call(tool, json!({})).error().starts_with("there is no store at "));
    }
    assert_eq!(stored.sandbox.run("fold more.json --session again --store s.db").code, 0);
    assert_eq!(client.call("status", json!({})).json()["sessions"][0]["session_id"], "again");
}
