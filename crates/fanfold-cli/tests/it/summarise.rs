//! `fold --summarise`: its output, and its failures.

use std::process::Stdio;
use std::time::Duration;

use fanfold_testkit::fakes::summaries::{REFUSAL, summary_server};
use fanfold_testkit::fakes::upstream::{Fault, Upstream};
use serde_json::{Value, json};

use crate::sandbox::{CommandOutput, Sandbox, body, long_chat};

const MARK: &str = "Summary of earlier steps, written by a model";
const KEY: &str = "not-a-key-but-looks-like-one";

/// A sandbox with a conversation and a model that writes summaries.
fn sandbox_with_model(more: &str) -> (Sandbox, Upstream) {
    let (sandbox, model) = (Sandbox::new(), summary_server());
    let url = model.url();
    sandbox.write(
        "config/fanfold/config.toml",
        &format!(
            "[summary]\nmodel = \"little\"\nurl = \"{url}/v1\"\nkey_env = \"LITTLE_KEY\"\nwindow = \"16k\"\ntimeout = 5\n{more}"
        ),
    );
    sandbox.write("chat.json", &body(&long_chat(60)));
    (sandbox, model)
}

fn run(sandbox: &Sandbox, line: &str) -> CommandOutput {
    let mut command = sandbox.command();
    let output = command.args(line.split_whitespace()).env("LITTLE_KEY", KEY).output().unwrap();
    let here = sandbox.path("").display().to_string();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&here, "HERE/");
    let ran = CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    assert!(!ran.err.contains(KEY) && !ran.out.contains(KEY));
    ran
}

#[test]
fn summary_is_in_the_output() {
    let (sandbox, model) = sandbox_with_model("");
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(MARK) && ran.out.contains("Historical Task Snapshot"), "{}", ran.err);
    assert!(ran.err.contains("requesting a summary from little"), "{}", ran.err);
    assert!(ran.err.contains("a summary of ") && ran.err.contains(" tokens was written"), "{}", ran.err);
    let seen = model.seen();
    assert_eq!(seen[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    // Without the flag no model is called.
    let n_seen = model.n_seen();
    let plain = run(&sandbox, "fold chat.json --window 20k");
    assert!(plain.code == 0 && !plain.out.contains(MARK) && model.n_seen() == n_seen);
}

#[test]
fn focus_is_in_the_prompt() {
    let (sandbox, model) = sandbox_with_model("");
    let mut command = sandbox.command();
    command.args(["fold", "chat.json", "-w", "20k", "--summarise", "--focus", "the lost record"]);
    assert!(command.env("LITTLE_KEY", KEY).output().unwrap().status.success());
    assert!(model.seen()[0].text().contains("the lost record"));
}

#[test]
fn refused_key_error_names_its_variable() {
    let (sandbox, model) = sandbox_with_model("");
    model.fault(Fault::Answer(401, "{\"error\":{\"message\":\"Incorrect API key provided\"}}".to_owned()));
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise -o out.json");
    assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("nothing was changed") && ran.err.contains("LITTLE_KEY"), "{}", ran.err);
    assert!(ran.err.contains("\n\nhint: "), "{}", ran.err);
    assert!(!sandbox.path("out.json").exists());
}

#[test]
fn failed_summary_falls_back_to_the_digest() {
    let (sandbox, model) = sandbox_with_model("");
    for _ in 0..9 {
        model.fault(Fault::Answer(
            404,
            "{\"error\":{\"message\":\"The model `little` does not exist\"}}".to_owned(),
        ));
    }
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("warning: ") && ran.err.contains("the record"), "{}", ran.err);
    assert!(
        ran.err.contains("there is no such model (404)") && ran.err.contains("hint: check the name"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains(MARK) && ran.out.len() < sandbox.read("chat.json").len());
}

#[test]
fn abort_on_failure_makes_failures_errors() {
    let (sandbox, model) = sandbox_with_model("abort_on_failure = true\n");
    for _ in 0..9 {
        model.fault(Fault::Answer(
            404,
            "{\"error\":{\"message\":\"The model `little` does not exist\"}}".to_owned(),
        ));
    }
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise");
    assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("nothing was changed"), "{}", ran.err);
}

