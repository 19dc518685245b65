//! Who may ask: anybody on this machine, and elsewhere who knows the token.

use std::fmt;

use http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};

/// The header with the token.
pub(crate) const HEADER: &str = "x-fanfold-token";

/// What a client must know.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The shortest that is taken.
    pub const LEAST: usize = 16;

    /// A token; none if it is too short to be one.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (text.len() >= Token::LEAST).then(|| Token(text.to_owned()))
    }

    /// Whether a text is the token. It takes as long for a near miss as for any other.
    fn is(&self, text: &[u8]) -> bool {
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

/// Whether a request has the token. It is taken out of the headers: what is ours goes no further.
pub(crate) fn has_token(token: &Token, headers: &mut HeaderMap) -> bool {
    let own = headers.remove(HEADER);
    if own.is_some_and(|own| token.is(own.as_bytes())) {
        return true;
    }
    // A client that can set no other header, and whose credentials for the provider are in another one.
    let bearer = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    let is_ours = bearer.is_some_and(|bearer| token.is(bearer));
    if is_ours {
        headers.remove(AUTHORIZATION);
    }
    is_ours
}

/// Whether a request to our own routes comes from a page that a browser was led to: its names are not this machine's.
pub(crate) fn is_from_a_page(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    [host, origin].into_iter().flatten().any(|name| !is_near(name))
}

fn is_near(authority: &str) -> bool {
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
    fn only_the_whole_token_opens() {
        let token = Token::new("a-long-enough-token\n").unwrap();
        let opens = |all: &[(&str, &str)]| has_token(&token, &mut headers(all));
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
    fn the_token_goes_no_further_and_other_credentials_stay() {
        let token = Token::new("a-long-enough-token").unwrap();
        let mut all = headers(&[("authorization", "Bearer a-long-enough-token"), ("x-api-key", "key")]);
        assert!(has_token(&token, &mut all));
        assert_eq!(all, headers(&[("x-api-key", "key")]));
        let mut all = headers(&[(HEADER, "a-long-enough-token"), ("authorization", "Bearer provider")]);
        assert!(has_token(&token, &mut all));
        assert_eq!(all, headers(&[("authorization", "Bearer provider")]));
    }

    #[test]
    fn pages_of_other_names_are_told_from_this_machine() {
        for near in ["localhost:1", "127.0.0.1:8377", "[::1]:8377", "127.3.2.1"] {
            assert!(!is_from_a_page(&headers(&[("host", near)])), "{near}");
        }
        assert!(is_from_a_page(&headers(&[("host", "evil.example:8377")])));
        assert!(is_from_a_page(&headers(&[("host", "localhost:1"), ("origin", "https://evil.example")])));
        assert!(!is_from_a_page(&headers(&[("host", "localhost:1"), ("origin", "http://localhost:3000")])));
        assert!(is_from_a_page(&headers(&[("host", "localhost:1"), ("origin", "null")])));
    }
}
