//! MCP and the API on the port of the proxy.

use serde_json::{Value, json};

use super::client::{ToolResult, fanfold};
use super::http::Listening;
use super::stored_session::StoredSession;

const TOKEN: &str = "a-token-that-nobody-guesses";

/// A proxy without a reachable upstream.
fn proxy(stored: &StoredSession, listen: &str, token: Option<&str>) -> Listening {
    let mut command = fanfold(&stored.sandbox.path(""), "serve");
    command.args(["--listen", listen, "--upstream", "http://127.0.0.1:9"]);
    if let Some(token) = token {
        command.env("FANFOLD_TOKEN", token);
    }
    Listening::run(stored, &mut command)
}

#[test]
fn proxy_serves_mcp_and_api() {
    let stored = StoredSession::new();
    let server = proxy(&stored, "127.0.0.1:0", None);
    let handle = &stored.handles[0];
    let message = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    };
    let (status, listed) = server.post("/fanfold/mcp", &[], &message("tools/list", json!({})));
    assert_eq!(status, 200, "{listed}");
    let recall = message("tools/call", json!({ "name": "recall", "arguments": { "handle": handle } }));
    let called: Value = serde_json::from_str(&server.post("/fanfold/mcp", &[], &recall).1).unwrap();
    assert_eq!(ToolResult::new(&called).text(), stored.original(handle));
    let get = |path: &str| server.send("GET", path, &[], "");
    let (status, sessions) = get("/fanfold/api/sessions");
    let sessions: Value = serde_json::from_str(&sessions).unwrap_or_else(|_| panic!("{status} {sessions}"));
    assert_eq!((status, sessions["sessions"][0]["id"].as_str()), (200, Some("night")));
    let address = format!("/fanfold/api/recall/{}", handle.trim_start_matches('#'));
    assert_eq!(get(&address), (200, stored.original(handle)));
    let described: Value = serde_json::from_str(&get("/fanfold/api/openapi.json").1).unwrap();
    assert_eq!(described["servers"][0]["url"], "/fanfold/api");
    assert_eq!(get("/fanfold/api/nothing").0, 404);
    // A web page of another origin can neither read nor fork.
    for header in [("host", "evil.example"), ("origin", "http://evil.example")] {
        assert_eq!(server.send("GET", "/fanfold/api/sessions", &[header], "").0, 403, "{header:?}");
        assert_eq!(server.send("POST", "/fanfold/api/sessions/night/fork", &[header], "{}").0, 403);
        assert_eq!(server.post("/fanfold/mcp", &[header], &recall).0, 403);
    }
    let (status, fork) = server.send("POST", "/fanfold/api/sessions/night/fork", &[], r#"{"at": 4}"#);
    let fork: Value = serde_json::from_str(&fork).unwrap_or_else(|_| panic!("{status} {fork}"));
    assert_eq!((status, fork["messages"].as_u64(), fork["parent"].as_str()), (200, Some(4), Some("night")));
}

#[test]
fn token_protects_mcp_and_api() {
    let stored = StoredSession::new();
    let server = proxy(&stored, "0.0.0.0:0", Some(TOKEN));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for path in ["/fanfold/api/sessions", "/fanfold/api/openapi.json"] {
        assert_eq!(server.send("GET", path, &[], "").0, 401, "{path}");
        assert_eq!(server.send("GET", path, &[("x-fanfold-token", TOKEN)], "").0, 200, "{path}");
    }
    assert_eq!(server.post("/fanfold/mcp", &[], &ping).0, 401);
    let bearer = format!("Bearer {TOKEN}");
    let named = [("authorization", bearer.as_str()), ("host", "box.example")];
    assert_eq!(server.post("/fanfold/mcp", &named, &ping).0, 200);
}
