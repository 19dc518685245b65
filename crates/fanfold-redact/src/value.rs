//! Finds the extent of an assigned value, such as the secret in `password = "…"`.

use std::ops::Range;

use crate::lines::line_from;

/// The extent of an assigned value in a text.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) range: Range<usize>,
    pub(crate) is_quoted: bool,
    /// True if only white space follows on the line.
    pub(crate) ends_line: bool,
}

/// The opening quote that starts at an offset: up to seven backslashes and a quote character, or `&quot;`. The closing
/// quote has the same bytes.
pub(crate) fn quote_at(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = &text[at..text.len().min(at + 8)];
    if rest.starts_with(b"&quot;") {
        return Some(b"&quot;");
    }
    let n_slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let quote = rest.get(n_slashes)?;
    matches!(quote, b'"' | b'\'' | b'`').then(|| &rest[..=n_slashes])
}

/// The first offset at or after `at` without a space or tab.
pub(crate) fn skip_spaces(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The value that starts at an offset, after any spaces, tabs and string prefix.
pub(crate) fn value_at(text: &[u8], at: usize) -> Option<Value> {
    let mut from = skip_spaces(text, at);
    // Skip the prefix of a string literal.
    let is_letter = text.get(from).is_some_and(|byte| matches!(byte, b'b' | b'r' | b'f' | b'u' | b'@'));
    if is_letter && quote_at(text, from + 1).is_some() {
        from += 1;
    }
    if let Some(quote) = quote_at(text, from) {
        let start = from + quote.len();
        let line = line_from(text, start);
        let n = closing_quote(line, quote)?;
        let ends_line = is_end_of_line(&line[n + quote.len()..]);
        return Some(Value { range: start..start + n, is_quoted: true, ends_line });
    }
    let line = line_from(text, from);
    let n = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
    let n = unquoted_len(&line[..n]);
    let ends_line = is_end_of_line(&line[n..]);
    (n > 0).then_some(Value { range: from..from + n, is_quoted: false, ends_line })
}

/// The offset of the closing quote. In SQL and YAML, a doubled single quote is a quote in the text.
fn closing_quote(line: &[u8], quote: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < line.len() {
        let is_quote = line[at..].starts_with(quote) && !is_escaped(line, at, quote);
        let is_doubled = quote == b"'"
            && line.get(at + 1) == Some(&b'\'')
            && line.get(at + 2).is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'\'');
        match (is_quote, is_doubled) {
            (true, false) => return Some(at),
            (true, true) => at += 2,
            (false, _) => at += 1,
        }
    }
    None
}

/// Returns whether nothing but spaces, or the end of a string and of its JSON text, follows.
fn is_end_of_line(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let is_closing = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\\' | b'}' | b']');
    rest.is_empty() || (matches!(rest[0], b'"' | b'\\') && rest.iter().all(is_closing))
}

/// Returns whether a one-byte quote follows an odd number of backslashes.
fn is_escaped(line: &[u8], at: usize, quote: &[u8]) -> bool {
    quote.len() == 1 && line[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The length of an unquoted value. It ends before a quote, an angle bracket, an escape, or a separator that ends the
/// word or precedes an assignment; then trailing separators and unopened closing brackets are dropped.
fn unquoted_len(word: &[u8]) -> usize {
    let mut end = word.len();
    for (i, byte) in word.iter().enumerate() {
        let rest = &word[i + 1..];
        let is_end = match byte {
            b'"' | b'`' | b'<' | b'>' | b'\'' => true,
            // An escaped line break, tab, quote or backslash.
            b'\\' => matches!(rest.first(), Some(b'n' | b'r' | b't' | b'"' | b'\\')),
            // Punctuation of Chinese and Japanese.
            0xe3 => matches!(rest.first(), Some(0x80)),
            0xef => matches!(rest.first(), Some(0xbc)),
            // A separator at the end of the word or before another assignment.
            b'&' | b';' | b',' | b'|' => rest.is_empty() || starts_assignment(rest),
            _ => false,
        };
        if is_end {
            end = i;
            break;
        }
    }
    let mut value = &word[..end];
    while let Some((last, before)) = value.split_last() {
        let contains = |open: u8| before.contains(&open);
        let is_closing = match last {
            b')' => !contains(b'('),
            b']' => !contains(b'['),
            b'}' => !contains(b'{'),
            b',' | b';' => true,
            _ => false,
        };
        if !is_closing {
            break;
        }
        value = before;
    }
    value.len()
}

fn starts_assignment(text: &[u8]) -> bool {
    let n = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    n > 0 && matches!(text.get(n), Some(b'=' | b':'))
}
