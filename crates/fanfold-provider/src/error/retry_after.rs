//! Delays that providers request in headers and messages.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The delay that the headers of a response request.
pub(crate) fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(|value| seconds(value, 0.001));
    let retry_after = || {
        let value = text("retry-after")?;
        seconds(value, 1.0).or_else(|| parse_http_date(value)?.duration_since(SystemTime::now()).ok())
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

/// Parses an HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn parse_http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split([' ', ',', ':', '-']).filter(|part| !part.is_empty()).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as u64 + 1;
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number < 10_000);
    let (day, year) = (number(day)?, number(year)?);
    // Days since 1970 in a calendar whose years begin in March.
    let years = if month <= 2 { year.checked_sub(1)? } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
    let days = (365 * years + years / 4 - years / 100 + years / 400 + day_of_year).checked_sub(719_468)?;
    let time = days * 86_400 + number(hour)? * 3600 + number(minute)? * 60 + number(second)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(time))
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
        assert!(delay("retry-after", "Fri, 01 Jan 2999 00:00:00 GMT") > Some(Duration::from_secs(1 << 30)));
        let known = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(known.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 784_111_777);
        let leap = parse_http_date("Thu, 29 Feb 2024 00:00:00 GMT").unwrap();
        assert_eq!(leap.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 1_709_164_800);
    }
}
