//! What a file of memory holds, and how it is changed.
//!
//! ```text
//! The tests need a running PostgreSQL.
//! §
//! Releases are cut from `main` on Tuesdays.
//! ```
//!
//! An entry is named by any words that stand in it alone. Several changes are made together or not at all.

/// The line between entries.
const SEPARATOR: &str = "§";

/// A change of what is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChange {
    /// One more entry.
    Add(String),
    /// Another entry in the place of the one with these words.
    Replace {
        /// Words of the entry that goes.
        old: String,
        /// What comes instead.
        new: String,
    },
    /// The entry with these words goes.
    Remove(String),
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// There is nothing in it.
    #[error("an entry of nothing but spaces is none")]
    Empty,
    /// It would be read as two entries.
    #[error("an entry can't have a line that is only §: it stands between entries")]
    Separator,
    /// No entry has the words.
    #[error("no entry has `{0}` in it")]
    NotFound(String),
    /// More than one entry has the words.
    #[error("{n} entries have `{words}` in them")]
    Ambiguous {
        /// The words.
        words: String,
        /// How many have them.
        n: usize,
    },
    /// It would be too much.
    #[error("with that it would be {n} characters of {limit}")]
    Full {
        /// How many characters there would be.
        n: usize,
        /// How many there may be.
        limit: usize,
    },
}

impl EntryError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            EntryError::Empty => "say what is to be remembered",
            EntryError::Separator => "leave the line out, or make it two entries",
            EntryError::NotFound(_) => "`fanfold memory` shows all of them",
            EntryError::Ambiguous { .. } => "give more words of the one that is meant",
            EntryError::Full { .. } => "remove or shorten what is no longer needed first",
        }
    }
}

/// The entries of a file, without the spaces around them.
pub fn entries(text: &str) -> Vec<&str> {
    let mut entries = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim() == SEPARATOR {
            entries.push(&text[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    entries.push(&text[start..]);
    entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

/// How many characters of the limit a file uses.
pub fn used_chars(text: &str) -> usize {
    print(&entries(text)).trim_end().chars().count()
}

/// A file's text after changes, all of them or none. One that is too long already may become shorter.
pub fn apply_changes(text: &str, changes: &[EntryChange], limit: usize) -> Result<String, EntryError> {
    let mut kept: Vec<String> = entries(text).into_iter().map(str::to_owned).collect();
    for change in changes {
        match change {
            EntryChange::Add(entry) => {
                let entry = clean(entry)?;
                // What is known already need not be remembered twice.
                if !kept.contains(&entry) {
                    kept.push(entry);
                }
            }
            EntryChange::Replace { old, new } => {
                let new = clean(new)?;
                let at = find(&kept, old)?;
                kept[at] = new;
            }
            EntryChange::Remove(old) => {
                let at = find(&kept, old)?;
                kept.remove(at);
            }
        }
    }
    let after = print(&kept.iter().map(String::as_str).collect::<Vec<_>>());
    let n = used_chars(&after);
    if n > limit && n >= used_chars(text) {
        return Err(EntryError::Full { n, limit });
    }
    Ok(after)
}

fn clean(entry: &str) -> Result<String, EntryError> {
    let entry = entry.trim();
    if entry.is_empty() {
        return Err(EntryError::Empty);
    }
    if entry.lines().any(|line| line.trim() == SEPARATOR) {
        return Err(EntryError::Separator);
    }
    Ok(entry.to_owned())
}

fn find(kept: &[String], words: &str) -> Result<usize, EntryError> {
    let words = words.trim();
    if words.is_empty() {
        return Err(EntryError::Empty);
    }
    let found: Vec<usize> = (0..kept.len()).filter(|i| kept[*i].contains(words)).collect();
    match *found {
        [] => Err(EntryError::NotFound(words.to_owned())),
        [one] => Ok(one),
        // Words that are an entry of their own mean that one.
        _ => kept
            .iter()
            .position(|entry| entry == words)
            .ok_or(EntryError::Ambiguous { words: words.to_owned(), n: found.len() }),
    }
}

fn print(entries: &[&str]) -> String {
    let text = entries.join(&format!("\n{SEPARATOR}\n"));
    if text.is_empty() { text } else { text + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "one thing\n§\nanother thing\nof two lines\n";

    fn add(entry: &str) -> EntryChange {
        EntryChange::Add(entry.to_owned())
    }

    fn remove(words: &str) -> EntryChange {
        EntryChange::Remove(words.to_owned())
    }

    #[test]
    fn entries_are_what_stands_between_the_marks() {
        assert_eq!(entries(TWO), ["one thing", "another thing\nof two lines"]);
        assert_eq!(entries("§\n\n  §  \n a \n§"), ["a"]);
        assert_eq!(entries("a § b\r\n§\r\nc"), ["a § b", "c"]);
        assert_eq!(entries(""), [""; 0]);
    }

    #[test]
    fn what_is_added_comes_last_and_once() {
        let after = apply_changes(TWO, &[add(" third "), add("third")], 1000).unwrap();
        assert_eq!(after, format!("{TWO}§\nthird\n"));
        assert_eq!(apply_changes("", &[add("first")], 1000).unwrap(), "first\n");
    }

    #[test]
    fn entries_are_named_by_words_that_they_alone_have() {
        assert_eq!(apply_changes(TWO, &[remove("another")], 1000).unwrap(), "one thing\n");
        let several = apply_changes(TWO, &[remove("thing")], 1000).unwrap_err();
        assert_eq!(several, EntryError::Ambiguous { words: "thing".to_owned(), n: 2 });
        let replaced =
            apply_changes(TWO, &[EntryChange::Replace { old: "one".to_owned(), new: "1".to_owned() }], 1000)
                .unwrap();
        assert_eq!(entries(&replaced)[0], "1");
        // An entry that stands in another is named by all of it.
        assert_eq!(apply_changes("a\n§\nab\n", &[remove("a")], 1000).unwrap(), "ab\n");
    }

    #[test]
    fn all_changes_are_made_or_none() {
        let none = apply_changes(TWO, &[add("third"), remove("fourth")], 1000);
        assert_eq!(none, Err(EntryError::NotFound("fourth".to_owned())));
    }

    #[test]
    fn a_full_file_only_becomes_shorter() {
        let n = used_chars(TWO);
        assert_eq!(apply_changes(TWO, &[add("x")], n), Err(EntryError::Full { n: n + 4, limit: n }));
        let shorter = EntryChange::Replace { old: "one".to_owned(), new: "1".to_owned() };
        assert!(apply_changes(TWO, &[shorter], 5).is_ok());
        // Room is made before it is needed, in one go.
        assert!(apply_changes(TWO, &[add("x"), remove("another")], n).is_ok());
    }

    #[test]
    fn the_limit_counts_characters_and_not_bytes() {
        assert_eq!(used_chars("äöü\n"), 3);
        assert!(apply_changes("", &[add("äöü")], 3).is_ok());
        assert_eq!(apply_changes("", &[add("äöüß")], 3), Err(EntryError::Full { n: 4, limit: 3 }));
    }

    #[test]
    fn what_would_break_the_file_is_refused() {
        assert_eq!(apply_changes("", &[add("a\n§\nb")], 100), Err(EntryError::Separator));
        assert_eq!(apply_changes("", &[add(" \n")], 100), Err(EntryError::Empty));
        assert_eq!(apply_changes(TWO, &[remove(" ")], 100), Err(EntryError::Empty));
    }
}
