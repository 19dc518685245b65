//! A scripted memory provider: an HTTP server with plain routes and MCP, or a program that speaks MCP on stdio.
//!
//! It stores facts and finds them by their words. It can also hang, crash, flood the client or announce wrong
//! tools. It uses only threads and sockets, so a fault happens exactly as described.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How the provider answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Correctly.
    Normal,
    /// Only after five minutes.
    Hang,
    /// It closes the connection or exits in the middle of each call.
    Crash,
    /// With 24 MiB of text.
    Flood,
    /// It announces tools that it does not have, and names of other tools.
    Lie,
    /// Correctly, after a delay in milliseconds.
    Slow(u64),
}

impl Behaviour {
    fn to_word(self) -> String {
        match self {
            Behaviour::Normal => "normal".to_owned(),
            Behaviour::Hang => "hang".to_owned(),
            Behaviour::Crash => "crash".to_owned(),
            Behaviour::Flood => "flood".to_owned(),
            Behaviour::Lie => "lie".to_owned(),
            Behaviour::Slow(ms) => format!("slow {ms}"),
        }
    }

    fn from_word(word: &str) -> Behaviour {
        match word.split_once(' ') {
            Some((_, ms)) => Behaviour::Slow(ms.parse().unwrap_or_default()),
            None => {
                let all = [Behaviour::Hang, Behaviour::Crash, Behaviour::Flood, Behaviour::Lie];
                all.into_iter().find(|behaviour| behaviour.to_word() == word).unwrap_or(Behaviour::Normal)
            }
        }
    }
}

const HANG_TIME: Duration = Duration::from_secs(300);
const FLOOD_BYTES: usize = 24 << 20;
/// Replaced by `FLOOD_BYTES` bytes when a response is written, to save memory until then.
const FLOOD_MARK: &str = "@flood@";

/// The stored facts and the recorded requests.
#[derive(Debug, Default)]
struct ServerState {
    facts: Vec<String>,
    /// The route or tool of each request, and its body or arguments.
    requests: Vec<(String, Value)>,
}

/// A memory provider over HTTP.
pub struct MemoryServer {
    address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    state: Arc<Mutex<ServerState>>,
}

impl MemoryServer {
    /// Starts a server with some stored facts.
    pub fn start(behaviour: Behaviour, facts: &[&str]) -> MemoryServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of this machine");
        let address = listener.local_addr().expect("a listener has an address");
        let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        let state = Arc::new(Mutex::new(ServerState { facts, requests: Vec::new() }));
        let behaviour = Arc::new(Mutex::new(behaviour));
        let (shared_state, shared_behaviour) = (Arc::clone(&state), Arc::clone(&behaviour));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, behaviour) = (Arc::clone(&shared_state), Arc::clone(&shared_behaviour));
                thread::spawn(move || serve(stream, &state, &behaviour));
            }
        });
        MemoryServer { address, behaviour, state }
    }

    /// The base address of the plain routes.
    pub fn url(&self) -> String {
        format!("http://{}/memory", self.address)
    }

    /// The address of the MCP endpoint.
    pub fn mcp_url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Changes the behaviour for later requests.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *lock(&self.behaviour) = behaviour;
    }

    /// All requests in order: the plain route or the tool, and the body or the arguments.
    pub fn requests(&self) -> Vec<(String, Value)> {
        lock(&self.state).requests.clone()
    }

    /// The bodies or arguments of the requests to a route or tool.
    pub fn requests_to(&self, name: &str) -> Vec<Value> {
        self.requests().into_iter().filter(|(target, _)| target == name).map(|(_, body)| body).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a connection until it is closed.
fn serve(stream: TcpStream, state: &Mutex<ServerState>, behaviour: &Mutex<Behaviour>) -> Option<()> {
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
            write_response(&mut stream, "405 Method Not Allowed", "")?;
            continue;
        }
        let behaviour = *lock(behaviour);
        let answer = match path.strip_prefix("/memory/") {
            Some(route) => answer_route(route, &body, behaviour, state)?,
            None => match answer_rpc(&body, behaviour, state) {
                RpcAnswer::Message(message) => message.to_string(),
                RpcAnswer::None => {
                    write_response(&mut stream, "202 Accepted", "")?;
                    continue;
                }
                RpcAnswer::Crash => return None,
            },
        };
        write_response(&mut stream, "200 OK", &expand_flood(answer))?;
    }
}

/// Replaces the flood mark, if there is one.
fn expand_flood(text: String) -> String {
    if text.contains(FLOOD_MARK) { text.replace(FLOOD_MARK, &"x".repeat(FLOOD_BYTES)) } else { text }
}

