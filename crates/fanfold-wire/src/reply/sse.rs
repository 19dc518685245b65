//! Splits a stream into server-sent events that keep their bytes.
//!
//! ```text
//! feed "data: a\n\nda", feed "ta: b\n\n"   gives   "data: a\n\n", "data: b\n\n"
//! ```
//!
//! The concatenated events are the stream, byte for byte. Lines end with LF, CR or both. An event that ends with CR is
//! complete when the next byte is not LF.

use std::borrow::Cow;
use std::ops::Range;

/// The size limit of an event. A longer event is passed on in pieces and not read.
pub const MAX_EVENT: usize = 16 << 20;

/// An event of a stream, or a comment or blank line between events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    raw: Vec<u8>,
    /// True if it is a piece of an event beyond the size limit.
    is_piece: bool,
}

impl SseEvent {
    /// Its bytes, including the blank line.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Its bytes.
    pub fn into_raw(self) -> Vec<u8> {
        self.raw
    }

    /// Its name, if it has one in valid UTF-8.
    pub fn name(&self) -> Option<&str> {
        let line = self.lines().filter(|line| line.field(&self.raw) == b"event").last()?;
        std::str::from_utf8(&self.raw[line.value]).ok()
    }

    /// Its data lines, joined by line feeds. `None` without data lines in valid UTF-8.
    pub fn data(&self) -> Option<Cow<'_, str>> {
        let mut lines = self.data_lines();
        let first = std::str::from_utf8(&self.raw[lines.next()?.value]).ok()?;
        let mut joined = Cow::Borrowed(first);
        for line in lines {
            let next = std::str::from_utf8(&self.raw[line.value]).ok()?;
            let text = joined.to_mut();
            text.push('\n');
            text.push_str(next);
        }
        Some(joined)
    }

    /// The event with other data, which is JSON. Every other byte is kept.
    pub(crate) fn with_data(&self, json: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len() + json.len());
        let mut at = 0;
        for (i, line) in self.data_lines().enumerate() {
            if i == 0 {
                out.extend_from_slice(&self.raw[at..line.value.start]);
                // A line break is white space in JSON, and would end the line in the stream.
                out.extend(json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
                at = line.value.end;
            } else {
                out.extend_from_slice(&self.raw[at..line.start]);
                at = line.end;
            }
        }
        out.extend_from_slice(&self.raw[at..]);
        out
    }

    fn data_lines(&self) -> impl Iterator<Item = Line> {
        self.lines().filter(|line| line.field(&self.raw) == b"data")
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        let bytes: &[u8] = if self.is_piece { b"" } else { &self.raw };
        let mut at = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        std::iter::from_fn(move || {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let line = Line::at(at, rest);
            at = line.end;
            Some(line)
        })
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The ranges of a line in an event.
struct Line {
    start: usize,
    name_end: usize,
    value: Range<usize>,
    end: usize,
}

impl Line {
    fn at(start: usize, rest: &[u8]) -> Line {
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let n_break = if rest[length..].starts_with(b"\r\n") { 2 } else { (rest.len() - length).min(1) };
        let text = &rest[..length];
        let colon = memchr::memchr(b':', text);
        let name_end = colon.unwrap_or(length);
        let mut value_start = colon.map_or(length, |colon| colon + 1);
        if colon.is_some() && text.get(value_start) == Some(&b' ') {
            value_start += 1;
        }
        Line {
            start,
            name_end: start + name_end,
            value: start + value_start..start + length,
            end: start + length + n_break,
        }
    }

    fn field<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        &raw[self.start..self.name_end]
    }
}

/// Splits a stream into events.
#[derive(Debug)]
pub struct Splitter {
    held: Vec<u8>,
    limit: usize,
    /// True if the current line is still empty.
    is_line_empty: bool,
    /// True if the last byte was a CR, so that an LF belongs to the same line break.
    is_after_cr: bool,
    /// True if the current event has ended, but for an LF that may follow.
    is_ended: bool,
    /// True if the current event has been split into pieces.
    is_long: bool,
    /// The length of the byte order mark read until now. After the mark, the line is empty again.
    n_mark: Option<usize>,
}

impl Default for Splitter {
    fn default() -> Splitter {
        Splitter::new(MAX_EVENT)
    }
}

impl Splitter {
    /// A splitter with a size limit for events.
    pub fn new(limit: usize) -> Splitter {
        Splitter {
            held: Vec::new(),
            limit: limit.max(1),
            is_line_empty: true,
            is_after_cr: false,
            is_ended: false,
            is_long: false,
            n_mark: Some(0),
        }
    }

