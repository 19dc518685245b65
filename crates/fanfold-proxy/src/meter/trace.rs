//! Where a request belongs among those of other programs: W3C `traceparent` in and out, and spans as OpenTelemetry has
//! them.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The place of a span: which trace it is in, and its own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// Whether whoever began the trace wants it kept.
    pub(super) is_kept: bool,
}

impl Place {
    /// Reads a `traceparent` header; none if it is not one.
    pub(super) fn parse(header: &str) -> Option<Place> {
        let mut parts = header.trim().split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may have more behind; the first one has not. The version ff is not one.
        let is_known = version != 0xff && (version > 0 || parts.next().is_none());
        let is_set = trace != 0 && span != 0;
        (is_known && is_set).then_some(Place { trace, span: span as u64, is_kept: flags & 1 == 1 })
    }

    /// A place below another one, or at the top of a new trace.
    pub(super) fn below(parent: Option<Place>) -> Place {
        let span = fastrand::u64(1..);
        match parent {
            Some(parent) => Place { span, ..parent },
            None => Place { trace: fastrand::u128(1..), span, is_kept: true },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_kept))
    }
}

/// Exactly so many lower-case hexadecimal digits.
fn hex(text: &str, n_digits: usize) -> Option<u128> {
    let is_hex = text.len() == n_digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Something that took a while.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) place: Place,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) began: SystemTime,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) is_error: bool,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work of ours.
    Internal = 1,
    /// A request that came.
    Server = 2,
    /// A call upstream.
    Client = 3,
}

impl Span {
    /// As OTLP writes it in JSON.
    pub(super) fn json(&self) -> Value {
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
        let attributes: Vec<Value> = self
            .attributes
            .iter()
            .filter_map(|(key, value)| Some(json!({ "key": key, "value": attribute(value)? })))
            .collect();
        let mut span = json!({
            "traceId": format!("{:032x}", self.place.trace),
            "spanId": format!("{:016x}", self.place.span),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": nanos(self.began),
            "endTimeUnixNano": nanos(self.began + self.took),
            "attributes": attributes,
            "status": if self.is_error { json!({ "code": 2 }) } else { json!({}) },
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    }
}

fn attribute(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if !text.is_empty() => Some(json!({ "stringValue": text })),
        Value::Number(number) if number.is_f64() => Some(json!({ "doubleValue": number })),
        // Whole numbers are texts in OTLP's JSON.
        Value::Number(number) => Some(json!({ "intValue": number.to_string() })),
        Value::Bool(is) => Some(json!({ "boolValue": is })),
        _ => None,
    }
}

/// When a moment was, by the clock on the wall.
pub(super) fn wall(moment: Instant) -> SystemTime {
    SystemTime::now().checked_sub(moment.elapsed()).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_it_was_written() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let place = Place::parse(header).unwrap();
        assert!(place.is_kept);
        assert_eq!(place.to_string(), header);
        let child = Place::below(Some(place));
        assert_eq!((child.trace, child.is_kept), (place.trace, true));
        assert_ne!(child.span, place.span);
    }

    #[test]
    fn what_is_no_header_begins_a_trace_of_its_own() {
        let wrong = [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        for header in wrong {
            assert_eq!(Place::parse(header), None, "{header}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(Place::parse(later).is_some_and(|place| !place.is_kept));
    }
}
