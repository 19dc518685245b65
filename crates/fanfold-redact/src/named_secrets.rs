//! Values assigned to a name that indicates a secret: in settings, JSON, code, headers, flags and tables.

use std::ops::Range;

use crate::assignment::{Assignment, assigned_value, quoted_values};
use crate::char_class::{is_alnum, is_name_byte};
use crate::heuristics::{CharStats, is_code, is_passphrase, is_placeholder, seed_phrase_len};
use crate::lines::line_from;
use crate::secret_names::{SecretKind, is_test_verdict, secret_kind};
use crate::value::Value;

/// Maximum length of a passphrase and the rest of its line.
const MAX_PASSPHRASE_BYTES: usize = 200;

/// The secret assigned to a name that contains the trigger word at `word`.
pub(crate) fn named_secret_at(text: &[u8], word: Range<usize>) -> Option<(Range<usize>, &'static str)> {
    let ident = identifier(text, word);
    let kind = secret_kind(&text[ident.clone()])?;
    let (assignment, value) = assigned_value(text, &ident)?;
    let may_be_verdict = assignment == Assignment::Spaced && is_test_verdict(&text[ident]);
    if may_be_verdict && !is_password_after_verdict(&text[value.range.clone()], &value) {
        return None;
    }
    if kind == SecretKind::SeedPhrase {
        let start = value.range.start;
        let end = if value.is_quoted { value.range.end } else { start + line_from(text, start).len() };
        return seed_phrase_len(&text[start..end]).map(|n| (start..start + n, kind.label()));
    }
    if is_secret(&text[value.range.clone()], kind, assignment, &value) {
        return Some((value.range, kind.label()));
    }
    if kind == SecretKind::Password && !value.is_quoted {
        let line = line_from(text, value.range.start);
        let line = &line[..line.len().min(MAX_PASSPHRASE_BYTES)];
        let is_end = |byte: &u8| matches!(byte, b'|' | b'"' | b'\'' | b'`' | b'<' | b'#' | b'.');
        let line = line.split(is_end).next().unwrap_or_default().trim_ascii_end();
        if is_passphrase(line) {
            return Some((value.range.start..value.range.start + line.len(), kind.label()));
        }
    }
    // The value may be an argument of a call, or the default after another expression.
    let may_be_nested = !value.is_quoted && matches!(assignment, Assignment::Spaced | Assignment::Tight);
    let values = if may_be_nested { quoted_values(text, value.range.start) } else { Vec::new() };
    let is_nested = |value: &Value| is_secret(&text[value.range.clone()], kind, Assignment::Nested, value);
    values.into_iter().find(is_nested).map(|value| (value.range, kind.label()))
}

fn identifier(text: &[u8], word: Range<usize>) -> Range<usize> {
    const MAX_NAME_BYTES: usize = 64;
    let is_name = |byte: &&u8| is_name_byte(**byte);
    let start = word.start
        - text[word.start.saturating_sub(MAX_NAME_BYTES)..word.start]
            .iter()
            .rev()
            .take_while(is_name)
            .count();
    let start = start + text[start..word.end].iter().take_while(|byte| **byte == b'-').count();
    // A trigger word may end with the separator before its value.
    let end = if is_name_byte(text[word.end - 1]) { word.end } else { word.end - 1 };
    let rest = &text[end..text.len().min(end + MAX_NAME_BYTES)];
    start..end + rest.iter().take_while(is_name).count()
}

/// Returns whether a value after `pass` is not the name of a test, a file or a comment: nothing follows it, and it has
/// symbols or several digits.
fn is_password_after_verdict(bytes: &[u8], value: &Value) -> bool {
    let stats = CharStats::new(bytes);
    let is_test =
        bytes.contains(&b'/') || bytes[..bytes.len().min(4)].eq_ignore_ascii_case(b"test") || is_code(bytes);
    let is_unlike_name = stats.n_symbols >= 1 || (stats.n_digits >= 2 && stats.n_separators == 0);
    !is_test && (value.is_quoted || (value.ends_line && is_unlike_name))
}

