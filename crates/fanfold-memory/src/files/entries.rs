//! The entries of a memory file, and changes to them.
//!
//! ```text
//! The tests need a running PostgreSQL.
//! §
//! Releases are cut from `main` on Tuesdays.
//! ```
//!
//! An entry is identified by any text that occurs in it alone. A list of changes is applied completely or not at all.

/// The line between entries.
const SEPARATOR: &str = "§";

/// A change of a memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChange {
    /// Adds an entry.
    Add(String),
    /// Replaces the entry that contains `old`.
    Replace {
        /// Text that occurs only in the old entry.
        old: String,
        /// The new entry.
        new: String,
    },
    /// Removes the entry that contains this text.
    Remove(String),
}

/// Why no change was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A text is blank.
    #[error("the text must not be blank")]
    Empty,
    /// The entry contains a separator line.
    #[error("an entry must not contain a line with only §, which separates entries")]
    Separator,
    /// No entry contains the text.
    #[error("no entry contains `{0}`")]
    NotFound(String),
    /// Several entries contain the text.
    #[error("{n} entries contain `{words}`")]
    Ambiguous {
        /// The text.
        words: String,
        /// How many entries contain it.
        n: usize,
    },
    /// The file would exceed its limit.
    #[error("the file would have {n} characters of {limit}")]
    Full {
        /// The resulting number of characters.
        n: usize,
        /// The limit.
        limit: usize,
    },
}

impl EntryError {
    /// The next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            EntryError::Empty => "give a text",
            EntryError::Separator => "remove the line, or add two entries",
            EntryError::NotFound(_) => "`fanfold memory` lists all entries",
            EntryError::Ambiguous { .. } => "give a longer part of the entry",
            EntryError::Full { .. } => "remove or shorten other entries first",
        }
    }
}

/// The trimmed entries of a file.
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

/// Number of characters of the limit that a file uses.
pub fn used_chars(text: &str) -> usize {
    print(&entries(text)).trim_end().chars().count()
}

/// The text of a file after all changes. A file above its limit may only become shorter.
pub(crate) fn apply_changes(text: &str, changes: &[EntryChange], limit: usize) -> Result<String, EntryError> {
    let mut kept: Vec<String> = entries(text).into_iter().map(str::to_owned).collect();
    for change in changes {
        match change {
            EntryChange::Add(entry) => {
                let entry = clean(entry)?;
                // Skip duplicates.
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
        // A text that equals a whole entry identifies it, even if others contain it.
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
    fn entries_are_separated_by_marked_lines() {
        assert_eq!(entries(TWO), ["one thing", "another thing\nof two lines"]);
        assert_eq!(entries("§\n\n  §  \n a \n§"), ["a"]);
        assert_eq!(entries("a § b\r\n§\r\nc"), ["a § b", "c"]);
        assert_eq!(entries(""), [""; 0]);
    }

    #[test]
    fn new_entries_are_appended_without_duplicates() {
        let after = apply_changes(TWO, &[add(" third "), add("third")], 1000).unwrap();
        assert_eq!(after, format!("{TWO}§\nthird\n"));
        assert_eq!(apply_changes("", &[add("first")], 1000).unwrap(), "first\n");
    }

    #[test]
    fn entries_are_identified_by_unique_text() {
        assert_eq!(apply_changes(TWO, &[remove("another")], 1000).unwrap(), "one thing\n");
        let several = apply_changes(TWO, &[remove("thing")], 1000).unwrap_err();
        assert_eq!(several, EntryError::Ambiguous { words: "thing".to_owned(), n: 2 });
        let replaced =
            apply_changes(TWO, &[EntryChange::Replace { old: "one".to_owned(), new: "1".to_owned() }], 1000)
                .unwrap();
        assert_eq!(entries(&replaced)[0], "1");
        // An entry that is contained in another one is identified by its whole text.
        assert_eq!(apply_changes("a\n§\nab\n", &[remove("a")], 1000).unwrap(), "ab\n");
    }

    #[test]
    fn changes_are_atomic() {
        let none = apply_changes(TWO, &[add("third"), remove("fourth")], 1000);
        assert_eq!(none, Err(EntryError::NotFound("fourth".to_owned())));
    }

    #[test]
    fn a_full_file_may_only_shrink() {
        let n = used_chars(TWO);
        assert_eq!(apply_changes(TWO, &[add("x")], n), Err(EntryError::Full { n: n + 4, limit: n }));
        let shorter = EntryChange::Replace { old: "one".to_owned(), new: "1".to_owned() };
        assert!(apply_changes(TWO, &[shorter], 5).is_ok());
        // The limit is checked after all changes, so one list may add and remove.
        assert!(apply_changes(TWO, &[add("x"), remove("another")], n).is_ok());
    }

    #[test]
    fn the_limit_counts_characters_and_not_bytes() {
        assert_eq!(used_chars("äöü\n"), 3);
        assert!(apply_changes("", &[add("äöü")], 3).is_ok());
        assert_eq!(apply_changes("", &[add("äöüß")], 3), Err(EntryError::Full { n: 4, limit: 3 }));
    }

    #[test]
    fn blank_entries_and_separators_are_rejected() {
        assert_eq!(apply_changes("", &[add("a\n§\nb")], 100), Err(EntryError::Separator));
        assert_eq!(apply_changes("", &[add(" \n")], 100), Err(EntryError::Empty));
        assert_eq!(apply_changes(TWO, &[remove(" ")], 100), Err(EntryError::Empty));
    }
}
