//! A client of HTTP/1.1 that does no more than a measurement allows: one connection, kept, and a clock.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// One connection to a server on loopback, made anew when the server closes it.
pub struct Caller {
    port: u16,
    stream: Option<BufReader<TcpStream>>,
    /// The longest silence before a call counts as failed.
    pub patience: Duration,
}

/// What was answered, and when.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Until the first byte of the body.
    pub first: Duration,
    /// Until its last.
    pub whole: Duration,
}

impl Answered {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Caller {
    /// A client of the server at a port.
    pub fn new(port: u16) -> Caller {
        Caller { port, stream: None, patience: Duration::from_secs(60) }
    }

    /// Posts a body.
    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answered> {
        self.call("POST", path, headers, body)
    }

    /// Sends a request and reads its answer to the end.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answered> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len()));
        let is_kept = self.stream.is_some();
        match self.exchange(&head, body) {
            // A server may close a connection that waited; that is nobody's failure.
            Err(_) if is_kept && self.stream.is_none() => self.exchange(&head, body),
            answered => answered,
        }
    }

    fn exchange(&mut self, head: &str, body: &str) -> io::Result<Answered> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(self.patience))?;
                stream.set_write_timeout(Some(self.patience))?;
                BufReader::with_capacity(64 * 1024, stream)
            }
        };
        let started = Instant::now();
        let mut request = head.as_bytes().to_vec();
        // A small request leaves in one piece, a large body is not copied for that.
        let is_small = body.len() < 16 * 1024;
        if is_small {
            request.extend(body.as_bytes());
        }
        stream.get_mut().write_all(&request)?;
        if !is_small {
            stream.get_mut().write_all(body.as_bytes())?;
        }
        let (answered, is_kept) = read(&mut stream, started)?;
        if is_kept {
            self.stream = Some(stream);
        }
        Ok(answered)
    }
}

fn read(stream: &mut BufReader<TcpStream>, started: Instant) -> io::Result<(Answered, bool)> {
    let (status, headers) = loop {
        let head = read_head(stream)?;
        let is_on_the_way = head.0 < 200;
        if !is_on_the_way {
            break head;
        }
    };
    let header =
        |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let is_chunked = header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let is_closed = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let length = header("content-length").and_then(|value| value.parse::<usize>().ok());
    let mut body = Vec::new();
    let mut first = None;
    if is_chunked {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + length, 0);
            stream.read_exact(&mut body[start..])?;
            first.get_or_insert_with(|| started.elapsed());
            stream.read_line(&mut line)?;
            if length == 0 {
                break;
            }
        }
    } else if let Some(length) = length {
        if length > 0 && stream.fill_buf()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        first = Some(started.elapsed());
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    } else {
        stream.fill_buf()?;
        first = Some(started.elapsed());
        stream.read_to_end(&mut body)?;
    }
    let whole = started.elapsed();
    let is_kept = !is_closed && (is_chunked || length.is_some());
    Ok((Answered { status, headers, body, first: first.unwrap_or(whole), whole }, is_kept))
}

fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status in {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    Ok((status, headers))
}
