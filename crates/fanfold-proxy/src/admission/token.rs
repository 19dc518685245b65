//! The access token. Without one, the proxy serves only this machine.

use std::fmt;

use http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};

/// The header that carries the token.
pub(crate) const HEADER: &str = "x-fanfold-token";

/// A secret that clients must send.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The minimum length of a token.
    pub const MIN_LENGTH: usize = 16;

    /// Parses a token. Returns `None` if it is too short.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (text.len() >= Token::MIN_LENGTH).then(|| Token(text.to_owned()))
    }

    /// Compares in constant time.
    fn matches(&self, text: &[u8]) -> bool {
        let ours = self.0.as_bytes();
        let differing = ours
            .iter()
            .enumerate()
            .fold(0u8, |differing, (i, byte)| differing | (byte ^ text.get(i).copied().unwrap_or_default()));
        std::hint::black_box(differing) == 0 && ours.len() == text.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Returns whether a request has the token, which is removed from its headers.
pub(crate) fn take_token(token: &Token, headers: &mut HeaderMap) -> bool {
    let own = headers.remove(HEADER);
    if own.is_some_and(|own| token.matches(own.as_bytes())) {
        return true;
    }
    // Some clients can set no header but this one, and send the credentials of the provider in `x-api-key`.
    let bearer = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    let is_ours = bearer.is_some_and(|bearer| token.matches(bearer));
    if is_ours {
        headers.remove(AUTHORIZATION);
    }
    is_ours
}

/// Returns whether a request comes from a web page: its `host` or `origin` is not this machine.
pub(crate) fn is_from_web_page(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    [host, origin].into_iter().flatten().any(|name| !is_local_authority(name))
}

fn is_local_authority(authority: &str) -> bool {
    let name = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let token = Token::new("a-long-enough-token\n").unwrap();
        let opens = |all: &[(&str, &str)]| take_token(&token, &mut headers(all));
        assert!(opens(&[(HEADER, "a-long-enough-token")]));
        assert!(opens(&[("authorization", "Bearer a-long-enough-token")]));
        for wrong in ["", "a-long-enough-toke", "a-long-enough-token2", "b-long-enough-token"] {
            assert!(!opens(&[(HEADER, wrong)]), "{wrong}");
            assert!(!opens(&[("authorization", &format!("Bearer {wrong}"))]), "{wrong}");
        }
        assert!(Token::new("short").is_none());
        assert!(!format!("{token:?}").contains("long"));
    }

    #[test]
    fn removes_the_token_and_keeps_other_credentials() {
        let token = Token::new("a-long-enough-token").unwrap();
        let mut all = headers(&[("authorization", "Bearer a-long-enough-token"), ("x-api-key", "key")]);
        assert!(take_token(&token, &mut all));
        assert_eq!(all, headers(&[("x-api-key", "key")]));
        let mut all = headers(&[(HEADER, "a-long-enough-token"), ("authorization", "Bearer provider")]);
        assert!(take_token(&token, &mut all));
        assert_eq!(all, headers(&[("authorization", "Bearer provider")]));
    }

    #[test]
    fn distinguishes_web_pages_from_this_machine() {
        for near in ["localhost:1", "127.0.0.1:8377", "[::1]:8377", "127.3.2.1"] {
            assert!(!is_from_web_page(&headers(&[("host", near)])), "{near}");
        }
        assert!(is_from_web_page(&headers(&[("host", "evil.example:8377")])));
        assert!(is_from_web_page(&headers(&[("host", "localhost:1"), ("origin", "https://evil.example")])));
        assert!(!is_from_web_page(&headers(&[("host", "localhost:1"), ("origin", "http://localhost:3000")])));
        assert!(is_from_web_page(&headers(&[("host", "localhost:1"), ("origin", "null")])));
    }
}
