//! Lines of files that an agent may copy verbatim, and how likely that is.
//!
//! An edit quotes the lines it changes. Agents mostly copy lines that they copied before and lines that they read
//! several times. `docs/decisions/8-which-lines-stay.md` has the figures.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use memchr::memchr_iter;
use xxhash_rust::xxh3::xxh3_64;

/// The hash of a line without its line number and indentation; zero means no line.
pub(crate) type LineHash = u64;

/// A set of line hashes.
pub(crate) type LineSet = HashSet<LineHash, BuildHasherDefault<IdentityHasher>>;

/// Lines that the agent wrote in arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenLines(LineSet);

/// How often lines of files appeared in results that are now folded.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoldedLines(HashMap<LineHash, u8, BuildHasherDefault<IdentityHasher>>);

/// The weight of a line by how often it was shown, relative to one showing: more than the measured ratio in recorded
/// conversations.
const SHOWN_WEIGHTS: [f32; 5] = [1.0, 1.0, 2.8, 5.2, 8.0];
/// The additional factor for a line that the agent wrote before.
const WRITTEN_WEIGHT: f32 = 9.0;

impl WrittenLines {
    /// Records a line of arguments.
    pub(crate) fn record(&mut self, line: &str) {
        if line.len() < SHORTEST {
            return;
        }
        for value in values_in(line).filter(|value| is_copyable(value)) {
            self.0.insert(hash_of(value));
        }
    }

    /// The factor by which a line is more likely to be copied if the agent wrote it before.
    pub(crate) fn weight(&self, line: LineHash) -> f32 {
        if self.0.contains(&line) { WRITTEN_WEIGHT } else { 1.0 }
    }
}

impl FoldedLines {
    /// Records a line of a file that is being folded.
    pub(crate) fn record(&mut self, line: LineHash) {
        let n_times = self.0.entry(line).or_default();
        *n_times = n_times.saturating_add(1);
    }

    /// The factor by which a line is more likely to be copied, relative to a line that was shown once.
    pub(crate) fn weight(&self, line: LineHash) -> f32 {
        let n_shown = self.0.get(&line).copied().unwrap_or(1);
        SHOWN_WEIGHTS[usize::from(n_shown).min(SHOWN_WEIGHTS.len() - 1)]
    }
}

/// The string values in a line of JSON arguments without their keys; the whole line if it has none.
pub(crate) fn values_in(line: &str) -> impl Iterator<Item = &str> {
    // The next value begins after this one and the next key.
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

/// Hashes a line, ignoring its line number and indentation.
pub(crate) fn hash_of(line: &str) -> LineHash {
    hash_of_unnumbered(without_number(line))
}

/// Hashes a line that has no line number, ignoring its indentation.
pub(crate) fn hash_of_unnumbered(line: &str) -> LineHash {
    xxh3_64(line.trim_ascii_start().as_bytes())
}

/// Removes the line number that a reading tool put before a line, keeping the indentation.
pub(crate) fn without_number(line: &str) -> &str {
    let number = line.trim_ascii_start();
    let n_digits = number.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits == 0 {
        return line;
    }
    number[n_digits..].strip_prefix(['→', '|', ':', '\t']).unwrap_or(line)
}

/// The minimum length of a line that may be copied, in bytes.
const SHORTEST: usize = 30;

/// Returns whether a line has enough words to be recognised when it is copied.
pub(crate) fn is_copyable(line: &str) -> bool {
    const WORDS: usize = 3;
    line.len() >= SHORTEST && words(line).take(WORDS).count() == WORDS
}

/// The words of at least two letters.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    let runs = text.as_bytes().chunk_by(|one, next| one.is_ascii_alphabetic() == next.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= 2 && run[0].is_ascii_alphabetic())
}

/// Uses a hash as its own hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
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
    fn copyable_lines_have_three_words() {
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
    fn line_numbers_are_ignored() {
        assert_eq!(without_number("  12→\tlet x = 1;"), "\tlet x = 1;");
        assert_eq!(without_number("    let x = 1;"), "    let x = 1;");
        assert_eq!(without_number("1 apple"), "1 apple");
        // Only one number is removed.
        let line = "  12→34: let width = input.next_number();";
        assert_eq!(hash_of(line), hash_of_unnumbered(without_number(line)));
    }

    #[test]
    fn values_in_skips_keys() {
        let check = |line: &str, expected: &[&str]| assert_eq!(values_in(line).collect::<Vec<_>>(), expected);
        check("{\"old\":\"a = 1;\",\"new\":\"a = 2;\"}", &["{\"old", "a = 1;", "a = 2;"]);
        check("last old line\",\"new\":\"first new one", &["last old line", "first new one"]);
        check("say(\"hello\");", &["say(\"hello\");"]);
    }

    #[test]
    fn copied_and_repeated_lines_weigh_more() {
        let line = "let height = input.next_number() - 1;";
        let mut folded = FoldedLines::default();
        folded.record(hash_of(&format!("  118→    {line}")));
        let once = folded.weight(hash_of(line));
        folded.record(hash_of(line));
        assert!(once < folded.weight(hash_of(line)));
        let other = hash_of("let width = input.next_number();");
        assert!(folded.weight(other) <= once);
        let mut written = WrittenLines::default();
        written.record(&format!("{{\"path\":\"src/parser.rs\",\"old\":\"{line}"));
        assert!(written.weight(other) < written.weight(hash_of(line)));
    }
}
