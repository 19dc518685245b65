//! Passwords in URLs: `scheme://user:password@host`.

use std::ops::Range;

use crate::heuristics::{CharStats, is_placeholder};

/// Maximum length of user name and password.
const MAX_USERINFO_BYTES: usize = 300;

/// The password in a URL. `at` is the offset of its `://`.
pub(crate) fn url_password_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = at + 3;
    let rest = &text[from..text.len().min(from + MAX_USERINFO_BYTES)];
    let is_end = |byte: u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'?' | b'\\')
    };
    let n = rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
    // A password may contain an `@`, a host may not.
    let host = rest[..n].iter().rposition(|byte| *byte == b'@')?;
    let user = &rest[..host];
    let (start, value) = match user.iter().position(|byte| *byte == b':') {
        Some(colon) => (colon + 1, &user[colon + 1..]),
        // A token instead of a user name.
        None if user.len() >= 20 && CharStats::new(user).is_random() => (0, user),
        None => return None,
    };
    if value.len() < 3 || is_placeholder(value) {
        return None;
    }
    let stats = CharStats::new(value);
    // Short passwords of letters alone are mostly examples.
    let is_secret = stats.is_password_like() || value.len() >= 8;
    is_secret.then_some(from + start..from + start + value.len())
}

/// The password in `name:password@tcp(host)`. `at` is the offset of the `@`.
pub(crate) fn dsn_password_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let from = at.saturating_sub(MAX_USERINFO_BYTES);
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'=' | b'>');
    let start = text[from..at].iter().rposition(is_end).map_or(from, |i| from + i + 1);
    let colon = start + text[start..at].iter().position(|byte| *byte == b':')?;
    let value = &text[colon + 1..at];
    (value.len() >= 3 && !is_placeholder(value)).then_some(colon + 1..at)
}

/// The password in `name/password@` at an offset.
pub(crate) fn oracle_password_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + MAX_USERINFO_BYTES)];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`');
    let n = rest.iter().position(is_end).unwrap_or(rest.len());
    let slash = rest[..n].iter().position(|byte| *byte == b'/')?;
    let host = rest[..n].iter().rposition(|byte| *byte == b'@').filter(|host| *host > slash)?;
    let value = &rest[slash + 1..host];
    (value.len() >= 3 && !is_placeholder(value)).then_some(at + slash + 1..at + host)
}