    /// Takes the next bytes and returns the events that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let [first, ..] = rest {
            if self.is_ended {
                if *first == b'\n' {
                    rest = self.take(rest, 1, &mut events);
                }
                self.finish_event(&mut events);
                continue;
            }
            let n = self.scan(rest);
            rest = self.take(rest, n, &mut events);
            if self.is_ended && !self.is_after_cr {
                self.finish_event(&mut events);
            }
        }
        events
    }

    /// Ends the stream and returns the last event if it has no blank line.
    pub fn end(&mut self) -> Option<SseEvent> {
        let mut events = Vec::new();
        self.finish_event(&mut events);
        events.pop()
    }

    /// The number of next bytes that belong to the current event.
    fn scan(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if let Some(n_mark) = self.n_mark {
                self.n_mark =
                    (BOM.get(n_mark) == Some(&byte)).then_some(n_mark + 1).filter(|n| *n < BOM.len());
                if BOM.get(n_mark) == Some(&byte) {
                    at += 1;
                    continue;
                }
            }
            let is_rest_of_break = self.is_after_cr && byte == b'\n';
            self.is_after_cr = byte == b'\r';
            if is_rest_of_break {
                at += 1;
                continue;
            }
            if matches!(byte, b'\n' | b'\r') {
                at += 1;
                if self.is_line_empty {
                    self.is_ended = true;
                    return at;
                }
                self.is_line_empty = true;
                continue;
            }
            self.is_line_empty = false;
            at += memchr::memchr2(b'\n', b'\r', &bytes[at..]).unwrap_or(bytes.len() - at);
        }
        at
    }

    /// Adds bytes to the current event. Beyond the size limit it is split into pieces.
    fn take<'a>(&mut self, bytes: &'a [u8], n: usize, events: &mut Vec<SseEvent>) -> &'a [u8] {
        let (mut taken, rest) = bytes.split_at(n);
        while self.held.len() + taken.len() > self.limit {
            let (head, tail) = taken.split_at(self.limit - self.held.len());
            self.held.extend_from_slice(head);
            taken = tail;
            self.is_long = true;
            events.push(SseEvent { raw: std::mem::take(&mut self.held), is_piece: true });
        }
        self.held.extend_from_slice(taken);
        rest
    }

    fn finish_event(&mut self, events: &mut Vec<SseEvent>) {
        if !self.held.is_empty() {
            events.push(SseEvent { raw: std::mem::take(&mut self.held), is_piece: self.is_long });
        }
        (self.is_ended, self.is_long, self.is_after_cr, self.is_line_empty) = (false, false, false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAMS: &[&[u8]] = &[
        b"",
        b"data: a\n\ndata: b\n\n",
        b"event: x\r\ndata: {\"a\":1}\r\n\r\ndata: b\r\n\r\n",
        b"data: a\r\rdata: b\r\r\n\ndata: c\r\n\rdata: d\n\r\n",
        b"\xef\xbb\xbfdata: a\n\n",
        b"\xef\xbb\xbf\n\ndata: a\n\n",
        b"\xef\xbbdata: a\n\n",
        b": keep-alive\n\n\n\n:\r\n\r\ndata:one\ndata: two\ndata\n\nid: 3\nretry: 5\n\n",
        b"data: no blank line\n",
        b"data: no end",
        b"data: \xff\xfe\x00\n\ndata: \xc3\xa9\n\n",
        b"\r\n\r\r\n\n\r",
        b"data: 0123456789012345678901234567890123456789\n\ndata: b\n\n",
    ];

    fn split_at(stream: &[u8], cuts: &[usize], limit: usize) -> Vec<SseEvent> {
        let mut splitter = Splitter::new(limit);
        let mut events = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().chain([&stream.len()]) {
            events.extend(splitter.feed(&stream[at..*cut]));
            at = *cut;
        }
        events.extend(splitter.end());
        events
    }

    #[test]
    fn every_split_gives_the_same_events() {
        for stream in STREAMS {
            for limit in [7, 16, MAX_EVENT] {
                let whole = split_at(stream, &[], limit);
                let joined: Vec<u8> = whole.iter().flat_map(|event| event.raw.clone()).collect();
                assert_eq!(&joined, stream);
                for i in 0..=stream.len() {
                    for j in i..=stream.len() {
                        assert_eq!(split_at(stream, &[i, j], limit), whole, "{stream:?} at {i}, {j}");
                    }
                }
                let bytes: Vec<usize> = (0..stream.len()).collect();
                assert_eq!(split_at(stream, &bytes, limit), whole, "{stream:?} byte by byte");
            }
        }
    }

    fn shown(stream: &[u8]) -> Vec<(Option<String>, Option<String>)> {
        let events = split_at(stream, &[], MAX_EVENT);
        events
            .iter()
            .map(|event| (event.name().map(str::to_owned), event.data().map(Cow::into_owned)))
            .collect()
    }

    #[test]
    fn names_and_data_follow_the_standard() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(shown(STREAMS[2]), [(some("x"), some("{\"a\":1}")), (None, some("b"))]);
        let events = shown(STREAMS[3]);
        let data: Vec<_> = events.into_iter().filter_map(|(_, data)| data).collect();
        assert_eq!(data, ["a", "b", "c", "d"]);
        assert_eq!(shown(STREAMS[4]), [(None, some("a"))]);
        assert_eq!(shown(STREAMS[7])[4], (None, some("one\ntwo\n")));
        assert_eq!(shown(STREAMS[8]), [(None, some("no blank line"))]);
        assert_eq!(shown(STREAMS[10]), [(None, None), (None, some("é"))]);
    }

    #[test]
    fn an_event_is_complete_with_its_last_byte() {
        let mut splitter = Splitter::default();
        assert!(splitter.feed(b"data: a\n").is_empty());
        assert_eq!(splitter.feed(b"\n").len(), 1);
        assert!(splitter.feed(b"data: a\r\n\r").is_empty());
        assert_eq!(splitter.feed(b"\n").len(), 1);
    }

    #[test]
    fn data_is_replaced_in_place() {
        let replaced = |stream: &[u8]| {
            let events = split_at(stream, &[], MAX_EVENT);
            String::from_utf8(events[0].with_data("{\n}")).unwrap()
        };
        assert_eq!(
            replaced(b"event: x\r\ndata: {\"a\":1}\r\nid: 7\r\n\r\n"),
            "event: x\r\ndata: { }\r\nid: 7\r\n\r\n"
        );
        assert_eq!(replaced(b"data:{\ndata: }\nid: 7\n\n"), "data:{ }\nid: 7\n\n");
    }
}
