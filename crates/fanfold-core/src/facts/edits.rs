//! The lines that an edit removed from files and added to them.

use serde_json::{Map, Value};

/// Lines that an edit replaced by others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    pub(crate) removed: Vec<String>,
    pub(crate) added: Vec<String>,
}

/// The hunks of an editing tool, in the order of its arguments.
pub(crate) fn hunks(arguments: &Map<String, Value>) -> Vec<Hunk> {
    let text = |value: &Map<String, Value>, names: &[&str]| {
        names.iter().find_map(|name| value.get(*name)?.as_str()).unwrap_or_default().to_owned()
    };
    let replaced = |value: &Map<String, Value>| {
        let old = text(value, &["old_string", "old_str", "old", "search"]);
        let new = text(value, &["new_string", "new_str", "new", "replace", "new_source", "insert_text"]);
        changed_lines(&old, &new)
    };
    if let Some(edits) = arguments.get("edits").and_then(Value::as_array) {
        return edits.iter().filter_map(Value::as_object).flat_map(replaced).collect();
    }
    let patch = text(arguments, &["patch", "diff", "input", "patch_text"]);
    if patch.contains("\n@@") || patch.starts_with("*** Begin Patch") {
        return patch_hunks(&patch);
    }
    replaced(arguments)
}

/// The hunks of a patch, in unified format or in that of `apply_patch`.
pub(crate) fn patch_hunks(patch: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut is_open = false;
    for line in patch.lines() {
        let is_header = line.starts_with("@@") || line.starts_with("***") || line.starts_with("diff ");
        let (sign, rest) = (line.chars().next(), line.get(1..).unwrap_or_default());
        let is_file_line = line.starts_with("--- ") || line.starts_with("+++ ");
        let is_change = matches!(sign, Some('-' | '+')) && !is_header && !is_file_line;
        if is_change && !is_open {
            hunks.push(Hunk::default());
        }
        is_open = is_change;
        let Some(hunk) = hunks.last_mut().filter(|_| is_change) else { continue };
        match sign {
            Some('-') => hunk.removed.push(rest.to_owned()),
            _ => hunk.added.push(rest.to_owned()),
        }
    }
    hunks.iter_mut().for_each(Hunk::drop_blank_lines);
    hunks.retain(Hunk::has_lines);
    hunks
}

impl Hunk {
    fn drop_blank_lines(&mut self) {
        self.removed.retain(|line| !line.trim().is_empty());
        self.added.retain(|line| !line.trim().is_empty());
    }

    fn has_lines(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }
}

/// The lines that differ between two texts, in hunks, without blank lines.
pub(crate) fn changed_lines(old: &str, new: &str) -> Vec<Hunk> {
    let lines = |text: &str| match text {
        "" => Vec::new(),
        text => text.split('\n').map(str::to_owned).collect::<Vec<String>>(),
    };
    let (old, new) = (lines(old), lines(new));
    let n_start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - n_start;
    let n_end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[n_start..old.len() - n_end], &new[n_start..new.len() - n_end]);
    let mut hunks = align(old, new);
    hunks.iter_mut().for_each(Hunk::drop_blank_lines);
    hunks.retain(Hunk::has_lines);
    hunks
}

/// Splits a change into hunks at the lines that both sides have, by their longest common subsequence.
fn align(old: &[String], new: &[String]) -> Vec<Hunk> {
    const MAX_CELLS: usize = 250_000;
    if old.len() * new.len() > MAX_CELLS {
        return vec![Hunk { removed: old.to_vec(), added: new.to_vec() }];
    }
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = match old[i] == new[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let mut hunks = vec![Hunk::default()];
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let hunk = hunks.last_mut().expect("the list begins with a hunk");
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
            if hunk.has_lines() {
                hunks.push(Hunk::default());
            }
        } else if j == new.len() || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            hunk.removed.push(old[i].clone());
            i += 1;
        } else {
            hunk.added.push(new[j].clone());
            j += 1;
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hunks: &[Hunk]) -> String {
        let hunk = |hunk: &Hunk| format!("-{} +{}", hunk.removed.join("|"), hunk.added.join("|"));
        hunks.iter().map(hunk).collect::<Vec<_>>().join(" / ")
    }

    #[test]
    fn only_changed_lines_are_in_hunks() {
        assert_eq!(shown(&changed_lines("a\nb\nc\nd\ne", "a\nB\nc\nd\n\ne\nf")), "-b +B / - +f");
        assert_eq!(shown(&changed_lines("", "x\n\ny")), "- +x|y");
        assert_eq!(shown(&changed_lines("same", "same")), "");
    }

    #[test]
    fn patches_of_both_formats_have_hunks() {
        let patch =
            "*** Begin Patch\n*** Update File: a.rs\n@@ fn x\n ctx\n-one\n+two\n ctx\n+three\n*** End Patch";
        assert_eq!(shown(&patch_hunks(patch)), "-one +two / - +three");
        let unified = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one\n+two\n";
        assert_eq!(shown(&patch_hunks(unified)), "-one +two");
    }
}
