//! A minimal JSON-RPC client, which can also send invalid messages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stored_session::StoredSession;

/// Timeout that is long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The running program and its output.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    next_id: u64,
}

/// The program as a command, in an empty home.
pub(crate) fn program(home: &Path) -> Command {
    fanfold(home, "mcp")
}

/// A command of the program, in an empty home.
pub(crate) fn fanfold(home: &Path, name: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
    command.env_clear().env("HOME", home).current_dir(home).arg(name);
    command
}

impl Client {
    /// Starts the program on a store.
    pub(crate) fn start(stored: &StoredSession, arguments: &[&str]) -> Client {
        let mut command = program(&stored.sandbox.path(""));
        command.arg("--store").arg(stored.store()).args(arguments);
        Client::run(command)
    }

    pub(crate) fn run(mut command: Command) -> Client {
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let (out, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| out.send(line).ok());
        });
        let (err, errors) = channel();
        let mut stderr = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            drop(stderr.read_to_string(&mut text));
            drop(err.send(text));
        });
        let input = child.stdin.take();
        Client { child, input, lines, errors, next_id: 0 }
    }

    /// Starts the program and does the handshake.
    pub(crate) fn start_and_initialize(stored: &StoredSession, arguments: &[&str]) -> Client {
        let mut client = Client::start(stored, arguments);
        let answer = client.initialize();
        assert_eq!(answer["result"]["serverInfo"]["name"], "fanfold", "{answer}");
        client
    }

    /// Does the handshake, and returns the server's information.
    pub(crate) fn initialize(&mut self) -> Value {
        let answer = self.ask("initialize", initialize_params());
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Writes a line, valid or not.
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("stdin is open");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        self.write(&message.to_string());
        id
    }

    /// The next line, unless the timeout expires.
    pub(crate) fn read(&self, timeout: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(timeout).ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in its output: {line}")))
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read(TIMEOUT).unwrap_or_else(|| panic!("no answer to {method}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> ToolResult {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        ToolResult::new(&self.ask("tools/call", params))
    }

    pub(crate) fn close_stdin(&mut self) {
        self.input = None;
    }

    /// Closes stdin and waits for the end. Returns the unread lines, the exit code, and stderr.
    pub(crate) fn end(mut self) -> (Vec<String>, Option<i32>, String) {
        self.close_stdin();
        let began = Instant::now();
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if began.elapsed() > TIMEOUT => panic!("the program does not end when stdin ends"),
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let stderr = self.errors.recv_timeout(TIMEOUT).unwrap_or_default();
        (self.lines.iter().collect(), code, stderr)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The information that a client sends.
pub(crate) fn initialize_params() -> Value {
    json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } })
}

/// The answer of a tool.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) is_error: bool,
    pub(crate) texts: Vec<String>,
}

impl ToolResult {
    pub(crate) fn new(answer: &Value) -> ToolResult {
        let result = &answer["result"];
        assert!(result.is_object(), "a protocol error: {answer}");
        let blocks = result["content"].as_array().unwrap();
        let texts = blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect();
        ToolResult { is_error: result["isError"].as_bool().unwrap_or(false), texts }
    }

    /// The text of a successful answer.
    pub(crate) fn text(&self) -> &str {
        assert!(!self.is_error, "{}", self.texts.join("\n"));
        &self.texts[0]
    }

    /// The answer as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap()
    }

    /// The error, which must have a hint.
    pub(crate) fn error(&self) -> &str {
        assert!(self.is_error, "no error: {:?}", self.texts);
        assert!(self.texts[0].contains("\n\nhint: "), "no hint: {}", self.texts[0]);
        &self.texts[0]
    }
}
