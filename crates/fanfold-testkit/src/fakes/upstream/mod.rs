//! A scripted model provider on loopback: Chat Completions, Responses and Anthropic Messages, streaming and not.
//!
//! A script computes the reply of the model from the request. Every request is recorded and checked by the rules of
//! its API; like a real provider, a strict script refuses a request that breaks one. The limit on the length of
//! requests can change at any time. Faults are queued for the next requests, and a request for the model
//! `fault-429` gets that status. The server uses only threads and sockets, so a fault happens exactly as described.

mod connection; // serves one connection
mod constant; //   one prepared reply for every request, for measurements
mod faults; //     faults and their error bodies
mod http; //       parses requests, writes responses
mod reply; //      replies in the format of each API

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_core::Count;
use serde_json::{Value, json};

use crate::contracts::api_rules::Violation;
use crate::generators::bodies::BodyFormat;

pub use constant::ConstantReply;
pub use faults::Fault;

/// The input of a script.
pub struct ScriptInput<'a> {
    /// The API.
    pub kind: BodyFormat,
    /// The body.
    pub body: &'a Value,
    /// The number of tool calls that the model has made in this conversation. The provider counts them, because a
    /// folded request no longer contains all of them.
    pub n_calls: usize,
}

/// A reply of the model.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    /// The reasoning before the text; may be empty.
    pub thought: String,
    /// The text; may be empty.
    pub text: String,
    /// The tool calls: names and arguments.
    pub calls: Vec<(String, Value)>,
    /// The stop reason in the term of the API; empty for the default reason.
    pub stop: String,
}

