//! The lines of a file that the agent's newest edits touched.
//!
//! An edit quotes the lines it changes with some context. Where a later read of the file has to become shorter, the
//! agent is most likely to need these lines.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::actions::tool_rule::ToolRule;
use crate::model::transcript::Transcript;
use crate::select::analysis::Analysis;

/// Lines that appear in the newest edits of a file.
#[derive(Debug, Default)]
pub(crate) struct EditedLines(HashSet<u64>);

/// The number of edits that count, newest first.
const NEWEST: usize = 8;
/// The minimum length of a line; shorter ones such as `} else {` appear everywhere.
const SHORT: usize = 10;

impl EditedLines {
    /// Collects the lines of the newest edits of a file. Calls that wrote the whole file do not count.
    pub(crate) fn find(
        analysis: &mut Analysis,
        transcript: &Transcript,
        rules: &[ToolRule],
        file: &str,
    ) -> EditedLines {
        let mut edited = EditedLines::default();
        let edits = analysis.edits(transcript, rules);
        let of_file =
            edits.iter().rev().filter(|call| analysis.action(transcript, rules, **call).has_changed(file));
        for call in of_file.take(NEWEST) {
            edited.add_arguments(transcript.call(*call).arguments.as_str());
        }
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
