//! Decides whether an atom that survives only in rewritten text is readable there.
//!
//! It is readable if its context survives too: sixteen verbatim characters around it, or two of the words around it,
//! one of them an ordinary word. An atom in a bare list of identifiers is not readable.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::analysis::{RecordAnalysis, ReplyAtomId};
use super::text::{Needle, at, before, is_word, run_end};

/// The context of an atom, in characters before and after it.
const REACH: usize = 90;
/// Verbatim characters around an atom that make it readable.
const VERBATIM: usize = 16;
/// Messages with the atom that are compared, the newest first.
const MAX_MESSAGES: usize = 8;
/// Occurrences compared in each message.
const MAX_OCCURRENCES: usize = 3;
/// Occurrences compared in the rewritten text.
const MAX_NEW_OCCURRENCES: usize = 6;

/// An occurrence of an atom, with sorted hashes of the words around it.
#[derive(Debug)]
pub(crate) struct AtomContext {
    offset: usize,
    words: Vec<u64>,
    ordinary: Vec<u64>,
}

/// The rewritten texts of one view, with caches.
#[derive(Default)]
pub(crate) struct RewrittenText {
    /// The messages it consists of.
    pub(crate) contents: Vec<u32>,
    pub(crate) text: String,
    /// True for atoms that it contains; lines may be parts of longer ones.
    pub(crate) contains: FxHashMap<ReplyAtomId, bool>,
    /// True for user messages that it contains.
    pub(crate) users: FxHashMap<usize, bool>,
    /// True for readable atoms, by the number of earlier occurrences.
    readable: FxHashMap<(ReplyAtomId, usize), bool>,
    atom_contexts: FxHashMap<ReplyAtomId, Rc<Vec<AtomContext>>>,
}

impl RewrittenText {
    /// The rewritten texts of a view, one per line.
    pub(crate) fn new(analysis: &RecordAnalysis<'_>, contents: Vec<u32>) -> RewrittenText {
        let texts: Vec<_> = contents.iter().map(|content| &*analysis.contents[*content].text).collect();
        RewrittenText { text: texts.join("\n"), contents, ..RewrittenText::default() }
    }

    /// True if an atom that the text contains is readable there, compared with its occurrences before a reply.
    pub(crate) fn is_readable(
        &mut self,
        analysis: &RecordAnalysis<'_>,
        reply: usize,
        atom: ReplyAtomId,
    ) -> bool {
        let seen = analysis.occurrences_before(atom, reply);
        if let Some(is_readable) = self.readable.get(&(atom, seen.len())) {
            return *is_readable;
        }
        let needle = &analysis.needles[atom as usize];
        let contexts = self.atom_contexts.entry(atom);
        let mine = Rc::clone(
            contexts.or_insert_with(|| Rc::new(contexts_in(&self.text, needle, MAX_NEW_OCCURRENCES))),
        );
        let newest = seen.iter().rev().take(MAX_MESSAGES);
        let is_readable = newest.into_iter().any(|occurrence| {
            let text = analysis.text_of(occurrence.message);
            let mut cache = analysis.atom_contexts.borrow_mut();
            let theirs = cache
                .entry((atom, occurrence.message))
                .or_insert_with(|| Rc::new(contexts_in(text, needle, MAX_OCCURRENCES)));
            theirs.iter().any(|theirs| {
                mine.iter().any(|mine| has_same_context(text, theirs, &self.text, mine, needle))
            })
        });
        self.readable.insert((atom, seen.len()), is_readable);
        is_readable
    }
}

fn has_same_context(
    text: &str,
    theirs: &AtomContext,
    new_text: &str,
    mine: &AtomContext,
    needle: &Needle,
) -> bool {
    let n_words = n_common(&theirs.words, &mine.words);
    let is_among_words = n_words >= theirs.words.len().min(2)
        && (theirs.ordinary.is_empty() || n_common(&theirs.ordinary, &mine.ordinary) > 0);
    let length = needle.as_str().len();
    is_among_words || is_verbatim((text, theirs.offset), (new_text, mine.offset), length)
}

fn n_common(a: &[u64], b: &[u64]) -> usize {
    a.iter().filter(|hash| b.binary_search(hash).is_ok()).count()
}

/// True if enough characters around an atom agree.
fn is_verbatim((a, at_a): (&str, usize), (b, at_b): (&str, usize), length: usize) -> bool {
    let backward = a[..at_a].chars().rev().zip(b[..at_b].chars().rev());
    let n = backward.take(VERBATIM).take_while(|(a, b)| a == b).count();
    let forward = a[at_a + length..].chars().zip(b[at_b + length..].chars());
    n + forward.take(VERBATIM - n).take_while(|(a, b)| a == b).count() >= VERBATIM
}

fn contexts_in(text: &str, needle: &Needle, max: usize) -> Vec<AtomContext> {
    let own = words_in(&needle.as_str().to_lowercase());
    let without_own = |mut hashes: Vec<u64>| {
        hashes.retain(|hash| own.binary_search(hash).is_err());
        hashes
    };
    let context = |offset: usize| {
        let start = text[..offset].char_indices().rev().take(REACH).last().map_or(offset, |(i, _)| i);
        let end = offset + needle.as_str().len();
        let end = text[end..].char_indices().nth(REACH).map_or(text.len(), |(i, _)| end + i);
        let near = &text[start..end];
        let lowercase = near.to_ascii_lowercase();
        let (words, ordinary) = (words_in(&lowercase), ordinary_words_in(near, &lowercase));
        AtomContext { offset, words: without_own(words), ordinary: without_own(ordinary) }
    };
    needle.find_all(text, max).into_iter().map(context).collect()
}

fn sorted_set(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Runs of three or more letters, digits and underscores of a lowercase text.
fn words_in(lowercase: &str) -> Vec<u64> {
    let runs = lowercase.as_bytes().split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    sorted_set(runs.filter(|run| run.len() >= 3).map(xxh3_64).collect())
}

/// Words of prose and plain keywords, but no parts of paths, numbers or names. `lowercase` is `text` in lower case.
fn ordinary_words_in(text: &str, lowercase: &str) -> Vec<u64> {
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
            found.push(xxh3_64(&lowercase.as_bytes()[i..end]));
        }
        i = end;
    }
    sorted_set(found)
}

fn is_ordinary(word: &[u8]) -> bool {
    let Some((first, rest)) = word.split_first() else { return false };
    let is_lower = rest.iter().all(u8::is_ascii_lowercase);
    let is_long = (3..=15).contains(&word.len()) && first.is_ascii_alphabetic();
    is_lower && (is_long || (word.len() == 2 && first.is_ascii_lowercase()))
}
