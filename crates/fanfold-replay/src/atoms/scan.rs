//! Finds atoms in a text, by hand: each kind is a run of characters with a condition at either end.
//!
//! URLs and paths go first and are taken out, so that their parts are not found again as something else.

use std::ops::Range;

use super::Class;
use crate::text::{at, before, is_word, n_chars, run_end};

/// Finds the places of one kind.
type Find = fn(&str) -> Vec<Range<usize>>;

/// Calls a function with each atom, by kind and in order.
pub(super) fn each_atom(text: &str, mut add: impl FnMut(&str, Class)) {
    let mut rest = text.to_owned();
    let paths: [(Find, Class); 4] =
        [(urls, Class::Url), (paths_with_line, Class::Path), (paths, Class::Path), (files, Class::Path)];
    for (find, class) in paths {
        let found = find(&rest);
        for range in &found {
            let atom = rest[range.clone()].trim_end_matches(['/', '.', ',', ';', ':']);
            if class == Class::Url || is_path(atom) {
                add(atom, class);
            }
        }
        rest = without(&rest, &found);
    }
    quoted(text, |atom| add(atom, Class::Quoted));
    for range in numbers(&rest).into_iter().chain(mixed(&rest)) {
        let atom = &rest[range];
        if is_id(atom) {
            add(atom, Class::Id);
        }
    }
    let found = dotted(&rest);
    for range in found.iter().filter(|range| n_chars(&rest[(*range).clone()]) >= 5) {
        add(&rest[range.clone()], Class::Ident);
    }
    rest = without(&rest, &found);
    identifiers(&rest, &mut add);
    hyphenated(&rest, &mut add);
}

/// The text with a blank in the place of each range.
fn without(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        out.push_str(&text[done..range.start]);
        out.push(' ');
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Whether what looks like a path is one, and not prose such as `input/output`.
fn is_path(atom: &str) -> bool {
    let is_long = n_chars(atom) >= 5 && atom.contains(|c: char| c.is_ascii_alphabetic());
    let n_slashes = atom.matches('/').count();
    let has_sign = atom.contains(|c: char| matches!(c, '.' | '_' | '-') || c.is_numeric());
    is_long && (n_slashes == 0 || n_slashes >= 2 || has_sign)
}

fn urls(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("http").map(|n| n + from) {
        from = start + 4;
        let scheme = &text[from..];
        let Some(rest) = scheme.strip_prefix("s://").or_else(|| scheme.strip_prefix("://")) else { continue };
        let begin = text.len() - rest.len();
        let is_in =
            |c: char| !c.is_whitespace() && !matches!(c, '\x1c'..='\x1f') && !"\"'`<>()[]{}|\\^".contains(c);
        let end = run_end(text, begin, is_in);
        if end > begin {
            found.push(start..end);
            from = end;
        }
    }
    found
}

/// `src/main.rs:12`.
fn paths_with_line(text: &str) -> Vec<Range<usize>> {
    let is_in = |c: char| is_word(c) || matches!(c, '.' | '/' | '-');
    let mut found: Vec<Range<usize>> = Vec::new();
    for colon in memchr::memchr_iter(b':', text.as_bytes()) {
        let end = run_end(text, colon + 1, |c| c.is_numeric());
        if end == colon + 1 || at(text, end).is_some_and(is_word) {
            continue;
        }
        let done = found.last().map_or(0, |last| last.end);
        if colon < done {
            continue;
        }
        let mut start = colon;
        while let Some(c) = before(text, start).filter(|c| is_in(*c) && start > done) {
            start -= c.len_utf8();
        }
        while start < colon && before(text, start).is_some_and(is_word) {
            start += at(text, start).map_or(1, char::len_utf8);
        }
        let Some(dot) = text[start..colon].rfind('.').map(|n| n + start) else { continue };
        let ending = &text[dot + 1..colon];
        let is_ending = ending.chars().all(is_word) && (1..=5).contains(&n_chars(ending));
        if dot > start && is_ending {
            found.push(start..end);
        }
    }
    found
}

fn is_in_segment(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '@' | '+' | '-')
}

