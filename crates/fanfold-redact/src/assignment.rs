//! Finds the value that is assigned to a name.

use std::ops::Range;

use crate::char_class::is_name_byte;
use crate::lines::{after_common_prefix, line_before, line_from};
use crate::value::{Value, quote_at, skip_spaces, value_at};

/// The syntax that connects a value with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// `NAME=value` with the name in capitals, as in the environment.
    Environment,
    /// `name=value`
    Tight,
    /// `name = value`, `name: value`
    Spaced,
    /// A value at a fixed position: `<name>value</name>`, `| name | value |`, `--name value`.
    Positional,
    /// A value within an expression after the name: `setName("value")`, `name = given("NAME") or "value"`.
    Nested,
    /// A value in a sentence: `the name is value`, `the name for the server was value`.
    Prose,
}

/// The value that is assigned to a name.
pub(crate) fn assigned_value(text: &[u8], ident: &Range<usize>) -> Option<(Assignment, Value)> {
    let mut at = ident.end;
    let quote = quote_at(text, at);
    at += quote.map_or(0, <[u8]>::len);
    if text.get(at) == Some(&b']') && quote.is_some() {
        at += 1;
    }
    let spaced = skip_spaces(text, at);
    let next = *text.get(spaced)?;
    let after = text.get(spaced + 1).copied().unwrap_or_default();
    match next {
        b'=' if matches!(after, b'=' | b'~') => None,
        b'=' => {
            let from = spaced + if after == b'>' { 2 } else { 1 };
            let is_joined = spaced == ident.end && !matches!(text.get(from), Some(b' '));
            let assignment = match (is_joined, is_upper_case(&text[ident.clone()])) {
                (true, true) => Assignment::Environment,
                (true, false) => Assignment::Tight,
                _ => Assignment::Spaced,
            };
            Some((assignment, value_at(text, from)?))
        }
        b':' if after == b':' => None,
        b':' => {
            let from = spaced + if after == b'=' { 2 } else { 1 };
            let from = after_type(text, from).unwrap_or(from);
            Some((Assignment::Spaced, value_at(text, from)?))
        }
        b'>' if is_element(text, ident.start) => Some((Assignment::Positional, value_at(text, spaced + 1)?)),
        b'|' if line_before(text, ident.start, 200).contains(&b'|') => {
            Some((Assignment::Positional, value_at(text, spaced + 1)?))
        }
        // An argument or a list item after the name: name("value"), ("name", "value").
        b',' | b'(' if quote.is_some() || next == b'(' => {
            let value = value_at(text, spaced + 1)?;
            value.is_quoted.then_some((Assignment::Nested, value))
        }
        // A block that contains the value: variable "name" { default = "value" }.
        b'{' if quote.is_some() => {
            let rest = &text[spaced..text.len().min(spaced + 300)];
            let default = find(rest, b"default")?;
            let equals = find(&rest[default..], b"=")?;
            Some((Assignment::Nested, value_at(text, spaced + default + equals + 1)?))
        }
        b'\n' | b'\r' => name_value_list(text, ident.start, spaced).map(|value| (Assignment::Spaced, value)),
        _ if spaced > at => separated_value(text, ident, spaced),
        _ => None,
    }
}

/// A value separated from its name by spaces, and perhaps by a word or two.
fn separated_value(text: &[u8], ident: &Range<usize>, at: usize) -> Option<(Assignment, Value)> {
    let before = line_before(text, ident.start, 200);
    let rest = &text[at..text.len().min(at + 64)];
    let is_flag = before.ends_with(b"--") || before.ends_with(b" -");
    let is_docker = before.ends_with(b"ENV ") || before.ends_with(b"ARG ");
    let is_sql = rest.starts_with(b"'") && is_upper_case(&text[ident.clone()]);
    let starts_line = before.trim_ascii_end().last().is_none_or(|byte| !byte.is_ascii_alphabetic());
    let is_netrc = starts_line || find(before, b"login ").is_some();
    let near = &text[ident.start.saturating_sub(160)..ident.start];
    let is_netrc = is_netrc && (find(near, b"login ").is_some() || find(near, b"machine ").is_some());
    if is_flag || is_docker || is_sql || is_netrc {
        return Some((Assignment::Positional, value_at(text, at)?));
    }
    // A command with a flag for the value: NAME --body value.
    if rest.starts_with(b"-") {
        let n = rest.iter().position(|byte| matches!(byte, b' ' | b'='))?;
        return Some((Assignment::Positional, value_at(text, at + n + 1)?));
    }
    if let Some(n) = linking_words_len(before, rest) {
        return Some((Assignment::Prose, value_at(text, at + n)?));
    }
    // A type between the name and its value: `password string = "…"`.
    let n = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
    let equals = skip_spaces(text, at + n);
    let is_set = n > 0 && text.get(equals) == Some(&b'=') && text.get(equals + 1) != Some(&b'=');
    if is_set {
        let value = value_at(text, equals + 1).filter(|value| value.is_quoted)?;
        return Some((Assignment::Spaced, value));
    }
    if [&b" config "[..], b" configure "].into_iter().any(|word| find(before, word).is_some()) {
        return Some((Assignment::Positional, value_at(text, at)?));
    }
    // A command that takes name and value: NAME value.
    let is_command =
        [&b" set "[..], b" add ", b" put ", b" secret"].into_iter().any(|word| find(before, word).is_some());
    is_command.then(|| value_at(text, at)).flatten().map(|value| (Assignment::Nested, value))
}

