//! A client that accepts broken answers: it sends any bytes and records what arrived.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The received part of a response.
#[derive(Default)]
pub(super) struct Answer {
    /// `None` if the bytes are not an HTTP response.
    pub(super) status: Option<u16>,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The body without its chunks, as far as it arrived.
    pub(super) body: Vec<u8>,
    /// True if the body ended as its headers announce.
    pub(super) is_complete: bool,
    /// True if nothing ended the answer within the time limit.
    pub(super) is_timed_out: bool,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn describe(&self) -> String {
        let status = self.status.map_or("no answer".to_owned(), |status| status.to_string());
        let end = match (self.is_timed_out, self.is_complete) {
            (true, _) => "hangs",
            (false, true) => "complete",
            (false, false) => "breaks off",
        };
        format!("{status}, {} bytes, {end}", self.body.len())
    }
}

/// The bytes of a request that closes its connection. `Host` is added unless the headers have it.
pub(super) fn request(method: &str, path: &str, port: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !has_host {
        head.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}

/// Sends bytes on a new connection and reads until the server closes it.
pub(super) fn exchange(port: u16, request: &[u8], limit: Duration) -> Answer {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Answer::default() };
    let _ = (stream.set_read_timeout(Some(limit)), stream.set_write_timeout(Some(limit)));
    // A server may refuse a request before it has read all of it.
    let _ = stream.write_all(request);
    let (mut received, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let ended = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(n) => received.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error.kind()),
        }
    };
    let mut answer = parse(&received, ended.is_ok());
    answer.is_timed_out =
        !answer.is_complete && matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut));
    answer
}

/// Parses a response. `is_closed` is true if the connection ended without an error.
fn parse(received: &[u8], is_closed: bool) -> Answer {
    let Some(end) = find(received, b"\r\n\r\n") else { return Answer::default() };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let rest = &received[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().filter(|line| line.starts_with("HTTP/1.")).and_then(|line| {
        let status = line.split_whitespace().nth(1)?;
        status.parse::<u16>().ok()
    });
    let Some(status) = status else { return Answer::default() };
    let is_interim = status < 200;
    if is_interim {
        return parse(rest, is_closed);
    }
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let headers: Vec<_> = pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let mut answer = Answer { status: Some(status), headers, ..Answer::default() };
    let is_chunked = answer.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let length = answer.header("content-length").map(str::parse::<usize>);
    (answer.body, answer.is_complete) = match length {
        _ if is_chunked => join_chunks(rest),
        Some(Ok(length)) => (rest[..rest.len().min(length)].to_vec(), rest.len() >= length),
        Some(Err(_)) => (rest.to_vec(), false),
        None => (rest.to_vec(), is_closed),
    };
    answer
}

/// The content of chunks, and whether the last chunk arrived.
fn join_chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = find(rest, b"\r\n") {
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
        let Ok(size) = size else { return (body, false) };
        if size == 0 {
            return (body, true);
        }
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..rest.len().min(size)]);
        rest = rest.get(size.saturating_add(2)..).unwrap_or_default();
    }
    (body, false)
}

/// The position of a part in bytes.
pub(super) fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len().max(1)).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// The status, the body and whether it is complete.
    fn parsed(text: &str) -> (Option<u16>, String, bool) {
        let answer = parse(text.as_bytes(), true);
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned(), answer.is_complete)
    }

    #[test]
    fn broken_answers_are_incomplete() {
        let whole = (Some(200), "abc".to_owned(), true);
        assert_eq!(parsed("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), whole);
        assert_eq!(
            parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
            whole
        );
        let cut = (Some(200), "ab".to_owned(), false);
        assert_eq!(parsed("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), cut);
        assert_eq!(parsed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), cut);
        assert_eq!(parsed("SSH-2.0-x\r\n\r\n"), (None, String::new(), false));
    }
}
