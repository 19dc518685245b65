//! Character classes and word boundaries.

/// A set of bytes.
pub(crate) type Alphabet = fn(u8) -> bool;

pub(crate) fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(crate) fn is_upper_alnum(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub(crate) fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// Base64 for URLs: letters, digits, `_` and `-`.
pub(crate) fn is_base64url(byte: u8) -> bool {
    is_alnum(byte) || byte == b'_' || byte == b'-'
}

/// Base64 for URLs, in parts joined by dots.
pub(crate) fn is_base64url_or_dot(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

pub(crate) fn is_base64(byte: u8) -> bool {
    is_alnum(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// Characters of a token in an HTTP header (RFC 9110, `token68`).
pub(crate) fn is_token68(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Characters of names in most languages and settings: letters, digits, `_` and `-`.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    is_base64url(byte)
}

/// The first offset at or after `at` of a byte with a property. Blocks without one are skipped fast.
pub(crate) fn find_byte(text: &[u8], at: usize, is_match: impl Fn(u8) -> bool) -> Option<usize> {
    const BLOCK: usize = 64;
    let (blocks, rest) = text[at..].as_chunks::<BLOCK>();
    let block = blocks.iter().position(|block| block.iter().fold(false, |any, byte| any | is_match(*byte)));
    let from = at + block.unwrap_or(blocks.len()) * BLOCK;
    let tail = if block.is_some() { &text[from..] } else { rest };
    tail.iter().position(|byte| is_match(*byte)).map(|i| from + i)
}

/// Number of bytes of an alphabet from an offset on.
pub(crate) fn run_len(text: &[u8], at: usize, alphabet: Alphabet) -> usize {
    text[at..].iter().take_while(|byte| alphabet(**byte)).count()
}

/// Returns whether a word may begin at an offset: at the start of the text, or after a separator or an escape such as
/// `%3D`.
pub(crate) fn is_word_start(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|i| text[i]) else { return true };
    if !is_alnum(before) && before != b'_' {
        return true;
    }
    at >= 3 && text[at - 3] == b'%' && is_hex(text[at - 2]) && is_hex(before)
}
