//! Answers of a broken provider.

use std::io::Write as _;
use std::time::Duration;

use fanfold_testkit::generators::bodies::BodyFormat;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::attack::provider::{Fault, Part, good_answer};

/// All faults; redirects lead to another server.
pub(super) fn faults(elsewhere: &str) -> Vec<Fault> {
    [
        connection_faults(),
        framing_faults(),
        compression_faults(),
        stream_faults(),
        status_faults(elsewhere),
        odd_http(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn fault(name: &'static str, parts: Vec<Part>) -> Fault {
    Fault { name, parts }
}

fn send(name: &'static str, bytes: impl Into<Vec<u8>>) -> Fault {
    fault(name, vec![Part::Send(bytes.into())])
}

/// The head and the body of a good answer.
fn good(is_stream: bool) -> (Vec<u8>, Vec<u8>) {
    let answer = good_answer(BodyFormat::Chat, is_stream);
    let end = crate::attack::http::find(&answer, b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    (answer[..end].to_vec(), answer[end..].to_vec())
}

/// An answer with these header lines and this body.
fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{lines}");
    let length = if lines.contains("ength:") || lines.contains("chunked") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    [format!("{head}{length}\r\n").as_bytes(), body].concat()
}

/// The connection ends or breaks at each place of an answer.
fn connection_faults() -> Vec<Fault> {
    let (head, body) = good(false);
    let half = [&head[..], &body[..body.len() / 2]].concat();
    let pause = Part::Wait(Duration::from_millis(50));
    let pieces = half.chunks(40).chain([&body[body.len() / 2..]]);
    let slow_pieces =
        pieces.flat_map(|piece| [Part::Send(piece.to_vec()), Part::Wait(Duration::from_millis(5))]);
    let slow_pieces = slow_pieces.collect();
    vec![
        send("hang up", ""),
        fault("reset before the answer", vec![Part::Reset]),
        send("cut in the status line", "HTTP/1.1 20"),
        send("cut in the head", &head[..head.len() - 6]),
        send("cut after the head", &*head),
        send("cut in the body", &*half),
        fault("reset after the head", vec![Part::Send(head.clone()), pause.clone(), Part::Reset]),
        fault("reset in the body", vec![Part::Send(half), pause, Part::Reset]),
        fault("slow pieces", slow_pieces),
    ]
}

/// Lengths and chunks that do not fit the body.
fn framing_faults() -> Vec<Fault> {
    let (_, body) = good(false);
    let (body, n) = (&body[..], body.len());
    let chunked = |text: &[u8]| answer("200 OK", &["transfer-encoding: chunked"], text);
    let chunk = [format!("{n:x}\r\n").as_bytes(), body, b"\r\n"].concat();
    vec![
        send("length too large", answer("200 OK", &[&format!("content-length: {}", n + 10)], body)),
        send("length too small", answer("200 OK", &[&format!("content-length: {}", n - 10)], body)),
        send("illegal length", answer("200 OK", &["content-length: -5"], body)),
        send("illegal lengths", answer("200 OK", &["content-length: 5", "content-length: 7"], body)),
        send(
            "length and chunks",
            answer(
                "200 OK",
                &["transfer-encoding: chunked", &format!("content-length: {n}")],
                &[&chunk[..], b"0\r\n\r\n"].concat(),
            ),
        ),
        send("no length", [b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", body].concat()),
        send("chunks", chunked(&[&chunk[..], b"0\r\n\r\n"].concat())),
        send("chunks without an end", chunked(&chunk)),
        send("chunk cut", chunked(&chunk[..n / 2])),
        send("chunk with a bad size", chunked(&[b"zz\r\n", body].concat())),
        send("chunk with a huge size", chunked(&[b"ffffffffffffffff1\r\n", body].concat())),
    ]
}

fn compression_faults() -> Vec<Fault> {
    let (_, body) = good(false);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(&body).and_then(|()| encoder.finish()).expect("memory can be written");
    let mut bad_checksum = packed.clone();
    let at = packed.len() - 6;
    bad_checksum[at] ^= 0xff;
    let gzip = |bytes: &[u8]| answer("200 OK", &["content-encoding: gzip"], bytes);
    vec![
        send("gzip", gzip(&packed)),
        send("gzip cut", gzip(&packed[..packed.len() / 2])),
        send("gzip with a bad checksum", gzip(&bad_checksum)),
        send("gzip that is plain", gzip(&body)),
        send("gzip of nothing", gzip(b"")),
        send("unknown compression", answer("200 OK", &["content-encoding: x-none"], &body)),
        send("deflate that is plain", answer("200 OK", &["content-encoding: deflate"], &body)),
    ]
}

fn stream_faults() -> Vec<Fault> {
    let (_, body) = good(true);
    let text = String::from_utf8_lossy(&body).into_owned();
    let head: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let whole = |text: &str| [head, &chunk(text), b"0\r\n\r\n"].concat();
    let events: Vec<&str> = text.split_inclusive("\n\n").collect();
    let some = events[..events.len() / 2].concat();
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n";
    vec![
        send("stream cut between events", [head, &chunk(&some)].concat()),
        send("stream cut in an event", [head, &chunk(&some[..some.len() - 9])].concat()),
        fault(
            "stream reset",
            vec![
                Part::Send([head, &chunk(&some)].concat()),
                Part::Wait(Duration::from_millis(50)),
                Part::Reset,
            ],
        ),
        send("stream without its last event", whole(&text.replace("data: [DONE]\n\n", ""))),
        send("stream that ends early", whole(&some)),
        send("stream with an error", whole(&format!("{some}{error}"))),
        send("stream that begins with an error", whole(error)),
        send("stream with CRLF", whole(&text.replace('\n', "\r\n"))),
        send("stream with a byte order mark", whole(&format!("\u{feff}{text}"))),
        send("stream of garbage", whole("\u{0}\u{1}no event at all")),
        send("stream of nothing", whole(" ")),
    ]
}

fn status_faults(elsewhere: &str) -> Vec<Fault> {
    let location = format!("location: {elsewhere}/v1/chat/completions");
    let error = br#"{"error":{"message":"no","type":"some_error","code":"x"}}"#;
    let redirect = |name, status: &str| send(name, answer(status, &[&location], b"{}"));
    let failed = |name, status: &str, headers: &[&str]| send(name, answer(status, headers, error));
    vec![
        redirect("301", "301 Moved Permanently"),
        redirect("302", "302 Found"),
        redirect("303", "303 See Other"),
        redirect("307", "307 Temporary Redirect"),
        redirect("308", "308 Permanent Redirect"),
        failed("400", "400 Bad Request", &[]),
        failed("401", "401 Unauthorized", &["www-authenticate: Bearer"]),
        failed("404", "404 Not Found", &[]),
        failed("413", "413 Payload Too Large", &[]),
        failed("429", "429 Too Many Requests", &["retry-after: 1"]),
        failed("500", "500 Internal Server Error", &[]),
        failed("503", "503 Service Unavailable", &["retry-after: 1"]),
        failed("529", "529 Overloaded", &[]),
        failed("799", "799 Unknown", &[]),
        send(
            "502 page",
            answer("502 Bad Gateway", &["content-type: text/html"], b"<html>bad gateway</html>"),
        ),
        send("204", "HTTP/1.1 204 No Content\r\n\r\n"),
        send("200 of nothing", answer("200 OK", &[], b"")),
        send("200 that is no JSON", answer("200 OK", &[], b"\xff\xfe{\"choices\": [ <html>")),
        send("200 with an error", answer("200 OK", &[], error)),
    ]
}

/// Bytes that are no HTTP, or that few programs send.
fn odd_http() -> Vec<Fault> {
    let (head, body) = good(false);
    let whole = [&head[..], &body].concat();
    let long = format!("x-long: {}", "a".repeat(20_000));
    vec![
        send("not HTTP", "\u{16}\u{3}\u{1} this is no answer\r\n\r\n"),
        send("another protocol", "SSH-2.0-OpenSSH_9.6\r\n"),
        send("interim answer first", [b"HTTP/1.1 100 Continue\r\n\r\n", &whole[..]].concat()),
        send("illegal version", [b"HTTP/9.9 200 OK\r\n\r\n", &body[..]].concat()),
        send("illegal status", [b"HTTP/1.1 2x0 OK\r\n\r\n", &body[..]].concat()),
        send("illegal header name", answer("200 OK", &["a b: c"], &body)),
        send("illegal header value", answer("200 OK", &["x-a: b\u{0}c"], &body)),
        send(
            "illegal upgrade",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ),
        send("long header", answer("200 OK", &[&long], &body)),
        send("bytes after the answer", [&whole[..], b"HTTP/1.1 200 OK\r\n\r\nmore"].concat()),
    ]
}
