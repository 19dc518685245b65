//! Third-party clients: the official Python package, the inspector, Claude Code and Codex. Each test installs what it needs
//! by itself, and says so and passes where it can't.

#![allow(clippy::print_stdout, reason = "a test says what it did not do")]

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

/// Each of them starts node or Python, on a busy machine, too.
const MOST: Duration = Duration::from_secs(60);

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}

fn fanfold() -> String {
    assert_cmd::cargo::cargo_bin("fanfold").display().to_string()
}

/// Runs a program in the test's own home.
fn run(kept: &StoredSession, program: &Path, arguments: &[&str]) -> Output {
    let home = kept.sandbox.path("");
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &home);
    command.env("CODEX_HOME", kept.sandbox.path(".codex")).env("DISABLE_AUTOUPDATER", "1");
    command.args(arguments).current_dir(&home).timeout(MOST).output().unwrap()
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
    let kept = StoredSession::new();
    let server = Listening::start(&kept, "0");
    let (fanfold, store, url) = (fanfold(), kept.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/client.py");
    let handle = kept.handles[0].as_str();
    let stdio = [script, handle, "stdio", &fanfold, "mcp", "--store", &store];
    let http = [script, handle, "http", &url];
    for arguments in [&stdio[..], &http[..]] {
        let seen = json_of(&run(&kept, &python, arguments));
        for how in ["newest", "greeted"] {
            let seen = &seen[how];
            let way = arguments[2];
            println!(
                "{way}, {how}: {}, init {} ms, call {} ms",
                seen["version"], seen["init_ms"], seen["call_ms"]
            );
            check(&kept, seen);
        }
        assert_eq!(seen["greeted"]["server"], "fanfold");
    }
}

fn check(kept: &StoredSession, seen: &Value) {
    let original = kept.original(&kept.handles[0]);
    assert_eq!(seen["tools"], serde_json::json!(["search", "recall", "status"]));
    assert_eq!(seen["recall"]["texts"][0], original.as_str());
    let all = seen["at_once"].as_array().unwrap();
    assert!(all.len() == 8 && all.iter().all(|one| one["texts"][0] == original.as_str()));
    assert_eq!((&seen["wrong"]["is_error"], &seen["search"]["is_error"]), (&true.into(), &false.into()));
    let status: Value = serde_json::from_str(seen["status"]["texts"][0].as_str().unwrap()).unwrap();
    assert_eq!(status["sessions"][0]["session_id"], "night");
}

#[test]
fn the_inspector_lists_and_calls() {
    let (name, version, program) = INSPECTOR;
    let inspector = match install_npm(name, version, program, &target()) {
        Ok(inspector) => inspector,
        Err(why) => return println!("skipped: {name} {version}: {why}"),
    };
    let kept = StoredSession::new();
    let server = Listening::start(&kept, "0");
    let (fanfold, store, url) = (fanfold(), kept.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let stdio = ["--cli", &fanfold, "mcp", "--store", &store];
    let http = ["--cli", &url, "--transport", "http"];
    let handle = format!("handle={}", kept.handles[0]);
    for server in [&stdio[..], &http[..]] {
        let began = Instant::now();
        let listed = json_of(&run(&kept, &inspector, &[server, &["--method", "tools/list"]].concat()));
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "{listed}");
        let call = ["--method", "tools/call", "--tool-name", "recall", "--tool-arg", &handle];
        let called = json_of(&run(&kept, &inspector, &[server, &call].concat()));
        assert_eq!(called["content"][0]["text"], kept.original(&kept.handles[0]).as_str());
        println!("inspector, {}: list and call in {:?}", server[1], began.elapsed());
    }
}

#[test]
fn claude_code_connects() {
    let claude = match install(&CLAUDE_CODE, &target()) {
        Ok(claude) => claude,
        Err(why) => return println!("skipped: {}: {why}", CLAUDE_CODE.name),
    };
    let kept = StoredSession::new();
    let server = Listening::start(&kept, "0");
    let (fanfold, store, url) = (fanfold(), kept.store(), format!("http://{}/mcp", server.address));
    let store = store.display().to_string();
    let stdio = ["mcp", "add", "--scope", "user", "fanfold", "--", &fanfold, "mcp", "--store", &store];
    let http = ["mcp", "add", "--scope", "user", "--transport", "http", "shared", &url];
    for add in [&stdio[..], &http[..]] {
        let added = run(&kept, &claude, add);
        assert!(added.status.success(), "{}", output_text(&added));
    }
    // It starts the one, asks the other, and tells whether they answer.
    let listed = run(&kept, &claude, &["mcp", "list"]);
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
    let kept = StoredSession::new();
    std::fs::create_dir_all(kept.sandbox.path(".codex")).unwrap();
    let (fanfold, store) = (fanfold(), kept.store().display().to_string());
    let stdio = ["mcp", "add", "fanfold", "--", &fanfold, "mcp", "--store", &store];
    let http = ["mcp", "add", "shared", "--url", "http://127.0.0.1:8765/mcp"];
    for add in [&stdio[..], &http[..]] {
        let added = run(&kept, &codex, add);
        assert!(added.status.success(), "{}", output_text(&added));
    }
    let listed = json_of(&run(&kept, &codex, &["mcp", "list", "--json"]));
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["fanfold", "shared"], "{listed}");
    let config = kept.sandbox.read(".codex/config.toml");
    assert!(config.contains("[mcp_servers.fanfold]") && config.contains("8765/mcp"), "{config}");
}
