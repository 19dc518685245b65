//! A scripted provider of memory: over HTTP with plain routes or MCP, or as a program that speaks MCP on stdin and stdout.
//!
//! It remembers what it is told and finds it by its words. It may also hang, crash, flood or lie about its tools. It is
//! made of threads and sockets alone, so that a fault is exactly what it says.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What the provider does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// What it should.
    Well,
    /// Nothing for five minutes.
    Hangs,
    /// It ends in the middle of each call.
    Crashes,
    /// It answers with many megabytes.
    Floods,
    /// It names tools that it does not have, and tools of others.
    Lies,
    /// What it should, after so many milliseconds.
    Slow(u64),
}

impl Manner {
    fn word(self) -> String {
        match self {
            Manner::Well => "well".to_owned(),
            Manner::Hangs => "hangs".to_owned(),
            Manner::Crashes => "crashes".to_owned(),
            Manner::Floods => "floods".to_owned(),
            Manner::Lies => "lies".to_owned(),
            Manner::Slow(ms) => format!("slow {ms}"),
        }
    }

    fn of(word: &str) -> Manner {
        match word.split_once(' ') {
            Some((_, ms)) => Manner::Slow(ms.parse().unwrap_or_default()),
            None => {
                let all = [Manner::Hangs, Manner::Crashes, Manner::Floods, Manner::Lies];
                all.into_iter().find(|manner| manner.word() == word).unwrap_or(Manner::Well)
            }
        }
    }
}

const HANGING: Duration = Duration::from_secs(300);
const FLOOD: usize = 24 << 20;
/// What stands for a flood until it leaves: so it costs the machine no more than it has to.
const FLOOD_MARK: &str = "@flood@";

/// What it knows and what it was asked.
#[derive(Debug, Default)]
struct Known {
    facts: Vec<String>,
    asked: Vec<(String, Value)>,
}

/// A provider over HTTP.
pub struct Memories {
    address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
    known: Arc<Mutex<Known>>,
}

impl Memories {
    /// Starts one that knows some facts.
    pub fn start(manner: Manner, facts: &[&str]) -> Memories {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of this machine");
        let address = listener.local_addr().expect("a listener has an address");
        let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        let known = Arc::new(Mutex::new(Known { facts, asked: Vec::new() }));
        let manner = Arc::new(Mutex::new(manner));
        let (for_all, how) = (Arc::clone(&known), Arc::clone(&manner));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, manner) = (Arc::clone(&for_all), Arc::clone(&how));
                thread::spawn(move || serve(stream, &known, &manner));
            }
        });
        Memories { address, manner, known }
    }

    /// Its plain routes.
    pub fn url(&self) -> String {
        format!("http://{}/memory", self.address)
    }

    /// Its MCP.
    pub fn mcp_url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Does something else from now on.
    pub fn set(&self, manner: Manner) {
        *lock(&self.manner) = manner;
    }

    /// What it was asked on its plain routes, or by which tools, in order.
    pub fn asked(&self) -> Vec<(String, Value)> {
        lock(&self.known).asked.clone()
    }

    /// What it was asked by one route or tool.
    pub fn asked_by(&self, name: &str) -> Vec<Value> {
        self.asked().into_iter().filter(|(asked, _)| asked == name).map(|(_, body)| body).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a connection to its end.
fn serve(stream: TcpStream, known: &Mutex<Known>, manner: &Mutex<Manner>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let is_post = line.starts_with("POST");
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|n| *n > 0)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(n) = header.strip_prefix("content-length:") {
                length = n.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !is_post {
            answer(&mut stream, "405 Method Not Allowed", "")?;
            continue;
        }
        let manner = *lock(manner);
        let said = match path.strip_prefix("/memory/") {
            Some(route) => plain(route, &body, manner, known)?,
            None => match rpc(&body, manner, known) {
                Rpc::Said(said) => said.to_string(),
                Rpc::Nothing => {
                    answer(&mut stream, "202 Accepted", "")?;
                    continue;
                }
                Rpc::Gone => return None,
            },
        };
        answer(&mut stream, "200 OK", &flooded(said))?;
    }
}

