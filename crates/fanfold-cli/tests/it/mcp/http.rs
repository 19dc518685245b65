//! MCP over HTTP, and access control.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{TIMEOUT, ToolResult, initialize_params, program};
use super::stored_session::StoredSession;

const TOKEN: &str = "a-token-that-nobody-guesses";

/// The program, listening for HTTP connections.
pub(crate) struct Listening {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Listening {
    pub(crate) fn start(stored: &StoredSession, listen: &str) -> Listening {
        Listening::run(stored, program(&stored.sandbox.path("")).args(["--listen", listen]))
    }

    pub(crate) fn run(stored: &StoredSession, command: &mut Command) -> Listening {
        let command = command.arg("--store").arg(stored.store()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        // Drain further output, so that the pipe does not fill up.
        thread::spawn(move || drop(std::io::copy(&mut stderr, &mut std::io::sink())));
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(['/', ',']).next());
        let Some(Ok(address)) = address.map(str::parse) else { panic!("no address in: {line}") };
        Listening { child, address }
    }

    #[cfg(unix)]
    fn kill(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// Posts a message; returns the status and the body.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut all = vec![
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-06-18"),
        ];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body)
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: 127.0.0.1:{}\r\n", self.port()));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        // A server that refuses early closes before all of it is written.
        drop(stream.write_all(request.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status.unwrap_or_else(|| panic!("no status: {answer}")), body)
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, body) = self.post("/mcp", &[], &message.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    fn call(&self, tool: &str, arguments: &Value) -> ToolResult {
        ToolResult::new(&self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ping() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string()
}

#[test]
fn http_offers_the_same_tools() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    assert!(server.address.ip().is_loopback(), "a port alone listens on this machine only");
    let server_info = server.ask("initialize", &initialize_params());
    assert_eq!(server_info["result"]["serverInfo"]["name"], "fanfold");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(server.post("/mcp", &[], &note).0, 202);
    assert_eq!(server.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len(), 3);
    for handle in &stored.handles {
        assert_eq!(server.call("recall", &json!({ "handle": handle })).text(), stored.original(handle));
    }
    assert!(server.call("recall", &json!({ "handle": "000000" })).error().contains("000000"));
    // The path that it has in the proxy works here, too.
    assert_eq!(server.post("/fanfold/mcp", &[], &ping()).0, 200);
    assert_eq!(server.post("/elsewhere", &[], &ping()), (404, "MCP is at /mcp\n".to_owned()));
}

#[test]
fn foreign_origins_are_refused() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "127.0.0.1:0");
    let status = |headers: &[(&str, &str)]| server.post("/mcp", headers, &ping()).0;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("origin", "http://localhost:6274")]), 200);
    assert_eq!(status(&[("origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("origin", "http://localhost.evil.example")]), 403);
    assert_eq!(status(&[("origin", "null")]), 403);
    // A foreign host name that resolves to this machine.
    assert_eq!(status(&[("host", "evil.example")]), 403);
    assert_eq!(status(&[("host", &format!("evil.example:{}", server.port()))]), 403);
    assert_eq!(status(&[("host", "localhost")]), 200);
}

#[test]
fn other_machines_need_the_token() {
    let stored = StoredSession::new();
    let ran = stored.sandbox.run("mcp --listen 0.0.0.0:0 --store s.db");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("no token is set") && ran.err.contains("hint: set FANFOLD_TOKEN"),
        "{}",
        ran.err
    );
    let mut command = program(&stored.sandbox.path(""));
    let server = Listening::run(&stored, command.args(["--listen", "0.0.0.0:0"]).env("FANFOLD_TOKEN", TOKEN));
    let status = |headers: &[(&str, &str)]| server.post("/mcp", headers, &ping()).0;
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("authorization", "Bearer a-token-that-nobody-guessed")]), 401);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(status(&[("authorization", &bearer)]), 200);
    assert_eq!(status(&[("x-fanfold-token", TOKEN), ("host", "box.example:8765")]), 200);
    assert_eq!(status(&[("authorization", &bearer), ("origin", "http://evil.example")]), 403);
    // A token in the environment does not concern clients on stdin.
    let stdio =
        stored.sandbox.command().args(["mcp", "--store", "s.db"]).env("FANFOLD_TOKEN", TOKEN).output();
    assert_eq!(stdio.unwrap().status.code(), Some(0));
}