#[test]
fn missing_model_error_has_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(60)));
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise");
    assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("no model is set that writes summaries"), "{}", ran.err);
    assert!(ran.err.contains("hint: set `model` in [summary]"), "{}", ran.err);
}

#[test]
fn project_file_cannot_set_summary() {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &body(&long_chat(3)));
    sandbox.write(".fanfold.toml", "[summary]\nmodel = \"m\"\nurl = \"http://elsewhere.invalid\"\n");
    let ran = run(&sandbox, "fold chat.json");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("[summary] is not allowed in a project's file"), "{}", ran.err);
}

#[test]
fn stored_session_keeps_its_summary() {
    let (sandbox, model) = sandbox_with_model("");
    let ran = run(&sandbox, "fold chat.json --session a --window 20k --store s.db --summarise");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(MARK), "{}", ran.err);
    let n_seen = model.n_seen();
    // Later requests contain the summary without requesting it again.
    let again = run(&sandbox, "fold --session a --window 20k --store s.db");
    assert_eq!((again.out, model.n_seen()), (ran.out, n_seen), "{}", again.err);
    assert!(run(&sandbox, "show --session a --folded --store s.db").out.contains(MARK));
    let shown = run(&sandbox, "sessions show a --store s.db").out;
    assert!(shown.contains("a summary by little at http://127.0.0.1"), "{shown}");
    let nothing = run(&sandbox, "fold --session a --window 20k --store s.db --summarise");
    assert!(nothing.code == 0 && nothing.err.contains("nothing to summarise"), "{}", nothing.err);
}

#[test]
fn refused_key_leaves_the_session_unchanged() {
    let (sandbox, model) = sandbox_with_model("");
    let refused = || {
        model
            .fault(Fault::Answer(401, "{\"error\":{\"message\":\"Incorrect API key provided\"}}".to_owned()));
    };
    refused();
    let ran = run(&sandbox, "fold chat.json --session new --window 20k --store s.db --summarise");
    assert!(ran.code == 1 && ran.err.contains("nothing was changed"), "{}", ran.err);
    assert_eq!(run(&sandbox, "sessions list --json --store s.db").out.trim(), "[]");
    // An existing session keeps its messages, its window and its folds.
    assert_eq!(run(&sandbox, "fold chat.json --session a --window 60k --store s.db").code, 0);
    let state = || {
        let shown = run(&sandbox, "show --session a --folded --store s.db").out;
        (shown, run(&sandbox, "inspect --session a --requests --store s.db").out)
    };
    let before = state();
    sandbox.write("longer.json", &body(&long_chat(70)));
    for file in ["", "longer.json"] {
        refused();
        let line = format!("fold {file} --session a --window 10k --now --store s.db --summarise");
        let ran = run(&sandbox, &line);
        assert!(ran.code == 1 && ran.err.contains("nothing was changed"), "{}", ran.err);
        assert_eq!(state(), before);
    }
}

#[test]
fn another_focus_requests_another_summary() {
    let (sandbox, model) = sandbox_with_model("");
    let line = "fold chat.json --session a --window 20k --store s.db --summarise --focus";
    assert_eq!(run(&sandbox, &format!("{line} stages")).code, 0);
    let n_seen = model.n_seen();
    let ran = run(&sandbox, &format!("{line} batches"));
    assert!(ran.code == 0 && model.n_seen() > n_seen && ran.out.contains(MARK), "{}", ran.err);
    assert!(model.seen()[n_seen].text().contains("batches"));
}

#[test]
fn fallback_model_is_reported() {
    let (sandbox, model) = sandbox_with_model("");
    let url = model.url();
    sandbox.write(
        "config/fanfold/config.toml",
        &format!(
            "[summary]\nmodel = \"little\"\nurl = \"{url}/v1\"\nkey_env = \"LITTLE_KEY\"\nwindow = \"16k\"\ntimeout = 5\n[summary.main]\nmodel = \"large\"\n"
        ),
    );
    model.fault(Fault::Answer(
        404,
        "{\"error\":{\"message\":\"The model `little` does not exist\"}}".to_owned(),
    ));
    let ran = run(&sandbox, "fold chat.json --window 20k --summarise");
    assert!(ran.code == 0 && ran.out.contains(MARK), "{}", ran.err);
    for words in
        ["warning: large wrote the summary", "there is no such model (404)", "hint: check the name `little`"]
    {
        assert!(ran.err.contains(words), "`{words}` is not in: {}", ran.err);
    }
}

