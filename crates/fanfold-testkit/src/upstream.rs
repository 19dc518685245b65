//! A scripted model provider on loopback: Chat Completions, Responses and Anthropic Messages, streaming and not.
//!
//! What the model says is a function of what it is asked. Every request is written down and checked by the rules of its
//! API; one that breaks them is refused, as a provider would. A limit may change at any moment, and the next requests
//! may meet faults; one for the model `fault-429` meets that status. It is made of threads and sockets alone, so that a fault is exactly what it says.

mod http; //      requests read, answers written
mod reply; //     what the model says, as each API writes it
mod faults; //    what goes wrong
mod quick; //     the same answer to everybody, as fast as can be
mod serving; //   one connection

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_core::Count;
use serde_json::{Value, json};

use crate::bodies::Kind;
use crate::rules::Broken;

pub use faults::Fault;
pub use quick::Quick;

/// What the model is asked.
pub struct Asked<'a> {
    /// The API.
    pub kind: Kind,
    /// The body.
    pub body: &'a Value,
    /// How many calls were asked for in this conversation so far. It is counted here and not in the request, so that a
    /// conversation whose old calls were folded away goes on where it was.
    pub n_calls: usize,
}

/// What the model says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// What it thinks first; nothing if it is empty.
    pub thought: String,
    /// Its text; none if it is empty.
    pub text: String,
    /// Tools that it calls, each with its arguments.
    pub calls: Vec<(String, Value)>,
    /// Why it stops, in its API's word; the usual reason if it is empty.
    pub stop: String,
}

/// What the provider does.
pub struct Script {
    /// What the model says.
    pub model: Box<dyn Fn(&Asked<'_>) -> Said + Send + Sync>,
    /// What it refuses for its length, if anything.
    pub limit: Option<Limit>,
    /// Whether a request that breaks a rule of its API is refused.
    pub is_strict: bool,
    /// So long between two events of a stream.
    pub pause: Duration,
}

/// How long a request may be.
#[derive(Clone, Copy)]
pub enum Limit {
    /// So many bytes of its body.
    Bytes(usize),
    /// So many tokens of its body.
    Tokens(usize, &'static dyn Count),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, unpacked.
    pub body: Vec<u8>,
    /// The API, if it is one of the three.
    pub kind: Option<Kind>,
    /// Rules of that API that it breaks.
    pub broken: Vec<Broken>,
    /// Whether it was refused for its length.
    pub is_too_long: bool,
    /// How it ended; none while it goes on.
    pub ended: Option<Ended>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was answered with this status.
    Answered(u16),
    /// Whoever asked was gone before the end of the answer.
    Gone,
    /// It was left in the middle, by a fault.
    Broken,
}

impl Seen {
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
    /// So many calls of a shell, one after another, and then a text: whatever the client calls its shell.
    pub fn steps(n_steps: usize) -> Script {
        Script::of(move |asked| {
            let shell = if asked.n_calls < n_steps { reply::shell(asked) } else { None };
            match shell {
                Some(call) => Said { calls: vec![call], ..Said::default() },
                None => Said {
                    text: format!("Finished after {} tool results.", asked.n_calls),
                    ..Said::default()
                },
            }
        })
    }

    /// What a function says.
    pub fn of(model: impl Fn(&Asked<'_>) -> Said + Send + Sync + 'static) -> Script {
        Script { model: Box::new(model), limit: None, is_strict: true, pause: Duration::ZERO }
    }
}

/// A provider that runs until it is dropped.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Upstream {
    /// Starts a provider on a port that is free.
    pub fn start(script: Script) -> io::Result<Upstream> {
        Upstream::on(0, script)
    }

    /// Starts a provider on a port.
    pub fn on(port: u16, script: Script) -> io::Result<Upstream> {
        let mut shared = Shared::new(script.limit);
        shared.script = Some(script);
        Upstream::serve(port, shared)
    }

    /// Starts a provider that gives everybody the same answer, looks at nothing and writes nothing down.
    pub fn quick(port: u16, quick: Quick) -> io::Result<Upstream> {
        let mut shared = Shared::new(None);
        shared.quick = Some(quick);
        Upstream::serve(port, shared)
    }

    fn serve(port: u16, shared: Shared) -> io::Result<Upstream> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(shared);
        let taken = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if taken.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&taken);
                thread::spawn(move || serving::serve(&shared, stream));
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

