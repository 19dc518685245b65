//! Removes hop-by-hop headers, and from requests also `x-fanfold*` headers.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers that concern one connection only.
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

/// Prefix of the headers of the proxy.
const OWN_PREFIX: &str = "x-fanfold";

/// Returns the request headers to send to the provider. The HTTP library sets `content-length` and `transfer-encoding`.
pub(crate) fn to_upstream(from: &HeaderMap) -> HeaderMap {
    let mut headers = end_to_end(from);
    for name in [header::HOST, header::EXPECT, header::CONTENT_LENGTH] {
        headers.remove(name);
    }
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OWN_PREFIX)).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    headers
}

/// Appends this proxy to `via`, so that `has_via` recognises a request that comes back. Does nothing if `name` is not a
/// valid header value.
pub(crate) fn add_via(headers: &mut HeaderMap, name: &str) {
    if let Ok(value) = HeaderValue::try_from(format!("1.1 {name}")) {
        headers.append(header::VIA, value);
    }
}

/// Returns whether the `via` header names the proxy `name`.
pub(crate) fn has_via(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|hop| hop.split_whitespace().nth(1) == Some(name))
}

/// Returns the response headers to send to the client.
pub(crate) fn to_client(from: &HeaderMap) -> HeaderMap {
    end_to_end(from)
}

fn end_to_end(from: &HeaderMap) -> HeaderMap {
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
    fn has_via_matches_the_whole_name() {
        let mut headers = HeaderMap::new();
        assert!(!has_via(&headers, "fanfold-1"));
        headers.insert(header::VIA, "1.1 a, 2 b (a comment)".parse().unwrap());
        add_via(&mut headers, "fanfold-1");
        assert!(has_via(&headers, "fanfold-1") && has_via(&to_upstream(&headers), "a"));
        assert!(!has_via(&headers, "fanfold-12"));
    }

    #[test]
    fn to_upstream_removes_connection_and_proxy_headers() {
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
        let mut names: Vec<_> = to_upstream(&headers).keys().map(ToString::to_string).collect();
        names.sort();
        assert_eq!(names, ["anthropic-beta", "authorization"]);
    }
}
