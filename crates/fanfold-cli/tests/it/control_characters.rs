//! Text of conversations, servers and file names does not control the terminal of the reader.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::top;

/// Output of a tool that would control a terminal or mislead its reader, by name.
const KINDS: [(&str, &str); 20] = [
    ("colour", "\u{1b}[31m"),
    ("hidden text", "\u{1b}[8m"),
    ("clear screen", "\u{1b}[2J\u{1b}[H"),
    ("cursor up", "\u{1b}[1A\u{1b}[2K"),
    ("title", "\u{1b}]0;evil\u{7}"),
    ("link", "\u{1b}]8;;http://evil.example\u{1b}\\bank\u{1b}]8;;\u{1b}\\"),
    ("clipboard", "\u{1b}]52;c;ZXZpbA==\u{7}"),
    ("device control", "\u{1b}Pq#0~\u{1b}\\"),
    ("reset", "\u{1b}c"),
    ("C1 sequence", "\u{9b}31m"),
    ("C1 title", "\u{9d}0;evil\u{9c}"),
    ("C1 next line", "\u{85}"),
    ("backspace", "rm -rf x\u{8}\u{8}\u{8}"),
    ("carriage return", "evil\rgood"),
    ("bell", "\u{7}"),
    ("delete", "\u{7f}"),
    ("right-to-left override", "\u{202e}txt.exe"),
    ("isolate", "\u{2066}a\u{2069}"),
    ("marks", "\u{200e}\u{200f}"),
    ("Arabic letter mark", "\u{61c}"),
];

fn is_control(c: char) -> bool {
    let is_direction =
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    c.is_control() && !matches!(c, '\n' | '\t') || is_direction.contains(c)
}

#[track_caller]
fn assert_safe(output: &str, source: &str) {
    assert!(!output.contains(is_control), "{source}: {output:?}");
}

/// A conversation with each kind in the result of a tool, and in the task.
fn hostile_chat() -> String {
    let mut messages = vec![json!({ "role": "user", "content": "find the needle \u{1b}[2J\u{202e}" })];
    // Three calls per step, so that `search --session` shows all messages.
    for (step, kinds) in KINDS.chunks(3).enumerate() {
        let id = |call: usize| format!("c{step}.{call}");
        let call = |(i, (_, kind)): (usize, &(&str, &str))| {
            let arguments = json!({ "command": format!("cat {step}.{i}{kind}") }).to_string();
            json!({ "id": id(i), "type": "function", "function": { "name": "bash", "arguments": arguments } })
        };
        let calls: Vec<Value> = kinds.iter().enumerate().map(call).collect();
        let content = format!("Next {}.", kinds[0].1);
        messages.push(json!({ "role": "assistant", "content": content, "tool_calls": calls }));
        for (i, (name, kind)) in kinds.iter().enumerate() {
            let lines: String = (0..40).map(|n| format!("{kind} line {step}.{i}.{n}\n")).collect();
            let content = format!("needle {name}: {kind} end\n{lines}");
            messages.push(json!({ "role": "tool", "tool_call_id": id(i), "content": content }));
        }
    }
    json!({ "model": "gpt-4o", "messages": messages }).to_string()
}

/// A sandbox with the conversation in a file and in a stored session, which has a hostile goal.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("chat.json", &hostile_chat());
    let ran = sandbox.run("fold chat.json --window 6k --session s --store s.db -o folded.json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let goal: String = KINDS.iter().map(|(_, kind)| *kind).collect();
    let set = sandbox.command().args(["sessions", "goal", "s", &goal, "--store", "s.db"]).output().unwrap();
    assert!(set.status.success(), "{set:?}");
    sandbox
}