/// A text with its flood, if it has one.
fn flooded(text: String) -> String {
    if text.contains(FLOOD_MARK) { text.replace(FLOOD_MARK, &"x".repeat(FLOOD)) } else { text }
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// Answers on a plain route; none where the connection breaks.
fn plain(route: &str, body: &Value, manner: Manner, known: &Mutex<Known>) -> Option<String> {
    behave(manner)?;
    lock(known).asked.push((route.to_owned(), body.clone()));
    match (route, manner) {
        ("prefetch", Manner::Floods) => Some(json!({ "text": FLOOD_MARK }).to_string()),
        ("prefetch", Manner::Lies) => Some("this is no JSON".to_owned()),
        ("prefetch", _) => {
            Some(json!({ "memories": find(known, body["query"].as_str().unwrap_or_default()) }).to_string())
        }
        _ => Some("{}".to_owned()),
    }
}

/// Hangs or crashes, if it is to.
fn behave(manner: Manner) -> Option<()> {
    match manner {
        Manner::Hangs => thread::sleep(HANGING),
        Manner::Slow(ms) => thread::sleep(Duration::from_millis(ms)),
        Manner::Crashes => return None,
        Manner::Well | Manner::Floods | Manner::Lies => {}
    }
    Some(())
}

/// The facts that have a word of the question.
fn find(known: &Mutex<Known>, question: &str) -> Vec<String> {
    let question = question.to_lowercase();
    let words: Vec<&str> =
        question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3).collect();
    let is_meant = |fact: &&String| {
        let fact = fact.to_lowercase();
        words.iter().any(|word| fact.contains(word))
    };
    lock(known).facts.iter().filter(is_meant).cloned().collect()
}

/// What is said to a message of MCP.
enum Rpc {
    Said(Value),
    Nothing,
    Gone,
}

fn rpc(message: &Value, manner: Manner, known: &Mutex<Known>) -> Rpc {
    let Some(id) = message.get("id") else { return Rpc::Nothing };
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools(manner) }),
        "tools/call" => {
            if behave(manner).is_none() {
                return Rpc::Gone;
            }
            let (name, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
            lock(known).asked.push((name.to_owned(), arguments.clone()));
            if manner == Manner::Lies {
                let error = json!({ "code": -32602, "message": format!("Unknown tool: {name}") });
                return Rpc::Said(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            let text = match name {
                "search_memories" if manner == Manner::Floods => FLOOD_MARK.to_owned(),
                "search_memories" => {
                    json!({ "results": find(known, arguments["query"].as_str().unwrap_or_default()) })
                        .to_string()
                }
                _ => {
                    let text = arguments["text"].as_str().unwrap_or_default();
                    lock(known).facts.push(text.to_owned());
                    "kept".to_owned()
                }
            };
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        method => {
            let error = json!({ "code": -32601, "message": format!("no method {method}") });
            return Rpc::Said(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Rpc::Said(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn tools(manner: Manner) -> Vec<Value> {
    let tool = |name: &str, argument: &str| {
        let properties = json!({ argument: { "type": "string" } });
        json!({ "name": name, "description": "d", "inputSchema": { "type": "object", "properties": properties, "required": [argument] } })
    };
    let mut tools = vec![tool("search_memories", "query"), tool("add_memory", "text")];
    if manner == Manner::Lies {
        tools.insert(0, tool("fanfold_recall", "handle"));
        tools.push(tool("Search-Memories", "other"));
        tools.push(tool("no name at all", "x"));
    }
    tools
}

const MANNER: &str = "FANFOLD_SCRIPTED_MEMORY";
const LOG: &str = "FANFOLD_SCRIPTED_LOG";

/// What a program needs in its environment to be a provider: what it does, and a file where each write goes.
pub fn environment(manner: Manner, log: &Path) -> Vec<(String, String)> {
    vec![(MANNER.to_owned(), manner.word()), (LOG.to_owned(), log.display().to_string())]
}

/// The arguments by which the binary of tests becomes a program that runs one ignored test.
pub fn arguments(test: &str) -> Vec<String> {
    ["--ignored", "--exact", test, "--quiet", "--nocapture", "--test-threads=1"].map(str::to_owned).into()
}

/// Is a provider on stdin and stdout, if the environment says so. It ends with its stdin.
pub fn serve_stdio() {
    let Ok(manner) = std::env::var(MANNER) else { return };
    let manner = Manner::of(&manner);
    let log = std::env::var(LOG).unwrap_or_default();
    let known = Mutex::new(Known { facts: vec!["the staging port is 8443".to_owned()], asked: Vec::new() });
    append(&log, "started");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match rpc(&message, manner, &known) {
            Rpc::Said(said) => {
                let mut stdout = std::io::stdout().lock();
                let _ = writeln!(stdout, "{}", flooded(said.to_string()));
                let _ = stdout.flush();
            }
            Rpc::Nothing => {}
            Rpc::Gone => std::process::exit(1),
        }
        for (name, arguments) in std::mem::take(&mut lock(&known).asked) {
            append(&log, &format!("{name} {arguments}"));
        }
    }
}

fn append(log: &str, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}
