//! Removes control characters, colours and other sequences for terminals, and invisible characters.

use std::ops::Range;

use super::DecodedText;
use crate::char_class::find_byte;

const ESCAPE: char = '\u{1b}';
/// The longest sequence that ends with a terminator, such as a link.
const MAX_STRING_BYTES: usize = 4_096;

/// A text without control sequences.
pub(crate) struct StrippedText {
    /// The text as a terminal shows it, so that a colour within a word does not split it.
    pub(crate) joined: DecodedText,
    /// The text with a space in place of each sequence, so that a colour between two words separates them.
    pub(crate) spaced: DecodedText,
    /// The contents of sequences that contain text, such as the address of a link.
    pub(crate) contents: Vec<Range<usize>>,
}

/// A control sequence or an invisible character.
struct Sequence {
    len: usize,
    /// The text inside of it, as an offset and a length.
    content: Option<(usize, usize)>,
}

/// The text without its control sequences. `None` if it contains none.
pub(crate) fn strip_control_sequences(text: &str) -> Option<StrippedText> {
    let bytes = text.as_bytes();
    let (mut joined, mut spaced, mut contents) = (DecodedText::default(), DecodedText::default(), Vec::new());
    let (mut copied, mut at) = (0, 0);
    while let Some(start) = find_byte(bytes, at, may_start_sequence) {
        at = start;
        let Some(sequence) = sequence_at(text, at) else {
            at += 1;
            continue;
        };
        let end = at + sequence.len;
        joined.copy(text, copied..at);
        spaced.copy(text, copied..at);
        spaced.push(' ', at..end);
        if bytes[at] == b'\x08' {
            joined.erase_last();
        }
        contents.extend(sequence.content.map(|(from, len)| at + from..at + from + len));
        (at, copied) = (end, end);
    }
    if copied == 0 {
        return None;
    }
    joined.copy(text, copied..text.len());
    spaced.copy(text, copied..text.len());
    Some(StrippedText { joined, spaced, contents })
}

fn may_start_sequence(byte: u8) -> bool {
    // The last three begin a C1 control, a soft hyphen, an invisible character or a byte order mark.
    matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f | 0xc2 | 0xe2 | 0xef)
}

fn sequence_at(text: &str, at: usize) -> Option<Sequence> {
    let c = text[at..].chars().next()?;
    let (kind, len) = match c {
        ESCAPE => (text[at + 1..].chars().next().filter(char::is_ascii), 2),
        // A C1 control means the same as an escape and a letter.
        '\u{80}'..='\u{9f}' => (char::from_u32(u32::from(c) - 0x40), 2),
        _ => (None, c.len_utf8()),
    };
    let rest = text.as_bytes().get(at + len..).unwrap_or_default();
    let sequence = match kind {
        Some('[') => parameters_len(rest).map(|n| Sequence { len: len + n, content: None }),
        Some(']' | 'P' | 'X' | '^' | '_') => string_len(rest)
            .map(|(n, terminator)| Sequence { len: len + n + terminator, content: Some((len, n)) }),
        Some('(' | ')' | '#' | '%' | ' ') if !rest.is_empty() && rest[0].is_ascii() => {
            Some(Sequence { len: len + 1, content: None })
        }
        _ => None,
    };
    let is_removed = c.is_control() || is_invisible(c);
    sequence.or_else(|| is_removed.then(|| Sequence { len: c.len_utf8(), content: None }))
}

/// The length of the parameters and the last byte of a control sequence such as a colour.
fn parameters_len(text: &[u8]) -> Option<usize> {
    let n = text.iter().take(64).take_while(|byte| matches!(byte, b' '..=b'?')).count();
    matches!(text.get(n), Some(b'@'..=b'~')).then_some(n + 1)
}

/// The lengths of a string that a sequence contains, and of its terminator.
fn string_len(text: &[u8]) -> Option<(usize, usize)> {
    let rest = &text[..text.len().min(MAX_STRING_BYTES)];
    let n = rest.iter().position(|byte| matches!(byte, b'\x07' | b'\x1b' | b'\n' | 0xc2))?;
    match &rest[n..] {
        [b'\x07', ..] => Some((n, 1)),
        [b'\x1b', b'\\', ..] | [0xc2, 0x9c, ..] => Some((n, 2)),
        _ => None,
    }
}

/// Returns whether a character has no width: soft hyphens, joiners, marks of direction and byte order.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
