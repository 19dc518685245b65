//! Third-party clients: the official Python package, the inspector, Claude Code and Codex. Each test installs what
//! it needs, and is skipped with a message where it cannot.

#![allow(clippy::print_stdout, reason = "a test reports why it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use fanfold_testkit::clients::programs::{CLAUDE_CODE, CODEX, install, install_npm, install_python};
use serde_json::Value;

use super::http::Listening;
use super::stored_session::StoredSession;

const PYTHON_MCP: &str = "mcp==2.3.0";
const INSPECTOR: (&str, &str, &str) = ("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector");

/// Timeout for one run of a client, which starts node or Python, possibly on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}

fn fanfold() -> String {
    assert_cmd::cargo::cargo_bin("fanfold").display().to_string()
}

/// Runs a program in the test's own home.
fn run(stored: &StoredSession, program: &Path, arguments: &[&str]) -> Output {
    let home = stored.sandbox.path("");
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &home);
    command.env("CODEX_HOME", stored.sandbox.path(".codex")).env("DISABLE_AUTOUPDATER", "1");
    command.args(arguments).current_dir(&home).timeout(TIMEOUT).output().unwrap()
}

fn output_text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", output_text(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output_text(output)))
}

#[test]
fn official_python_package_uses_both_transports() {
    let python = match install_python("python-mcp", &[PYTHON_MCP], &target()) {
        Ok(python) => python,
        Err(why) => return println!("skipped: {PYTHON_MCP}: {why}"),
    };
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let (fanfold, store, url) = (fanfold(), stored.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.py");
    let handle = stored.handles[0].as_str();
    let stdio = [script, handle, "stdio", &fanfold, "mcp", "--store", &store];
    let http = [script, handle, "http", &url];
    for arguments in [&stdio[..], &http[..]] {
        let results = json_of(&run(&stored, &python, arguments));
        for how in ["newest", "greeted"] {
            let results = &results[how];
            let way = arguments[2];
            println!(
                "{way}, {how}: {}, init {} ms, call {} ms",
                results["version"], results["init_ms"], results["call_ms"]
            );
            check(&stored, results);
        }
        assert_eq!(results["greeted"]["server"], "fanfold");
    }
}

fn check(stored: &StoredSession, results: &Value) {
    let original = stored.original(&stored.handles[0]);
    assert_eq!(results["tools"], serde_json::json!(["search", "recall", "status"]));
    assert_eq!(results["recall"]["texts"][0], original.as_str());
    let all = results["at_once"].as_array().unwrap();
    assert!(all.len() == 8 && all.iter().all(|one| one["texts"][0] == original.as_str()));
    assert_eq!(
        (&results["wrong"]["is_error"], &results["search"]["is_error"]),
        (&true.into(), &false.into())
    );
    let status: Value = serde_json::from_str(results["status"]["texts"][0].as_str().unwrap()).unwrap();
    assert_eq!(status["sessions"][0]["session_id"], "night");
}

#[test]
fn the_inspector_lists_and_calls() {
    let (name, version, program) = INSPECTOR;
    let inspector = match install_npm(name, version, program, &target()) {
        Ok(inspector) => inspector,
        Err(why) => return println!("skipped: {name} {version}: {why}"),
    };
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let (fanfold, store, url) = (fanfold(), stored.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let stdio = ["--cli", &fanfold, "mcp", "--store", &store];
    let http = ["--cli", &url, "--transport", "http"];
    let handle = format!("handle={}", stored.handles[0]);
    for server in [&stdio[..], &http[..]] {
        let began = Instant::now();
        let listed = json_of(&run(&stored, &inspector, &[server, &["--method", "tools/list"]].concat()));
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "{listed}");
        let call = ["--method", "tools/call", "--tool-name", "recall", "--tool-arg", &handle];
        let called = json_of(&run(&stored, &inspector, &[server, &call].concat()));
        assert_eq!(called["content"][0]["text"], stored.original(&stored.handles[0]).as_str());
        println!("inspector, {}: list and call in {:?}", server[1], began.elapsed());
    }
}

#[test]
fn claude_code_connects() {
    let claude = match install(&CLAUDE_CODE, &target()) {
        Ok(claude) => claude,
        Err(why) => return println!("skipped: {}: {why}", CLAUDE_CODE.name),
    };
    let stored = StoredSession::new();
    let server = Listening::start(&stored, "0");
    let (fanfold, store, url) = (fanfold(), stored.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let stdio = ["mcp", "add", "--scope", "user", "fanfold", "--", &fanfold, "mcp", "--store", &store];
    let http = ["mcp", "add", "--scope", "user", "--transport", "http", "shared", &url];
    for add in [&stdio[..], &http[..]] {
        let added = run(&stored, &claude, add);
        assert!(added.status.success(), "{}", output_text(&added));
    }
    // The client starts the stdio server, queries the HTTP server, and prints the state of each.
    let listed = run(&stored, &claude, &["mcp", "list"]);
    let page = output_text(&listed);
    println!("{page}");
    for name in ["fanfold", "shared"] {
        let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{page}"));
        assert!(line.contains('✓') || line.contains("Connected"), "{page}");
    }
}

#[test]
fn codex_connects() {
    let codex = match install(&CODEX, &target()) {
        Ok(codex) => codex,
        Err(why) => return println!("skipped: {}: {why}", CODEX.name),
    };
    let stored = StoredSession::new();
    std::fs::create_dir_all(stored.sandbox.path(".codex")).unwrap();
    let (fanfold, store) = (fanfold(), stored.store().display().to_string());
    let stdio = ["mcp", "add", "fanfold", "--", &fanfold, "mcp", "--store", &store];
    let http = ["mcp", "add", "shared", "--url", "http://127.0.0.1:8765/mcp"];
    for add in [&stdio[..], &http[..]] {
        let added = run(&stored, &codex, add);
        assert!(added.status.success(), "{}", output_text(&added));
    }
    let listed = json_of(&run(&stored, &codex, &["mcp", "list", "--json"]));
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["fanfold", "shared"], "{listed}");
    let config = stored.sandbox.read(".codex/config.toml");
    assert!(config.contains("[mcp_servers.fanfold]") && config.contains("8765/mcp"), "{config}");
}