fn write_response(stream: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// Answers a request to a plain route. `None` closes the connection.
fn answer_route(
    route: &str,
    body: &Value,
    behaviour: Behaviour,
    state: &Mutex<ServerState>,
) -> Option<String> {
    delay_or_crash(behaviour)?;
    lock(state).requests.push((route.to_owned(), body.clone()));
    match (route, behaviour) {
        ("prefetch", Behaviour::Flood) => Some(json!({ "text": FLOOD_MARK }).to_string()),
        ("prefetch", Behaviour::Lie) => Some("this is no JSON".to_owned()),
        ("prefetch", _) => {
            Some(json!({ "memories": find(state, body["query"].as_str().unwrap_or_default()) }).to_string())
        }
        _ => Some("{}".to_owned()),
    }
}

/// Waits as the behaviour demands. `None` means a crash.
fn delay_or_crash(behaviour: Behaviour) -> Option<()> {
    match behaviour {
        Behaviour::Hang => thread::sleep(HANG_TIME),
        Behaviour::Slow(ms) => thread::sleep(Duration::from_millis(ms)),
        Behaviour::Crash => return None,
        Behaviour::Normal | Behaviour::Flood | Behaviour::Lie => {}
    }
    Some(())
}

/// The facts that contain a word of the query.
fn find(state: &Mutex<ServerState>, query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let words: Vec<&str> =
        query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3).collect();
    let is_match = |fact: &&String| {
        let fact = fact.to_lowercase();
        words.iter().any(|word| fact.contains(word))
    };
    lock(state).facts.iter().filter(is_match).cloned().collect()
}

/// The answer to an MCP message.
enum RpcAnswer {
    Message(Value),
    /// Notifications have no answer.
    None,
    Crash,
}

fn answer_rpc(message: &Value, behaviour: Behaviour, state: &Mutex<ServerState>) -> RpcAnswer {
    let Some(id) = message.get("id") else { return RpcAnswer::None };
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools(behaviour) }),
        "tools/call" => {
            if delay_or_crash(behaviour).is_none() {
                return RpcAnswer::Crash;
            }
            let (name, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
            lock(state).requests.push((name.to_owned(), arguments.clone()));
            if behaviour == Behaviour::Lie {
                let error = json!({ "code": -32602, "message": format!("Unknown tool: {name}") });
                return RpcAnswer::Message(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            let text = match name {
                "search_memories" if behaviour == Behaviour::Flood => FLOOD_MARK.to_owned(),
                "search_memories" => {
                    json!({ "results": find(state, arguments["query"].as_str().unwrap_or_default()) })
                        .to_string()
                }
                _ => {
                    let text = arguments["text"].as_str().unwrap_or_default();
                    lock(state).facts.push(text.to_owned());
                    "kept".to_owned()
                }
            };
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        method => {
            let error = json!({ "code": -32601, "message": format!("no method {method}") });
            return RpcAnswer::Message(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    RpcAnswer::Message(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn tools(behaviour: Behaviour) -> Vec<Value> {
    let tool = |name: &str, argument: &str| {
        let properties = json!({ argument: { "type": "string" } });
        json!({ "name": name, "description": "d", "inputSchema": { "type": "object", "properties": properties, "required": [argument] } })
    };
    let mut tools = vec![tool("search_memories", "query"), tool("add_memory", "text")];
    if behaviour == Behaviour::Lie {
        tools.insert(0, tool("fanfold_recall", "handle"));
        tools.push(tool("Search-Memories", "other"));
        tools.push(tool("no name at all", "x"));
    }
    tools
}

const BEHAVIOUR: &str = "FANFOLD_SCRIPTED_MEMORY";
const LOG: &str = "FANFOLD_SCRIPTED_LOG";

/// The environment of a program that calls `serve_stdio`: its behaviour, and the log file for its requests.
pub fn environment(behaviour: Behaviour, log: &Path) -> Vec<(String, String)> {
    vec![(BEHAVIOUR.to_owned(), behaviour.to_word()), (LOG.to_owned(), log.display().to_string())]
}

/// The arguments that make a test binary run one ignored test, so that it can serve as the program.
pub fn arguments(test: &str) -> Vec<String> {
    ["--ignored", "--exact", test, "--quiet", "--nocapture", "--test-threads=1"].map(str::to_owned).into()
}

/// Serves MCP on stdin and stdout until stdin ends. Does nothing without the variables of `environment`.
pub fn serve_stdio() {
    let Ok(word) = std::env::var(BEHAVIOUR) else { return };
    let behaviour = Behaviour::from_word(&word);
    let log = std::env::var(LOG).unwrap_or_default();
    let facts = vec!["the staging port is 8443".to_owned()];
    let state = Mutex::new(ServerState { facts, requests: Vec::new() });
    append(&log, "started");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match answer_rpc(&message, behaviour, &state) {
            RpcAnswer::Message(answer) => {
                let mut stdout = std::io::stdout().lock();
                let _ = writeln!(stdout, "{}", expand_flood(answer.to_string()));
                let _ = stdout.flush();
            }
            RpcAnswer::None => {}
            RpcAnswer::Crash => std::process::exit(1),
        }
        for (name, arguments) in std::mem::take(&mut lock(&state).requests) {
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
