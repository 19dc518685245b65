//! `fanfold top` with a fake proxy: in pipes and in a terminal.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

pub(crate) fn status() -> Value {
    let dollars = json!({ "came": 2.5, "sent": 1.3, "saved": 1.2 });
    let session = |id: &str, words: &str| {
        json!({
            "id": id, "words": words, "format": "anthropic", "model": "claude-opus-5-5", "since": 1_763_200_000,
            "idle_seconds": 4.2, "requests": 12, "in_flight": 0, "window": 200_000, "room": 191_808,
            "came": 150_000, "sent": 61_204, "folds": 3, "folds_here": 3, "recalls": 1, "misses": 2,
            "folded_away": 88_796, "dollars": dollars, "needs": null, "pressure": "none", "turns": 4, "summaries": 0,
        })
    };
    json!({
        "version": "0.1.0", "mode": "fold", "uptime_seconds": 62.0, "requests_in_flight": 0,
        "totals": {
            "requests": 24, "passed_through": 7, "outcomes": { "folded": 20, "whole": 4 }, "as_it_came": {},
            "ended": { "done": 24 }, "refused": 0, "retried": 0, "folds": 6, "recalls": 2, "misses": 4,
            "folding": { "turns": 8, "folds_per_100_turns": 75.0, "saved_per_fold": 29_598.7, "ratio": 0.41 },
            "summaries": { "by": {}, "tokens": 0, "tokens_each": 0.0, "flaws": {}, "fallbacks": {}, "failures": {} },
            "tokens": { "came": 3_000_000, "sent": 1_400_000, "folded_away": 177_592, "input": 1_400_000,
                        "read": 1_300_000, "written": 100_000, "output": 40_000 },
            "dollars": { "came": 5.0, "sent": 2.6, "saved": 2.4 }, "requests_priced": 24, "requests_unpriced": 0,
        },
        "models": [],
        "sessions": [session("s1", "fix the flaky test"), session("s2", "write a poem")],
    })
}