fn paths(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains('/') {
        return found;
    }
    let mut i = 0;
    while let Some(c) = at(text, i) {
        let next = i + c.len_utf8();
        if !(is_in_segment(c) || matches!(c, '/' | '~')) {
            i = next;
            continue;
        }
        let prev = before(text, i);
        let is_free = prev.is_none_or(|prev| !(is_word(prev) || matches!(prev, '/' | '.' | '~' | '<' | '-')));
        let end = (is_free && prev != Some('@')).then(|| path_at(text, i)).flatten();
        let end = end.or_else(|| (is_free && c == '/').then(|| root_path_at(text, i)).flatten());
        match end {
            Some(end) => {
                found.push(i..end);
                i = end;
            }
            // Nothing starts inside a word.
            None if is_word(c) => i = run_end(text, next, is_word),
            None => i = next,
        }
    }
    found
}

/// The end of `~/a/b`, `../a/b`, `/a/b` or `a/b` at an offset.
fn path_at(text: &str, start: usize) -> Option<usize> {
    let rest = &text.as_bytes()[start..];
    let lengths: &[usize] = match rest {
        [b'~', ..] => &[1, 0],
        [b'.', b'.', ..] => &[2, 1, 0],
        [b'.', ..] => &[1, 0],
        _ => &[0],
    };
    for length in lengths {
        let from = start + length;
        let rooted = (text.as_bytes().get(from) == Some(&b'/')).then(|| segments(text, from + 1)).flatten();
        let end = rooted.or_else(|| segments(text, from));
        if end.is_some() {
            return end;
        }
    }
    None
}

/// The end of the last word in segments with slashes between them, of which there are at least two.
fn segments(text: &str, mut from: usize) -> Option<usize> {
    let mut end = None;
    for n in 0.. {
        let stop = run_end(text, from, is_in_segment);
        if stop == from {
            break;
        }
        if n > 0 {
            let tail = text[from..stop].trim_end_matches(|c| !is_word(c));
            end = if tail.is_empty() { end } else { Some(from + tail.len()) };
        }
        if text.as_bytes().get(stop) != Some(&b'/') {
            break;
        }
        from = stop + 1;
    }
    end
}

/// The end of `/abc` at an offset.
fn root_path_at(text: &str, start: usize) -> Option<usize> {
    let end = run_end(text, start + 1, is_in_segment);
    (n_chars(&text[start + 1..end]) >= 3).then_some(end)
}

/// Endings by which a name is a file's.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "c", "cc", "cfg", "cpp", "css", "csv", "docx", "go", "h", "hpp", "htm", "html", "ini", "ipynb", "java",
    "jpg", "js", "json", "jsonl", "jsx", "lock", "log", "md", "mod", "pdf", "php", "png", "proto", "py",
    "rb", "rs", "rst", "sh", "sql", "sum", "svg", "toml", "ts", "tsv", "tsx", "txt", "xlsx", "xml", "yaml",
    "yml",
];

fn files(text: &str) -> Vec<Range<usize>> {
    let is_in = |c: char| is_word(c) || matches!(c, '.' | '-');
    let mut found = Vec::new();
    let mut i = 0;
    while let Some(c) = at(text, i) {
        let stop = run_end(text, i, is_in);
        if stop == i {
            i += c.len_utf8();
            continue;
        }
        let prev = before(text, i);
        let is_start = c != '.' && prev.is_none_or(|prev| !is_in(prev) && prev != '/');
        let end = if is_start { file_end(text, i, stop) } else { None };
        if let Some(end) = end {
            found.push(i..end);
        }
        i = stop.max(end.unwrap_or(stop));
    }
    found
}

fn file_end(text: &str, start: usize, stop: usize) -> Option<usize> {
    let dots = text[start..stop].rmatch_indices('.').map(|(n, _)| n + start).filter(|dot| *dot > start);
    let end = dots.into_iter().find_map(|dot| {
        let end = run_end(text, dot + 1, is_word);
        ENDINGS.contains(&&text[dot + 1..end]).then_some(end)
    })?;
    let is_line = text.as_bytes().get(end) == Some(&b':');
    let digits = run_end(text, end + usize::from(is_line), |c| c.is_numeric());
    Some(if is_line && digits > end + 1 { digits } else { end })
}

