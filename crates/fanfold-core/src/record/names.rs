//! Names of files and commands in a record: a path is written in full once and then by its shortest unambiguous ending;
//! the beginning that a command shares with earlier ones is omitted.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::standing::NumberedStep;

/// Short names for paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathNames {
    /// The endings of all paths; `None` if several paths have the ending.
    endings: BTreeMap<String, Option<String>>,
    /// The paths that were written in full, with their short names.
    written: BTreeMap<String, String>,
    /// The commands that were written.
    commands: Vec<String>,
}

impl PathNames {
    pub(crate) fn new(steps: &[NumberedStep]) -> PathNames {
        let calls = steps.iter().flat_map(|step| &step.facts.calls);
        let paths: BTreeSet<&str> = calls.filter_map(|call| call.path.as_deref()).collect();
        let mut names = PathNames::default();
        for path in paths {
            for ending in endings(path) {
                let known = names.endings.entry(ending.to_owned()).or_insert_with(|| Some(path.to_owned()));
                if known.as_deref() != Some(path) {
                    *known = None;
                }
            }
        }
        names
    }

    /// The name of a path: in full at its first use.
    pub(crate) fn short(&mut self, path: &str) -> String {
        if let Some(name) = self.written.get(path) {
            return name.clone();
        }
        let is_unique =
            |ending: &&str| self.endings.get(*ending).is_none_or(|known| known.as_deref() == Some(path));
        let name = endings(path).find(is_unique).unwrap_or(path).to_owned();
        self.written.insert(path.to_owned(), name);
        path.to_owned()
    }

    /// Replaces the absolute paths in a command that were written in full before. Relative ones may be text of a script.
    pub(crate) fn shorten(&self, command: &str) -> String {
        const LONG: usize = 24;
        let mut text = command.to_owned();
        for (path, name) in
            self.written.iter().rev().filter(|(path, _)| path.len() > LONG && path.starts_with('/'))
        {
            if text.contains(path.as_str()) {
                text = text.replace(path.as_str(), name);
            }
        }
        text
    }

    /// A command in at most about `max` bytes. The beginning that it shares with an earlier command is omitted first.
    pub(crate) fn command(&mut self, command: &str, max: usize) -> String {
        const SOME: usize = 16;
        const MAX_SEARCHED: usize = 40;
        let mut text = self.shorten(command);
        let whole = text.clone();
        if text.len() > max + SOME {
            let earlier = &self.commands[self.commands.len().saturating_sub(MAX_SEARCHED)..];
            let shared = earlier.iter().map(|earlier| n_shared(earlier, &text)).max().unwrap_or(0);
            let shared = text[..shared].rfind(' ').unwrap_or(0);
            if shared > 40 {
                let head = &text[..text.floor_char_boundary(SOME)];
                let head = head.rfind(' ').map_or(head, |at| &head[..at]);
                text = format!("{head} … {}", &text[shared + 1..]);
            }
            if text.len() > max {
                let head = word_end(&text[..text.floor_char_boundary(max * 2 / 3)]);
                let tail = word_start(&text[text.ceil_char_boundary(text.len() - max / 3)..]);
                text = format!("{head} … {tail}");
            }
        }
        self.commands.push(whole);
        text
    }
}

/// The maximum length of a word that is dropped as a whole instead of being cut.
const MAX_WORD: usize = 30;

/// The text without a last word that is cut.
fn word_end(text: &str) -> &str {
    let at = text.rfind([' ', '|', '"', '\'']).map_or(0, |at| at + 1);
    if text.len() - at <= MAX_WORD { text[..at].trim_end() } else { text }
}

/// The text without a first word that is cut.
fn word_start(text: &str) -> &str {
    let at = text.find([' ', '|', '"', '\'']).unwrap_or(text.len());
    let is_path = text[..at].contains(['/', '.']);
    if at <= MAX_WORD && !is_path { text[at..].trim_start() } else { text }
}

/// The endings of a path at its separators, shortest first.
fn endings(path: &str) -> impl Iterator<Item = &str> {
    let starts = path.rmatch_indices('/').map(|(at, _)| at + 1).filter(|at| *at > 0);
    starts.map(|at| &path[at..]).filter(|ending| !ending.is_empty()).chain([path])
}

/// The number of bytes that two texts share at their beginning.
fn n_shared(one: &str, other: &str) -> usize {
    let n = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    other.floor_char_boundary(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_in_full_once() {
        let mut names = PathNames::default();
        for path in ["/repo/src/a/mod.rs", "/repo/src/b/mod.rs"] {
            for ending in endings(path) {
                let known = names.endings.entry(ending.to_owned()).or_insert_with(|| Some(path.to_owned()));
                if known.as_deref() != Some(path) {
                    *known = None;
                }
            }
        }
        let written: Vec<String> =
            ["/repo/src/a/mod.rs", "/repo/src/a/mod.rs"].map(|path| names.short(path)).into();
        assert_eq!(written, ["/repo/src/a/mod.rs", "a/mod.rs"]);
        assert_eq!(names.shorten("cat /repo/src/a/mod.rs"), "cat /repo/src/a/mod.rs", "short paths stay");
    }

    #[test]
    fn the_common_beginning_of_commands_is_left_out() {
        let mut names = PathNames::default();
        let first = "python tests/runtests.py --settings=test_sqlite --parallel=1 -v 2 queries.test_one";
        assert_eq!(names.command(first, 200), first);
        let second = first.replace("test_one", "test_two");
        assert_eq!(names.command(&second, 50), "python … queries.test_two");
    }
}
