//! Requests that a web page can make a browser send: to the proxy, to its own routes and to the MCP server.
//!
//! All must be refused before the provider or the store sees them. Requests of programs must pass.

use std::time::Duration;

use serde_json::json;

use super::Trial;
use super::http::{Answer, exchange, request};
use super::provider::Provider;
use super::sandbox::{Sandbox, Server};
use super::table::Row;

const LIMIT: Duration = Duration::from_secs(10);
const WORD: &str = "PLANTED";
const FORK: &str = "/fanfold/api/sessions/victim/fork";

/// Names and values.
type Headers = &'static [(&'static str, &'static str)];

/// Headers of a page of another site, of a sandboxed frame, and of a rebound host name. `PORT` is the port of the server.
const FOREIGN: [Headers; 9] = [
    &[("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
    &[("Origin", "http://evil.example")],
    &[("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
    &[("Origin", "null")],
    &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
    &[("Origin", "https://127.0.0.1.evil.example"), ("Sec-Fetch-Site", "cross-site")],
    &[("Host", "evil.example:PORT")],
    &[
        ("Host", "evil.example:PORT"),
        ("Origin", "http://evil.example:PORT"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
    &[("Host", "127.0.0.1.evil.example:PORT"), ("Sec-Fetch-Site", "same-origin")],
];

/// Routes of a provider, own routes, and routes that change a session.
const ROUTES: [(&str, &str); 10] = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/models"),
    ("POST", "/v1/other"),
    ("GET", "/fanfold/status"),
    ("GET", "/fanfold/api/sessions"),
    ("GET", "/fanfold/api/search?query=PLANTED"),
    ("POST", FORK),
    ("POST", "/fanfold/mcp"),
];

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let mut row = Row::new("requests of web pages", "all refused; programs pass");
    let sandbox = Sandbox::new(trial, "browser")?;
    let provider = Provider::start(Vec::new())?;
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": "a session" }] });
    sandbox.write("chat.json", chat.to_string())?;
    sandbox.run("fold --session victim chat.json -w 8k --store x.db -o out.json")?;
    let server = sandbox.serve(&provider.url(), "x.db", &[])?;
    let mcp = sandbox.start_server(&["mcp", "--store", "x.db"])?;
    for headers in FOREIGN {
        for (method, path) in ROUTES {
            check_refused(&server, method, path, headers, &mut row);
        }
        check_refused(&mcp, "POST", "/mcp", headers, &mut row);
    }
    // A page of another local program may be trusted to read, but must not change a session without being asked.
    let headers = [("Origin", "http://127.0.0.1:1"), ("Sec-Fetch-Site", "same-site")];
    let answer = send(&server, "POST", FORK, &headers);
    let is_refused = answer.status.is_some_and(|status| (400..500).contains(&status));
    row.count(is_refused, || format!("POST {FORK} of another local page: {}", answer.describe()));
    row.count(provider.n_requests() == 0, || {
        format!("{} requests reached the provider", provider.n_requests())
    });
    let found = sandbox.run(&format!("search {WORD} --store x.db --json"))?.json();
    row.count(found["count"] == 0, || format!("{} planted sessions are found", found["count"]));
    let sessions = sandbox.run("sessions list --store x.db --json")?.json();
    let n_sessions = sessions.as_array().map_or(0, Vec::len);
    row.count(n_sessions == 1, || format!("{n_sessions} sessions are stored instead of 1"));
    check_programs(&server, &mut row);
    row.figure = format!("{} combinations", FOREIGN.len() * (ROUTES.len() + 1));
    Ok(vec![row])
}

/// Sends the simple request of a page; a browser sends it without asking the server first.
fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let port = server.port.to_string();
    let values: Vec<String> = headers.iter().map(|(_, value)| value.replace("PORT", &port)).collect();
    let mut all: Vec<(&str, &str)> =
        headers.iter().zip(&values).map(|((name, _), value)| (*name, value.as_str())).collect();
    let is_mcp = path.ends_with("/mcp");
    all.push(("Content-Type", if is_mcp { "application/json" } else { "text/plain" }));
    all.push(("Accept", "application/json, text/event-stream"));
    let body = match method {
        _ if is_mcp => json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string(),
        _ if path == FORK => json!({ "at": 1 }).to_string(),
        "POST" => {
            let messages = json!([{ "role": "user", "content": WORD }]);
            json!({ "model": "m", "max_tokens": 9, "messages": messages, "input": WORD }).to_string()
        }
        _ => String::new(),
    };
    exchange(server.port, &request(method, path, server.port, &all, body.as_bytes()), LIMIT)
}

fn check_refused(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], row: &mut Row) {
    let answer = send(server, method, path, headers);
    let is_refused = answer.status.is_some_and(|status| matches!(status, 400 | 403 | 421));
    let is_readable = answer.header("access-control-allow-origin").is_some();
    row.count(is_refused && !is_readable, || {
        format!("{method} {path} with {headers:?}: {}", answer.describe())
    });
}

/// Requests without the headers of a browser, and those of the proxy's own pages.
fn check_programs(server: &Server, row: &mut Row) {
    let same: Headers = &[("Origin", "http://127.0.0.1:PORT"), ("Sec-Fetch-Site", "same-origin")];
    let cases: [(&str, &str, Headers); 6] = [
        ("POST", "/v1/chat/completions", &[]),
        ("POST", "/fanfold/mcp", &[]),
        ("POST", "/v1/chat/completions", &[("Host", "localhost:PORT")]),
        ("GET", "/fanfold/status", &[]),
        ("GET", "/fanfold/status", &[("Sec-Fetch-Site", "none")]),
        ("GET", "/fanfold/status", same),
    ];
    for (method, path, headers) in cases {
        let answer = send(server, method, path, headers);
        row.count(answer.status == Some(200), || {
            format!("{method} {path} of a program with {headers:?}: {}", answer.describe())
        });
    }
}
