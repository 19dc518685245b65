//! Whether an atom that survives only in rewritten text can be read there.
//!
//! It can if it stands as it stood in the original: inside sixteen or more characters that are word for word the same,
//! or among two of the words that stood around it, one of them an ordinary word. A bare list of identifiers has none.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::text::{Needle, at, before, is_word, run_end};
use crate::trajectory::{AtomId, Trajectory};

/// So far around an atom its words are looked at, in characters.
const REACH: usize = 90;
/// So many verbatim characters around an atom make it readable.
const VERBATIM: usize = 16;
/// So many messages that hold the atom are compared, the newest first.
const MOST_MESSAGES: usize = 8;
/// So many places in each of them.
const MOST_PLACES: usize = 3;
/// So many places in the rewritten text.
const MOST_NEW_PLACES: usize = 6;

/// One place of an atom with the words around it, as sorted hashes.
#[derive(Debug)]
pub(crate) struct Stand {
    place: usize,
    words: Vec<u64>,
    ordinary: Vec<u64>,
}

/// The rewritten texts of one view, and what was found out about them.
#[derive(Default)]
pub(crate) struct NewText {
    /// The looks that it is made of.
    pub(crate) looks: Vec<u32>,
    pub(crate) text: String,
    /// Whether each atom is in it; for lines, boundaries or not.
    pub(crate) holds: FxHashMap<AtomId, bool>,
    /// Whether each user message is in it.
    pub(crate) users: FxHashMap<usize, bool>,
    /// Whether an atom can be read, by how often it had been said.
    readable: FxHashMap<(AtomId, usize), bool>,
    stands: FxHashMap<AtomId, Rc<Vec<Stand>>>,
}

impl NewText {
    /// The rewritten texts of a view, one per line.
    pub(crate) fn new(trajectory: &Trajectory<'_>, looks: Vec<u32>) -> NewText {
        let texts: Vec<_> = looks.iter().map(|look| &*trajectory.looks[*look].text).collect();
        NewText { text: texts.join("\n"), looks, ..NewText::default() }
    }

    /// Whether an atom that is in the text can be read there before a reply.
    pub(crate) fn is_readable(&mut self, trajectory: &Trajectory<'_>, reply: usize, atom: AtomId) -> bool {
        let seen = trajectory.occurrences_before(atom, reply);
        if let Some(known) = self.readable.get(&(atom, seen.len())) {
            return *known;
        }
        let needle = &trajectory.needles[atom as usize];
        let stands = self.stands.entry(atom);
        let mine =
            Rc::clone(stands.or_insert_with(|| Rc::new(stands_in(&self.text, needle, MOST_NEW_PLACES))));
        let newest = seen.iter().rev().take(MOST_MESSAGES);
        let is_readable = newest.into_iter().any(|occurrence| {
            let text = trajectory.text_of(occurrence.message);
            let mut known = trajectory.stands.borrow_mut();
            let theirs = known
                .entry((atom, occurrence.message))
                .or_insert_with(|| Rc::new(stands_in(text, needle, MOST_PLACES)));
            theirs
                .iter()
                .any(|theirs| mine.iter().any(|mine| is_same(text, theirs, &self.text, mine, needle)))
        });
        self.readable.insert((atom, seen.len()), is_readable);
        is_readable
    }
}

fn is_same(text: &str, theirs: &Stand, new_text: &str, mine: &Stand, needle: &Needle) -> bool {
    let n_words = n_common(&theirs.words, &mine.words);
    let is_among_words = n_words >= theirs.words.len().min(2)
        && (theirs.ordinary.is_empty() || n_common(&theirs.ordinary, &mine.ordinary) > 0);
    let length = needle.as_str().len();
    is_among_words || is_verbatim((text, theirs.place), (new_text, mine.place), length)
}

fn n_common(a: &[u64], b: &[u64]) -> usize {
    a.iter().filter(|hash| b.binary_search(hash).is_ok()).count()
}

/// Whether enough characters around an atom agree.
fn is_verbatim((a, at_a): (&str, usize), (b, at_b): (&str, usize), length: usize) -> bool {
    let backward = a[..at_a].chars().rev().zip(b[..at_b].chars().rev());
    let n = backward.take(VERBATIM).take_while(|(a, b)| a == b).count();
    let forward = a[at_a + length..].chars().zip(b[at_b + length..].chars());
    n + forward.take(VERBATIM - n).take_while(|(a, b)| a == b).count() >= VERBATIM
}

fn stands_in(text: &str, needle: &Needle, most: usize) -> Vec<Stand> {
    let own = words_in(&needle.as_str().to_lowercase());
    let without_own = |mut hashes: Vec<u64>| {
        hashes.retain(|hash| own.binary_search(hash).is_err());
        hashes
    };
    let stand = |place: usize| {
        let start = text[..place].char_indices().rev().take(REACH).last().map_or(place, |(i, _)| i);
        let end = place + needle.as_str().len();
        let end = text[end..].char_indices().nth(REACH).map_or(text.len(), |(i, _)| end + i);
        let near = &text[start..end];
        let small = near.to_ascii_lowercase();
        let (words, ordinary) = (words_in(&small), ordinary_in(near, &small));
        Stand { place, words: without_own(words), ordinary: without_own(ordinary) }
    };
    needle.find_all(text, most).into_iter().map(stand).collect()
}

fn set(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Runs of three or more letters, digits and underscores of a text in small letters.
fn words_in(small: &str) -> Vec<u64> {
    let runs = small.as_bytes().split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    set(runs.filter(|run| run.len() >= 3).map(xxh3_64).collect())
}

/// Words of prose, and plain keys or keywords: nothing that is part of a path, a number or a name. The text comes as it is
/// and in small letters.
fn ordinary_in(text: &str, small: &str) -> Vec<u64> {
    let mut found = Vec::new();
    let mut i = 0;
    while let Some(c) = at(text, i) {
        if !is_word(c) {
            i += c.len_utf8();
            continue;
        }
        let end = run_end(text, i, is_word);
        let word = &text[i..end];
        let is_start = before(text, i).is_none_or(|c| !matches!(c, '.' | '/' | ':' | '#' | '-'));
        let follows = at(text, end);
        let is_end = match follows {
            Some('/' | ':' | '#' | '-') => false,
            Some('.') => !at(text, end + 1).is_some_and(is_word),
            _ => true,
        };
        if is_start && is_end && is_ordinary(word.as_bytes()) {
            found.push(xxh3_64(&small.as_bytes()[i..end]));
        }
        i = end;
    }
    set(found)
}

fn is_ordinary(word: &[u8]) -> bool {
    let Some((first, rest)) = word.split_first() else { return false };
    let is_lower = rest.iter().all(u8::is_ascii_lowercase);
    let is_long = (3..=15).contains(&word.len()) && first.is_ascii_alphabetic();
    is_lower && (is_long || (word.len() == 2 && first.is_ascii_lowercase()))
}