fn is_secret(bytes: &[u8], kind: SecretKind, assignment: Assignment, value: &Value) -> bool {
    let min_len = if kind == SecretKind::Password { 5 } else { 8 };
    if bytes.len() < min_len || is_placeholder(bytes) || is_field_name(bytes) {
        return false;
    }
    if bytes.iter().any(u8::is_ascii_whitespace) {
        return kind == SecretKind::Password && is_passphrase(bytes);
    }
    let stats = CharStats::new(bytes);
    let looks_random = stats.is_random()
        || (stats.n_digits >= 2 && stats.is_password_like() && stats.n_separators <= 1 && bytes.len() >= 16);
    let is_password = kind == SecretKind::Password && stats.is_password_like();
    let is_letters = kind == SecretKind::Password && is_random_letters(bytes, stats);
    if value.is_quoted {
        let is_nested = matches!(assignment, Assignment::Nested | Assignment::Prose);
        let is_nested_password = stats.n_digits >= 1 && !is_format_name(bytes);
        return looks_random || is_letters || (is_password && (!is_nested || is_nested_password));
    }
    // A value with brackets may still be a password if it ends the line and has enough digits and symbols.
    if is_code(bytes) && !(is_password && value.ends_line && stats.n_digits >= 2 && stats.n_symbols >= 3) {
        return false;
    }
    // Variable names have letters, digits, `_` and dots, so for similar values the syntax decides.
    let is_like_name =
        bytes.iter().all(|byte| is_alnum(*byte) || matches!(byte, b'_' | b'.')) && !bytes[0].is_ascii_digit();
    match assignment {
        Assignment::Environment | Assignment::Positional => {
            (is_password && (stats.n_digits + stats.n_symbols >= 1))
                || looks_random
                || is_letters
                || (stats.n_digits >= 2 && stats.is_password_like())
                // In an environment, a number with such a name is a token.
                || (assignment == Assignment::Environment && kind == SecretKind::Token && stats.n_digits == bytes.len())
        }
        Assignment::Nested => looks_random,
        Assignment::Prose => looks_random || (kind == SecretKind::Password && is_password_in_prose(bytes)),
        Assignment::Spaced | Assignment::Tight if kind == SecretKind::Password => {
            let is_plain = stats.n_separators == 0 && (value.ends_line || stats.n_digits >= 2);
            let has_number = is_plain || (value.ends_line && stats.n_digits >= 2);
            stats.is_random()
                || is_letters
                || (is_password && (!is_like_name || (stats.n_digits >= 1 && has_number)))
        }
        Assignment::Spaced | Assignment::Tight => stats.is_random() && bytes.len() >= 12,
    }
}

/// Returns whether a value is the name of a field, such as `new_password1`.
fn is_field_name(bytes: &[u8]) -> bool {
    let base = bytes.strip_suffix(b"1").or(bytes.strip_suffix(b"2")).unwrap_or(bytes);
    let is_snake_case = base.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    is_snake_case && [&b"password"[..], b"passwd", b"pwd"].into_iter().any(|name| base.ends_with(name))
}

/// Returns whether a value consists of letters that alternate in case more often than in a name.
fn is_random_letters(bytes: &[u8], stats: CharStats) -> bool {
    bytes.len() >= 8 && stats.n_lower + stats.n_upper == bytes.len() && stats.is_mixed_case()
}

/// Returns whether a word in a sentence about a password is the password.
fn is_password_in_prose(bytes: &[u8]) -> bool {
    let is_punctuation = |byte: &u8| matches!(byte, b'.' | b'!' | b'?' | b':' | b';' | b',');
    let word = &bytes[..bytes.iter().rposition(|byte| !is_punctuation(byte)).map_or(0, |last| last + 1)];
    let stats = CharStats::new(word);
    let has_symbol = word.iter().any(|byte| b"@#$%^&*+=~!".contains(byte)) && !word.contains(&b'/');
    let is_address = word.contains(&b'@') && word.contains(&b'.');
    // `8chars` is a quantity.
    let is_quantity = word.first().is_some_and(u8::is_ascii_digit) && stats.n_changes == 1;
    let is_mixed = stats.is_password_like() && (stats.n_digits >= 1 || has_symbol) && !is_quantity;
    word.len() >= 5 && !is_format_name(word) && !is_address && (is_mixed || is_random_letters(word, stats))
}

/// Returns whether a value is the name of an encoding or a hash, such as `base64` and `sha256`.
fn is_format_name(value: &[u8]) -> bool {
    const FORMATS: &[&[u8]] =
        &[b"base", b"sha", b"md", b"utf", b"argon", b"pbkdf", b"aes", b"rsa", b"oauth", b"ipv"];
    let n_letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    FORMATS.contains(&value[..n_letters].to_ascii_lowercase().as_slice())
}
