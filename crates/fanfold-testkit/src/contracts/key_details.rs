//! Key details of a text that folding must not lose: errors, paths and ids.
//!
//! The rules are deliberately simple and independent of those of the condensers, which they check.

use std::collections::BTreeSet;

/// The errors, paths and ids of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyDetails<'a> {
    /// Lines that report an error, trimmed.
    pub errors: BTreeSet<&'a str>,
    /// Words with a slash whose last part looks like a file name.
    pub paths: BTreeSet<&'a str>,
    /// Words with both letters and digits, and long numbers.
    pub ids: BTreeSet<&'a str>,
}

/// Finds the key details of a text.
pub fn find_key_details(text: &str) -> KeyDetails<'_> {
    let mut found = KeyDetails::default();
    for line in text.split('\n').map(str::trim) {
        if is_error(line) {
            found.errors.insert(line);
        }
        for word in line.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|\\→".contains(c)) {
            let word = word.trim_matches(['.', ':', '/', '-', '*', '#']);
            if is_path(word) {
                let path = word.split(':').next().unwrap_or(word);
                // A patch names each file as `a/FILE` and as `b/FILE`.
                found.paths.insert(path.strip_prefix("a/").or(path.strip_prefix("b/")).unwrap_or(path));
            } else if is_id(word) {
                found.ids.insert(word);
            }
        }
    }
    found
}

impl KeyDetails<'_> {
    /// The number of errors, paths and ids, and how many of each another text contains.
    ///
    /// A path counts as contained if its directory and its name both occur, because listings print a directory
    /// once.
    pub fn count_in(&self, text: &str) -> [(usize, usize); 3] {
        let has_path = |path: &str| match path.rsplit_once('/') {
            Some((directory, name)) => text.contains(directory) && text.contains(name),
            None => text.contains(path),
        };
        let count =
            |all: &BTreeSet<&str>| (all.len(), all.iter().filter(|detail| text.contains(**detail)).count());
        let paths = (self.paths.len(), self.paths.iter().filter(|path| has_path(path)).count());
        [count(&self.errors), paths, count(&self.ids)]
    }
}

fn is_error(line: &str) -> bool {
    const WORDS: [&str; 9] = [
        "error:",
        "error[",
        "Error:",
        "Exception:",
        "FAILED",
        "panicked at",
        "fatal:",
        "Traceback (most",
        "FAIL:",
    ];
    const HARMLESS: [&str; 4] = ["0 FAILED", "no error", "except ", "raise "];
    line.len() < 300
        && WORDS.iter().any(|word| line.contains(word))
        && !HARMLESS.iter().any(|word| line.contains(word))
}

fn is_path(word: &str) -> bool {
    let is_plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-:@+".contains(&b));
    let has_name = word.rsplit('/').next().is_some_and(|name| name.contains('.') && name.len() > 2);
    word.len() < 200 && word.contains('/') && is_plain && has_name && !word.contains("//")
}

fn is_id(word: &str) -> bool {
    let count = |is_match: fn(&u8) -> bool| word.bytes().filter(is_match).count();
    let (n_digits, n_letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let is_plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let is_number = n_digits >= 6 && n_letters == 0;
    (6..=64).contains(&word.len()) && is_plain && (is_number || n_digits >= 2 && n_letters >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_errors_paths_and_ids() {
        let text = "src/a.rs:3:5: error: no such thing\n  order #W2378156 of (user sara_doe_496) in /tmp/x/y.json.\n0 FAILED, all fine";
        let found = find_key_details(text);
        assert_eq!(Vec::from_iter(found.errors), ["src/a.rs:3:5: error: no such thing"]);
        assert_eq!(Vec::from_iter(found.paths), ["src/a.rs", "tmp/x/y.json"]);
        assert_eq!(Vec::from_iter(found.ids), ["W2378156", "sara_doe_496"]);
    }
}
