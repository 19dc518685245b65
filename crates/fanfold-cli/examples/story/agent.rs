//! The tool calls of an agent in the project, and their results.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A simulated agent: the current files of the project, and all messages.
pub(super) struct Agent {
    pub(super) messages: Vec<Value>,
    files: BTreeMap<&'static str, String>,
    changes: Vec<(String, String, String)>,
    next_text: String,
    n_calls: usize,
}

const FILES: [(&str, &str); 6] = [
    ("harbour/berths.py", include_str!("../harbour/harbour/berths.py")),
    ("harbour/clock.py", include_str!("../harbour/harbour/clock.py")),
    ("harbour/export.py", include_str!("../harbour/harbour/export.py")),
    ("harbour/schedule.py", include_str!("../harbour/harbour/schedule.py")),
    ("harbour/tides.py", include_str!("../harbour/harbour/tides.py")),
    ("tests/test_schedule.py", include_str!("../harbour/tests/test_schedule.py")),
];

impl Agent {
    pub(super) fn new(system: &str) -> Agent {
        Agent {
            messages: vec![json!({ "role": "system", "content": system })],
            files: FILES.iter().map(|(path, text)| (*path, (*text).to_owned())).collect(),
            changes: Vec::new(),
            next_text: String::new(),
            n_calls: 0,
        }
    }

    pub(super) fn user(&mut self, text: &str) {
        self.messages.push(json!({ "role": "user", "content": text }));
    }

    pub(super) fn reply(&mut self, text: &str) {
        self.messages.push(json!({ "role": "assistant", "content": text }));
    }

    /// The text before the next call.
    pub(super) fn with_text(&mut self, text: &str) -> &mut Agent {
        text.clone_into(&mut self.next_text);
        self
    }

    pub(super) fn bash(&mut self, command: &str, output: &str) {
        self.call("bash", &json!({ "command": command }), output);
    }

    pub(super) fn list_files(&mut self) {
        let mut lines = vec![
            ".".to_owned(),
            "├── CHANGELOG.md".into(),
            "├── README.md".into(),
            "├── pyproject.toml".into(),
        ];
        lines.extend(self.files.iter().map(|(path, text)| format!("├── {path} ({} bytes)", text.len())));
        lines.extend(
            ["├── scripts/export_day.py", "├── scripts/offsets.py", "└── scripts/replay_ticket.py"]
                .map(str::to_owned),
        );
        self.bash("tree --du", &(lines.join("\n") + "\n"));
    }

    pub(super) fn read(&mut self, path: &'static str) {
        let output = numbered(&self.files[path], 1, usize::MAX);
        self.call("read", &json!({ "path": path }), &output);
    }

    pub(super) fn read_lines(&mut self, path: &'static str, from: usize, n_lines: usize) {
        let output = numbered(&self.files[path], from, n_lines);
        self.call("read", &json!({ "path": path, "offset": from, "limit": n_lines }), &output);
    }

    pub(super) fn grep(&mut self, word: &str) {
        let mut hits = String::new();
        for (path, text) in &self.files {
            for (i, line) in text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
                hits.push_str(&format!("{path}:{}:{line}\n", i + 1));
            }
        }
        self.bash(&format!("grep -rn {word} harbour tests"), &hits);
    }

    pub(super) fn edit(&mut self, path: &'static str, old: &str, new: &str) {
        let text = self.files.get_mut(path).unwrap();
        assert!(text.contains(old), "{path} does not have {old:?}");
        *text = text.replacen(old, new, 1);
        self.changes.push((path.to_owned(), old.to_owned(), new.to_owned()));
        let output = format!("edited {path}: 1 replacement\n");
        self.call("edit", &json!({ "path": path, "old": old, "new": new }), &output);
    }

    /// A file that the last command wrote.
    pub(super) fn set_file(&mut self, path: &'static str, text: &str) {
        self.files.insert(path, text.to_owned());
    }

    pub(super) fn diff(&mut self) {
        let mut diff = String::new();
        for (path, old, new) in &self.changes {
            diff.push_str(&format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@\n"));
            old.lines().for_each(|line| diff.push_str(&format!("-{line}\n")));
            new.lines().for_each(|line| diff.push_str(&format!("+{line}\n")));
        }
        self.bash("git diff", &diff);
    }

    fn call(&mut self, tool: &str, arguments: &Value, output: &str) {
        self.n_calls += 1;
        let id = format!("call_{:03}", self.n_calls);
        let text = std::mem::take(&mut self.next_text);
        let content = if text.is_empty() { Value::Null } else { Value::String(text) };
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        self.messages.push(json!({ "role": "assistant", "content": content,
            "tool_calls": [{ "id": id, "type": "function", "function": function }] }));
        self.messages.push(json!({ "role": "tool", "tool_call_id": id, "content": output }));
    }
}

fn numbered(text: &str, from: usize, n_lines: usize) -> String {
    let lines = text.lines().enumerate().skip(from - 1).take(n_lines);
    lines.map(|(i, line)| format!("{:>5}\t{line}\n", i + 1)).collect()
}
