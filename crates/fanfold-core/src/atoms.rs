//! Atoms: strings that a model can hardly produce by chance. Paths, names, ids, numbers and quoted strings.
//!
//! ```text
//! open src/lib/parser.rs and see "the max depth"  ->  src/lib/parser.rs, parser.rs, "the max depth"
//! ```

use std::ops::Range;

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

use crate::marks::{MarkedText, Marks};

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
        // The upper bits tell atoms apart, so they know how it looks, too.
        let hash = xxh3_64(text) ^ (look as u64) << 40;
        Atom(hash & !3 | look as u64)
    }

    /// Its hash. The lowest bits tell how it looks.
    pub(crate) fn hash(self) -> u64 {
        self.0
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

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERSCORE;
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

/// Calls back with each atom of a line and its place, in order, repeats included.
pub(crate) fn each_atom(line: &str, found: impl FnMut(Atom, Range<usize>)) {
    let mut marked = MarkedText::default();
    marked.read(line);
    each_atom_in(line, &marked, 0..line.len(), found);
}

/// Calls back with each atom of a line in a text whose marks are known, and its place in the text.
pub(crate) fn each_atom_in(
    text: &str,
    marked: &MarkedText,
    range: Range<usize>,
    mut found: impl FnMut(Atom, Range<usize>),
) {
    let mut found = |atom: Atom, name: &[u8]| {
        let begin = name.as_ptr() as usize - text.as_ptr() as usize;
        found(atom, begin..begin + name.len());
    };
    let line = &text.as_bytes()[range.clone()];
    let before = &text.as_bytes()[..range.start];
    // What was escaped from a line before is a letter in this one.
    let is_cut = before.last() == Some(&b'\\') && matches!(line.first(), Some(b'n' | b't' | b'r'));
    let mut quoted_to = 0;
    let mut at = 0;
    while at < line.len() {
        let n = (line.len() - at).min(64);
        let mut marks = marked.window(range.start + at, n);
        marks.lower |= u64::from(is_cut && at == 0);
        let Window { name, mut open, end } = Window::of(&marks, line.len() - at);
        if end == 0 {
            at = long_name_at(line, at, &mut found);
            continue;
        }
        while open != 0 {
            let first = open.trailing_zeros();
            let bit = 1_u64 << first;
            open ^= bit;
            if marks.quote & bit != 0 {
                let quote = at + first as usize;
                if quote >= quoted_to {
                    quoted_to = quoted_at(line, quote, &mut found).map_or(quoted_to, |end| end + 1);
                }
                continue;
            }
            let is_before_name = name & bit == 0;
            let begin = if is_before_name {
                // An absolute path begins with its slash.
                if line[at + first as usize] != b'/' {
                    continue;
                }
                first + 1
            } else {
                64 - (!name & (bit - 1)).leading_zeros()
            };
            let len = (!(name >> begin)).trailing_zeros();
            let run = if len < 64 { ((1 << len) - 1) << begin } else { u64::MAX };
            open &= !run;
            marked_name(&line[at..], &marks, run, begin as usize - usize::from(is_before_name), &mut found);
        }
        at += end;
    }
}

/// What is to be read in the marks of up to sixty-four bytes.
struct Window {
    /// What belongs to a name.
    name: u64,
    /// Where a name shows that it may be more than a plain word, and where quotes may open.
    open: u64,
    /// Where the next window begins: a name is not cut. Zero if a name fills the window.
    end: usize,
}

impl Window {
    #[inline]
    fn of(marks: &Marks, n_left: usize) -> Window {
        let odd = marks.upper | marks.digit | marks.underscore;
        let word = odd | marks.lower;
        let before_word = marks.joint & word >> 1;
        let name = word | before_word & word << 1;
        let open = odd | before_word | marks.quote;
        if n_left <= 64 {
            return Window { name, open, end: n_left };
        }
        let end = (!(word | marks.joint)).checked_ilog2().map_or(0, |last| last as usize + 1);
        let open = if end < 64 { open & ((1 << end) - 1) } else { open };
        Window { name, open, end }
    }
}

/// Reads a name that is as long as a window. Gives where it ends.
fn long_name_at(line: &[u8], at: usize, found: &mut impl FnMut(Atom, &[u8])) -> usize {
    match line[at..].iter().position(|byte| is_word(*byte)) {
        Some(n_joints) => name_at(line, at + n_joints, found),
        None => line.len(),
    }
}

/// Takes the name of which the marks tell, if it is an atom. It may start with a slash before its run.
#[inline]
fn marked_name(bytes: &[u8], marks: &Marks, run: u64, start: usize, found: &mut impl FnMut(Atom, &[u8])) {
    let end = 64 - run.leading_zeros() as usize;
    if end - start < SHORTEST {
        return;
    }
    let (lower, upper) = (marks.lower & run, marks.upper & run);
    let mut shape = Shape {
        has_letter: lower | upper != 0,
        has_digit: marks.digit & run != 0,
        // Capitals where a name would have them: `fooBar`, `HTTPServer`.
        is_odd: lower << 1 & upper | lower & upper << 1 & upper << 2 != 0
            || marks.underscore & run & !(1 << start) != 0,
        has_slash: run >> start & 1 == 0,
        has_dot: false,
        n_hyphens: 0,
    };
    let mut piece = start + usize::from(shape.has_slash);
    let mut joints = marks.joint & run;
    while joints != 0 {
        let joint = joints.trailing_zeros() as usize;
        joints &= joints - 1;
        match bytes[joint] {
            b'.' => shape.has_dot = true,
            b'-' => shape.n_hyphens += 1,
            b'/' => {
                shape.has_slash = true;
                piece = joint + 1;
            }
            _ => {}
        }
    }
    shape.take(&bytes[start..end], piece - start, found);
}

/// What a name is made of.
struct Shape {
    has_letter: bool,
    has_digit: bool,
    /// It has capitals or underscores inside.
    is_odd: bool,
    has_slash: bool,
    has_dot: bool,
    n_hyphens: u32,
}

/// No name that is shorter is an atom.
const SHORTEST: usize = 4;

impl Shape {
    /// Takes a name if it is an atom, and the last piece of a path.
    #[inline]
    fn take(&self, name: &[u8], piece: usize, found: &mut impl FnMut(Atom, &[u8])) {
        let &Shape { has_letter, has_digit, is_odd, has_slash, has_dot, n_hyphens } = self;
        let is_atom =
            (is_odd || has_digit || has_dot || has_slash || n_hyphens >= 2) && name.len() >= SHORTEST;
        if !is_atom {
            return;
        }
        let look = match (has_slash, has_letter && is_odd || has_dot, has_digit) {
            (true, _, _) => Look::Path,
            (_, true, _) if has_letter => Look::Name,
            (_, _, true) => Look::Number,
            _ => Look::Name,
        };
        found(Atom::of(name, look), name);
        if has_slash && piece > 0 && name.len() - piece >= SHORTEST {
            found(Atom::of(&name[piece..], Look::Name), &name[piece..]);
        }
    }
}

/// Reads the name, path or number that begins here, byte by byte. Gives where it ends.
fn name_at(bytes: &[u8], begin: usize, found: &mut impl FnMut(Atom, &[u8])) -> usize {
    // An absolute path begins with its slash.
    let start = if begin > 0 && bytes[begin - 1] == b'/' { begin - 1 } else { begin };
    let mut i = begin;
    let mut piece = begin;
    let mut n_hyphens = 0;
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
            n_hyphens += u32::from(byte == b'-');
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
    let shape = Shape {
        has_letter: seen & (LOWER | UPPER) != 0,
        has_digit: seen & DIGIT != 0,
        is_odd: humps != 0 || (seen & UNDERSCORE != 0 && bytes[start + 1..i].contains(&b'_')),
        has_slash,
        has_dot,
        n_hyphens,
    };
    shape.take(&bytes[start..i], piece - start, found);
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
    let len = memchr(quote, inner)?;
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
    use proptest::prelude::*;

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

    /// The same, byte by byte.
    fn plainly(line: &str) -> Vec<Atom> {
        let bytes = line.as_bytes();
        let mut atoms = Vec::new();
        let mut take = |atom, _: &[u8]| atoms.push(atom);
        let (mut i, mut quoted_to) = (0, 0);
        while i < bytes.len() {
            if is_word(bytes[i]) {
                i = name_at(bytes, i, &mut take);
                continue;
            }
            if matches!(bytes[i], b'"' | b'\'' | b'`') && i >= quoted_to {
                quoted_to = quoted_at(bytes, i, &mut take).map_or(quoted_to, |end| end + 1);
            }
            let is_escape = bytes[i] == b'\\' && matches!(bytes.get(i + 1), Some(b'n' | b't' | b'r'));
            i += 1 + usize::from(is_escape);
        }
        atoms
    }

    proptest! {
        #[test]
        fn marks_change_nothing(
            text in "([a-z]{1,9}[ _./@#A-Z0-9\"'`-]{0,2}|[a-zA-Z0-9_./#@-]{1,90}|\\\\[nrt\"x]|[ü\n ,:]){0,40}",
            from in 0..200_usize,
            len in 0..300_usize,
        ) {
            let from = text.floor_char_boundary(from);
            let to = text.floor_char_boundary(from + len);
            let mut marked = MarkedText::default();
            marked.read(&text);
            let mut atoms = Vec::new();
            each_atom_in(&text, &marked, from..to, |atom, _| atoms.push(atom));
            prop_assert_eq!(atoms, plainly(&text[from..to]));
        }
    }

    #[test]
    fn what_is_quoted_is_an_atom() {
        check("say \"hello there\" twice", &[("hello there", Look::Quoted)]);
        check("{\\\"key\\\": \\\"a value\\\"}", &[("a value", Look::Quoted)]);
        check("don't and can't", &[]);
        check("`go test ./...`", &[("go test ./...", Look::Quoted)]);
    }
}
