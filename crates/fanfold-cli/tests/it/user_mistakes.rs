//! User mistakes: nothing stored is lost, and the effect is reported.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};

/// A store with a session of a long chat, and a file with another conversation.
fn stored_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(30)));
    sandbox.write("other.json", &other());
    let ran = sandbox.run("fold --session feature-login chat.json -w 64k -o sent.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    sandbox
}

fn other() -> String {
    let messages =
        [("system", "You are a careful engineer."), ("user", "What is a fjord?"), ("assistant", "A bay.")];
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    body(&messages)
}

fn budget(sandbox: &Sandbox, flags: &str) -> Value {
    let ran = sandbox.run(&format!("inspect --budget --json {flags}"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn n_messages(sandbox: &Sandbox, name: &str) -> u64 {
    let shown = sandbox.run(&format!("sessions show {name} --json")).out;
    serde_json::from_str::<Value>(&shown).unwrap()["messages"].as_u64().unwrap()
}

#[test]
fn unrelated_conversation_is_refused() {
    let sandbox = stored_sandbox();
    let ran = sandbox.run("fold --session feature other.json");
    assert_eq!((ran.code, &*ran.out), (1, ""));
    assert!(ran.err.contains("feature-login") && ran.err.contains("hint: give the whole id"), "{}", ran.err);
    for name in ["1", "feature-login"] {
        let ran = sandbox.run(&format!("fold --session {name} other.json"));
        assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
        assert!(ran.err.contains("it is another conversation"), "{}", ran.err);
        assert!(ran.err.contains("rewind feature-login --to 0"), "{}", ran.err);
    }
    let n = n_messages(&sandbox, "feature-login");
    assert_eq!(n, long_chat(30).len() as u64);
    // The command in the hint works, and so does its reversal.
    sandbox.run("sessions rewind 1 --to 0");
    assert_eq!(sandbox.run("fold --session 1 other.json").code, 0);
    sandbox.run("sessions redo 1");
    sandbox.run("sessions redo 1");
    assert_eq!(n_messages(&sandbox, "feature-login"), n);
}

#[test]
fn messages_left_behind_are_reported() {
    let sandbox = stored_sandbox();
    sandbox.write("cut.json", &body(&long_chat(30)[..10]));
    let ran = sandbox.run("fold --session feature-login cut.json -o x.json");
    let left = long_chat(30).len() - 10;
    let expected =
        format!("left behind: {left} messages that this conversation does not have; `fanfold sessions redo");
    assert!(ran.code == 0 && ran.err.contains(&expected), "{}", ran.err);
    let ran = sandbox.run("fold --session feature-login chat.json -o x.json");
    assert!(!ran.err.contains("left behind"), "{}", ran.err);
}

#[test]
fn fold_with_a_wrong_window_can_be_undone() {
    let sandbox = stored_sandbox();
    let whole = budget(&sandbox, "--session feature-login");
    let ran = sandbox.run("fold --session feature-login chat.json -w 4k -o small.json");
    assert!(ran.code == 0 && sandbox.read("small.json") != sandbox.read("sent.json"), "{}", ran.err);
    let small = budget(&sandbox, "--session feature-login");
    assert!(small["folds"].as_u64() > Some(0) && small["window"] == 4_000, "{small}");
    let marks = sandbox.run("sessions checkpoint feature-login --json").out;
    let marks: Value = serde_json::from_str(&marks).unwrap();
    let name = marks["checkpoints"].as_array().unwrap().last().unwrap()["name"].as_str().unwrap();
    let restored = sandbox.run(&format!("sessions restore feature-login {name} --json")).out;
    let restored: Value = serde_json::from_str(&restored).unwrap();
    assert_eq!((&restored["messages"], &restored["folds_undone"]), (&restored["messages_before"], &json!(1)));
    assert_eq!(budget(&sandbox, "--session feature-login"), whole);
    // Without a window flag, the session keeps its window.
    let ran = sandbox.run("fold --session feature-login chat.json");
    assert_eq!(ran.out, sandbox.read("sent.json"), "{}", ran.err);
    assert_eq!(sandbox.run("doctor --requests").code, 0);
    // A fold that overflows changes nothing.
    assert_eq!(sandbox.run("fold --session feature-login chat.json -w 200 --user-text never").code, 3);
    assert_eq!(sandbox.run("fold --session feature-login chat.json").out, sandbox.read("sent.json"));
    assert_eq!(sandbox.run("doctor --requests").code, 0);
}

#[test]
fn session_keeps_its_window_and_dry_run_changes_nothing() {
    let sandbox = stored_sandbox();
    sandbox.run("fold --session feature-login chat.json -w 16k -o x.json");
    let shown = sandbox.run("sessions show 1 --json").out;
    assert_eq!(budget(&sandbox, "--session 1")["window"], 16_000);
    // Flags show the effect of other settings.
    let tried = budget(&sandbox, "--session 1 -w 8k");
    assert!(tried["window"] == 8_000 && tried["view"].as_u64() < Some(6_000), "{tried}");
    assert_eq!(budget(&sandbox, "--session 1 -p mask")["policy"], "mask");
    assert_eq!(sandbox.run("inspect --session 1 -w 200 --user-text never").code, 3);
    let ran = sandbox.run("fold --session 1 chat.json -w 8k --dry-run");
    assert_eq!((ran.code, &*ran.out), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("before") && ran.err.contains("0 new messages would be stored"), "{}", ran.err);
    assert_eq!(sandbox.run("fold --session brand-new other.json --dry-run").code, 0);
    assert_eq!(sandbox.run("sessions show 1 --json").out, shown, "nothing was stored");
    assert_eq!(sandbox.run("sessions show brand-new").code, 1);
    // Without a window flag the session keeps its window, unless the model changes.
    let ran = sandbox.run("fold --session 1 chat.json -o x.json");
    assert!(ran.err.contains("note: folded for a window of 16,000 tokens, as before"), "{}", ran.err);
    assert_eq!(budget(&sandbox, "--session 1")["window"], 16_000);
    sandbox.run("fold --session 1 chat.json -m gpt-4.1 -o x.json");
    assert!(budget(&sandbox, "--session 1")["window"].as_u64() > Some(500_000));
}

#[test]
fn dry_run_creates_no_store() {
    let sandbox = Sandbox::new();
    sandbox.write("other.json", &other());
    assert_eq!(sandbox.run("fold --session new other.json --dry-run --store none.db").code, 0);
    assert!(!sandbox.path("none.db").exists());
}

#[test]
fn fold_continues_a_rotated_session() {
    let sandbox = stored_sandbox();
    sandbox.write("start.json", &body(&long_chat(40)));
    let next = sandbox.run("sessions rotate feature-login --json").out;
    let next: Value = serde_json::from_str(&next).unwrap();
    let next = next["session"].as_str().unwrap().to_owned();
    let list = sandbox.run("sessions list --json -n 1").out;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()[0]["id"], *next);
    let ran = sandbox.run("fold --session feature-login start.json -o x.json");
    assert!(ran.err.contains(&format!("was rotated, and continues as {next}")), "{}", ran.err);
    assert_eq!(n_messages(&sandbox, &next), long_chat(40).len() as u64);
    assert_eq!(n_messages(&sandbox, "feature-login"), long_chat(30).len() as u64);
    assert_eq!(sandbox.run("sessions resume feature-login").out.trim(), next);
}

#[test]
fn session_commands_print_json() {
    let sandbox = stored_sandbox();
    let json = |line: &str| -> Value {
        let ran = sandbox.run(line);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{line}: {}{}", ran.out, ran.err))
    };
    assert_eq!(
        json("sessions title 1 The  login --json"),
        json!({ "session": "feature-login", "title": "The login" })
    );
    assert_eq!(json("sessions goal 1 ship it --json")["goal"], "ship it");
    assert_eq!(json("sessions pin 1 3 5 --json")["pins"], json!([3, 5]));
    assert_eq!(json("sessions pin 1 3 --off --json")["pins"], json!([5]));
    assert_eq!(json("sessions checkpoint 1 good --json")["checkpoint"], "good");
    assert_eq!(json("sessions rewind 1 --to 9 --json")["messages"], 9);
    assert_eq!(json("sessions redo 1 --json")["messages_before"], 9);
    assert_eq!(json("sessions restore 1 good --json")["folds_undone"], 0);
    let fork = json("sessions fork 1 --at 5 --end-parent --json");
    assert_eq!(fork["parent"], "feature-login");
    let fork = fork["session"].as_str().unwrap().to_owned();
    let shown = json("sessions show feature-login --json");
    assert_eq!((&shown["ended"]["reason"], &shown["goal"]), (&json!("branched"), &Value::Null));
    assert_eq!(json(&format!("sessions show {fork} --json"))["goal"], "ship it");
    assert_eq!(json(&format!("sessions end {fork} --reason subagent --json"))["ended"], "subagent");
    let again = sandbox.run(&format!("sessions end {fork}"));
    assert!(again.code == 1 && again.err.contains("has ended (subagent)"), "{}", again.err);
    assert_eq!(json(&format!("sessions resume {fork} --json"))["session"], *fork);
    let ran = sandbox.run("fold --session feature-login chat.json -o x.json");
    assert!(ran.err.contains("had ended (branched), and continues"), "{}", ran.err);
    assert_eq!(json("sessions prune --days 0 --ended --dry-run --json")["outdated"], json!([fork]));
    assert_eq!(json("sessions prune --days 0 --ended --json")["deleted"], json!([fork]));
    assert_eq!(json("sessions delete feature-login --json")["deleted"], json!(["feature-login"]));
}

#[test]
fn body_without_roles_is_refused() {
    let sandbox = Sandbox::new();
    let line =
        |i: usize| json!({ "type": "user", "uuid": i, "message": { "role": "user", "content": "hi" } });
    let lines: Vec<String> = (0..40).map(|i| line(i).to_string()).collect();
    sandbox.write("session.jsonl", &lines.join("\n"));
    for command in ["fold", "fold --session new", "show", "inspect --budget"] {
        let ran = sandbox.run(&format!("{command} session.jsonl --window 8k"));
        assert_eq!((ran.code, &*ran.out), (1, ""), "{command}: {}", ran.err);
        assert!(ran.err.contains("no message in it has a role"), "{}", ran.err);
        assert!(ran.err.contains("fanfold sessions import"), "{}", ran.err);
    }
    // A single message without a role is allowed.
    let odd = r#"[{"role":"user","content":"hi"},{"content":"and this?"}]"#;
    assert_eq!(sandbox.run_with("fold --window 8k", odd).out, odd);
}

#[test]
fn file_among_policies_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("runs.jsonl", &body(&long_chat(3)));
    for policies in ["all", "fanfold", "mask window"] {
        let ran = sandbox.run(&format!("replay --policy {policies} runs.jsonl"));
        assert_eq!(ran.code, 1, "{}", ran.out);
        assert!(ran.err.contains("`runs.jsonl` is a file, not a policy"), "{}", ran.err);
        assert!(ran.err.contains("hint: name it first: fanfold replay runs.jsonl --policy"), "{}", ran.err);
    }
    let ran = sandbox.run("replay runs.jsonl --policy all nonsense");
    assert!(ran.code == 1 && ran.err.contains("nonsense"), "{}", ran.err);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_on_stdout_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(3)));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(sandbox.command().get_program());
    command.args(["fold", "--window", "100k"]).arg(sandbox.path("chat.json"));
    let output = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("stdout could not be written: no space left on device"), "{err}");
    assert!(err.contains("hint: make room on the disk"), "{err}");
}
