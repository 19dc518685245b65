//! A minimal HTTP/1.1 server side: parses requests, writes responses and chunked streams.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::TcpStream;

/// A received request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body without its compression.
    pub(super) fn decompressed(&self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        match self.header("content-encoding").unwrap_or("identity") {
            "gzip" => flate2::read::MultiGzDecoder::new(&*self.body).read_to_end(&mut body)?,
            "deflate" => flate2::read::ZlibDecoder::new(&*self.body).read_to_end(&mut body)?,
            "zstd" => return zstd::decode_all(&*self.body),
            _ => return Ok(self.body.clone()),
        };
        Ok(body)
    }
}

/// Reads the next request of a connection; `None` at its end.
pub(super) fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
    }
    let mut request = Request { method, target, headers, body: Vec::new() };
    if request.header("expect").is_some() {
        from.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let is_chunked = request.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    if is_chunked {
        request.body = read_chunks(from)?;
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse().map_err(io::Error::other)?;
        request.body = vec![0; length];
        from.read_exact(&mut request.body)?;
    }
    Ok(Some(request))
}

fn read_chunks(from: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16);
        let length = length.map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        from.read_exact(&mut body[start..])?;
        line.clear();
        from.read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// The status line and headers of a response.
pub(super) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// A complete response with a JSON content type.
pub(super) fn whole(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let mut all = vec![("content-type", "application/json"), ("content-length", &length)];
    all.extend(headers);
    let mut response = head(status, &all);
    response.extend(body);
    response
}

/// A chunk of a stream; an empty one ends it.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend(bytes);
    chunk.extend(b"\r\n");
    chunk
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        529 => "Overloaded",
        _ => "Answer",
    }
}
