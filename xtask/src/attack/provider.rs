//! A model provider on 127.0.0.1 whose answers are any bytes, chosen by the header `x-fault` of a request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fanfold_testkit::fakes::upstream::{ScriptedReply, render_reply};
use fanfold_testkit::generators::bodies::BodyFormat;

/// The largest body that is read.
const MAX_BODY: usize = 256 << 20;
const STALL: Duration = Duration::from_secs(30);

/// One part of an answer.
#[derive(Clone)]
pub(super) enum Part {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends these bytes this many times, until the client is gone.
    Repeat(Vec<u8>, usize),
    /// Closes the connection with a reset instead of an end.
    Reset,
}

/// A fault: its name and its answer.
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) parts: Vec<Part>,
}

/// A provider that runs until it is dropped. A request without a fault gets a short reply.
pub(super) struct Provider {
    port: u16,
    n_requests: Arc<AtomicUsize>,
    is_shut_down: Arc<AtomicBool>,
}

impl Provider {
    pub(super) fn start(faults: Vec<Fault>) -> anyhow::Result<Provider> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let provider = Provider {
            port: listener.local_addr()?.port(),
            n_requests: Arc::default(),
            is_shut_down: Arc::default(),
        };
        let (faults, n_requests) = (Arc::new(faults), Arc::clone(&provider.n_requests));
        let is_shut_down = Arc::clone(&provider.is_shut_down);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if is_shut_down.load(Ordering::SeqCst) {
                    return;
                }
                let (faults, n_requests) = (Arc::clone(&faults), Arc::clone(&n_requests));
                let Ok(stream) = stream else { continue };
                thread::spawn(move || serve(&faults, &n_requests, stream));
            }
        });
        Ok(provider)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The number of requests that arrived.
    pub(super) fn n_requests(&self) -> usize {
        self.n_requests.load(Ordering::SeqCst)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.is_shut_down.store(true, Ordering::SeqCst);
        // Wake the accepting thread, so that it sees the flag.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The head of a request, as far as an answer depends on it.
struct Head {
    fault: Option<String>,
    kind: BodyFormat,
    length: usize,
    is_chunked: bool,
}

/// Serves requests until one has a fault or the client disconnects.
fn serve(faults: &[Fault], n_requests: &AtomicUsize, stream: TcpStream) {
    let _ = (stream.set_nodelay(true), stream.set_write_timeout(Some(STALL)));
    let Ok(mut out) = stream.try_clone() else { return };
    let mut from = BufReader::with_capacity(64 * 1024, stream);
    while let Some(head) = read_head(&mut from) {
        n_requests.fetch_add(1, Ordering::SeqCst);
        let fault = head.fault.as_deref().and_then(|name| faults.iter().find(|fault| fault.name == name));
        let is_reset = fault.is_some_and(|fault| fault.parts.iter().any(|part| matches!(part, Part::Reset)));
        // Closing a socket with unread bytes resets the connection.
        let n_unread = usize::from(is_reset && head.length > 0);
        let mut body = vec![0; head.length.min(MAX_BODY) - n_unread];
        let is_read = if head.is_chunked { skip_chunks(&mut from) } else { from.read_exact(&mut body).ok() };
        if is_read.is_none() {
            return;
        }
        let Some(fault) = fault else {
            let is_stream = super::http::find(&body[..body.len().min(400)], b"\"stream\":true").is_some();
            if out.write_all(&good_answer(head.kind, is_stream)).is_err() {
                return;
            }
            continue;
        };
        send(&fault.parts, &mut out);
        if !is_reset {
            let _ = out.shutdown(Shutdown::Both);
        }
        return;
    }
}

fn send(parts: &[Part], out: &mut TcpStream) {
    for part in parts {
        let result = match part {
            Part::Send(bytes) => out.write_all(bytes),
            Part::Repeat(bytes, n) => (0..*n).try_for_each(|_| out.write_all(bytes)),
            Part::Wait(time) => {
                thread::sleep(*time);
                Ok(())
            }
            Part::Reset => return,
        };
        if result.is_err() {
            return;
        }
    }
}

fn read_head(from: &mut BufReader<TcpStream>) -> Option<Head> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let path = line.split_whitespace().nth(1).unwrap_or_default();
    let kind = match path {
        path if path.ends_with("/messages") => BodyFormat::Anthropic,
        path if path.ends_with("/responses") => BodyFormat::Responses,
        _ => BodyFormat::Chat,
    };
    let mut head = Head { fault: None, kind, length: 0, is_chunked: false };
    loop {
        line.clear();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Some(head) };
        match name.to_lowercase().as_str() {
            "x-fault" => head.fault = Some(value.trim().to_owned()),
            "transfer-encoding" => head.is_chunked = true,
            "content-length" => head.length = value.trim().parse().ok()?,
            _ => {}
        }
    }
}

/// Reads a body of chunks to its end.
fn skip_chunks(from: &mut BufReader<TcpStream>) -> Option<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let size = usize::from_str_radix(line.trim().split(';').next()?, 16).ok()?;
        let mut chunk = vec![0; size.min(MAX_BODY) + 2];
        from.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(());
        }
    }
}

/// A short reply in the format of the API.
pub(super) fn good_answer(kind: BodyFormat, is_stream: bool) -> Vec<u8> {
    let reply = ScriptedReply { text: "It is done.".to_owned(), ..ScriptedReply::default() };
    let (whole, events) = render_reply(kind, &reply);
    let (kind, body) = if is_stream { ("text/event-stream", events) } else { ("application/json", whole) };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    format!("{head}{body}").into_bytes()
}