#[test]
fn idle_connections_do_not_block_other_clients() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let idle: Vec<_> = (0..600).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let began = Instant::now();
    assert_eq!(server.post("/mcp", &[], &ping()).0, 200);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(idle);
}

#[test]
fn broken_json_gets_an_error_of_json_rpc() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    for (body, code) in [("{\"jsonrpc\":", -32700), ("", -32700), ("[]", -32600), ("{\"id\":1}", -32600)] {
        let (status, answer) = server.post("/mcp", &[], body);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{status} {answer}"));
        assert_eq!((status, answer["error"]["code"].as_i64()), (400, Some(code)), "{body}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
}

#[test]
fn server_continues_after_odd_requests() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20));
    assert_eq!(server.post("/mcp", &[], &long).0, 413);
    for body in ["", "not JSON", "[]", "{}", "\"x\"", "{\"jsonrpc\":\"2.0\",\"id\":1}"] {
        let (status, answer) = server.post("/mcp", &[], body);
        assert!((400..500).contains(&status), "{body}: {status} {answer}");
    }
    let plain = [("accept", "application/json, text/event-stream"), ("content-type", "text/plain")];
    assert_eq!(server.send("POST", "/mcp", &plain, &ping()).0, 415);
    for method in ["GET", "DELETE", "PUT"] {
        assert_eq!(server.send(method, "/mcp", &[("accept", "text/event-stream")], "").0, 405, "{method}");
    }
    // A client that disconnects in the middle of a request.
    drop(
        TcpStream::connect(server.address)
            .unwrap()
            .write_all(b"POST /mcp HTTP/1.1\r\ncontent-length: 90\r\n\r\n{"),
    );
    assert_eq!(server.post("/mcp", &[], &ping()).0, 200);
}

#[test]
fn many_clients_are_served_at_once() {
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let wanted: Vec<String> = stored.handles.iter().map(|handle| stored.original(handle)).collect();
    thread::scope(|scope| {
        for nth in 0..16 {
            let (server, stored, wanted) = (&server, &stored, &wanted);
            scope.spawn(move || {
                for i in 0..8 {
                    let at = (nth + i) % wanted.len();
                    let called = server.call("recall", &json!({ "handle": stored.handles[at] }));
                    assert_eq!(called.text(), wanted[at]);
                }
            });
        }
    });
}

#[cfg(unix)]
#[test]
fn signal_ends_the_server() {
    let stored = StoredSession::new();
    let mut server = Listening::start(&stored, "0");
    // Idle connections do not delay the end.
    let _idle = TcpStream::connect(server.address).unwrap();
    assert_eq!(server.post("/mcp", &[], &ping()).0, 200);
    let began = Instant::now();
    server.kill("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}

#[cfg(unix)]
#[test]
fn signal_is_handled_as_soon_as_the_address_is_printed() {
    let stored = StoredSession::new();
    for _ in 0..10 {
        let mut server = Listening::start(&stored, "0");
        server.kill("-TERM");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
    }
}

#[cfg(unix)]
#[test]
fn second_signal_ends_the_server_at_once() {
    let stored = StoredSession::new();
    let mut server = Listening::start(&stored, "0");
    let mut slow = TcpStream::connect(server.address).unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow.write_all(head.as_bytes()).unwrap();
    assert_eq!(server.post("/mcp", &[], &ping()).0, 200);
    let began = Instant::now();
    server.kill("-TERM");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(server.child.try_wait().unwrap(), None, "it waits for the request in progress");
    server.kill("-INT");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
