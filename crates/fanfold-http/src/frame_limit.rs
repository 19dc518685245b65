//! A limit for the control frames of an HTTP/2 connection, such as PING and SETTINGS. Each costs the client a few bytes,
//! and the server an answer, so a client could keep a core busy without a single request.

use std::time::{Duration, Instant};

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame, its type, its flags and its stream.
const HEAD_BYTES: usize = 9;
/// Frames of requests and their bodies. Clients send many of them, and the HTTP library limits them.
const DATA_TYPES: [u8; 5] = [DATA, HEADERS, RST_STREAM, WINDOW_UPDATE, CONTINUATION];
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// The number of control frames per period. Clients send a few per minute.
const MAX_FRAMES: u32 = 1_000;
const PERIOD: Duration = Duration::from_secs(10);

/// Counts the control frames in a stream of bytes.
#[derive(Default)]
pub(crate) struct FrameCounter {
    position: Position,
    n_frames: u32,
    /// When the current period began.
    since: Option<Instant>,
}

/// The position in the bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// This many bytes of the preface were read.
    Preface(usize),
    /// The connection does not use HTTP/2.
    OtherProtocol,
    /// This many bytes of the head of a frame were read.
    Head([u8; HEAD_BYTES], usize),
    /// This many bytes of the frame are left.
    Payload(usize),
}

impl Default for Position {
    fn default() -> Position {
        Position::Preface(0)
    }
}

impl FrameCounter {
    /// Reads bytes. Returns whether the client has sent too many frames.
    pub(crate) fn is_flood(&mut self, mut bytes: &[u8], now: Instant) -> bool {
        while let Some((byte, rest)) = bytes.split_first() {
            self.position = match self.position {
                Position::OtherProtocol => return false,
                Position::Preface(n) if PREFACE[n] != *byte => Position::OtherProtocol,
                Position::Preface(n) if n + 1 < PREFACE.len() => Position::Preface(n + 1),
                Position::Preface(_) => Position::Head([0; HEAD_BYTES], 0),
                Position::Head(mut head, n) => {
                    head[n] = *byte;
                    if n + 1 < HEAD_BYTES {
                        Position::Head(head, n + 1)
                    } else {
                        if !DATA_TYPES.contains(&head[3]) && self.is_over_limit(now) {
                            return true;
                        }
                        after_head(head)
                    }
                }
                Position::Payload(n) => {
                    let n_read = n.min(bytes.len());
                    bytes = &bytes[n_read..];
                    self.position = if n_read < n {
                        Position::Payload(n - n_read)
                    } else {
                        Position::Head([0; HEAD_BYTES], 0)
                    };
                    continue;
                }
            };
            bytes = rest;
        }
        false
    }

    /// Counts a control frame.
    fn is_over_limit(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) > PERIOD) {
            (self.since, self.n_frames) = (Some(now), 0);
        }
        self.n_frames += 1;
        self.n_frames > MAX_FRAMES
    }
}

fn after_head(head: [u8; HEAD_BYTES]) -> Position {
    match u32::from_be_bytes([0, head[0], head[1], head[2]]) {
        0 => Position::Head([0; HEAD_BYTES], 0),
        n_bytes => Position::Payload(n_bytes as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, n_bytes: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, n_bytes, kind, 0, 0, 0, 0, 0];
        frame.extend(vec![6; n_bytes as usize]);
        frame
    }

    /// The number of frames that are accepted, in reads of different lengths.
    fn n_accepted(kind: u8, n_bytes: u8, n_per_read: usize, pause: Duration) -> usize {
        let (mut counter, mut now) = (FrameCounter::default(), Instant::now());
        let all = [PREFACE.to_vec(), frame(kind, n_bytes).repeat(5_000)].concat();
        let frame_bytes = HEAD_BYTES + n_bytes as usize;
        let mut n_read = 0;
        for bytes in all.chunks(n_per_read) {
            if counter.is_flood(bytes, now) {
                return n_read / frame_bytes;
            }
            (n_read, now) = (n_read + bytes.len(), now + pause);
        }
        5_000
    }

    #[test]
    fn a_flood_of_control_frames_is_recognised() {
        for (kind, n_bytes) in [(6, 8), (4, 0), (4, 6), (2, 5), (77, 3)] {
            for n_per_read in [1, 7, 9, 4096] {
                let n = n_accepted(kind, n_bytes, n_per_read, Duration::ZERO);
                assert!((600..1_010).contains(&n), "{n} frames of type {kind} in reads of {n_per_read}");
            }
        }
    }

    #[test]
    fn requests_and_occasional_control_frames_are_not_limited() {
        for kind in DATA_TYPES {
            assert_eq!(n_accepted(kind, 200, 4096, Duration::ZERO), 5_000, "{kind}");
        }
        assert_eq!(n_accepted(6, 8, 17, Duration::from_millis(11)), 5_000);
        let mut counter = FrameCounter::default();
        let http1 = [b"GET / HTTP/1.1\r\n".to_vec(), frame(6, 8).repeat(5_000)].concat();
        assert!(!counter.is_flood(&http1, Instant::now()));
    }
}