    /// From now on, longer requests are refused.
    pub fn set_limit(&self, limit: Option<Limit>) {
        *locked(&self.shared.limit) = limit;
    }

    /// The next request to a model meets a fault; those after it the faults that are told after it.
    pub fn fault(&self, fault: Fault) {
        locked(&self.shared.faults).push_back(fault);
    }

    /// From now on a body that breaks a rule of this provider alone is refused, with this status and these words.
    pub fn set_rule(&self, rule: impl Fn(&Value) -> Option<(u16, String)> + Send + 'static) {
        *locked(&self.shared.rule) = Some(Box::new(rule));
    }

    /// From now on there are only these models; others are not found.
    pub fn set_models(&self, models: &[&str]) {
        *locked(&self.shared.models) = models.iter().map(|model| (*model).to_owned()).collect();
    }

    /// From now on a path that is none of the three has this answer, of status 200.
    pub fn answer_at(&self, path: &str, body: &Value) {
        locked(&self.shared.routes).insert(path.to_owned(), body.to_string());
    }

    /// All requests that came so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.shared.seen).clone()
    }

    /// How many requests came so far.
    pub fn n_seen(&self) -> usize {
        self.shared.n_seen.load(Ordering::SeqCst)
    }

    /// Waits until what was seen is as wanted, and says whether it came to that.
    pub fn wait_for(&self, most: Duration, is_wanted: impl Fn(&[Seen]) -> bool) -> bool {
        let until = Instant::now() + most;
        let mut seen = locked(&self.shared.seen);
        loop {
            if is_wanted(&seen) {
                return true;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes every connection that is open now.
    pub fn hang_up(&self) {
        for stream in locked(&self.shared.open).values() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.hang_up();
        // Whoever accepts is woken by this.
        let _ = TcpStream::connect(self.address);
    }
}

/// The status and the words that a body is refused with, if it is.
type Rule = Box<dyn Fn(&Value) -> Option<(u16, String)> + Send>;

/// What all connections share.
struct Shared {
    script: Option<Script>,
    quick: Option<Quick>,
    limit: Mutex<Option<Limit>>,
    faults: Mutex<VecDeque<Fault>>,
    rule: Mutex<Option<Rule>>,
    /// The models there are; all, if it is empty.
    models: Mutex<Vec<String>>,
    /// Answers of paths beside the three.
    routes: Mutex<BTreeMap<String, String>>,
    seen: Mutex<Vec<Seen>>,
    changed: Condvar,
    n_seen: AtomicUsize,
    /// How many calls were asked for, by the first user message of a conversation.
    made: Mutex<BTreeMap<String, usize>>,
    n_ids: AtomicUsize,
    n_connections: AtomicUsize,
    open: Mutex<BTreeMap<usize, TcpStream>>,
    is_over: AtomicBool,
}

impl Shared {
    fn new(limit: Option<Limit>) -> Shared {
        Shared {
            script: None,
            quick: None,
            limit: Mutex::new(limit),
            faults: Mutex::default(),
            rule: Mutex::default(),
            models: Mutex::default(),
            routes: Mutex::default(),
            seen: Mutex::default(),
            changed: Condvar::new(),
            n_seen: AtomicUsize::new(0),
            made: Mutex::default(),
            n_ids: AtomicUsize::new(0),
            n_connections: AtomicUsize::new(0),
            open: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    fn note(&self, seen: Seen) -> usize {
        let mut all = locked(&self.seen);
        all.push(seen);
        self.changed.notify_all();
        all.len() - 1
    }

    fn end(&self, at: usize, ended: Ended) {
        locked(&self.seen)[at].ended = Some(ended);
        self.changed.notify_all();
    }

    /// A number that no other answer has.
    fn next_id(&self) -> usize {
        self.n_ids.fetch_add(1, Ordering::SeqCst)
    }
}

/// An answer as a provider writes it: whole, and as a stream.
pub fn written(kind: Kind, said: &Said) -> (String, String) {
    let body = json!({ "model": "m", "stream_options": { "include_usage": true } });
    let whole = reply::whole(kind, said, &body, 1, 100).to_string();
    (whole, reply::events(kind, said, &body, 1, 100).concat())
}

/// What a provider says of a request that is too long.
pub fn refusal(kind: Kind, n_tokens: usize, limit: usize) -> Value {
    match kind {
        Kind::Anthropic => json!({ "type": "error", "error": { "type": "invalid_request_error",
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
