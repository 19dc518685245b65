//! Delays that providers request in headers and messages.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The delay that the headers of a response request.
pub(crate) fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(|value| seconds(value, 0.001));
    let retry_after = || {
        let value = text("retry-after")?;
        let until = || httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok();
        seconds(value, 1.0).or_else(until)
    };
    millis.or_else(retry_after)
}

/// Value of the header `x-should-retry`.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The delay that an error message requests: `try again in 6m0s`, `retry in 34.07s`.
pub(crate) fn delay_in_message(message: &str) -> Option<Duration> {
    let rest = ["try again in ", "retry in ", "retry after ", "wait "].iter().find_map(|phrase| {
        let (_, rest) = message.split_once(phrase)?;
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
    })?;
    let mut total = Duration::ZERO;
    let mut rest = rest;
    loop {
        let n = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at(n);
        let unit = unit.trim_start();
        let (scale, length) = match unit {
            unit if unit.starts_with("ms") => (0.001, 2),
            unit if unit.starts_with('m') => (60.0, 1),
            unit if unit.starts_with('h') => (3600.0, 1),
            unit if unit.starts_with('s') => (1.0, 1),
            _ => break,
        };
        let Some(part) = seconds(number.trim_end_matches('.'), scale) else { break };
        total = total.saturating_add(part);
        rest = &unit[length..];
    }
    (!total.is_zero()).then_some(total)
}

fn seconds(text: &str, scale: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number * scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_in_messages() {
        let cases = [
            ("please try again in 6.5s. visit", Some(6500)),
            ("try again in 6m0s", Some(360_000)),
            ("try again in 523ms", Some(523)),
            ("please retry in 34.074824224s.", Some(34_074)),
            ("try again in 20 seconds", Some(20_000)),
            ("try again in 1h2m", Some(3_720_000)),
            ("try again in a while", None),
            ("try again later", None),
        ];
        for (message, expected) in cases {
            assert_eq!(delay_in_message(message).map(|delay| delay.as_millis()), expected, "{message}");
        }
    }

    #[test]
    fn delays_in_headers() {
        let delay = |name: &'static str, value: &str| {
            requested_delay(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(delay("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(delay("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(delay("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(delay("retry-after", "soon"), None);
        assert_eq!(delay("retry-after", "-3"), None);
        assert_eq!(delay("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), None);
        assert!(delay("retry-after", "Tue, 01 Jan 2999 00:00:00 GMT") > Some(Duration::from_secs(1 << 30)));
    }
}