/// Short texts in quotes that are no plain word.
fn quoted(text: &str, mut add: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut i = 0;
    while let Some(open) = memchr::memchr3(b'`', b'"', b'\'', &bytes[i..]).map(|n| n + i) {
        i = open + 1;
        let quote = char::from(bytes[open]);
        let is_word_like = quote != '`';
        if is_word_like && before(text, open).is_some_and(is_word) {
            continue;
        }
        let inside = text[open + 1..].char_indices().take(81).find(|(_, c)| *c == quote || *c == '\n');
        let Some((length, _)) = inside.filter(|(_, c)| *c == quote) else { continue };
        let close = open + 1 + length;
        let atom = &text[open + 1..close];
        if n_chars(atom) < 5 || (is_word_like && at(text, close + 1).is_some_and(is_word)) {
            continue;
        }
        i = close + 1;
        let says_something = atom.contains(|c: char| c.is_ascii_alphanumeric());
        let is_plain_word = atom.chars().all(char::is_alphabetic)
            && atom.contains(char::is_lowercase)
            && !atom.contains(char::is_uppercase);
        if says_something && !atom.starts_with('-') && atom.trim() == atom && !is_plain_word {
            add(atom);
        }
    }
}

/// Numbers of four or more digits: `#12345`, `1,234,567`, `1234.5`.
fn numbers(text: &str) -> Vec<Range<usize>> {
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
    // Where it may end if a word follows: before each comma, with the digits up to there.
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
fn mixed(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    crate::text::each_word(text, |start, word| {
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

fn is_id(atom: &str) -> bool {
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
fn dotted(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut i = 0;
    while let Some(c) = at(text, i) {
        if !is_word(c) {
            i += c.len_utf8();
            continue;
        }
        let first = run_end(text, i, is_word);
        let mut end = first;
        if is_first(c) && before(text, i) != Some('.') {
            while text.as_bytes().get(end) == Some(&b'.') && at(text, end + 1).is_some_and(is_first) {
                end = run_end(text, end + 1, is_word);
            }
        }
        if end > first {
            found.push(i..end);
        }
        i = end;
    }
    found
}

fn identifiers(text: &str, add: &mut impl FnMut(&str, Class)) {
    crate::text::each_word(text, |_, word| {
        if !word.starts_with(is_first) || n_chars(word) < 5 {
            return;
        }
        let is_error = word.starts_with(|c: char| c.is_ascii_uppercase())
            && ["Error", "Exception", "Warning", "Failure"]
                .iter()
                .any(|end| word.len() > end.len() && word.ends_with(end));
        if is_error {
            add(word, Class::Error);
        } else if word.trim_matches('_').contains('_') || is_camel(word) {
            add(word, Class::Ident);
        }
    });
}

/// `multi-word-name`, `utf-16`.
fn hyphenated(text: &str, add: &mut impl FnMut(&str, Class)) {
    let is_in = |c: char| is_word(c) || c == '-';
    let mut i = 0;
    while let Some(c) = at(text, i) {
        let end = run_end(text, i, is_in);
        if end == i {
            i += c.len_utf8();
            continue;
        }
        let run = &text[i..end];
        i = end;
        let is_name =
            c.is_ascii_alphanumeric() && run.contains('-') && !run.ends_with('-') && !run.contains("--");
        let is_special = |run: &str| {
            run.matches('-').nth(1).is_some()
                || run.contains(|c: char| c.is_numeric() || c == '_')
                || is_camel(run)
        };
        if is_name && n_chars(run) >= 5 && is_special(run) {
            add(run, Class::Ident);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let mut out = String::new();
        each_atom(text, |atom, class| out.push_str(&format!("{} {atom}\n", class.name())));
        expected.assert_eq(&out);
    }

    #[test]
    fn urls_and_paths_go_first() {
        check(
            "see https://a.b/c?d=1, src/main.rs:12 and ./a/b.txt or ~/x/y/ but not and/or; run.sh:3 /tmp",
            &expect![[r#"
                url https://a.b/c?d=1
                path src/main.rs:12
                path run.sh:3
                path ./a/b.txt
                path ~/x/y
            "#]],
        );
    }

    #[test]
    fn numbers_and_ids_but_no_years_and_measures() {
        check(
            "#12345 1,234,567 1234.5 2024 1500ms 10000 a1b2c3 #4f2e fooBar2 12345,6789a",
            &expect![[r#"
                id #12345
                id 1,234,567
                id 1234.5
                id 12345
                id a1b2c3
                id #4f2e
                id 6789a
                ident fooBar2
            "#]],
        );
    }

    #[test]
    fn names_and_what_is_quoted() {
        check(
            "`let x` \"plain\" 'two words' don't mod.func snake_case HTTPServer KeyError multi-part-name utf-16 two-fold",
            &expect![[r#"
                quoted let x
                quoted two words
                ident mod.func
                ident snake_case
                ident HTTPServer
                error KeyError
                ident multi-part-name
                ident utf-16
            "#]],
        );
    }
}
