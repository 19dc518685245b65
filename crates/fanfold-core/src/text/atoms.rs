//! Atoms: strings that a model is unlikely to produce by chance, such as paths, names, ids, numbers and quoted strings.
//!
//! ```text
//! open src/lib/parser.rs and see "the max depth"  ->  src/lib/parser.rs, parser.rs, "the max depth"
//! ```

use std::ops::Range;

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

/// The hash of an atom; its lowest two bits are the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Atom(u64);

/// The kind of an atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomKind {
    /// An identifier.
    Name,
    /// A path or a URL.
    Path,
    /// A number or an id.
    Number,
    /// A string between quotes.
    Quoted,
}

impl Atom {
    fn new(text: &[u8], kind: AtomKind) -> Atom {
        Atom(xxh3_64(text) & !3 | kind as u64)
    }

    /// The kind of the atom.
    pub(crate) fn kind(self) -> AtomKind {
        match self.0 & 3 {
            0 => AtomKind::Name,
            1 => AtomKind::Path,
            2 => AtomKind::Number,
            _ => AtomKind::Quoted,
        }
    }
}

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERSCORE;
/// A byte that may join two parts of a name.
const JOINT: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = match i as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b'.' | b'/' | b'-' | b'@' | b'#' => JOINT,
            _ => 0,
        };
        i += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

fn is_word(byte: u8) -> bool {
    class(byte) & WORD != 0
}

/// Calls back with each atom of a line and its byte range, in order, including repeated atoms.
pub(crate) fn each_atom(line: &str, mut found: impl FnMut(Atom, Range<usize>)) {
    let bytes = line.as_bytes();
    let (mut at, mut quoted_to) = (0, 0);
    while at < bytes.len() {
        if is_word(bytes[at]) {
            at = name_at(bytes, at, &mut found);
            continue;
        }
        if matches!(bytes[at], b'"' | b'\'' | b'`') && at >= quoted_to {
            quoted_to = quoted_at(bytes, at, &mut found).map_or(quoted_to, |end| end + 1);
        }
        // The letter of an escaped line end does not belong to the next name.
        let is_escape = bytes[at] == b'\\' && matches!(bytes.get(at + 1), Some(b'n' | b't' | b'r'));
        at += 1 + usize::from(is_escape);
    }
}

/// The minimum length of a name in bytes.
const SHORTEST: usize = 4;

/// Reports the name, path or number that begins here, if it is an atom, and the last component of a path. Returns its
/// end.
fn name_at(bytes: &[u8], begin: usize, found: &mut impl FnMut(Atom, Range<usize>)) -> usize {
    // An absolute path includes its leading slash.
    let start = if begin > 0 && bytes[begin - 1] == b'/' { begin - 1 } else { begin };
    let mut end = begin;
    let mut component = begin;
    let mut n_hyphens = 0;
    let (mut has_slash, mut has_dot) = (start < begin, false);
    let mut classes = 0;
    // Nonzero if capitals are placed as in `fooBar` or `HTTPServer`.
    let mut humps = 0;
    let (mut last, mut last_but_one) = (0, 0);
    while end < bytes.len() {
        let byte = bytes[end];
        let class = class(byte);
        if class & WORD != 0 {
            classes |= class;
            humps |= (last & LOWER) << 1 & class | (class & LOWER) << 1 & last & last_but_one;
        } else if class == JOINT && end + 1 < bytes.len() && is_word(bytes[end + 1]) {
            has_dot |= byte == b'.';
            n_hyphens += u32::from(byte == b'-');
            if byte == b'/' {
                has_slash = true;
                component = end + 1;
            }
        } else {
            break;
        }
        (last_but_one, last) = (last, class);
        end += 1;
    }
    let (has_letter, has_digit) = (classes & (LOWER | UPPER) != 0, classes & DIGIT != 0);
    let has_inner_underscore = classes & UNDERSCORE != 0 && bytes[start + 1..end].contains(&b'_');
    let is_identifier = humps != 0 || has_inner_underscore;
    let is_special = is_identifier || has_digit || has_dot || has_slash || n_hyphens >= 2;
    if !is_special || end - start < SHORTEST {
        return end;
    }
    let kind = match (has_slash, has_letter && is_identifier || has_dot, has_digit) {
        (true, _, _) => AtomKind::Path,
        (_, true, _) if has_letter => AtomKind::Name,
        (_, _, true) => AtomKind::Number,
        _ => AtomKind::Name,
    };
    found(Atom::new(&bytes[start..end], kind), start..end);
    if has_slash && component > start && end - component >= SHORTEST {
        found(Atom::new(&bytes[component..end], AtomKind::Name), component..end);
    }
    end
}

