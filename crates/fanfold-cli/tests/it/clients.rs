//! The sessions that real clients write: Codex and Claude Code, installed from npm, talking to a scripted provider.
//!
//! Each test is skipped with a message if its client cannot be installed.

#![allow(clippy::print_stdout, reason = "a test reports why it was skipped")]

use std::path::Path;

use assert_cmd::Command;
use fanfold_core::{Budget, Policy, Session, Tokens};
use fanfold_testkit::clients::programs::{self, CLAUDE_CODE, CODEX, ClientProgram, N_STEPS};
use fanfold_tokens::o200k;
use fanfold_wire::{Change, Conversation};
use serde_json::Value;

#[test]
fn codex_sessions_are_replayed() {
    check(&CODEX, "codex");
}

#[test]
fn claude_code_sessions_are_replayed() {
    check(&CLAUDE_CODE, "claude-code");
}

/// Checks that a replay finds the session with all its replies and results, and folds it.
fn check(client: &ClientProgram, source: &str) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let ran = match programs::run(client, &target) {
        Ok(ran) => ran,
        Err(why) => return println!("skipped: {} {}: {why}", client.name, client.version),
    };
    let mut command = Command::cargo_bin("fanfold").unwrap();
    command.env_clear().env("HOME", &ran.home).current_dir(&ran.home);
    let output = command.args(["replay", "--window", "3k", "--json"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [session] = page["results"].as_array().unwrap().as_slice() else { panic!("not one session: {page}") };
    assert_eq!(session["source"], source);
    let sum = |key: &str| session["sums"][key].as_u64().unwrap();
    let sent = longest(&ran.bodies);
    let steps: Vec<_> = sent.transcript().entries().iter().filter_map(|entry| entry.step()).collect();
    // The last reply was not sent again.
    let n_replies = steps.len() + 1;
    println!("{} {}: {n_replies} replies", client.program, client.version);
    assert!(n_replies > N_STEPS, "{n_replies} replies");
    assert_eq!(sum("calls"), n_replies as u64, "replies");
    assert_eq!((sum("over"), sum("invalid")), (0, 0), "views too long, and views that would be refused");
    assert!(sum("folds") > 0, "nothing was folded");
    let whole = session["raw"].as_u64().unwrap();
    let results = steps.iter().flat_map(|step| &step.calls).filter_map(|call| call.result.as_ref());
    let results: Tokens = results.map(|outcome| outcome.body.tokens()).sum();
    assert!(Tokens(whole) > results, "{whole} tokens, and its results alone have {results}");
}

/// The last message of the client in its longest conversation.
fn longest<'c>(bodies: &[String]) -> Session<'c> {
    let body = bodies.iter().max_by_key(|body| body.len()).unwrap();
    let (_, changes) = Conversation::decode(body, None).unwrap();
    let mut session = Session::new(Policy::fanfold(), Budget::of_window(Tokens(10_000_000)), o200k());
    for change in changes {
        match change {
            Change::Append(entry) => drop(session.append(entry)),
            Change::Answer(call, outcome) => {
                assert!(session.set_result(call, outcome), "{call:?} is missing");
            }
        }
    }
    session
}