/// The commands that print text of the conversation.
fn commands(sandbox: &Sandbox) -> Vec<String> {
    let found = sandbox.run("search needle --json --store s.db");
    let found: Value = serde_json::from_str(&found.out).unwrap();
    let number = &found["results"][0]["match_message_id"];
    [
        "show chat.json",
        "show chat.json --folded --window 6k",
        "show chat.json --explain --window 6k",
        "show --session s --store s.db",
        "search needle --store s.db",
        "search --store s.db",
        "search --session s --store s.db",
        &format!("search --session s --around {number} --store s.db"),
        "search needle --session s --json --store s.db",
        "search --session s --json --store s.db",
        "sessions show s --store s.db",
        "sessions show s --json --store s.db",
        "sessions list --store s.db",
        "sessions list --json --store s.db",
        "inspect chat.json --ledger --window 6k",
        "inspect chat.json --context",
        "fold chat.json --window 6k --dry-run --explain --receipt -",
        "show chat.json --json",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn conversations_do_not_control_a_terminal_through_a_pipe() {
    let sandbox = sandbox();
    for line in commands(&sandbox) {
        let ran = sandbox.run(&line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        assert_safe(&ran.out, &line);
        assert_safe(&ran.err, &line);
        let ran = sandbox.run(&format!("{line} --color always"));
        assert_safe(&anstream::adapter::strip_str(&ran.out).to_string(), &line);
    }
}

#[test]
fn control_characters_are_shown_as_what_they_are() {
    let sandbox = sandbox();
    let shown = sandbox.run("show chat.json").out;
    for visible in
        ["␛]52;c;ZXZpbA==␇", "<U+009B>31m", "x␈␈␈", "evil␍good", "␡", "<U+202E>txt.exe", "<U+061C>"]
    {
        assert!(shown.contains(visible), "{visible}: {shown:?}");
    }
    let goal = sandbox.run("sessions show s --store s.db").out;
    assert!(goal.contains("␛]52;c;"), "{goal:?}");
}

#[test]
fn raw_prints_the_bytes_of_a_conversation() {
    let sandbox = sandbox();
    for line in [
        "show chat.json --raw",
        "show --session s --raw --store s.db",
        "search --session s --raw --store s.db",
    ] {
        let ran = sandbox.run(line);
        for (name, kind) in KINDS {
            assert!(ran.out.contains(kind), "{line}: {name}: {:?}", ran.out);
        }
    }
    assert!(sandbox.run("search needle --raw --store s.db").out.contains(is_control));
}

#[test]
fn json_with_escaped_control_characters_has_the_same_values() {
    let sandbox = sandbox();
    let shown: Value = serde_json::from_str(&sandbox.run("show chat.json --json").out).unwrap();
    assert_eq!(shown["text"], sandbox.run("show chat.json --raw").out);
    let exported = sandbox.run("sessions export s -f raw --store s.db").out;
    assert_eq!(exported, sandbox.read("chat.json"), "a body in a pipe is exact");
}

/// The output of a line in a terminal, with the line ends that it had; `None` where none can be had.
fn run_in_terminal(sandbox: &Sandbox, line: &str) -> Option<String> {
    let program = assert_cmd::cargo::cargo_bin("fanfold");
    let ran = Command::new("script")
        .args(["-qec", &format!("stty -opost; {} {line}", program.display()), "/dev/null"])
        .current_dir(sandbox.path(""))
        .env("HOME", sandbox.path(""))
        .env("XDG_CONFIG_HOME", sandbox.path("config"))
        .env("NO_COLOR", "1")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .output();
    match ran {
        Ok(ran) => Some(String::from_utf8(ran.stdout).unwrap()),
        Err(_) => {
            eprintln!("skipped: the program `script`, which provides a terminal, is not installed");
            None
        }
    }
}

#[test]
fn conversations_do_not_control_a_terminal() {
    let sandbox = sandbox();
    let recall = "recall --session s '#3' --store s.db";
    let mut lines = commands(&sandbox);
    lines.extend(["sessions export s --store s.db", "fold chat.json", recall].map(str::to_owned));
    for line in lines {
        let Some(shown) = run_in_terminal(&sandbox, &line) else { return };
        assert!(shown.len() > 20, "{line}: {shown:?}");
        assert_safe(&shown, &line);
    }
    let exact = run_in_terminal(&sandbox, &format!("{recall} --raw")).unwrap();
    let piped =
        sandbox.command().args(["recall", "--session", "s", "#3", "--store", "s.db"]).output().unwrap();
    assert_eq!(exact.as_bytes(), piped.stdout, "--raw prints to a terminal what a pipe receives");
    assert!(exact.contains("\u{1b}]52;c;"), "{exact:?}");
}

#[test]
fn a_status_server_does_not_control_the_terminal_of_top() {
    let all: String = KINDS.iter().map(|(_, kind)| *kind).collect();
    let mut status = top::status();
    status["version"] = json!(format!("1{all}"));
    status["mode"] = json!(all);
    status["totals"]["as_it_came"] = json!({ &*all: 3 });
    for (i, key) in ["id", "words", "model", "format", "pressure"].into_iter().enumerate() {
        status["sessions"][i % 2][key] = json!(format!("{key} {all}"));
    }
    let address = top::serve(status.to_string(), None);
    let sandbox = Sandbox::new();
    for flags in ["", "--once", "--json"] {
        let ran = sandbox.run(&format!("top --url {address} {flags}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_safe(&ran.out, flags);
        if let Some(shown) = run_in_terminal(&sandbox, &format!("top --once --url {address} {flags}")) {
            assert_safe(&shown, flags);
        }
    }
}

#[test]
fn names_do_not_control_the_terminal_in_errors() {
    let sandbox = sandbox();
    let name = "x\u{202e}\u{1b}]0;evil\u{7}\u{9b}1m.json";
    for arguments in [
        vec!["fold", name],
        vec!["show", "--session", name, "--store", "s.db"],
        vec!["sessions", "show", name, "--store", "s.db"],
        vec!["sessions", "import", name, "--store", "s.db"],
        vec!["recall", "chat.json", name],
        vec!["fold", "--policy", name],
        vec!["fold", "--window", name],
        vec!["sessions", "list", "--profile", name],
        vec![name],
    ] {
        let ran = sandbox.command().args(&arguments).output().unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert!(!ran.status.success() && err.contains("<U+202E>"), "{arguments:?}: {err}");
        assert_safe(&err, &format!("{arguments:?}"));
    }
}

/// Everything that the program prints goes through `terminal`, except protocols and the codes of a live screen.
#[test]
fn no_module_writes_to_a_stream_by_itself() {
    const ALLOWED: [&str; 2] = ["commands/pipe/mod.rs", "commands/top/live.rs"];
    fn check(directory: &Path, root: &Path) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                check(&path, root);
            } else if !name.starts_with("terminal/") && !ALLOWED.contains(&&*name) {
                let text = std::fs::read_to_string(&path).unwrap();
                for writer in
                    ["println!", "print!(", "eprint!", "stdout().lock", "stderr().lock", "/dev/stdout"]
                {
                    assert!(!text.contains(writer), "{name} uses {writer}; use the functions of `terminal`");
                }
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    check(&root, &root);
}
