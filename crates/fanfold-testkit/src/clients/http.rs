//! A minimal HTTP/1.1 client for measurements: one persistent connection, and the times of each response.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A client with one connection to a server on loopback. It reconnects if the server closes an idle connection.
pub struct HttpClient {
    port: u16,
    stream: Option<BufReader<TcpStream>>,
    /// The read and write timeout of new connections.
    pub timeout: Duration,
}

/// A complete response and its times.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The time from the request to the first byte of the body.
    pub first_byte: Duration,
    /// The time from the request to the last byte of the body.
    pub total: Duration,
}

impl HttpResponse {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl HttpClient {
    /// Creates a client for a port on loopback.
    pub fn new(port: u16) -> HttpClient {
        HttpClient { port, stream: None, timeout: Duration::from_secs(60) }
    }

    /// Sends a POST request and reads the response to the end.
    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<HttpResponse> {
        self.call("POST", path, headers, body)
    }

    /// Sends a request and reads the response to the end.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<HttpResponse> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len()));
        let is_reused = self.stream.is_some();
        match self.exchange(&head, body) {
            // A server may close an idle connection at any time; retry once on a new one.
            Err(_) if is_reused && self.stream.is_none() => self.exchange(&head, body),
            response => response,
        }
    }

    fn exchange(&mut self, head: &str, body: &str) -> io::Result<HttpResponse> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(self.timeout))?;
                stream.set_write_timeout(Some(self.timeout))?;
                BufReader::with_capacity(64 * 1024, stream)
            }
        };
        let started = Instant::now();
        let mut request = head.as_bytes().to_vec();
        // Send a small request in one write, but do not copy a large body for that.
        let is_small = body.len() < 16 * 1024;
        if is_small {
            request.extend(body.as_bytes());
        }
        stream.get_mut().write_all(&request)?;
        if !is_small {
            stream.get_mut().write_all(body.as_bytes())?;
        }
        let (response, is_persistent) = read(&mut stream, started)?;
        if is_persistent {
            self.stream = Some(stream);
        }
        Ok(response)
    }
}

fn read(stream: &mut BufReader<TcpStream>, started: Instant) -> io::Result<(HttpResponse, bool)> {
    let (status, headers) = loop {
        let head = read_head(stream)?;
        let is_interim = head.0 < 200;
        if !is_interim {
            break head;
        }
    };
    let header =
        |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let is_chunked = header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let is_closed = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let length = header("content-length").and_then(|value| value.parse::<usize>().ok());
    let mut body = Vec::new();
    let mut first_byte = None;
    if is_chunked {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + length, 0);
            stream.read_exact(&mut body[start..])?;
            first_byte.get_or_insert_with(|| started.elapsed());
            stream.read_line(&mut line)?;
            if length == 0 {
                break;
            }
        }
    } else if let Some(length) = length {
        if length > 0 && stream.fill_buf()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        first_byte = Some(started.elapsed());
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    } else {
        stream.fill_buf()?;
        first_byte = Some(started.elapsed());
        stream.read_to_end(&mut body)?;
    }
    let total = started.elapsed();
    let is_persistent = !is_closed && (is_chunked || length.is_some());
    Ok((
        HttpResponse { status, headers, body, first_byte: first_byte.unwrap_or(total), total },
        is_persistent,
    ))
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