/// The newest user message stays whole, so its length determines the room for a summary.
#[test]
fn summary_without_room_is_reported_as_not_placed() {
    let (sandbox, _model) = sandbox_with_model("");
    let mut n_placed = 0;
    let sizes = [2_000, 9_000, 10_000, 10_400, 10_800, 11_200];
    for n_words in sizes {
        let mut messages = long_chat(30);
        let words = "more ".repeat(n_words);
        messages.push(json!({ "role": "assistant", "content": "What else?" }));
        messages.push(json!({ "role": "user", "content": format!("Look at this, too: {words}") }));
        sandbox.write("chat.json", &body(&messages));
        let ran = run(&sandbox, "fold chat.json --window 16k --summarise");
        assert_eq!(ran.code, 0, "{n_words}: {}", ran.err);
        let is_placed = ran.out.contains(MARK);
        n_placed += usize::from(is_placed);
        let is_reported = ran.err.contains(" tokens was written: ");
        let is_reported_as_left_out = ran.err.contains("warning: ")
            && ran.err.contains("the summary is not in the view")
            && ran.err.contains("a larger --window makes room");
        assert_eq!((is_reported, is_reported_as_left_out), (is_placed, !is_placed), "{n_words}: {}", ran.err);
    }
    assert!(n_placed > 0 && n_placed < sizes.len(), "{n_placed} of {}", sizes.len());
}

/// The last receipt, which describes the summary.
fn receipt(sandbox: &Sandbox, line: &str) -> (CommandOutput, Value) {
    let ran = run(sandbox, &format!("{line} --receipt r.json"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut all: Vec<Value> = serde_json::from_str(&sandbox.read("r.json")).unwrap();
    let last = all.pop().unwrap_or_default();
    assert!(all.iter().all(|fold| fold.get("summary").is_none() && fold["won"].is_u64()), "{all:?}");
    (ran, last["summary"].clone())
}

#[test]
fn receipt_contains_the_summary_outcome() {
    let (sandbox, model) = sandbox_with_model("[summary.main]\nmodel = \"large\"\n");
    let fail_once =
        || model.fault(Fault::Answer(404, "{\"error\":{\"message\":\"no such model\"}}".to_owned()));
    for line in ["fold chat.json --window 20k", "fold chat.json --session a --window 20k --store s.db"] {
        let is_kept = line.contains("--session");
        // Without a summary there is no such receipt.
        let (_, plain) = receipt(&sandbox, line);
        assert_eq!(plain, Value::Null);
        fail_once();
        let (ran, report) = receipt(&sandbox, &format!("{line} --summarise"));
        assert_eq!((&report["ended"], &report["model"]), (&json!("written"), &json!("large")));
        assert_eq!((&report["placed"], ran.out.contains(MARK)), (&json!(true), true));
        let tokens = report["tokens"].as_u64().unwrap();
        let stderr = ran.err.replace(',', "");
        assert!(stderr.contains(&format!("a summary of {tokens} tokens was written")), "{}", ran.err);
        assert_eq!(report["missed"].as_array().map(Vec::len), Some(1));
        let missed = &report["missed"][0];
        assert_eq!((&missed["model"], &missed["class"]), (&json!("little"), &json!("no_model")));
        assert!(missed["why"].as_str().unwrap().contains("there is no such model (404)"), "{missed}");
        assert!(missed["hint"].as_str().unwrap().contains("check the name `little`"), "{missed}");
        // Both models fail. In a session the focus must differ, so that a summary is requested again.
        fail_once();
        fail_once();
        let (_, report) = receipt(&sandbox, &format!("{line} --summarise --focus batches"));
        assert_eq!((&report["ended"], &report["placed"]), (&json!("digest"), &json!(false)), "{report}");
        assert_eq!((&report["model"], &report["tokens"]), (&Value::Null, &Value::Null));
        assert_eq!(report["missed"].as_array().map(Vec::len), Some(2));
        if is_kept {
            let (_, report) = receipt(&sandbox, &format!("{line} --summarise"));
            assert_eq!(report["ended"], "nothing");
        }
    }
    // --json contains the same next to the folds, with the flaws of an answer.
    let refusal = json!({ "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": REFUSAL } }] });
    model.fault(Fault::Answer(200, refusal.to_string()));
    let report: Value =
        serde_json::from_str(&run(&sandbox, "fold chat.json --window 20k --summarise --json").out).unwrap();
    assert_eq!(report["summary"]["flaws"], json!(["refused"]), "{}", report["summary"]);
    assert_eq!((&report["summary"]["model"], &report["summary"]["missed"]), (&json!("little"), &json!([])));
    assert!(report["receipts"].as_array().unwrap().iter().all(|fold| fold.get("summary").is_none()));
}