/// The length of the words between a name and its value in a sentence: `is`, `for the server was`. It is 0 after
/// `with NAME`.
fn linking_words_len(before: &[u8], rest: &[u8]) -> Option<usize> {
    const LINKING_WORDS: &[&[u8]] = &[b"is ", b"to ", b"was ", b"is: ", b"to: "];
    const MAX_WORDS: usize = 5;
    let mut at = 0;
    let has_purpose = [&b"for "[..], b"of ", b"on "].into_iter().any(|word| rest.starts_with(word));
    for _ in 0..if has_purpose { MAX_WORDS } else { 1 } {
        if let Some(word) = LINKING_WORDS.iter().find(|word| rest[at..].starts_with(word)) {
            return Some(at + word.len());
        }
        let n = rest[at..].iter().take_while(|byte| !matches!(byte, b' ' | b'\n' | b'.' | b'"')).count();
        if rest.get(at + n) != Some(&b' ') {
            break;
        }
        at += n + 1;
    }
    (before.ends_with(b"with ") || before.ends_with(b"using ")).then_some(0)
}

/// Maximum length of an expression with a value in it.
const MAX_EXPRESSION_BYTES: usize = 1_000;

/// The quoted values on the rest of a line, the last one first. If the line ends with an open bracket, those on the next
/// line.
pub(crate) fn quoted_values(text: &[u8], from: usize) -> Vec<Value> {
    let line = line_from(text, from);
    let mut at = from;
    let mut end = from + line.len();
    if line.trim_ascii_end().ends_with(b"(") {
        at = text[end..].iter().position(|byte| *byte == b'\n').map_or(end, |n| end + n + 1);
        end = at + line_from(text, at).len();
    }
    let mut values = Vec::new();
    end = end.min(at + MAX_EXPRESSION_BYTES);
    while at < end {
        let value = quote_at(text, at).and_then(|_| value_at(text, at));
        at = value.as_ref().map_or(at, |value| value.range.end) + 1;
        values.extend(value);
    }
    values.reverse();
    values
}

fn is_upper_case(ident: &[u8]) -> bool {
    ident.iter().all(|byte| !byte.is_ascii_lowercase())
}

/// The offset after a type annotation and its equals sign: `: &str = `.
fn after_type(text: &[u8], at: usize) -> Option<usize> {
    const MAX_TYPE_BYTES: usize = 48;
    let rest = &text[at..text.len().min(at + MAX_TYPE_BYTES)];
    let is_type_byte = |byte: &u8| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b' ' | b'&' | b'<' | b'>' | b'[' | b']' | b'|' | b'?' | b'_' | b'.')
    };
    let n = rest.iter().take_while(|byte| is_type_byte(byte)).count();
    let is_equals = rest.get(n) == Some(&b'=') && rest.get(n + 1) != Some(&b'=');
    (is_equals && rest[..n].ends_with(b" ")).then_some(at + n + 1)
}

/// Returns whether the name is an XML element: `<name>`, `<prefix:name>`.
fn is_element(text: &[u8], at: usize) -> bool {
    let before = line_before(text, at, 40);
    let n = before.iter().rev().take_while(|byte| is_name_byte(**byte) || **byte == b':').count();
    before[..before.len() - n].ends_with(b"<")
}

/// The value in a list of name-value pairs: `- name: X`, and on the next line `value: y`. `at` is the end of the line.
fn name_value_list(text: &[u8], ident: usize, at: usize) -> Option<Value> {
    let next = at + text[at..].iter().take(2).position(|byte| *byte == b'\n')? + 1;
    let line = line_from(text, next);
    let rest = after_common_prefix(line, line_before(text, ident, 200)).trim_ascii_start();
    let start = next + line.len() - rest.len();
    let quote = quote_at(text, start).map_or(0, <[u8]>::len);
    let word = start + quote;
    let is_value = text[word..].len() > 6 && text[word..word + 5].eq_ignore_ascii_case(b"value");
    let after = word + 5 + quote;
    (is_value && text.get(after) == Some(&b':')).then(|| value_at(text, after + 1)).flatten()
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}
