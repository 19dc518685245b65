//! PEM private keys: complete, or without their beginning or end.

use std::ops::Range;

use crate::char_class::{is_base64, run_len};
use crate::heuristics::CharStats;
use crate::lines::{after_common_prefix, line_before};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// Maximum length of a key.
const MAX_KEY_BYTES: usize = 20_000;
/// Maximum length of the text before a key in its line, such as a file name and a line number.
const MAX_PREFIX_BYTES: usize = 300;
/// Shorter words may be words of a sentence.
const MIN_WORD_BYTES: usize = 16;

/// The body of a private key whose first line begins at an offset.
pub(crate) fn private_key_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + MAX_KEY_BYTES)];
    let body = BEGIN.len() + title_len(rest.strip_prefix(BEGIN)?)?;
    let end = body + key_body_len(&rest[body..], line_before(text, at, MAX_PREFIX_BYTES));
    (end > body + MIN_WORD_BYTES).then_some(at + body..at + end)
}

/// The lines of a private key before its last line, which begins at an offset. The first lines may be missing.
pub(crate) fn private_key_tail_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    title_len(text[at..].strip_prefix(END)?)?;
    let prefix = line_before(text, at, MAX_PREFIX_BYTES);
    let last_line = at - prefix.len();
    let (mut next, mut start) = (last_line, None);
    while next > 0 && at - next < MAX_KEY_BYTES {
        let line = line_before(text, next - 1, MAX_KEY_BYTES);
        let from = next - 1 - line.len();
        let range = content_range(line, prefix);
        let content = &line[range.clone()];
        // The last line and the checksum of a PGP key are short.
        let may_be_short = next == last_line || content.len() == 5 || content.is_empty();
        if run_len(content, 0, is_base64) < content.len() || (content.len() < MIN_WORD_BYTES && !may_be_short)
        {
            break;
        }
        if content.len() >= MIN_WORD_BYTES && CharStats::new(content).is_random() {
            start = Some(from + range.start);
        }
        next = from;
    }
    start.map(|start| start..at)
}

/// The length of the rest of the first line of a private key, up to its last dash.
fn title_len(text: &[u8]) -> Option<usize> {
    const MAX_TITLE_BYTES: usize = 100;
    const DASHES: &[u8] = b"-----";
    let title = find(&text[..text.len().min(MAX_TITLE_BYTES)], DASHES)?;
    find(&text[..title], b"PRIVATE KEY")?;
    Some(title + DASHES.len())
}

/// The length of a key's lines up to its last line or truncation. `prefix` is the text before its first line.
fn key_body_len(text: &[u8], prefix: &[u8]) -> usize {
    let mut end = 0;
    while end < text.len() {
        let rest = &text[end..];
        let n = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let range = content_range(&rest[..n], prefix);
        let (content, start) = (&rest[range.clone()], end + range.start);
        if let Some(last) = find(content, END) {
            return start + last;
        }
        let name = content.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        let is_header = name > 0 && content[name..].starts_with(b": ") && content.len() < 80;
        // In a truncated key, other text may follow on the last line.
        let n_key = key_words_len(content);
        if n_key < content.len() && !is_header {
            return if n_key > 0 { start + n_key } else { end };
        }
        end += n + 1;
    }
    end.min(text.len())
}

/// The length of the words of a key at the start of a line. A key on a single line has spaces in place of line breaks.
fn key_words_len(line: &[u8]) -> usize {
    let mut end = run_len(line, 0, is_base64);
    if end < line.len() && end < MIN_WORD_BYTES {
        return 0;
    }
    while line.get(end) == Some(&b' ') {
        let n = run_len(line, end + 1, is_base64);
        let is_whole = matches!(line.get(end + 1 + n), None | Some(b' ' | b'"' | b'\''));
        if n < MIN_WORD_BYTES || !is_whole {
            break;
        }
        end += 1 + n;
    }
    end
}

/// The part of a line after the prefix of a listing, a search or a diff, and without quotes around it.
fn content_range(line: &[u8], prefix: &[u8]) -> Range<usize> {
    let rest = after_common_prefix(line, prefix).trim_ascii_start();
    let n_digits = run_len(rest, 0, |byte| byte.is_ascii_digit());
    let numbered = &rest[n_digits..];
    let marked = numbered.trim_ascii_start();
    let mark = [&b"|"[..], "\u{2192}".as_bytes(), b":"].into_iter().find(|mark| marked.starts_with(mark));
    let content = match (rest, mark) {
        _ if n_digits > 0 && numbered.starts_with(b"\t") => marked,
        (_, Some(mark)) if n_digits > 0 => &marked[mark.len()..],
        ([b'-' | b'+', next, ..], _) if *next != b'-' => &rest[1..],
        _ => rest,
    };
    let is_mark = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b'\\');
    let start = line.len() - content.len() + content.iter().take_while(|byte| is_mark(byte)).count();
    let end = line.iter().rposition(|byte| !is_mark(byte)).map_or(start, |last| last + 1);
    start..end.max(start)
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}
