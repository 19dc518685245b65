//! The thirteen sections of a summary.
//!
//! Sections about past requests and work in progress are called historical, so that no model takes them for its
//! present task.

/// The headings in order.
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

/// The section that is generated.
pub(crate) const TASK: usize = 0;
/// The section on obstacles.
pub(crate) const BLOCKED: usize = 6;
/// The section on open user requests.
pub(crate) const ASKS: usize = 9;
/// The section on files.
pub(crate) const FILES: usize = 10;
/// The section on values and messages.
pub(crate) const CRITICAL: usize = 12;

/// The text of an empty section.
pub(crate) const NOTHING: &str = "(nothing)";

/// A summary split into sections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sections([Option<String>; HEADINGS.len()]);

impl Sections {
    /// Parses a summary. Text before the first heading is dropped; a repeated heading continues its section.
    pub(crate) fn parse(text: &str) -> Sections {
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

    /// The text of a section, or `None` without a heading.
    pub(crate) fn get(&self, section: usize) -> Option<&str> {
        self.0[section].as_deref()
    }

    /// Replaces the text of a section.
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

    /// The missing headings, except for the generated one.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let gaps = self.0.iter().enumerate().filter(|(i, section)| *i != TASK && section.is_none());
        gaps.map(|(i, _)| HEADINGS[i]).collect()
    }

    /// The number of headings present.
    pub(crate) fn n_found(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// The sections present, with their index.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().filter_map(|(i, section)| Some((i, section.as_deref()?)))
    }

    /// Prints all thirteen sections in order.
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

/// The section that a heading line opens, and the text after the heading.
fn heading_in(line: &str) -> Option<(usize, &str)> {
    let is_mark = |c: char| matches!(c, '#' | '*' | '_' | ' ' | '.' | ')' | '(') || c.is_ascii_digit();
    let bare = line.trim().trim_start_matches(is_mark);
    let is_marked = line.trim_start().starts_with(['#', '*']) || line.trim_end().ends_with(':');
    let found = HEADINGS.iter().enumerate().filter(|(_, heading)| begins_with(bare, heading));
    // Of several matching headings, the longest one is meant.
    let (at, heading) = found.max_by_key(|(_, heading)| heading.len())?;
    let rest = bare[bare.floor_char_boundary(length_of(bare, heading))..].trim_start_matches(['*', '_']);
    let rest = rest.trim_start();
    match rest.strip_prefix(':') {
        Some(words) => is_marked.then_some((at, words.trim_matches(['*', ' ']))),
        None if rest.trim_matches(['*', '#', ' ']).is_empty() => Some((at, "")),
        None => None,
    }
}

/// Returns whether a line begins with a heading, in any case and with `&` or `and`.
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
    fn parses_headings_in_any_markup() {
        let text = "Sure, here it is:\n## goal\nfix it\n**Constraints and Preferences:** no new crates\n\
                    ### 4. Completed Actions\n1. READ a.rs\nGoal is reached\n# Key Decisions #\nBlocked:\nnothing";
        let sections = Sections::parse(text);
        assert_eq!(sections.get(1), Some("fix it"));
        assert_eq!(sections.get(2), Some("no new crates"));
        assert_eq!(sections.get(3), Some("1. READ a.rs\nGoal is reached"));
        assert_eq!(sections.get(7), Some(""));
        assert_eq!(sections.get(BLOCKED), Some("nothing"));
        assert_eq!(sections.missing().len(), 12 - 5);
        assert_eq!(Sections::parse("no headings at all").n_found(), 0);
    }

    #[test]
    fn printed_sections_round_trip() {
        let mut sections = Sections::default();
        sections.set(1, "a goal\n\nof two parts".to_owned());
        sections.add(FILES, "- src/a.rs");
        let printed = sections.print();
        let again = Sections::parse(&printed);
        assert_eq!(again.print(), printed);
        assert!(again.missing().is_empty());
        let heads: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(heads, HEADINGS);
    }
}
