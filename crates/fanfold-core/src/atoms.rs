//! Atoms: strings that a model can hardly produce by chance. Paths, names, ids, numbers and quoted strings.
//!
//! ```text
//! open src/lib/parser.rs and see "the max depth"  ->  src/lib/parser.rs, parser.rs, "the max depth"
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

/// An atom by its hash; the lowest bits tell what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Atom(u64);

/// What an atom is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// An identifier.
    Name,
    /// A path or an address.
    Path,
    /// A number or an id.
    Number,
    /// What stood between quotes.
    Quoted,
}

impl Atom {
    fn of(text: &[u8], look: Look) -> Atom {
        Atom(xxh3_64(text) & !3 | look as u64)
    }

    /// A hash of which all bits are as good: the lowest of its own tell how it looks.
    pub(crate) fn hash(self) -> u64 {
        mixed(self.0)
    }

    /// What it is.
    pub(crate) fn look(self) -> Look {
        match self.0 & 3 {
            0 => Look::Name,
            1 => Look::Path,
            2 => Look::Number,
            _ => Look::Quoted,
        }
    }
}

/// Atoms are hashes already.
#[derive(Default, Clone, Copy)]
pub(crate) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = mixed(hash);
    }
}

fn mixed(hash: u64) -> u64 {
    (hash >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(crate) type AtomMap<T> = HashMap<Atom, T, BuildHasherDefault<Same>>;

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERSCORE;
const JOINT: u8 = 16;
const QUOTE: u8 = 32;
const ESCAPE: u8 = 64;

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
            b'"' | b'\'' | b'`' => QUOTE,
            b'\\' => ESCAPE,
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

/// Calls back with each atom of a line and its text, in order, repeats included.
pub(crate) fn each_atom(line: &str, mut found: impl FnMut(Atom, &[u8])) {
    let bytes = line.as_bytes();
    let mut i = 0;
    let mut quoted_to = 0;
    while i < bytes.len() {
        let class = class(bytes[i]);
        if class & WORD != 0 {
            i = name_at(bytes, i, &mut found);
            continue;
        }
        if class == QUOTE && i >= quoted_to {
            quoted_to = quoted_at(bytes, i, &mut found).map_or(quoted_to, |end| end + 1);
        }
        // A line end or a tab that was escaped is no part of the name behind it.
        let is_escape = class == ESCAPE && matches!(bytes.get(i + 1), Some(b'n' | b't' | b'r'));
        i += 1 + usize::from(is_escape);
    }
}

/// Reads the name, path or number that begins here. Gives where it ends.
fn name_at(bytes: &[u8], begin: usize, found: &mut impl FnMut(Atom, &[u8])) -> usize {
    // Most words are plain.
    let plain_end =
        begin + bytes[begin..].iter().position(|byte| class(*byte) != LOWER).unwrap_or(bytes.len() - begin);
    let is_bounded = bytes.get(plain_end).is_none_or(|byte| class(*byte) & (WORD | JOINT) == 0);
    if is_bounded && (begin == 0 || bytes[begin - 1] != b'/') {
        return plain_end;
    }
    // An absolute path begins with its slash.
    let start = if begin > 0 && bytes[begin - 1] == b'/' { begin - 1 } else { begin };
    let mut i = begin;
    let mut piece = begin;
    let mut hyphens = 0;
    let (mut has_slash, mut has_dot) = (start < begin, false);
    // All that was seen, and whether capitals stand where a name would have them: `fooBar`, `HTTPServer`.
    let (mut seen, mut humps) = (0, 0);
    let (mut before, mut before_that) = (0, 0);
    while i < bytes.len() {
        let byte = bytes[i];
        let class = class(byte);
        if class & WORD != 0 {
            seen |= class;
            humps |= (before & LOWER) << 1 & class | (class & LOWER) << 1 & before & before_that;
        } else if class == JOINT && i + 1 < bytes.len() && is_word(bytes[i + 1]) {
            has_dot |= byte == b'.';
            hyphens += u32::from(byte == b'-');
            if byte == b'/' {
                has_slash = true;
                piece = i + 1;
            }
        } else {
            break;
        }
        (before_that, before) = (before, class);
        i += 1;
    }
    let (has_digit, has_letter) = (seen & DIGIT != 0, seen & (LOWER | UPPER) != 0);
    let is_odd = humps != 0 || (seen & UNDERSCORE != 0 && bytes[start + 1..i].contains(&b'_'));
    let is_atom = (is_odd || has_digit || has_dot || has_slash || hyphens >= 2) && i - start >= 4;
    if is_atom {
        let look = match (has_slash, has_letter && is_odd || has_dot, has_digit) {
            (true, _, _) => Look::Path,
            (_, true, _) if has_letter => Look::Name,
            (_, _, true) => Look::Number,
            _ => Look::Name,
        };
        found(Atom::of(&bytes[start..i], look), &bytes[start..i]);
        if has_slash && piece > start && i - piece >= 4 {
            found(Atom::of(&bytes[piece..i], Look::Name), &bytes[piece..i]);
        }
    }
    i
}

/// Reads what stands between quotes that open here. Gives where they close.
fn quoted_at(bytes: &[u8], open: usize, found: &mut impl FnMut(Atom, &[u8])) -> Option<usize> {
    const SHORTEST: usize = 5;
    const LONGEST: usize = 80;
    let quote = bytes[open];
    let is_word_at = |i: usize| bytes.get(i).is_some_and(|byte| is_word(*byte));
    if quote != b'`' && open > 0 && is_word_at(open - 1) {
        return None;
    }
    let inner = &bytes[open + 1..(open + 2 + LONGEST).min(bytes.len())];
    let len = inner.iter().position(|byte| *byte == quote)?;
    let close = open + 1 + len;
    let mut text = &inner[..len];
    // A quote that was escaped inside a string.
    if let [rest @ .., b'\\'] = text {
        text = rest;
    }
    let is_closed = quote == b'`' || !is_word_at(close + 1);
    let is_bare = text.iter().all(u8::is_ascii_lowercase);
    let is_tight =
        !text.first().is_some_and(|byte| matches!(byte, b' ' | b'-')) && text.last() != Some(&b' ');
    let is_atom = text.len() >= SHORTEST && is_closed && !is_bare && is_tight;
    if is_atom && text.iter().any(u8::is_ascii_alphanumeric) {
        found(Atom::of(text, Look::Quoted), text);
        return Some(close);
    }
    is_atom.then_some(close)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Look)]) {
        let mut found = Vec::new();
        each_atom(text, |atom, _| found.push(atom));
        let expected: Vec<_> = expected.iter().map(|(atom, look)| Atom::of(atom.as_bytes(), *look)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_paths_and_ids_are_atoms_and_words_are_not() {
        check(
            "open src/lib/parser.rs and see max_depth",
            &[("src/lib/parser.rs", Look::Path), ("parser.rs", Look::Name), ("max_depth", Look::Name)],
        );
        check(
            "order W2378156 of fooBar, a well-known word",
            &[("W2378156", Look::Number), ("fooBar", Look::Name)],
        );
        check("see /etc/hosts.", &[("/etc/hosts", Look::Path), ("hosts", Look::Name)]);
        check("an HTTPServer, THE WORLD", &[("HTTPServer", Look::Name)]);
        check("it is what it is", &[]);
    }

    #[test]
    fn what_is_quoted_is_an_atom() {
        check("say \"hello there\" twice", &[("hello there", Look::Quoted)]);
        check("{\\\"key\\\": \\\"a value\\\"}", &[("a value", Look::Quoted)]);
        check("don't and can't", &[]);
        check("`go test ./...`", &[("go test ./...", Look::Quoted)]);
    }
}
