//! Finds numbers, ids, identifiers and names of errors.

use std::ops::Range;

use super::AtomClass;
use crate::content::text::{at, before, each_word, is_word, n_chars, run_end, run_start};

/// Numbers of four or more digits: `#12345`, `1,234,567`, `1234.5`.
pub(super) fn numbers(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        if !bytes[i].is_ascii_digit() {
            i += 1;
            continue;
        }
        let is_free = |at: usize| before(text, at).is_none_or(|c| !is_word(c) && c != '.');
        let is_numbered = i > 0 && bytes[i - 1] == b'#' && is_free(i - 1);
        let done = found.last().map_or(0, |last: &Range<usize>| last.end);
        let start = if is_numbered && i > done { i - 1 } else { i };
        let end = if is_numbered || is_free(i) { number_end(text, i) } else { None };
        if let Some(end) = end {
            found.push(start..end);
        }
        i = end.unwrap_or_else(|| i + bytes[i..].iter().take_while(|byte| byte.is_ascii_digit()).count());
    }
    found
}

fn number_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut n_digits = 0;
    let mut end = start;
    // Possible ends if a word follows: each comma, with the number of digits before it.
    let mut commas = Vec::new();
    loop {
        if is_digit(end) {
            end += 1;
            n_digits += 1;
        } else if n_digits > 0 && bytes.get(end) == Some(&b',') && is_digit(end + 1) {
            commas.push((end, n_digits));
            end += 1;
        } else {
            break;
        }
    }
    let is_end = |end: usize| !at(text, end).is_some_and(is_word);
    if n_digits >= 4 {
        if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
            let fraction = end + 1 + bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            return Some(if is_end(fraction) { fraction } else { end });
        }
        if is_end(end) {
            return Some(end);
        }
    }
    commas.into_iter().rev().find(|(_, n_digits)| *n_digits >= 4).map(|(comma, _)| comma)
}

/// Letters and digits mixed: `a1b2c3`, `#4f2e`.
pub(super) fn mixed(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    each_word(text, |start, word| {
        let bytes = word.as_bytes();
        let is_mixed = bytes.len() >= 4
            && bytes.iter().all(u8::is_ascii_alphanumeric)
            && bytes.iter().any(u8::is_ascii_digit)
            && bytes.iter().any(u8::is_ascii_alphabetic);
        if is_mixed {
            let is_numbered =
                before(text, start) == Some('#') && !before(text, start - 1).is_some_and(is_word);
            found.push(start - usize::from(is_numbered)..start + word.len());
        }
    });
    found
}

/// True unless it is a year, a measure, a round number or an identifier.
pub(super) fn is_id(atom: &str) -> bool {
    let bytes = atom.as_bytes();
    let is_year =
        bytes.len() == 4 && (atom.starts_with("19") || atom.starts_with("20")) && is_digits(&bytes[2..]);
    let is_round = bytes.iter().all(|byte| *byte == b'0')
        || (bytes.len() >= 4 && bytes[0] == b'1' && bytes[1..].iter().all(|byte| *byte == b'0'));
    let is_identifier = is_camel(atom) && bytes.iter().any(u8::is_ascii_lowercase);
    !is_year && !is_round && !is_identifier && !is_measure(atom)
}

fn is_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
}

/// `120px`, `1500ms`.
fn is_measure(atom: &str) -> bool {
    #[rustfmt::skip]
    const UNITS: &[&str] = &[
        "px", "ms", "kb", "mb", "gb", "tb", "s", "k", "m", "h", "d", "th", "st", "nd", "rd", "em", "rem",
        "x", "pt", "min", "sec", "hz",
    ];
    let unit = atom.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < atom.len() && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known))
}

/// `fooBar`, `HTTPServer`.
fn is_camel(atom: &str) -> bool {
    let bytes = atom.as_bytes();
    let is_hump = |pair: &[u8]| {
        (pair[0].is_ascii_lowercase() || pair[0].is_ascii_digit()) && pair[1].is_ascii_uppercase()
    };
    let is_crest = |three: &[u8]| {
        three[0].is_ascii_uppercase() && three[1].is_ascii_uppercase() && three[2].is_ascii_lowercase()
    };
    bytes.windows(2).any(is_hump) || bytes.windows(3).any(is_crest)
}

fn is_first(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// `module.name.other`.
pub(super) fn dotted(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for dot in memchr::memchr_iter(b'.', text.as_bytes()) {
        let start = run_start(text, dot, is_word);
        let is_name = at(text, start).is_some_and(is_first) && before(text, start) != Some('.');
        let mut end = dot;
        while is_name && text.as_bytes().get(end) == Some(&b'.') && at(text, end + 1).is_some_and(is_first) {
            end = run_end(text, end + 1, is_word);
        }
        if end > dot {
            found.push(start..end);
        }
    }
    found
}

/// `snake_case`, `camelCase`, `KeyError`.
pub(super) fn identifiers(text: &str, add: &mut impl FnMut(&str, AtomClass)) {
    each_word(text, |_, word| {
        if !word.starts_with(is_first) || n_chars(word) < 5 {
            return;
        }
        let is_error = word.starts_with(|c: char| c.is_ascii_uppercase())
            && ["Error", "Exception", "Warning", "Failure"]
                .iter()
                .any(|end| word.len() > end.len() && word.ends_with(end));
        if is_error {
            add(word, AtomClass::Error);
        } else if word.trim_matches('_').contains('_') || is_camel(word) {
            add(word, AtomClass::Ident);
        }
    });
}

/// `multi-word-name`, `utf-16`.
pub(super) fn hyphenated(text: &str, add: &mut impl FnMut(&str, AtomClass)) {
    let is_in = |c: char| is_word(c) || c == '-';
    let mut done = 0;
    for hyphen in memchr::memchr_iter(b'-', text.as_bytes()) {
        if hyphen < done {
            continue;
        }
        done = run_end(text, hyphen, is_in);
        let run = &text[run_start(text, hyphen, is_in)..done];
        let is_name = run.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !run.ends_with('-')
            && !run.contains("--");
        let is_special = |run: &str| {
            run.matches('-').nth(1).is_some()
                || run.contains(|c: char| c.is_numeric() || c == '_')
                || is_camel(run)
        };
        if is_name && n_chars(run) >= 5 && is_special(run) {
            add(run, AtomClass::Ident);
        }
    }
}