/// Reports the string between the quote that opens here and the next one, if it is an atom. Returns the closing quote.
fn quoted_at(bytes: &[u8], open: usize, found: &mut impl FnMut(Atom, Range<usize>)) -> Option<usize> {
    const SHORTEST: usize = 5;
    const LONGEST: usize = 80;
    let quote = bytes[open];
    let is_word_at = |i: usize| bytes.get(i).is_some_and(|byte| is_word(*byte));
    if quote != b'`' && open > 0 && is_word_at(open - 1) {
        return None;
    }
    let inner = &bytes[open + 1..(open + 2 + LONGEST).min(bytes.len())];
    let len = memchr(quote, inner)?;
    let close = open + 1 + len;
    let mut text = &inner[..len];
    // The closing quote is escaped inside a string.
    if let [rest @ .., b'\\'] = text {
        text = rest;
    }
    let is_closed = quote == b'`' || !is_word_at(close + 1);
    let is_plain_word = text.iter().all(u8::is_ascii_lowercase);
    let is_tight =
        !text.first().is_some_and(|byte| matches!(byte, b' ' | b'-')) && text.last() != Some(&b' ');
    let is_string = text.len() >= SHORTEST && is_closed && !is_plain_word && is_tight;
    if is_string && text.iter().any(u8::is_ascii_alphanumeric) {
        found(Atom::new(text, AtomKind::Quoted), open + 1..open + 1 + text.len());
    }
    is_string.then_some(close)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, AtomKind)]) {
        let mut found = Vec::new();
        each_atom(text, |atom, range| found.push((&text[range], atom)));
        let expected: Vec<_> =
            expected.iter().map(|(atom, kind)| (*atom, Atom::new(atom.as_bytes(), *kind))).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_names_paths_and_ids_but_no_plain_words() {
        check(
            "open src/lib/parser.rs and see max_depth",
            &[
                ("src/lib/parser.rs", AtomKind::Path),
                ("parser.rs", AtomKind::Name),
                ("max_depth", AtomKind::Name),
            ],
        );
        check(
            "order W2378156 of fooBar, a well-known word",
            &[("W2378156", AtomKind::Number), ("fooBar", AtomKind::Name)],
        );
        check("see /etc/hosts.", &[("/etc/hosts", AtomKind::Path), ("hosts", AtomKind::Name)]);
        check("an HTTPServer, THE WORLD", &[("HTTPServer", AtomKind::Name)]);
        check("it is what it is", &[]);
    }

    #[test]
    fn escaped_line_ends_separate_names() {
        check(
            r"fooBar
max_depth",
            &[("fooBar", AtomKind::Name), ("max_depth", AtomKind::Name)],
        );
        check(&format!("{}|\\n/tmp/one", "-".repeat(90)), &[("/tmp/one", AtomKind::Path)]);
    }

    #[test]
    fn finds_quoted_strings() {
        check("say \"hello there\" twice", &[("hello there", AtomKind::Quoted)]);
        check("{\\\"key\\\": \\\"a value\\\"}", &[("a value", AtomKind::Quoted)]);
        check("don't and can't", &[]);
        check("`go test ./...`", &[("go test ./...", AtomKind::Quoted)]);
    }
}
