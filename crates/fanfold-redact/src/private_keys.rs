//! PEM private keys, complete or truncated.

use std::ops::Range;

use crate::char_class::is_base64;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// Maximum length of a key.
const MAX_KEY_BYTES: usize = 20_000;

/// The body of a private key whose first line begins at an offset.
pub(crate) fn private_key_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + MAX_KEY_BYTES)];
    if !rest.starts_with(BEGIN) {
        return None;
    }
    let title_end = BEGIN.len() + find(&rest[BEGIN.len()..rest.len().min(100)], b"-----")?;
    let title = &rest[BEGIN.len()..title_end];
    find(title, b"PRIVATE KEY")?;
    let body = title_end + b"-----".len();
    let end = body + key_body_len(&rest[body..]);
    (end > body + 16).then_some(at + body..at + end)
}

/// The length of a key's lines up to its last line or truncation. Line breaks may be escaped.
fn key_body_len(text: &[u8]) -> usize {
    let mut end = 0;
    while end < text.len() {
        let rest = &text[end..];
        let n = line_len(rest);
        let content = strip_line_prefix(&rest[..n]);
        if let Some(last) = find(content, END) {
            return end + (n - content.len()) + last;
        }
        let name = content.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        let is_header = name > 0 && content[name..].starts_with(b": ") && content.len() < 80;
        // In a truncated key, other text may follow on the last line.
        let n_key = content.iter().take_while(|byte| is_base64(**byte)).count();
        if n_key < content.len() && !is_header {
            let is_cut = n_key >= 16;
            return if is_cut { end + (n - content.len()) + n_key } else { end };
        }
        end += n + line_break_len(&rest[n..]);
    }
    end.min(text.len())
}

/// The length of the first line.
fn line_len(text: &[u8]) -> usize {
    let is_break = |i: &usize| {
        matches!(text[*i], b'\n' | b'\r')
            || text[*i..].starts_with(b"\\n")
            || text[*i..].starts_with(b"\\r")
            || text[*i..].starts_with(b"\\\\n")
    };
    (0..text.len()).find(is_break).unwrap_or(text.len())
}

/// The length of a line break, which may be escaped once or twice.
fn line_break_len(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b'\n' | b'\r' | b'\\')).count()
        + usize::from(text.first() == Some(&b'\\'))
}

/// A line without the prefix of a listing or a diff.
fn strip_line_prefix(line: &[u8]) -> &[u8] {
    let trimmed = line.trim_ascii();
    let n_digits = trimmed.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if n_digits > 0 && trimmed.get(n_digits) == Some(&b'\t') {
        return trimmed[n_digits..].trim_ascii();
    }
    let rest = trimmed[n_digits..].trim_ascii_start();
    for mark in [&b"|"[..], "\u{2192}".as_bytes(), b":"] {
        if let Some(rest) = rest.strip_prefix(mark).filter(|_| n_digits > 0) {
            return rest.trim_ascii();
        }
    }
    let is_diff = matches!(trimmed, [b'-' | b'+', next, ..] if *next != b'-');
    if is_diff { trimmed[1..].trim_ascii() } else { trimmed }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}
