//! Decodes the escapes of JSON, programming languages and shells, one level at a time.

use super::DecodedText;
use crate::char_class::find_byte;

/// The lines with escapes and those next to them, with the escapes decoded. `None` if the text contains no escape.
///
/// ```text
/// {"command": "echo \u2192ghp_… \"a\\nb\""}  ->  {"command": "echo →ghp_… "a\nb""}
/// ```
///
/// Escapes are decoded outside of quotes as well, so that a part of a JSON text is decoded like the whole.
pub(crate) fn unescape(text: &str) -> Option<DecodedText> {
    let bytes = text.as_bytes();
    let mut decoded = DecodedText::default();
    // The end of the copied text, of the line of the last escape, and of the line after it.
    let (mut copied, mut line_end, mut block_end) = (0, 0, 0);
    let mut at = 0;
    while let Some(escape) = find_byte(bytes, at, |byte| byte == b'\\') {
        let Some((c, len)) = escape_at(bytes, escape) else {
            at = escape + 1;
            continue;
        };
        if escape >= block_end {
            decoded.copy(text, copied..block_end);
            copied = line_start(bytes, line_start(bytes, escape, block_end).saturating_sub(1), block_end);
            if copied > block_end {
                // The lines between two blocks.
                decoded.push('\n', block_end..copied);
            }
        }
        decoded.copy(text, copied..escape);
        decoded.push(c, escape..escape + len);
        at = escape + len;
        copied = at;
        if escape >= line_end {
            line_end = end_of_line(bytes, at);
            block_end = end_of_line(bytes, line_end);
        }
    }
    if copied == 0 {
        return None;
    }
    decoded.copy(text, copied..block_end);
    Some(decoded)
}

/// The start of the line that contains an offset, or `min` if the line starts before.
fn line_start(text: &[u8], at: usize, min: usize) -> usize {
    let at = at.max(min);
    text[min..at].iter().rposition(|byte| *byte == b'\n').map_or(min, |i| min + i + 1)
}

/// The offset after the next line break.
fn end_of_line(text: &[u8], at: usize) -> usize {
    find_byte(text, at, |byte| byte == b'\n').map_or(text.len(), |i| i + 1)
}

/// The character and the length of the escape that begins with the backslash at an offset.
pub(crate) fn escape_at(text: &[u8], at: usize) -> Option<(char, usize)> {
    let c = match *text.get(at + 1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        // A backspace in JSON, a word boundary in a regular expression.
        b'b' | b'f' => ' ',
        quote @ (b'"' | b'\'' | b'\\' | b'/') => char::from(quote),
        b'e' if matches!(text.get(at + 2), Some(b'[' | b']')) => '\u{1b}',
        b'x' => return Some((char::from_u32(number(text, at + 2, 2, 16)?)?, 4)),
        b'u' => return unicode_at(text, at),
        b'U' => return Some((char::from_u32(number(text, at + 2, 8, 16)?)?, 10)),
        b'0'..=b'3' => return Some((char::from_u32(number(text, at + 1, 3, 8)?)?, 4)),
        _ => return None,
    };
    Some((c, 2))
}

/// A character that is written as `\u2192`, `\ud83d\udd11` or `\u{1f511}`.
fn unicode_at(text: &[u8], at: usize) -> Option<(char, usize)> {
    if text.get(at + 2) == Some(&b'{') {
        let n = text[at + 3..].iter().take(7).position(|byte| *byte == b'}')?;
        return Some((char::from_u32(number(text, at + 3, n, 16)?)?, n + 4));
    }
    let first = number(text, at + 2, 4, 16)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 6));
    }
    let second = text[at + 6..].starts_with(b"\\u").then(|| number(text, at + 8, 4, 16)).flatten();
    let pair = [first as u16, second.unwrap_or_default() as u16];
    match char::decode_utf16(pair).next() {
        Some(Ok(c)) => Some((c, 12)),
        // Half of a pair.
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

/// A number with exactly `n` digits.
fn number(text: &[u8], at: usize, n: usize, radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(at..at + n)?).ok()?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
}