/// The behaviour of the provider.
pub struct Script {
    /// Computes the reply of the model.
    pub model: Box<dyn Fn(&ScriptInput<'_>) -> ScriptedReply + Send + Sync>,
    /// The limit on the length of requests.
    pub limit: Option<Limit>,
    /// If true, a request that breaks a rule of its API is refused.
    pub is_strict: bool,
    /// The pause between two events of a stream.
    pub pause: Duration,
}

/// The maximum length of a request.
#[derive(Clone, Copy)]
pub enum Limit {
    /// In bytes of the body.
    Bytes(usize),
    /// In tokens of the body.
    Tokens(usize, &'static dyn Count),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The method.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body without its compression.
    pub body: Vec<u8>,
    /// The API; `None` for other routes.
    pub kind: Option<BodyFormat>,
    /// The rules of the API that it breaks.
    pub violations: Vec<Violation>,
    /// True if it exceeded the limit.
    pub is_too_long: bool,
    /// How it ended; `None` while it is being answered.
    pub ended: Option<RequestEnd>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEnd {
    /// Answered with this status.
    Answered(u16),
    /// The client disconnected before the end of the answer.
    ClientGone,
    /// Aborted by a fault.
    Aborted,
}

impl RecordedRequest {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Script {
    /// Calls the shell tool of the client `n_steps` times, one call per reply, and then answers with a text.
    pub fn steps(n_steps: usize) -> Script {
        Script::new(move |input| {
            let call = if input.n_calls < n_steps { reply::shell_call(input) } else { None };
            match call {
                Some(call) => ScriptedReply { calls: vec![call], ..ScriptedReply::default() },
                None => ScriptedReply {
                    text: format!("Finished after {} tool results.", input.n_calls),
                    ..ScriptedReply::default()
                },
            }
        })
    }

    /// Creates a strict script without a limit and without pauses.
    pub fn new(model: impl Fn(&ScriptInput<'_>) -> ScriptedReply + Send + Sync + 'static) -> Script {
        Script { model: Box::new(model), limit: None, is_strict: true, pause: Duration::ZERO }
    }
}

/// A provider that runs until it is dropped.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Upstream {
    /// Starts a provider on a free port.
    pub fn start(script: Script) -> io::Result<Upstream> {
        Upstream::start_at(0, script)
    }

    /// Starts a provider on a port.
    pub fn start_at(port: u16, script: Script) -> io::Result<Upstream> {
        let mut shared = Shared::new(script.limit);
        shared.script = Some(script);
        Upstream::serve(port, shared)
    }

    /// Starts a provider that answers every request with the same reply, without checks and records.
    pub fn start_constant(port: u16, reply: ConstantReply) -> io::Result<Upstream> {
        let mut shared = Shared::new(None);
        shared.constant_reply = Some(reply);
        Upstream::serve(port, shared)
    }

    fn serve(port: u16, shared: Shared) -> io::Result<Upstream> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(shared);
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.is_shut_down.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&for_thread);
                thread::spawn(move || connection::serve(&shared, stream));
            }
        });
        Ok(Upstream { address, shared })
    }

    /// Its address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Changes the limit for later requests.
    pub fn set_limit(&self, limit: Option<Limit>) {
        *locked(&self.shared.limit) = limit;
    }

    /// Queues a fault. Each request to a model takes one fault from the queue.
    pub fn fault(&self, fault: Fault) {
        locked(&self.shared.faults).push_back(fault);
    }

    /// Sets a rule of this provider only. It returns the status and the message for a body to be refused.
    pub fn set_rule(&self, rule: impl Fn(&Value) -> Option<(u16, String)> + Send + 'static) {
        *locked(&self.shared.rule) = Some(Box::new(rule));
    }

    /// Limits the provider to these models; requests for others get status 404.
    pub fn set_models(&self, models: &[&str]) {
        *locked(&self.shared.models) = models.iter().map(|model| (*model).to_owned()).collect();
    }

    /// Sets the body that a GET or POST to another route returns with status 200.
    pub fn answer_at(&self, path: &str, body: &Value) {
        locked(&self.shared.routes).insert(path.to_owned(), body.to_string());
    }

    /// All received requests, in order.
    pub fn seen(&self) -> Vec<RecordedRequest> {
        locked(&self.shared.seen).clone()
    }

    /// The number of received requests.
    pub fn n_seen(&self) -> usize {
        self.shared.n_seen.load(Ordering::SeqCst)
    }

    /// Waits until the requests meet a condition. Returns false after the timeout.
    pub fn wait_for(&self, timeout: Duration, is_met: impl Fn(&[RecordedRequest]) -> bool) -> bool {
        let until = Instant::now() + timeout;
        let mut seen = locked(&self.shared.seen);
        loop {
            if is_met(&seen) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes all open connections.
    pub fn close_connections(&self) {
        for stream in locked(&self.shared.open).values() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.is_shut_down.store(true, Ordering::SeqCst);
        self.close_connections();
        // Wake the accepting thread, so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

/// Returns the status and the message for a body to be refused.
type Rule = Box<dyn Fn(&Value) -> Option<(u16, String)> + Send>;

/// The state that all connections share.
struct Shared {
    script: Option<Script>,
    constant_reply: Option<ConstantReply>,
    limit: Mutex<Option<Limit>>,
    faults: Mutex<VecDeque<Fault>>,
    rule: Mutex<Option<Rule>>,
    /// The known models; empty means all.
    models: Mutex<Vec<String>>,
    /// Bodies of other routes.
    routes: Mutex<BTreeMap<String, String>>,
    seen: Mutex<Vec<RecordedRequest>>,
    changed: Condvar,
    n_seen: AtomicUsize,
    /// The number of tool calls per conversation, keyed by its first user message.
    n_calls: Mutex<BTreeMap<String, usize>>,
    n_ids: AtomicUsize,
    n_connections: AtomicUsize,
    open: Mutex<BTreeMap<usize, TcpStream>>,
    is_shut_down: AtomicBool,
}

impl Shared {
    fn new(limit: Option<Limit>) -> Shared {
        Shared {
            script: None,
            constant_reply: None,
            limit: Mutex::new(limit),
            faults: Mutex::default(),
            rule: Mutex::default(),
            models: Mutex::default(),
            routes: Mutex::default(),
            seen: Mutex::default(),
            changed: Condvar::new(),
            n_seen: AtomicUsize::new(0),
            n_calls: Mutex::default(),
            n_ids: AtomicUsize::new(0),
            n_connections: AtomicUsize::new(0),
            open: Mutex::default(),
            is_shut_down: AtomicBool::new(false),
        }
    }

    /// Records a request and returns its index.
    fn record(&self, request: RecordedRequest) -> usize {
        let mut all = locked(&self.seen);
        all.push(request);
        self.changed.notify_all();
        all.len() - 1
    }

    /// Records the end of a request.
    fn end(&self, at: usize, ended: RequestEnd) {
        locked(&self.seen)[at].ended = Some(ended);
        self.changed.notify_all();
    }

    /// A number that is unique among the answers.
    fn next_id(&self) -> usize {
        self.n_ids.fetch_add(1, Ordering::SeqCst)
    }
}

/// A reply in the format of an API, as one body and as a stream of events.
pub fn render_reply(kind: BodyFormat, reply: &ScriptedReply) -> (String, String) {
    let body = json!({ "model": "m", "stream_options": { "include_usage": true } });
    let whole = reply::whole(kind, reply, &body, 1, 100).to_string();
    (whole, reply::events(kind, reply, &body, 1, 100).concat())
}

/// The error body for a request that is too long.
pub fn too_long_error(kind: BodyFormat, n_tokens: usize, limit: usize) -> Value {
    match kind {
        BodyFormat::Anthropic => json!({ "type": "error", "error": { "type": "invalid_request_error",
            "message": format!("prompt is too long: {n_tokens} tokens > {limit} maximum") } }),
        _ => json!({ "error": { "message": format!(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {n_tokens} \
             tokens. Please reduce the length of the messages."),
            "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded" } }),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
