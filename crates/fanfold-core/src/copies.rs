//! Lines of files that an agent may copy word for word, and what speaks for one.
//!
//! An edit names the lines it changes. Those that the agent copied once it copies again, and so it does with those that it
//! was shown again and again: it is at work there. `docs/decisions/8-which-lines-stay.md` has the figures.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use memchr::memchr_iter;
use xxhash_rust::xxh3::xxh3_64;

/// What a line says, whatever its number and its indentation.
pub(crate) type LineHash = u64;

/// Lines, by what they say.
pub(crate) type LineSet = HashSet<LineHash, BuildHasherDefault<Hashed>>;

/// What the conversation has shown of lines that may be copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    /// What the agent wrote in its calls.
    written: LineSet,
    /// How often lines of files were shown that are folded by now.
    shown: HashMap<LineHash, u8, BuildHasherDefault<Hashed>>,
}

/// How much more a line counts, by how often it was shown, than one that was shown once: more than by how much more often
/// such lines were copied in recorded conversations, which `cargo xtask weights` counts.
pub(crate) const SHOWN: [f32; 5] = [1.0, 1.0, 2.8, 5.2, 8.0];
/// And how much more one that the agent wrote before.
pub(crate) const WRITTEN: f32 = 9.0;

impl Copies {
    /// Takes note of a line of a call's arguments.
    pub(crate) fn write(&mut self, line: &str) {
        if line.len() < SHORTEST {
            return;
        }
        for value in values_in(line).filter(|value| is_copyable(value)) {
            self.written.insert(hash_of(value));
        }
    }

    /// Takes note of a line of a file that is being folded.
    pub(crate) fn show(&mut self, line: LineHash) {
        let n_times = self.shown.entry(line).or_default();
        *n_times = n_times.saturating_add(1);
    }

    /// How much more a line counts than one that was shown once.
    pub(crate) fn times(&self, line: LineHash) -> f32 {
        let n_shown = self.shown.get(&line).copied().unwrap_or(1);
        let of_shown = SHOWN[usize::from(n_shown).min(SHOWN.len() - 1)];
        if self.written.contains(&line) { WRITTEN * of_shown } else { of_shown }
    }
}

/// The values in a line of arguments, without their keys; all of it where there are none.
pub(crate) fn values_in(line: &str) -> impl Iterator<Item = &str> {
    // The next value begins behind the one before it and its key.
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let from = std::mem::take(&mut next)?;
        let (mut end, rest) = (line.len(), &line.as_bytes()[from..]);
        for quote in memchr_iter(b'"', rest) {
            match rest[quote..] {
                [_, b':', b'"', ..] => {
                    next = Some(from + quote + 3);
                    end = end.min(from + quote);
                    break;
                }
                [_, b',', b'"', ..] | [_, b'}', ..] => end = end.min(from + quote),
                _ => {}
            }
        }
        Some(&line[from..end])
    })
}

/// What a line says: the same with another number before it, or further in.
pub(crate) fn hash_of(line: &str) -> LineHash {
    hash_of_unnumbered(without_number(line))
}

/// The same of a line whose number was taken off.
pub(crate) fn hash_of_unnumbered(line: &str) -> LineHash {
    xxh3_64(line.trim_ascii_start().as_bytes())
}

/// A line without the number that a reading tool put before it, its indentation left.
pub(crate) fn without_number(line: &str) -> &str {
    let number = line.trim_ascii_start();
    let n_digits = number.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits == 0 {
        return line;
    }
    number[n_digits..].strip_prefix(['→', '|', ':', '\t']).unwrap_or(line)
}

/// A line of fewer bytes is not looked for.
const SHORTEST: usize = 30;

/// Whether a line says enough to be copied: a few words, not a bracket.
pub(crate) fn is_copyable(line: &str) -> bool {
    const WORDS: usize = 3;
    line.len() >= SHORTEST && words(line).take(WORDS).count() == WORDS
}

/// The words of at least two letters.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    let runs = text.as_bytes().chunk_by(|one, next| one.is_ascii_alphabetic() == next.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= 2 && run[0].is_ascii_alphabetic())
}

/// Takes a hash for what it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_copied_has_three_words() {
        let check = |line: &str, expected: bool| assert_eq!(is_copyable(line), expected, "{line:?}");
        check("    let height = input.next_number();", true);
        check("x += 1; y += 2; z += 3; w += 4; ab cd", false);
        check("x += 1; y += 2; z += 3; w += 4; ab cd ef", true);
        check(&format!("ab cd {}ef", "-".repeat(90)), true);
        check(&format!("ab cd {}e", "-".repeat(90)), false);
        check(&format!("{}ab cd ef", " ".repeat(90)), true);
        check("ab cd ef", false);
    }

    #[test]
    fn a_numbered_line_is_known_by_its_text() {
        assert_eq!(without_number("  12→\tlet x = 1;"), "\tlet x = 1;");
        assert_eq!(without_number("    let x = 1;"), "    let x = 1;");
        assert_eq!(without_number("1 apple"), "1 apple");
        // One number is taken off, whoever asks.
        let line = "  12→34: let width = input.next_number();";
        assert_eq!(hash_of(line), hash_of_unnumbered(without_number(line)));
    }

    #[test]
    fn values_come_without_their_keys() {
        let check = |line: &str, expected: &[&str]| assert_eq!(values_in(line).collect::<Vec<_>>(), expected);
        check("{\"old\":\"a = 1;\",\"new\":\"a = 2;\"}", &["{\"old", "a = 1;", "a = 2;"]);
        check("last old line\",\"new\":\"first new one", &["last old line", "first new one"]);
        check("say(\"hello\");", &["say(\"hello\");"]);
    }

    #[test]
    fn what_was_copied_or_shown_again_is_worth_more() {
        let line = "let height = input.next_number() - 1;";
        let mut copies = Copies::default();
        copies.show(hash_of(&format!("  118→    {line}")));
        let once = copies.times(hash_of(line));
        copies.show(hash_of(line));
        let twice = copies.times(hash_of(line));
        copies.write(&format!("{{\"path\":\"src/parser.rs\",\"old\":\"{line}"));
        let copied = copies.times(hash_of(line));
        assert!(once < twice && twice < copied, "{once} {twice} {copied}");
        assert!(copies.times(hash_of("let width = input.next_number();")) <= once);
    }
}
