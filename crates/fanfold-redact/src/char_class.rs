//! What bytes are, and where words end.

/// Whether a byte belongs to a set.
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

/// Letters, digits, `_` and `-`: base64 for addresses.
pub(crate) fn is_base64url(byte: u8) -> bool {
    is_alnum(byte) || byte == b'_' || byte == b'-'
}

/// As `url64`, and dots between its parts.
pub(crate) fn is_base64url_or_dot(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

pub(crate) fn is_base64(byte: u8) -> bool {
    is_alnum(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// What an opaque token may be made of in a header.
pub(crate) fn is_token68(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Letters, digits, `_`: names in most languages; `-` in most settings.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    is_base64url(byte)
}

/// How many bytes from a place on are of an alphabet.
pub(crate) fn run_len(text: &[u8], at: usize, is_in: Alphabet) -> usize {
    text[at..].iter().take_while(|byte| is_in(**byte)).count()
}

/// Whether a word may begin here: nothing before it that it would go on from. In text that was escaped, a letter
/// after a backslash stands for a space.
pub(crate) fn is_word_start(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|i| text[i]) else { return true };
    if !is_alnum(before) && before != b'_' {
        return true;
    }
    let is_escaped = at >= 2 && text[at - 2] == b'\\' && matches!(before, b'n' | b't' | b'r');
    is_escaped || (at >= 3 && text[at - 3] == b'%' && is_hex(text[at - 2]) && is_hex(before))
}

/// The bytes from the beginning of the line to a place, at most so many.
pub(crate) fn line_before(text: &[u8], at: usize, most: usize) -> &[u8] {
    let from = at.saturating_sub(most);
    let start = text[from..at].iter().rposition(|byte| *byte == b'\n').map_or(from, |i| from + i + 1);
    &text[start..at]
}
