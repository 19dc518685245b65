//! MCP over stdin and stdout: the handshake, odd input, two requests at once, cancellation, the end.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, TIMEOUT, ToolResult, initialize_params, program};
use super::stored_session::StoredSession;
use crate::sandbox::Sandbox;

#[test]
fn handshake_lists_three_tools() {
    let stored = StoredSession::new();
    let mut client = Client::start(&stored, &[]);
    let server_info = client.initialize();
    assert_eq!(server_info["result"]["protocolVersion"], "2025-06-18");
    assert!(server_info["result"]["capabilities"]["tools"].is_object(), "{server_info}");
    assert!(server_info["result"]["instructions"].as_str().unwrap().contains("recall"));
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search", "recall", "status"]);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
    let (left, code, stderr) = client.end();
    assert_eq!((left, code, stderr.as_str()), (Vec::new(), Some(0), ""));
}

#[test]
fn server_continues_after_odd_input() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    for line in ["", "not JSON", "{\"jsonrpc\":", "\u{feff}", "\0\u{1}\u{2}"] {
        client.write(line);
    }
    client.write(&format!(r#"{{"jsonrpc":"2.0","id":77,"method":"x","params":"{}"}}"#, "y".repeat(2 << 20)));
    let pong = client.ask("ping", json!({}));
    assert!(pong["result"].is_object(), "{pong}");
    let unknown = client.ask("no/such/method", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let tool = client.ask("tools/call", json!({ "name": "erase", "arguments": {} }));
    assert_eq!(tool["error"]["code"], -32602, "{tool}");
    assert!(tool["error"]["message"].as_str().unwrap().contains("search, recall and status"), "{tool}");
    // Invalid arguments are answered by the tool.
    assert!(client.call("recall", json!({})).error().contains("neither a handle nor search is given"));
    assert!(
        client.call("search", json!({ "limit": "many" })).error().contains("`limit` is not a whole number")
    );
    assert!(client.call("search", json!({ "qurey": "x" })).error().contains("there is no argument `qurey`"));
    assert!(client.call("status", json!({ "session_id": "nobody" })).error().contains("no session nobody"));
    let without = client.ask("tools/call", json!({ "name": "status" }));
    assert_eq!(ToolResult::new(&without).json()["sessions"][0]["session_id"], "night");
    assert_eq!(client.end().1, Some(0));
}

#[test]
fn concurrent_requests_are_answered() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let mut pending = Vec::new();
    for handle in stored.handles.iter().cycle().take(24) {
        let params = json!({ "name": "recall", "arguments": { "handle": handle } });
        pending.push((client.send("tools/call", params), handle.clone()));
    }
    for _ in 0..pending.len() {
        let answer = client.read(TIMEOUT).expect("an answer to each");
        let at = pending.iter().position(|(id, _)| answer["id"] == *id).expect("each is answered once");
        let (_, handle) = pending.swap_remove(at);
        assert_eq!(ToolResult::new(&answer).text(), stored.original(&handle), "{handle}");
    }
}

#[test]
fn requests_before_the_end_are_answered() {
    let stored = StoredSession::new();
    let mut client = Client::start_and_initialize(&stored, &[]);
    let id = client.send("tools/call", json!({ "name": "search", "arguments": { "query": "night run" } }));
    let (left, code, _) = client.end();
    let [line] = left.as_slice() else { panic!("not one answer: {left:?}") };
    let answer: Value = serde_json::from_str(line).unwrap();
    assert_eq!((answer["id"].as_u64(), code), (Some(id), Some(0)));
    assert_eq!(ToolResult::new(&answer).json()["mode"], "discover");
}

#[test]
fn hanging_call_can_be_cancelled() {
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let sandbox = Sandbox::new();
    let mut command = program(&sandbox.path(""));
    command.arg("--store").arg(format!("postgres://me@{address}/db"));
    let mut client = Client::run(command);
    client.initialize();
    let id = client.send("tools/call", json!({ "name": "status", "arguments": {} }));
    let (_held, _) = silent.accept().unwrap();
    let params = json!({ "requestId": id, "reason": "no longer needed" });
    client.write(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
    );
    // Other calls are served meanwhile, and the cancelled call gets no answer.
    let pong = client.ask("ping", json!({}));
    assert!(pong["result"].is_object(), "{pong}");
    assert_eq!(client.read(Duration::from_millis(300)), None);
    let (left, code, stderr) = client.end();
    assert_eq!((left, code), (Vec::new(), Some(0)), "{stderr}");
}

#[test]
fn closed_stdin_ends_the_server() {
    let stored = StoredSession::new();
    let (left, code, stderr) = Client::start(&stored, &[]).end();
    assert_eq!((left, code, stderr.as_str()), (Vec::new(), Some(0), ""));
}

#[test]
fn log_goes_to_stderr_without_content() {
    let stored = StoredSession::new();
    let mut command = program(&stored.sandbox.path(""));
    command.arg("--store").arg(stored.store()).env("FANFOLD_TALK", "trace");
    let mut client = Client::run(command);
    client.ask("initialize", initialize_params());
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.call("search", json!({ "query": "hundredth record" })).text();
    client.call("recall", json!({ "handle": stored.handles[0] })).text();
    let (left, _, stderr) = client.end();
    assert!(left.is_empty(), "{left:?}");
    assert!(stderr.contains("search") && stderr.contains("done"), "{stderr}");
    for secret in ["hundredth", "take_0_", &stored.handles[0]] {
        assert!(!stderr.contains(secret), "{secret} is logged: {stderr}");
    }
}
