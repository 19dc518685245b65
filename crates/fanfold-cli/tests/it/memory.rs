//! `fanfold memory`: files and providers.

use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};
use serde_json::Value;

use crate::sandbox::{CommandOutput, Sandbox};

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let output = sandbox.command().arg("memory").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

#[test]
fn entries_are_added_replaced_and_removed() {
    let sandbox = Sandbox::new();
    let ran = run(&sandbox, &["add", "the tests need PostgreSQL"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.starts_with("MEMORY.md: 1 entry, 25 of 2200 characters, 1 %"), "{}", ran.err);
    run(&sandbox, &["add", "releases on Tuesdays"]);
    run(&sandbox, &["replace", "PostgreSQL", "the tests start a server"]);
    run(&sandbox, &["add", "--user", "prefers short answers"]);
    let shown = run(&sandbox, &[]);
    assert!(shown.out.contains("MEMORY.md: 2 entries"), "{}", shown.out);
    assert!(shown.out.contains("  the tests start a server\n"), "{}", shown.out);
    assert!(shown.out.contains("  prefers short answers\n"), "{}", shown.out);
    run(&sandbox, &["remove", "Tuesdays"]);
    let shown: Value = serde_json::from_str(&run(&sandbox, &["--json"]).out).unwrap();
    assert_eq!(shown[0]["entries"], serde_json::json!(["the tests start a server"]));
    assert_eq!(shown[1]["entries"], serde_json::json!(["prefers short answers"]));
}

#[test]
fn memory_files_are_next_to_the_store() {
    let sandbox = Sandbox::new();
    let ran = run(&sandbox, &["add", "here", "--store", "kept/night.db"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(sandbox.read("kept/MEMORY.md"), "here\n");
    sandbox.write("kept/MEMORY.md", "written by hand\n§\nand this\n");
    let shown = run(&sandbox, &["--store", "kept/night.db"]);
    assert!(shown.out.contains("  written by hand\n  and this\n"), "{}", shown.out);
}

#[test]
fn memory_errors_have_hints() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["add", "one thing"]);
    run(&sandbox, &["add", "another thing"]);
    let several = run(&sandbox, &["remove", "thing"]);
    assert_eq!(several.code, 1);
    assert!(several.err.contains("2 entries contain `thing`"), "{}", several.err);
    assert!(several.err.contains("hint:"), "{}", several.err);
    let full = run(&sandbox, &["add", &"x".repeat(2_200)]);
    assert!(full.err.contains("2,2") || full.err.contains("of 2200"), "{}", full.err);
    assert_eq!(full.code, 1);
}

fn with_settings(settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("config/fanfold/config.toml", settings);
    sandbox
}

#[test]
fn provider_status_search_and_check() {
    let server = MemoryServer::start(Behaviour::Normal, &["the staging port is 8443"]);
    for settings in [format!("http = \"{}\"", server.url()), format!("mcp = \"{}\"", server.mcp_url())] {
        let sandbox = with_settings(&format!("[memory]\n{settings}\ntokens = \"2k\"\n"));
        let status = run(&sandbox, &["status"]);
        assert!(status.out.contains("provider: http://127.0.0.1"), "{}{}", status.out, status.err);
        assert!(
            status.out.contains("a turn waits at most 800 ms and reserves 2000 tokens"),
            "{}",
            status.out
        );
        let found = run(&sandbox, &["search", "which staging port?"]);
        assert_eq!((found.code, found.out.as_str()), (0, "- the staging port is 8443\n"), "{}", found.err);
        let nothing = run(&sandbox, &["search", "weather"]);
        assert_eq!(nothing.out, "nothing was found\n");
        let checked: Value = serde_json::from_str(&run(&sandbox, &["check", "--json"]).out).unwrap();
        assert!(checked["calls"][0].as_str().unwrap().contains("search") || settings.starts_with("http"));
        assert_eq!(checked["is_in_time"], true, "{checked}");
    }
}

#[test]
fn unusable_tools_are_reported() {
    let server = MemoryServer::start(Behaviour::Lie, &[]);
    let sandbox = with_settings(&format!("[memory]\nmcp = \"{}\"\n", server.mcp_url()));
    let checked = run(&sandbox, &["check"]);
    assert_eq!(checked.code, 1);
    assert!(checked.err.contains("it refused: Unknown tool: search_memories"), "{}", checked.err);
    assert!(checked.err.contains("hint:"), "{}", checked.err);
}

#[test]
fn invalid_memory_settings_have_hints() {
    let none = run(&Sandbox::new(), &["check"]);
    assert_eq!(none.code, 1);
    assert!(
        none.err.contains("there is no memory provider") && none.err.contains("[memory]"),
        "{}",
        none.err
    );
    let two = with_settings("[memory]\nmcp = \"http://127.0.0.1:9/mcp\"\nhttp = \"http://127.0.0.1:9\"\n");
    assert!(run(&two, &["status"]).err.contains("more than one provider"));
    let key = with_settings("[memory]\nhttp = \"http://127.0.0.1:9\"\nkey_env = \"MADE_UP_KEY\"\n");
    let err = run(&key, &["check"]).err;
    assert!(err.contains("MADE_UP_KEY, which is not set") && err.contains("hint:"), "{err}");
    let unreachable = with_settings("[memory]\nhttp = \"http://127.0.0.1:9\"\n");
    let err = run(&unreachable, &["search", "anything"]).err;
    assert!(err.contains("http://127.0.0.1:9: it can't be reached"), "{err}");
    let project = Sandbox::new();
    project.write(".fanfold.toml", "[memory]\ncommand = [\"sh\"]\n");
    let err = run(&project, &["status"]).err;
    assert!(err.contains("[memory] is not allowed in a project's file"), "{err}");
}
