//! Finds atoms in a text.
//!
//! URLs and paths are found first and removed, so that their parts are not found again as identifiers.

use std::ops::Range;

use super::AtomClass;
use super::names::{dotted, hyphenated, identifiers, is_id, mixed, numbers};
use super::paths::{files, is_path, paths, paths_with_line, urls};
use crate::content::text::{at, before, is_word, n_chars};

/// Finds the atoms of one class.
type Finder = fn(&str) -> Vec<Range<usize>>;

/// Calls `add` with each atom, class by class.
pub(super) fn each_atom(text: &str, mut add: impl FnMut(&str, AtomClass)) {
    let mut rest = text.to_owned();
    let finders: [(Finder, AtomClass); 4] = [
        (urls, AtomClass::Url),
        (paths_with_line, AtomClass::Path),
        (paths, AtomClass::Path),
        (files, AtomClass::Path),
    ];
    for (find, class) in finders {
        let found = find(&rest);
        for range in &found {
            let atom = rest[range.clone()].trim_end_matches(['/', '.', ',', ';', ':']);
            if class == AtomClass::Url || is_path(atom) {
                add(atom, class);
            }
        }
        rest = without(&rest, &found);
    }
    quoted(text, |atom| add(atom, AtomClass::Quoted));
    for range in numbers(&rest).into_iter().chain(mixed(&rest)) {
        let atom = &rest[range];
        if is_id(atom) {
            add(atom, AtomClass::Id);
        }
    }
    let found = dotted(&rest);
    for range in found.iter().filter(|range| n_chars(&rest[(*range).clone()]) >= 5) {
        add(&rest[range.clone()], AtomClass::Ident);
    }
    rest = without(&rest, &found);
    identifiers(&rest, &mut add);
    hyphenated(&rest, &mut add);
}

/// The text with each range replaced by a space.
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

/// Short quoted texts, except plain words.
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
        let has_content = atom.contains(|c: char| c.is_ascii_alphanumeric());
        let is_plain_word = atom.chars().all(char::is_alphabetic)
            && atom.contains(char::is_lowercase)
            && !atom.contains(char::is_uppercase);
        if has_content && !atom.starts_with('-') && atom.trim() == atom && !is_plain_word {
            add(atom);
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
    fn urls_and_paths_are_found_first() {
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
    fn numbers_and_ids_are_found_but_not_years_and_measures() {
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
    fn names_and_quoted_texts_are_found() {
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
