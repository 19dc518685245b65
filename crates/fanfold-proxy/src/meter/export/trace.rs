//! W3C trace context (`traceparent`), and spans in the JSON form of OTLP.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The identity of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    /// True if the trace is recorded.
    pub(crate) is_sampled: bool,
}

impl SpanContext {
    /// Parses a `traceparent` header.
    pub(crate) fn parse(header: &str) -> Option<SpanContext> {
        let mut parts = header.trim().split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may have further fields. Version ff is invalid.
        let is_known = version != 0xff && (version > 0 || parts.next().is_none());
        let is_set = trace != 0 && span != 0;
        (is_known && is_set).then_some(SpanContext { trace, span: span as u64, is_sampled: flags & 1 == 1 })
    }

    /// A child of another span, or the root of a new trace.
    pub(crate) fn child_of(parent: Option<SpanContext>) -> SpanContext {
        let span = fastrand::u64(1..);
        match parent {
            Some(parent) => SpanContext { span, ..parent },
            None => SpanContext { trace: fastrand::u128(1..), span, is_sampled: true },
        }
    }
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Parses exactly `n_digits` lower-case hexadecimal digits.
fn hex(text: &str, n_digits: usize) -> Option<u128> {
    let is_hex = text.len() == n_digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u128::from_str_radix(text, 16).ok() } else { None }
}

/// A span.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) context: SpanContext,
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) started: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) is_error: bool,
}

/// The kind of a span, with its number in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Work of the proxy.
    Internal = 1,
    /// A request to the proxy.
    Server = 2,
    /// A call to the provider.
    Client = 3,
}

impl Span {
    /// The JSON form of OTLP.
    pub(crate) fn json(&self) -> Value {
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
        let attributes: Vec<Value> = self
            .attributes
            .iter()
            .filter_map(|(key, value)| Some(json!({ "key": key, "value": attribute(value)? })))
            .collect();
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.context.span),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": nanos(self.started),
            "endTimeUnixNano": nanos(self.started + self.duration),
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
        // OTLP writes integers as JSON strings.
        Value::Number(number) => Some(json!({ "intValue": number.to_string() })),
        Value::Bool(is) => Some(json!({ "boolValue": is })),
        _ => None,
    }
}

/// The wall clock time of an instant.
pub(crate) fn wall_time(moment: Instant) -> SystemTime {
    SystemTime::now().checked_sub(moment.elapsed()).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_round_trips() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = SpanContext::parse(header).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), header);
        let child = SpanContext::child_of(Some(context));
        assert_eq!((child.trace, child.is_sampled), (context.trace, true));
        assert_ne!(child.span, context.span);
    }

    #[test]
    fn ignores_invalid_headers() {
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
            assert_eq!(SpanContext::parse(header), None, "{header}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(SpanContext::parse(later).is_some_and(|context| !context.is_sampled));
    }
}
