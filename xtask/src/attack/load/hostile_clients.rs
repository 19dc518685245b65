//! Clients that try to keep a server busy. Each runs until it is stopped, and closes its connections then.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::attack::http::{exchange, request};
use crate::attack::provider::{Fault, Part};

const CHAT: &str = "/v1/chat/completions";
const LIMIT: Duration = Duration::from_secs(20);
/// A server that is full does not accept further connections.
const CONNECTING: Duration = Duration::from_millis(500);
const ENDLESS: &str = "endless";

/// The target of an attack.
pub(super) struct Load {
    pub(super) port: u16,
    pub(super) is_short: bool,
    pub(super) is_stopped: AtomicBool,
}

/// Attacks until it is stopped. Returns the number of tries and descriptions of what the server allowed.
pub(super) type HostileClient = fn(&Load) -> (usize, Vec<String>);

impl Load {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    fn size(&self, short: usize, full: usize) -> usize {
        if self.is_short { short } else { full }
    }

    /// Opens `n` connections, or fewer if the limit on open files is low.
    fn connect(&self, n: usize) -> Vec<TcpStream> {
        let n = n.min(max_connections());
        let open = (0..n).take_while(|_| !self.is_stopped());
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let open = open.filter_map(|_| TcpStream::connect_timeout(&address, CONNECTING).ok());
        open.inspect(|stream| drop(stream.set_write_timeout(Some(LIMIT)))).collect()
    }

    fn wait(&self) {
        while !self.is_stopped() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends bodies one after another, on `n_threads` threads, until stopped.
    fn post_all(&self, n_threads: usize, path: &str, headers: &[(&str, &str)], bodies: &[Vec<u8>]) -> usize {
        let send = |thread: usize| {
            let mut n_sent = 0;
            for n in (thread..usize::MAX).step_by(n_threads) {
                let body = &bodies[n % bodies.len()];
                if self.is_stopped() {
                    break;
                }
                exchange(self.port, &request("POST", path, self.port, headers, body), LIMIT);
                n_sent += 1;
            }
            n_sent
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..n_threads).map(|thread| scope.spawn(move || send(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        })
    }
}

/// Half of the limit on open files, because the server has the same limit.
fn max_connections() -> usize {
    const DEFAULT: usize = 1_024;
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    limit.unwrap_or(DEFAULT) / 2
}

/// Heads and bodies that arrive byte by byte.
pub(super) fn slow_requests(load: &Load) -> (usize, Vec<String>) {
    let mut streams = load.connect(load.size(100, 500));
    for (n, stream) in streams.iter_mut().enumerate() {
        let length = if n % 4 == 0 { "Content-Length: 60000000\r\n\r\n{" } else { "X-Slow: " };
        let _ = write!(stream, "POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{length}", load.port);
    }
    while !load.is_stopped() {
        for stream in &mut streams {
            let _ = stream.write_all(b" ");
        }
        thread::sleep(Duration::from_millis(200));
    }
    (streams.len(), Vec::new())
}

/// Connections that send nothing.
pub(super) fn idle(load: &Load) -> (usize, Vec<String>) {
    let streams = load.connect(load.size(400, 1_500));
    load.wait();
    (streams.len(), Vec::new())
}

/// Bodies of many messages, many tools, and long texts.
pub(super) fn huge_bodies(load: &Load) -> (usize, Vec<String>) {
    let many_messages = |n: usize| {
        let list: Vec<String> =
            (0..n).map(|i| format!("{{\"role\":\"user\",\"content\":\"m {i}\"}}")).collect();
        format!("{{\"model\":\"m{n}\",\"messages\":[{}]}}", list.join(",")).into_bytes()
    };
    let text = |n: usize| {
        let text = "a line of a long text\\n".repeat(n / 23);
        format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}")
            .into_bytes()
    };
    let tools = |n: usize| {
        let tool =
            |i| format!("{{\"type\":\"function\",\"function\":{{\"name\":\"t{i}\",\"parameters\":{{}}}}}}");
        let list: Vec<String> = (0..n).map(tool).collect();
        let messages = "[{\"role\":\"user\",\"content\":\"hi\"}]";
        format!("{{\"model\":\"m\",\"messages\":{messages},\"tools\":[{}]}}", list.join(",")).into_bytes()
    };
    let scale = load.size(5, 1);
    let mut bodies = vec![many_messages(300_000 / scale), many_messages(100_000 / scale)];
    bodies.extend((0..8).map(|i| many_messages(30_000 / scale + i)));
    bodies.extend([text(20_000_000 / scale), tools(50_000 / scale), text(20_000_000 / scale + 100)]);
    (load.post_all(2, CHAT, &[], &bodies), Vec::new())
}

/// Small bodies that decompress to very large ones.
pub(super) fn gzip_bombs(load: &Load) -> (usize, Vec<String>) {
    const MB: usize = 1 << 20;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![b' '; MB];
    let packed = (0..load.size(100, 1_000)).try_for_each(|_| encoder.write_all(&zeros));
    let Ok(bomb) = packed.and_then(|()| encoder.finish()) else { return (0, vec!["no bomb".to_owned()]) };
    (load.post_all(4, PATH, &[("content-encoding", "gzip")], &[bomb]), Vec::new())
}

/// JSON of a great depth in several places.
pub(super) fn deep_json(load: &Load) -> (usize, Vec<String>) {
    let nest = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let (deep, depth) = (nest(100_000), load.size(500_000, 5_000_000));
    let bodies = [
        format!("{{\"model\":\"m\",\"messages\":{deep}}}"),
        format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":{deep}}}]}}"),
        format!(
            "{{\"model\":\"m\",\"tools\":{deep},\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
        ),
        format!("{{\"x\":{deep},\"messages\":[]}}"),
        "[".repeat(depth),
        "{\"messages\":".repeat(depth / 10),
    ];
    (load.post_all(2, CHAT, &[], &bodies.map(String::into_bytes)), Vec::new())
}

