//! The line around an offset, and the prefixes that listings and searches put before lines.

use crate::char_class::run_len;

/// The number of bytes of a line that are searched. A quoted value whose closing quote is further away is not found.
const MAX_LINE_BYTES: usize = 8_000;

/// The rest of a line, up to `MAX_LINE_BYTES`.
pub(crate) fn line_from(text: &[u8], at: usize) -> &[u8] {
    let rest = &text[at..text.len().min(at + MAX_LINE_BYTES)];
    let n = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let line = &rest[..n];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text between the beginning of the line and an offset, at most `max_bytes`.
pub(crate) fn line_before(text: &[u8], at: usize, max_bytes: usize) -> &[u8] {
    let from = at.saturating_sub(max_bytes);
    let start = text[from..at].iter().rposition(|byte| *byte == b'\n').map_or(from, |i| from + i + 1);
    &text[start..at]
}

/// The rest of a line after the prefix that it has in common with another one. Numbers and the separators of a search
/// may differ: `key.pem:1:` and `key.pem-12-`.
pub(crate) fn after_common_prefix<'a>(line: &'a [u8], other: &[u8]) -> &'a [u8] {
    const MAX_STARTS: usize = 8;
    // The lines may begin within a quoted text.
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let starts = (0..other.len()).filter(|at| *at == 0 || is_quote(&other[at - 1])).take(MAX_STARTS);
    starts.map(|at| skip_common(line, &other[at..])).min_by_key(|rest| rest.len()).unwrap_or(line)
}

fn skip_common<'a>(line: &'a [u8], other: &[u8]) -> &'a [u8] {
    let (mut line, mut other) = (line.trim_ascii_start(), other.trim_ascii_start());
    while let (Some((byte, after)), Some((wanted, rest))) = (line.split_first(), other.split_first()) {
        let is_separator = |byte: &u8| matches!(byte, b':' | b'-');
        let is_digit = |byte: u8| byte.is_ascii_digit();
        if is_digit(*byte) && is_digit(*wanted) {
            line = &line[run_len(line, 0, is_digit)..];
            other = &other[run_len(other, 0, is_digit)..];
        } else if byte.is_ascii_whitespace() && wanted.is_ascii_whitespace() {
            (line, other) = (line.trim_ascii_start(), other.trim_ascii_start());
        } else if byte == wanted || (is_separator(byte) && is_separator(wanted)) {
            (line, other) = (after, rest);
        } else {
            break;
        }
    }
    line
}
