//! Finds URLs, paths and names of files.

use std::ops::Range;

use crate::content::text::{at, before, is_word, n_chars, run_end, run_start};

/// True for paths; false for prose such as `input/output`.
pub(super) fn is_path(atom: &str) -> bool {
    let is_long = n_chars(atom) >= 5 && atom.contains(|c: char| c.is_ascii_alphabetic());
    let n_slashes = atom.matches('/').count();
    let has_sign = atom.contains(|c: char| matches!(c, '.' | '_' | '-') || c.is_numeric());
    is_long && (n_slashes == 0 || n_slashes >= 2 || has_sign)
}

/// `https://host/path`.
pub(super) fn urls(text: &str) -> Vec<Range<usize>> {
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
pub(super) fn paths_with_line(text: &str) -> Vec<Range<usize>> {
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
        let mut start = run_start(text, colon, is_in).max(done);
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

/// `a/b`, `../a/b`, `~/a`, `/abc`.
pub(super) fn paths(text: &str) -> Vec<Range<usize>> {
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
            None => i = after_no_path(text, i, c),
        }
    }
    found
}

/// Where to continue if no path starts at an offset.
fn after_no_path(text: &str, start: usize, c: char) -> usize {
    let stop = run_end(text, start, is_in_segment);
    if stop > start && text.as_bytes().get(stop) != Some(&b'/') {
        // A run without a slash after it contains no path.
        return stop;
    }
    // Nothing starts inside a word.
    let next = start + c.len_utf8();
    if is_word(c) { run_end(text, next, is_word) } else { next }
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

/// The end of the last word in two or more segments separated by slashes.
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

/// Extensions of file names.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "c", "cc", "cfg", "cpp", "css", "csv", "docx", "go", "h", "hpp", "htm", "html", "ini", "ipynb", "java",
    "jpg", "js", "json", "jsonl", "jsx", "lock", "log", "md", "mod", "pdf", "php", "png", "proto", "py",
    "rb", "rs", "rst", "sh", "sql", "sum", "svg", "toml", "ts", "tsv", "tsx", "txt", "xlsx", "xml", "yaml",
    "yml",
];

/// `name.rs`, `name.rs:12`.
pub(super) fn files(text: &str) -> Vec<Range<usize>> {
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
