//! The lines of a file that the agent's newest edits touched.
//!
//! An edit quotes the lines it changes with some context. Where a later read of the file has to become shorter, the agent
//! is most likely to need these lines.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::actions::Verb;
use crate::fold::draft::Draft;
use crate::model::transcript::{CallId, EntryId};

/// Lines that appear in the newest edits of a file.
#[derive(Debug, Default)]
pub(crate) struct EditedLines(HashSet<u64>);

/// The number of edits that count, newest first.
const NEWEST: usize = 8;
/// The minimum length of a line; shorter ones such as `} else {` appear everywhere.
const SHORT: usize = 10;

/// Takes the list of calls that edited a part of a file out of the ledger, oldest first, and adds the new ones.
fn find_edits(draft: &mut Draft<'_>) -> Vec<CallId> {
    let transcript = draft.transcript;
    let (seen, mut edits) = std::mem::take(&mut draft.ledger.edits);
    for (i, entry) in transcript.entries().iter().enumerate().skip(seen) {
        let calls = entry.step().map_or(0, |step| step.calls.len());
        for n in 0..calls {
            let call = CallId { step: EntryId::from(i), call: n as u16 };
            let deed = draft.deed(call);
            if deed.verb != Verb::Write && !deed.changes.is_empty() {
                edits.push(call);
            }
        }
    }
    draft.ledger.edits.0 = transcript.len();
    edits
}

impl EditedLines {
    /// Collects the lines of the newest edits of a file. Calls that wrote the whole file do not count.
    pub(crate) fn find(draft: &mut Draft<'_>, file: &str) -> EditedLines {
        let transcript = draft.transcript;
        let mut edited = EditedLines::default();
        let mut n_edits = 0;
        let edits = find_edits(draft);
        for &call in edits.iter().rev() {
            if draft.deed(call).has_changed(file) {
                n_edits += 1;
                edited.add_arguments(transcript.call(call).arguments.as_str());
            }
            if n_edits == NEWEST {
                break;
            }
        }
        draft.ledger.edits.1 = edits;
        edited
    }

    /// Returns whether a line appears in an edit.
    pub(crate) fn contains(&self, line: &str) -> bool {
        !self.0.is_empty() && key(line).is_some_and(|key| self.0.contains(&key))
    }

    fn add_arguments(&mut self, arguments: &str) {
        match serde_json::from_str(arguments) {
            Ok(value) => self.add_value(&value),
            Err(_) => self.add_text(arguments),
        }
    }

    fn add_value(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.add_text(text),
            serde_json::Value::Array(values) => values.iter().for_each(|value| self.add_value(value)),
            serde_json::Value::Object(fields) => fields.values().for_each(|value| self.add_value(value)),
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            self.0.extend(key(line));
            // The first byte of a patch line is its operation.
            self.0.extend(line.strip_prefix(['+', '-']).and_then(key));
        }
    }
}

/// The hash of a trimmed line, if it is long enough.
fn key(line: &str) -> Option<u64> {
    let line = line.trim();
    (line.len() >= SHORT).then(|| xxh3_64(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collects_lines_of_edits_and_patches() {
        let mut edited = EditedLines::default();
        edited.add_arguments(r#"{"file_path": "a.rs", "old_string": "    let width = next();\n}", "edits": [{"new_string": "let height = next();"}]}"#);
        edited.add_arguments("*** Begin Patch\n*** Update File: a.rs\n@@\n fn context() {\n-    old_call(1);\n+    new_call(2);");
        for line in [
            "let width = next();",
            "\tlet height = next();",
            "fn context() {",
            "new_call(2);",
            "old_call(1);",
        ] {
            assert!(edited.contains(line), "{line}");
        }
        for line in ["}", "let depth = next();", ""] {
            assert!(!edited.contains(line), "{line}");
        }
    }
}
