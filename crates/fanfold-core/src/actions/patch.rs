//! Lists the files that a patch changes: codex patches (`*** Begin Patch`) and unified diffs.

use crate::actions::path::normal;

/// The changed files in order, without adjacent duplicates.
pub(super) fn changed_files(text: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let is_patch = text.contains("*** Begin Patch") || text.contains("\n+++ ") || text.starts_with("--- ");
    if !is_patch {
        return files;
    }
    for line in text.lines() {
        let Some(path) = file_of(line) else { continue };
        let path = normal(path);
        if !path.is_empty() && path != "/dev/null" && files.last() != Some(&path) {
            files.push(path);
        }
    }
    files
}

fn file_of(line: &str) -> Option<&str> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    if let Some(path) = marks.iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(path);
    }
    let path = line.strip_prefix("+++ ")?.split('\t').next()?;
    Some(path.strip_prefix("b/").unwrap_or(path))
}

/// The number of hunks in a patch.
pub(super) fn hunks(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("@@")).count()
}
