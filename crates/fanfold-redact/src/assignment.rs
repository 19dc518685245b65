//! How a value stands beside its name, and where.

use std::ops::Range;

use crate::char_class::{is_name_byte, line_before};
use crate::value::{Value, line_from, quote_at, skip_spaces, value_at};

/// How a value stands beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// `NAME=value`, the name in capitals: an environment.
    Environment,
    /// `name=value`
    Tight,
    /// `name = value`, `name: value`
    Spaced,
    /// `<name>value</name>`, `| name | value |`, `--name value` and where else that is the way.
    Positional,
    /// Somewhere behind the name: `setName("value")`, `name is value`, `name = given("NAME") or "value"`.
    Nested,
}

/// The value beside a name.
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
            let way = match (is_joined, is_upper_case(&text[ident.clone()])) {
                (true, true) => Assignment::Environment,
                (true, false) => Assignment::Tight,
                _ => Assignment::Spaced,
            };
            Some((way, value_at(text, from)?))
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
        // A list, or what a name is set by: ("name", "value"), name("value").
        b',' | b'(' if quote.is_some() || next == b'(' => {
            let value = value_at(text, spaced + 1)?;
            value.is_quoted.then_some((Assignment::Nested, value))
        }
        // A block with the value inside: variable "name" { default = "value" }.
        b'{' if quote.is_some() => {
            let rest = &text[spaced..text.len().min(spaced + 300)];
            let default = find(rest, b"default")?;
            let equals = find(&rest[default..], b"=")?;
            Some((Assignment::Nested, value_at(text, spaced + default + equals + 1)?))
        }
        b'\n' | b'\r' => name_value_list(text, spaced).map(|value| (Assignment::Spaced, value)),
        _ if spaced > at => separated_value(text, ident, spaced),
        _ => None,
    }
}

/// A value with only spaces, or a word or two, between it and its name.
fn separated_value(text: &[u8], ident: &Range<usize>, at: usize) -> Option<(Assignment, Value)> {
    let before = line_before(text, ident.start, 200);
    let rest = &text[at..text.len().min(at + 64)];
    let is_flag = before.ends_with(b"--") || before.ends_with(b" -");
    let is_docker = before.ends_with(b"ENV ") || before.ends_with(b"ARG ");
    let is_sql = rest.starts_with(b"'") && is_upper_case(&text[ident.clone()]);
    let is_netrc = before.trim_ascii().is_empty() || find(before, b"login ").is_some();
    let near = &text[ident.start.saturating_sub(160)..ident.start];
    let is_netrc = is_netrc && (find(near, b"login ").is_some() || find(near, b"machine ").is_some());
    if is_flag || is_docker || is_sql || is_netrc {
        return Some((Assignment::Positional, value_at(text, at)?));
    }
    // A command that sets it: NAME --body value.
    if rest.starts_with(b"-") {
        let n = rest.iter().position(|byte| matches!(byte, b' ' | b'='))?;
        return Some((Assignment::Positional, value_at(text, at + n + 1)?));
    }
    let said =
        [&b"is "[..], b"to ", b"was ", b"is: ", b"to: "].into_iter().find(|word| rest.starts_with(word));
    if let Some(word) = said {
        return Some((Assignment::Nested, value_at(text, at + word.len())?));
    }
    // A type between the name and its value: `password string = "…"`.
    let n = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
    let equals = skip_spaces(text, at + n);
    let is_set = n > 0 && text.get(equals) == Some(&b'=') && text.get(equals + 1) != Some(&b'=');
    if is_set {
        return value_at(text, equals + 1).map(|value| (Assignment::Spaced, value));
    }
    // A command that sets it: NAME value, where the value looks like nothing else.
    let is_command =
        [&b" set "[..], b" add ", b" put ", b" secret"].into_iter().any(|word| find(before, word).is_some());
    is_command.then(|| value_at(text, at)).flatten().map(|value| (Assignment::Nested, value))
}

/// A quoted value further on in what a name is given: on the same line, or on the next if that one opens a bracket.
pub(crate) fn last_quoted_value(text: &[u8], from: usize) -> Option<Value> {
    let line = line_from(text, from);
    let is_open = line.trim_ascii_end().ends_with(b"(");
    let mut at = from;
    let end = if is_open {
        at = from + line.len() + 1;
        let next = line_from(text, at.min(text.len()));
        at + next.len()
    } else {
        from + line.len()
    };
    let mut last = None;
    while at < end {
        if quote_at(text, at).is_some() {
            let value = value_at(text, at)?;
            at = value.range.end + 1;
            last = Some(value);
        } else {
            at += 1;
        }
    }
    last
}

fn is_upper_case(ident: &[u8]) -> bool {
    ident.iter().all(|byte| !byte.is_ascii_lowercase())
}

/// Behind the type of a name that is given a value: `: &str = `.
fn after_type(text: &[u8], at: usize) -> Option<usize> {
    const LONGEST: usize = 48;
    let rest = &text[at..text.len().min(at + LONGEST)];
    let is_of_type = |byte: &u8| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b' ' | b'&' | b'<' | b'>' | b'[' | b']' | b'|' | b'?' | b'_' | b'.')
    };
    let n = rest.iter().take_while(|byte| is_of_type(byte)).count();
    let is_equals = rest.get(n) == Some(&b'=') && rest.get(n + 1) != Some(&b'=');
    (is_equals && rest[..n].ends_with(b" ")).then_some(at + n + 1)
}

/// `<name>` and `<prefix:name>`.
fn is_element(text: &[u8], at: usize) -> bool {
    let before = line_before(text, at, 40);
    let n = before.iter().rev().take_while(|byte| is_name_byte(**byte) || **byte == b':').count();
    before[..before.len() - n].ends_with(b"<")
}

/// The value of a list of names and values: `- name: X`, and on the next line `value: y`.
fn name_value_list(text: &[u8], at: usize) -> Option<Value> {
    let rest = &text[at..text.len().min(at + 120)];
    let n = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let quote = quote_at(text, at + n).map_or(0, <[u8]>::len);
    let word = at + n + quote;
    let is_value = text[word..].len() > 6 && text[word..word + 5].eq_ignore_ascii_case(b"value");
    let behind = word + 5 + quote;
    (is_value && text.get(behind) == Some(&b':')).then(|| value_at(text, behind + 1)).flatten()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