/// Starts a server with a fixed answer and an optional token. Returns its address.
pub(crate) fn serve(answer: String, token: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut bytes = [0; 1024];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(n) if n > 0 => request.extend_from_slice(&bytes[..n]),
                    _ => break,
                }
            }
            let request = String::from_utf8(request).unwrap();
            let may = token.is_none_or(|token| request.contains(&format!("x-fanfold-token: {token}\r\n")));
            let is_status = request.starts_with("GET /fanfold/status HTTP/1.1\r\n");
            let (code, body) = match (may, is_status) {
                (true, true) => ("200 OK", answer.as_str()),
                (true, false) => ("404 Not Found", "{}"),
                (false, _) => ("401 Unauthorized", "{}"),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {code}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn top_prints_a_table_to_a_pipe() {
    let address = serve(status().to_string(), None);
    let ran = Sandbox::new().run(&format!("top --url {address}"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    expect![[r#"
        fanfold 0.1.0  ADDRESS  up 62s
        requests 24  in progress 0  folded 20  unchanged 0  refused 0  retried 0
        saved $2.40 of $5.00  folded away 177k tokens  folds 6  recalls 2  misses 4
        a fold saves 29.6k tokens and leaves 41 %; 75.0 folds per 100 turns

        SESSION                          MODEL             VIEW IN WINDOW      TOKENS  FOLDS RECALLS MISSES    AWAY    SAVED  IDLE
        fix the flaky test               claude-opus-5-5   █████░░░░░░···  61.2k/200k      3       1      2   88.8k    $1.20    4s
        write a poem                     claude-opus-5-5   █████░░░░░░···  61.2k/200k      3       1      2   88.8k    $1.20    4s
    "#]].assert_eq(&ran.out.replace(&address, "ADDRESS"));
}

#[test]
fn top_prints_the_status_as_json() {
    let address = serve(status().to_string(), None);
    let ran = Sandbox::new().run(&format!("top --json --url {address}"));
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), status());
}

/// The status of an older proxy lacks some fields.
#[test]
fn top_reads_the_status_of_older_proxies() {
    let mut old = status();
    for session in old["sessions"].as_array_mut().unwrap() {
        let session = session.as_object_mut().unwrap();
        ["needs", "pressure", "turns", "summaries"].iter().for_each(|key| drop(session.remove(*key)));
    }
    let totals = old["totals"].as_object_mut().unwrap();
    ["folding", "summaries"].iter().for_each(|key| drop(totals.remove(*key)));
    let address = serve(old.to_string(), None);
    let ran = Sandbox::new().run(&format!("top --url {address}"));
    assert!(ran.code == 0 && ran.out.contains("fix the flaky test"), "{}", ran.err);
}

#[test]
fn top_sends_its_token() {
    let address = serve(status().to_string(), Some("abc"));
    let sandbox = Sandbox::new();
    let without = sandbox.run(&format!("top --url {address}"));
    assert_eq!(without.code, 1);
    assert!(
        without.err.contains("requires a token") && without.err.contains("hint: give it with --token"),
        "{}",
        without.err
    );
    let with = sandbox
        .command()
        .args(["top", "--json", "--url", &address])
        .env("FANFOLD_TOKEN", "abc")
        .output()
        .unwrap();
    assert!(with.status.success());
}

#[test]
fn unreachable_proxy_error_has_address_and_hint() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = Sandbox::new().run(&format!("top --url {address}"));
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    expect![[r#"
        error: no proxy answers at ADDRESS: connection refused

        hint: start one with `fanfold serve`, or give its address with --url
    "#]]
    .assert_eq(&ran.err.replace(&address, "ADDRESS"));
    let other = serve("<html>".to_owned(), None);
    let ran = Sandbox::new().run(&format!("top --url {other}"));
    assert!(ran.code == 1 && ran.err.contains("is not a fanfold proxy"), "{}", ran.err);
    let wrong = Sandbox::new().run("top --url localhost:7744");
    assert!(wrong.code == 1 && wrong.err.contains("hint: write it as http://HOST:PORT"), "{}", wrong.err);
}

/// The screens in the output, without colours.
fn screens(sent: &str) -> Vec<String> {
    let drawn = sent.split("\x1b[H").skip(1);
    drawn.map(|frame| anstream::adapter::strip_str(frame).to_string().replace('\r', "")).collect()
}

#[test]
fn top_redraws_in_a_terminal() {
    let has_script = Command::new("script").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !has_script {
        eprintln!("skipped: the program `script`, which provides a terminal, is not installed");
        return;
    }
    let address = serve(status().to_string(), None);
    let sandbox = Sandbox::new();
    let program = assert_cmd::cargo::cargo_bin("fanfold");
    let line = format!("stty cols 80 rows 13; {} top --url {address}; stty -a", program.display());
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(sandbox.path("."))
        .env("HOME", sandbox.path("."))
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sent = Vec::new();
    let mut bytes = [0; 4096];
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // Select the second session, show it, return, change the order, and quit. Each key waits for the next screen.
    let mut pressed: &[&[u8]] = &[b"\x1b[B\x1b[B", b"\r", b"\x7f", b"s", b"q"];
    loop {
        let n = screen.read(&mut bytes).unwrap();
        if n == 0 {
            break;
        }
        sent.extend_from_slice(&bytes[..n]);
        let is_drawn = sent.ends_with(b"\x1b[J");
        if let (true, Some((next, rest))) = (is_drawn, pressed.split_first()) {
            keys.write_all(next).unwrap();
            pressed = rest;
        }
    }
    let sent = String::from_utf8(sent).unwrap();
    assert!(child.wait().unwrap().success(), "{sent}");
    let screens = screens(&sent);
    let has = |words: &[&str]| screens.iter().any(|screen| words.iter().all(|word| screen.contains(word)));
    assert!(has(&["> write a poem", "  fix the flaky", "(activity)"]), "{sent}");
    assert!(has(&["first words    write a poem", "sent           61,204 tokens"]), "{sent}");
    assert!(has(&["(money saved)"]), "{sent}");
    // The alternate screen is left, the cursor is visible, and the terminal mode is restored.
    let (_, after) = sent.split_once("\x1b[?25h\x1b[?1049l").expect("the alternate screen is left");
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    expect![[r#"
        fanfold 0.1.0  ADDRESS  up 62s
        requests 24  in progress 0  folded 20  unchanged 0  refused 0  retried 0
        saved $2.40 of $5.00  folded away 177k tokens  folds 6  recalls 2  misses 4
        a fold saves 29.6k tokens and leaves 41 %; 75.0 folds per 100 turns

          SESSION              VIEW          TOKENS  FOLDS MISSES    AWAY    SAVED  IDLE
          fix the flaky test   ███░░░··  61.2k/200k      3      2   88.8k    $1.20    4s
          write a poem         ███░░░··  61.2k/200k      3      2   88.8k    $1.20    4s




        q quit   up/down select   enter details   s order (activity)
    "#]]
    .assert_eq(
        &screens[0]
            .replace(&address, "ADDRESS")
            .lines()
            .map(|l| format!("{}\n", l.trim_end()))
            .collect::<String>(),
    );
}
