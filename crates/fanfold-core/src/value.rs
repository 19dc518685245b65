//! Which lines later work may need: a small fixed scorer over names, paths, numbers and ids.
//!
//! An *atom* is a string that a model can hardly produce by chance: a path, an identifier, an id. What the agent
//! used before, what is rare and what is recent is likely to be used again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use crate::transcript::{Entry, EntryId, Speaker, Transcript};

/// Hashes are their own hash.
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
        self.0 = hash;
    }
}

pub(crate) type AtomMap<T> = HashMap<u64, T, BuildHasherDefault<Same>>;
pub(crate) type AtomSet = std::collections::HashSet<u64, BuildHasherDefault<Same>>;

/// The atoms that people and the agent used, learnt entry by entry: what was used before is used again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    /// How often: the agent's uses count one each, people's a half.
    uses: AtomMap<Uses>,
    /// What stands in system text and people's words, which stay in view.
    prompts: AtomSet,
    learnt: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    weight: f32,
    last: u32,
}

impl Lexicon {
    /// Learns the entries that came since the last time.
    pub(crate) fn learn(&mut self, transcript: &Transcript) {
        for i in self.learnt..transcript.len() {
            let at = i as u32 + 1;
            let mut add = |text: &str, weight: f32| {
                atoms(text, |hash| {
                    let uses = self.uses.entry(hash).or_default();
                    if uses.last != at {
                        uses.weight += weight;
                        uses.last = at;
                    }
                });
            };
            match &transcript.entries()[i] {
                Entry::Prompt(prompt) => {
                    if prompt.speaker == Speaker::User {
                        add(prompt.body.as_str(), 0.5);
                    }
                    if prompt.speaker != Speaker::Harness {
                        atoms(prompt.body.as_str(), |hash| self.prompts.extend([hash]));
                    }
                }
                Entry::Step(step) => {
                    add(step.text.as_str(), 1.0);
                    step.calls.iter().for_each(|call| add(call.arguments.as_str(), 1.0));
                }
            }
        }
        self.learnt = transcript.len();
    }

    /// How likely an atom is to be used again that stands in so many entries, the newest of them this one.
    pub(crate) fn value(&self, hash: u64, newest: EntryId, n_entries: u32) -> f32 {
        let uses = self.uses.get(&hash).copied().unwrap_or_default();
        let n = self.learnt.max(1) as f32;
        let age = (n - newest.0.max(uses.last.saturating_sub(1)) as f32) / n;
        let seen_idly = (n_entries as f32 - 1.0 - uses.weight).max(0.0);
        (1.0 + 2.0 * uses.weight.min(3.0)) * (1.3 - age) / (1.0 + 0.15 * seen_idly)
    }

    /// How likely an atom is to be used again, whatever its age.
    fn ageless(&self, hash: u64) -> f32 {
        self.value(hash, EntryId::from(self.learnt), 1)
    }
}

/// What a caller wants to know of a line: its atoms' worth, those in view anyway left out, and the focus.
pub(crate) struct Scorer<'a> {
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) in_view: &'a AtomSet,
    pub(crate) in_digest: Option<&'a AtomSet>,
    pub(crate) focus: &'a [String],
}

impl Scorer<'_> {
    /// The worth of a line by itself.
    pub(crate) fn line(&self, line: &str) -> f32 {
        let mut worth = self.about_focus(line);
        atoms(line, |hash| {
            if !self.is_seen(hash) {
                worth += self.lexicon.ageless(hash);
            }
        });
        worth
    }

    /// Whether an atom stands in the view anyway.
    pub(crate) fn is_seen(&self, hash: u64) -> bool {
        let is_said = self.lexicon.prompts.contains(&hash) || self.in_view.contains(&hash);
        is_said || self.in_digest.is_some_and(|atoms| atoms.contains(&hash))
    }

    /// What a line is worth because it is about the focus.
    pub(crate) fn about_focus(&self, line: &str) -> f32 {
        if self.focus.is_empty() {
            return 0.0;
        }
        let lower = line.to_lowercase();
        3.0 * self.focus.iter().filter(|word| lower.contains(word.as_str())).count() as f32
    }
}

/// The words of a topic that are worth looking for.
pub(crate) fn focus_words(topic: &str) -> Vec<String> {
    let words =
        topic.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

const WORD: u8 = 1;
const JOINT: u8 = 2;

const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            table[i] = WORD;
        } else if matches!(byte, b'.' | b'/' | b'-' | b'@' | b'#') {
            table[i] = JOINT;
        }
        i += 1;
    }
    table
};

/// Calls back with the hash of each atom of a text, in order, repeats included.
pub(crate) fn atoms(text: &str, mut found: impl FnMut(u64)) {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if CLASS[usize::from(bytes[i])] != WORD {
            i += 1;
            continue;
        }
        // An absolute path begins with its slash.
        let start = if i > 0 && bytes[i - 1] == b'/' { i - 1 } else { i };
        let mut piece = i;
        let mut is_odd = false;
        let mut hyphens = 0;
        let mut has_slash = start < i;
        let mut before = 0_u8;
        while i < bytes.len() {
            let byte = bytes[i];
            match CLASS[usize::from(byte)] {
                WORD => {
                    let is_hump = byte.is_ascii_uppercase() && before.is_ascii_lowercase();
                    is_odd |= byte.is_ascii_digit() || is_hump || (byte == b'_' && i > start);
                }
                JOINT if i + 1 < bytes.len() && CLASS[usize::from(bytes[i + 1])] == WORD => {
                    is_odd |= byte == b'.' || byte == b'/';
                    hyphens += u32::from(byte == b'-');
                    if byte == b'/' {
                        has_slash = true;
                        piece = i + 1;
                    }
                }
                _ => break,
            }
            before = byte;
            i += 1;
        }
        let is_atom = (is_odd || hyphens >= 2) && i - start >= 4;
        if is_atom {
            found(xxh3_64(&bytes[start..i]));
            if has_slash && piece > start && i - piece >= 4 {
                found(xxh3_64(&bytes[piece..i]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        atoms(text, |hash| found.push(hash));
        let expected: Vec<_> = expected.iter().map(|atom| xxh3_64(atom.as_bytes())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_paths_and_ids_are_atoms_and_words_are_not() {
        check("open src/lib/parser.rs and see max_depth", &["src/lib/parser.rs", "parser.rs", "max_depth"]);
        check("order W2378156 of fooBar, a well-known word", &["W2378156", "fooBar"]);
        check("see /etc/hosts.", &["/etc/hosts", "hosts"]);
        check("it is what it is", &[]);
    }
}