pub(super) fn ping_flood(load: &Load) -> (usize, Vec<String>) {
    flood(load, b"\x00\x00\x08\x06\x00\x00\x00\x00\x0001234567")
}

pub(super) fn settings_flood(load: &Load) -> (usize, Vec<String>) {
    flood(load, b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")
}

/// Sends one HTTP/2 frame again and again. The server must end the connection.
fn flood(load: &Load, frame: &[u8]) -> (usize, Vec<String>) {
    /// More than the buffers of a connection hold, so the server has read many of them.
    const MAX_FRAMES: usize = 1_000_000;
    const BATCH: usize = 500;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    let frames = frame.repeat(BATCH);
    let (mut n_connections, mut problems) = (0, Vec::new());
    while !load.is_stopped() && n_connections < 200 {
        let Some(mut stream) = load.connect(1).pop() else { break };
        n_connections += 1;
        let Ok(mut answers) = stream.try_clone() else { break };
        // Acknowledgements are read, so that they do not block the server.
        let reader = thread::spawn(move || {
            let mut buffer = [0; 64 * 1024];
            while answers.read(&mut buffer).is_ok_and(|n| n > 0) {}
        });
        let mut n_frames = 0;
        let mut is_open = stream.write_all(preface).is_ok();
        while is_open && n_frames < MAX_FRAMES && !load.is_stopped() {
            is_open = stream.write_all(&frames).is_ok();
            n_frames += BATCH;
        }
        if n_frames >= MAX_FRAMES {
            problems.push(format!("not ended after {n_frames} frames"));
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = reader.join();
        thread::sleep(Duration::from_millis(5));
    }
    (n_connections, problems)
}

/// The answer to a request of `unread_streams`: 20 MB of events.
pub(super) fn endless_stream() -> Fault {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let delta = serde_json::json!({ "type": "content_block_delta", "index": 0,
        "delta": { "type": "text_delta", "text": "a word or two of it. ".repeat(20) } });
    let event = format!("event: content_block_delta\ndata: {delta}\n\n").repeat(128);
    let chunk = format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
    let n_chunks = 20_000_000 / chunk.len();
    Fault { name: ENDLESS, parts: vec![Part::Send(head.into()), Part::Repeat(chunk, n_chunks)] }
}

/// Clients that ask for long streams and never read.
pub(super) fn unread_streams(load: &Load) -> (usize, Vec<String>) {
    let mut streams = load.connect(load.size(40, 200));
    let headers = [&HEADERS[..], &[("x-fault", ENDLESS)]].concat();
    for (n, stream) in streams.iter_mut().enumerate() {
        let body = GrowingConversation::new(1_000 + n as u64, 2_000, true).body();
        let _ = stream.write_all(&request("POST", PATH, load.port, &headers, body.as_bytes()));
    }
    load.wait();
    (streams.len(), Vec::new())
}
