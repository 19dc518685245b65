//! Which headers go on. Those of one connection stay with it, and ours are ours.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers that speak of one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What our own headers begin with.
pub(crate) const OURS: &str = "x-fanfold";

/// A client's headers as they go upstream; length and encoding are the sender's to say.
pub(crate) fn upstream(from: &HeaderMap) -> HeaderMap {
    let mut headers = of_the_ends(from);
    for name in [header::HOST, header::EXPECT, header::CONTENT_LENGTH] {
        headers.remove(name);
    }
    let ours: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OURS)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
    headers
}

/// Says in the headers of a request that it came through a proxy of this name, so that one that comes back is known.
pub(crate) fn sign(headers: &mut HeaderMap, name: &str) {
    if let Ok(value) = HeaderValue::try_from(format!("1.1 {name}")) {
        headers.append(header::VIA, value);
    }
}

/// Whether a request came through a proxy of this name.
pub(crate) fn is_signed(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|hop| hop.split_whitespace().nth(1) == Some(name))
}

/// A provider's headers as they go to the client.
pub(crate) fn client(from: &HeaderMap) -> HeaderMap {
    of_the_ends(from)
}

fn of_the_ends(from: &HeaderMap) -> HeaderMap {
    let mut headers = from.clone();
    let named: Vec<HeaderName> = from
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_came_through_is_known_again() {
        let mut headers = HeaderMap::new();
        assert!(!is_signed(&headers, "fanfold-1"));
        headers.insert(header::VIA, "1.1 a, 2 b (a comment)".parse().unwrap());
        sign(&mut headers, "fanfold-1");
        assert!(is_signed(&headers, "fanfold-1") && is_signed(&upstream(&headers), "a"));
        assert!(!is_signed(&headers, "fanfold-12"));
    }

    #[test]
    fn what_speaks_of_one_connection_stays_with_it() {
        let headers: HeaderMap = [
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("host", "127.0.0.1:8377"),
            ("content-length", "12"),
            ("authorization", "Bearer key"),
            ("anthropic-beta", "one"),
            ("x-fanfold-token", "secret"),
            ("x-fanfold-session", "a"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
        let mut names: Vec<_> = upstream(&headers).keys().map(ToString::to_string).collect();
        names.sort();
        assert_eq!(names, ["anthropic-beta", "authorization"]);
    }
}
