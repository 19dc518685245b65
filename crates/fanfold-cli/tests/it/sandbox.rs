//! A sandbox for each test: an empty home, no settings, no colours.

use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// An empty home and directory.
pub(crate) struct Sandbox {
    directory: TempDir,
}

/// The exit code and output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        Sandbox { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::cargo_bin("fanfold").unwrap();
        command.env_clear().current_dir(self.directory.path());
        command.env("HOME", self.directory.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    /// Runs a line of arguments. The path of the sandbox is replaced by `HERE` in the output.
    pub(crate) fn run(&self, line: &str) -> CommandOutput {
        self.run_with(line, "")
    }

    pub(crate) fn run_with(&self, line: &str, stdin: &str) -> CommandOutput {
        let output = self.command().args(line.split_whitespace()).write_stdin(stdin).output().unwrap();
        let here = self.directory.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&here, "HERE");
        CommandOutput {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// A long chat: a task, then steps that read files and run tests, with a short user message now and then.
pub(crate) fn long_chat(n_steps: usize) -> Vec<Value> {
    let mut messages = vec![
        json!({ "role": "system", "content": "You are a careful engineer." }),
        json!({ "role": "user", "content": "Find out why the night run loses every hundredth record." }),
    ];
    for i in 0..n_steps {
        let id = format!("call_{i}");
        let (name, arguments, result) = match i % 3 {
            0 => ("read", json!({ "path": format!("src/stage_{i}.py") }), file(i)),
            1 => ("bash", json!({ "command": format!("pytest tests/test_{i}.py") }), log(i)),
            _ => ("bash", json!({ "command": format!("grep -rn batch_{i} src") }), hits(i)),
        };
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        messages.push(json!({ "role": "assistant", "content": format!("Step {i}."),
            "tool_calls": [{ "id": id, "type": "function", "function": function }] }));
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
        if i % 11 == 10 {
            messages.push(json!({ "role": "assistant", "content": format!("So far: stage {i} is fine.") }));
            messages.push(
                json!({ "role": "user", "content": format!("Then look at stage {} next, “bitte”.", i + 1) }),
            );
        }
    }
    messages
}

fn file(i: usize) -> String {
    (0..60).map(|n| format!("def take_{i}_{n}(rows):\n    return rows[{n}:{}]\n", n * 7 + i)).collect()
}

fn log(i: usize) -> String {
    let lines: String = (0..50).map(|n| format!("tests/test_{i}.py::test_{n} PASSED\n")).collect();
    format!("{lines}E   AssertionError: lost record {}\n1 failed, 50 passed in 0.{i}s\n", i * 101)
}

fn hits(i: usize) -> String {
    (0..30).map(|n| format!("src/stage_{n}.py:{}: batch_{i} = queue.take({n})\n", n * i + 3)).collect()
}

/// A whole request body.
pub(crate) fn body(messages: &[Value]) -> String {
    json!({ "model": "gpt-4o", "messages": messages, "temperature": 0 }).to_string()
}
