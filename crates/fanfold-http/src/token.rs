//! The access token. Without one, a server serves only this machine.

use std::fmt;

use http::header::{AUTHORIZATION, HeaderMap};

/// The header that carries the token.
pub const TOKEN_HEADER: &str = "x-fanfold-token";

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

    /// Returns whether a request has the token, which is removed from its headers.
    pub fn take(&self, headers: &mut HeaderMap) -> bool {
        let own = headers.remove(TOKEN_HEADER);
        if own.is_some_and(|own| self.matches(own.as_bytes())) {
            return true;
        }
        // Some clients can set no header but this one, and send the credentials of the provider in `x-api-key`.
        let is_ours = headers
            .get(AUTHORIZATION)
            .and_then(|value| bearer(value.as_bytes()))
            .is_some_and(|token| self.matches(token));
        if is_ours {
            headers.remove(AUTHORIZATION);
        }
        is_ours
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The token after the scheme `Bearer`, which has no case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
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
        let opens = |all: &[(&str, &str)]| token.take(&mut headers(all));
        assert!(opens(&[(TOKEN_HEADER, "a-long-enough-token")]));
        assert!(opens(&[("authorization", "Bearer a-long-enough-token")]));
        assert!(opens(&[("authorization", "bearer  a-long-enough-token")]));
        for wrong in ["", "a-long-enough-toke", "a-long-enough-token2", "b-long-enough-token"] {
            assert!(!opens(&[(TOKEN_HEADER, wrong)]), "{wrong}");
            assert!(!opens(&[("authorization", &format!("Bearer {wrong}"))]), "{wrong}");
        }
        assert!(Token::new("short").is_none());
        assert!(!format!("{token:?}").contains("long"));
    }

    #[test]
    fn removes_the_token_and_keeps_other_credentials() {
        let token = Token::new("a-long-enough-token").unwrap();
        let mut all = headers(&[("authorization", "Bearer a-long-enough-token"), ("x-api-key", "key")]);
        assert!(token.take(&mut all));
        assert_eq!(all, headers(&[("x-api-key", "key")]));
        let mut all = headers(&[(TOKEN_HEADER, "a-long-enough-token"), ("authorization", "Bearer provider")]);
        assert!(token.take(&mut all));
        assert_eq!(all, headers(&[("authorization", "Bearer provider")]));
    }
}
