//! What is remembered from one session to the next.

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let output = sandbox.command().arg("memory").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
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
fn the_files_lie_beside_the_store() {
    let sandbox = Sandbox::new();
    let ran = run(&sandbox, &["add", "here", "--store", "kept/night.db"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(sandbox.read("kept/MEMORY.md"), "here\n");
    sandbox.write("kept/MEMORY.md", "written by hand\n§\nand this\n");
    let shown = run(&sandbox, &["--store", "kept/night.db"]);
    assert!(shown.out.contains("  written by hand\n  and this\n"), "{}", shown.out);
}

#[test]
fn what_can_not_be_done_is_told_with_the_next_step() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["add", "one thing"]);
    run(&sandbox, &["add", "another thing"]);
    let several = run(&sandbox, &["remove", "thing"]);
    assert_eq!(several.code, 1);
    assert!(several.err.contains("2 entries have `thing`"), "{}", several.err);
    assert!(several.err.contains("hint:"), "{}", several.err);
    let full = run(&sandbox, &["add", &"x".repeat(2_200)]);
    assert!(full.err.contains("2,2") || full.err.contains("of 2200"), "{}", full.err);
    assert_eq!(full.code, 1);
}