/// `inspect --metrics` counts failures by class.
#[test]
fn summary_failures_are_counted() {
    let (sandbox, model) = sandbox_with_model("[summary.main]\nmodel = \"large\"\n");
    let metrics = || {
        let report = run(&sandbox, "inspect --session a --metrics --json --store s.db").out;
        let report: Value = serde_json::from_str(&report).unwrap();
        ["summaries", "fallbacks", "missed"].map(|what| report[what].as_u64().unwrap())
    };
    let line = "fold chat.json --session a --window 20k --store s.db --summarise --focus";
    let fail_once =
        || model.fault(Fault::Answer(404, "{\"error\":{\"message\":\"no such model\"}}".to_owned()));
    // The main model writes it; then both models fail; then the first one succeeds at its second attempt.
    fail_once();
    assert_eq!(run(&sandbox, &format!("{line} stages")).code, 0);
    assert_eq!(metrics(), [1, 1, 1]);
    fail_once();
    fail_once();
    assert_eq!(run(&sandbox, &format!("{line} batches")).code, 0);
    assert_eq!(metrics(), [1, 2, 3]);
    let refusal = json!({ "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": REFUSAL } }] });
    model.fault(Fault::Answer(200, refusal.to_string()));
    assert_eq!(run(&sandbox, &format!("{line} records")).code, 0);
    assert_eq!(metrics(), [2, 2, 3]);
    let report = run(&sandbox, "inspect --session a --metrics --store s.db").out;
    let row = |name: &str| report.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("flawed").contains("flaws in unusable summaries: refused 1"), "{report}");
    assert!(row("fell back").contains("3 failures; the last one: large at http://127.0.0.1"), "{report}");
}

#[test]
fn interrupt_leaves_everything_unchanged() {
    let (sandbox, model) = sandbox_with_model("");
    let line = "fold chat.json --session a --window 20k --store s.db";
    let before = run(&sandbox, line);
    let shown = |sandbox: &Sandbox| run(sandbox, "show --session a --folded --store s.db").out;
    let view = shown(&sandbox);
    model.fault(Fault::Stall(Duration::from_secs(60)));
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("fanfold"))
        .args(line.split_whitespace().chain(["--summarise"]))
        .current_dir(sandbox.path(""))
        .env_clear()
        .envs([("HOME", sandbox.path("")), ("XDG_CONFIG_HOME", sandbox.path("config"))])
        .env("LITTLE_KEY", KEY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(model.wait_for(Duration::from_secs(30), |seen| !seen.is_empty()));
    // Tests in the background and their children ignore Ctrl-C, so a second signal follows.
    for signal in ["-INT", "-TERM"] {
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).output().unwrap();
    }
    assert!(!child.wait().unwrap().success());
    assert_eq!(shown(&sandbox), view);
    assert_eq!(run(&sandbox, "fold --session a --window 20k --store s.db").out, before.out);
    // The next summary is not blocked.
    let ran = run(&sandbox, &format!("{line} --summarise"));
    assert!(ran.code == 0 && ran.out.contains(MARK), "{}", ran.err);
}
