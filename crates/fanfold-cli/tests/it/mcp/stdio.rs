//! MCP over stdin and stdout: the handshake, odd input, two requests at once, cancellation, the end.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, PATIENCE, ToolResult, initialize, program};
use super::stored_session::StoredSession;
use crate::sandbox::Sandbox;

#[test]
fn handshake_lists_three_tools() {
    let kept = StoredSession::new();
    let mut client = Client::start(&kept, &[]);
    let hello = client.hello();
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert!(hello["result"]["capabilities"]["tools"].is_object(), "{hello}");
    assert!(hello["result"]["instructions"].as_str().unwrap().contains("recall"));
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search", "recall", "status"]);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
    let (left, code, said) = client.end();
    assert_eq!((left, code, said.as_str()), (Vec::new(), Some(0), ""));
}

#[test]
fn server_continues_after_odd_input() {
    let kept = StoredSession::new();
    let mut client = Client::greeted(&kept, &[]);
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
    assert!(client.call("recall", json!({})).error().contains("no handle is given"));
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
    let kept = StoredSession::new();
    let mut client = Client::greeted(&kept, &[]);
    let mut asked = Vec::new();
    for handle in kept.handles.iter().cycle().take(24) {
        let params = json!({ "name": "recall", "arguments": { "handle": handle } });
        asked.push((client.send("tools/call", params), handle.clone()));
    }
    for _ in 0..asked.len() {
        let answer = client.read(PATIENCE).expect("an answer to each");
        let at = asked.iter().position(|(id, _)| answer["id"] == *id).expect("each is answered once");
        let (_, handle) = asked.swap_remove(at);
        assert_eq!(ToolResult::new(&answer).text(), kept.original(&handle), "{handle}");
    }
}

#[test]
fn requests_before_the_end_are_answered() {
    let kept = StoredSession::new();
    let mut client = Client::greeted(&kept, &[]);
    let id = client.send("tools/call", json!({ "name": "search", "arguments": { "query": "night run" } }));
    let (left, code, _) = client.end();
    let [line] = left.as_slice() else { panic!("not one answer: {left:?}") };
    let answer: Value = serde_json::from_str(line).unwrap();
    assert_eq!((answer["id"].as_u64(), code), (Some(id), Some(0)));
    assert_eq!(ToolResult::new(&answer).json()["mode"], "discover");
}

#[test]
fn hanging_call_can_be_cancelled() {
    // A server that takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let sandbox = Sandbox::new();
    let mut command = program(&sandbox.path(""));
    command.arg("--store").arg(format!("postgres://me@{address}/db"));
    let mut client = Client::run(command);
    client.hello();
    let id = client.send("tools/call", json!({ "name": "status", "arguments": {} }));
    let (_held, _) = silent.accept().unwrap();
    let params = json!({ "requestId": id, "reason": "no longer needed" });
    client.write(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
    );
    // Others are served meanwhile, and what was cancelled is not answered.
    let pong = client.ask("ping", json!({}));
    assert!(pong["result"].is_object(), "{pong}");
    assert_eq!(client.read(Duration::from_millis(300)), None);
    let (left, code, said) = client.end();
    assert_eq!((left, code), (Vec::new(), Some(0)), "{said}");
}

#[test]
fn closed_stdin_ends_the_server() {
    let kept = StoredSession::new();
    let (left, code, said) = Client::start(&kept, &[]).end();
    assert_eq!((left, code, said.as_str()), (Vec::new(), Some(0), ""));
}

#[test]
fn log_goes_to_stderr_without_content() {
    let kept = StoredSession::new();
    let mut command = program(&kept.sandbox.path(""));
    command.arg("--store").arg(kept.store()).env("FANFOLD_TALK", "trace");
    let mut client = Client::run(command);
    client.ask("initialize", initialize());
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.call("search", json!({ "query": "hundredth record" })).text();
    client.call("recall", json!({ "handle": kept.handles[0] })).text();
    let (left, _, said) = client.end();
    assert!(left.is_empty(), "{left:?}");
    assert!(said.contains("search") && said.contains("done"), "{said}");
    for secret in ["hundredth", "take_0_", &kept.handles[0]] {
        assert!(!said.contains(secret), "{secret} is logged: {said}");
    }
}
