//! The thirteen sections of a summary.
//!
//! Those that tell what was wanted or under way are called historical, so that no model takes them for what it has to do now.

/// The headings, in their order.
pub const HEADINGS: [&str; 13] = [
    "Historical Task Snapshot",
    "Goal",
    "Constraints & Preferences",
    "Completed Actions",
    "Active State",
    "Historical In-Progress State",
    "Blocked",
    "Key Decisions",
    "Resolved Questions",
    "Historical Pending User Asks",
    "Relevant Files",
    "Historical Remaining Work",
    "Critical Context",
];

/// The section that fanfold writes itself.
pub(crate) const TASK: usize = 0;
/// The section of what stands in the way.
pub(crate) const BLOCKED: usize = 6;
/// The section of what people still want.
pub(crate) const ASKS: usize = 9;
/// The section of files.
pub(crate) const FILES: usize = 10;
/// The section of values and messages.
pub(crate) const CRITICAL: usize = 12;

/// What stands in a section of which nothing is to be said.
pub(crate) const NOTHING: &str = "(nothing)";

/// A text by its sections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sections([Option<String>; HEADINGS.len()]);

impl Sections {
    /// Reads a text. What stands before the first heading belongs to none and is left out; a heading that comes again goes on
    /// where it was.
    pub(crate) fn read(text: &str) -> Sections {
        let mut sections = Sections::default();
        let mut at = None;
        for line in text.lines() {
            if let Some((found, rest)) = heading_in(line) {
                at = Some(found);
                let section = sections.0[found].get_or_insert_default();
                section.push_str(rest);
                continue;
            }
            let Some(section) = at.and_then(|at: usize| sections.0[at].as_mut()) else { continue };
            if !section.is_empty() {
                section.push('\n');
            }
            section.push_str(line.trim_end());
        }
        for section in sections.0.iter_mut().flatten() {
            *section = section.trim_matches('\n').trim_end().to_owned();
        }
        sections
    }

    /// The words of a section; none if it has no heading.
    pub(crate) fn get(&self, section: usize) -> Option<&str> {
        self.0[section].as_deref()
    }

    /// Gives a section other words.
    pub(crate) fn set(&mut self, section: usize, words: String) {
        self.0[section] = Some(words);
    }

    /// Adds a line to a section.
    pub(crate) fn add(&mut self, section: usize, line: &str) {
        let words = self.0[section].get_or_insert_default();
        if words.trim() == NOTHING {
            words.clear();
        }
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(line);
    }

    /// The headings that are not there, but for the one that fanfold writes.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let gaps = self.0.iter().enumerate().filter(|(i, section)| *i != TASK && section.is_none());
        gaps.map(|(i, _)| HEADINGS[i]).collect()
    }

    /// How many headings are there.
    pub(crate) fn n_found(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Each section that is there, with its number.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().filter_map(|(i, section)| Some((i, section.as_deref()?)))
    }

    /// All thirteen, in their order; what has no words says so.
    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for (heading, section) in HEADINGS.iter().zip(&self.0) {
            let words = section.as_deref().map_or("", str::trim_end);
            let words = if words.trim().is_empty() { NOTHING } else { words };
            out.push_str(&format!("## {heading}\n{words}\n\n"));
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// The section that a line opens, and what stands behind its heading.
fn heading_in(line: &str) -> Option<(usize, &str)> {
    let is_mark = |c: char| matches!(c, '#' | '*' | '_' | ' ' | '.' | ')' | '(') || c.is_ascii_digit();
    let bare = line.trim().trim_start_matches(is_mark);
    let is_marked = line.trim_start().starts_with(['#', '*']) || line.trim_end().ends_with(':');
    let found = HEADINGS.iter().enumerate().filter(|(_, heading)| begins_with(bare, heading));
    // `Goal` begins nothing else, but the longest one is the one that is meant.
    let (at, heading) = found.max_by_key(|(_, heading)| heading.len())?;
    let rest = bare[bare.floor_char_boundary(length_of(bare, heading))..].trim_start_matches(['*', '_']);
    let rest = rest.trim_start();
    match rest.strip_prefix(':') {
        Some(words) => is_marked.then_some((at, words.trim_matches(['*', ' ']))),
        None if rest.trim_matches(['*', '#', ' ']).is_empty() => Some((at, "")),
        None => None,
    }
}

/// Whether a line begins with a heading, whatever its case and however `and` is written.
fn begins_with(line: &str, heading: &str) -> bool {
    length_of(line, heading) > 0
}

fn length_of(line: &str, heading: &str) -> usize {
    let with_and = heading.replace('&', "and");
    let is_it =
        |heading: &str| line.get(..heading.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(heading));
    match (is_it(heading), is_it(&with_and)) {
        (true, _) => heading.len(),
        (false, true) => with_and.len(),
        (false, false) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_known_however_they_are_marked() {
        let text = "Sure, here it is:\n## goal\nfix it\n**Constraints and Preferences:** no new crates\n\
                    ### 4. Completed Actions\n1. READ a.rs\nGoal is reached\n# Key Decisions #\nBlocked:\nnothing";
        let sections = Sections::read(text);
        assert_eq!(sections.get(1), Some("fix it"));
        assert_eq!(sections.get(2), Some("no new crates"));
        assert_eq!(sections.get(3), Some("1. READ a.rs\nGoal is reached"));
        assert_eq!(sections.get(7), Some(""));
        assert_eq!(sections.get(BLOCKED), Some("nothing"));
        assert_eq!(sections.missing().len(), 12 - 5);
        assert_eq!(Sections::read("no headings at all").n_found(), 0);
    }

    #[test]
    fn what_is_printed_reads_back() {
        let mut sections = Sections::default();
        sections.set(1, "a goal\n\nof two parts".to_owned());
        sections.add(FILES, "- src/a.rs");
        let printed = sections.print();
        let again = Sections::read(&printed);
        assert_eq!(again.print(), printed);
        assert!(again.missing().is_empty());
        let heads: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(heads, HEADINGS);
    }
}
