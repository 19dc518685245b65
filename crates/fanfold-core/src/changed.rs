//! Which lines of a file the agent worked on, as its newest edits tell.
//!
//! An edit names the lines it changes and some around them, before and after. Where a read of the same file has to
//! become shorter, what these lines belong to is what the agent will want to see again.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::deed::Verb;
use crate::draft::Draft;
use crate::transcript::{CallId, EntryId};

/// Lines of a file that were in edits of it.
#[derive(Debug, Default)]
pub(crate) struct Changed(HashSet<u64>);

/// Older edits do not count.
const NEWEST: usize = 8;
/// Shorter lines are anywhere: `} else {`.
const SHORT: usize = 10;

/// The calls that changed a part of a file, oldest first, taken out of the ledger: each entry is looked at once.
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

impl Changed {
    /// The lines in the newest edits of a file. Writing all of it says nothing about a part.
    pub(crate) fn of(draft: &mut Draft<'_>, file: &str) -> Changed {
        let transcript = draft.transcript;
        let mut changed = Changed::default();
        let mut n_edits = 0;
        let edits = find_edits(draft);
        for &call in edits.iter().rev() {
            if draft.deed(call).has_changed(file) {
                n_edits += 1;
                changed.learn(transcript.call(call).arguments.as_str());
            }
            if n_edits == NEWEST {
                break;
            }
        }
        draft.ledger.edits.1 = edits;
        changed
    }

    /// Whether a line was in an edit.
    pub(crate) fn holds(&self, line: &str) -> bool {
        !self.0.is_empty() && key(line).is_some_and(|key| self.0.contains(&key))
    }

    fn learn(&mut self, arguments: &str) {
        match serde_json::from_str(arguments) {
            Ok(value) => self.learn_value(&value),
            Err(_) => self.learn_text(arguments),
        }
    }

    fn learn_value(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.learn_text(text),
            serde_json::Value::Array(values) => values.iter().for_each(|value| self.learn_value(value)),
            serde_json::Value::Object(fields) => fields.values().for_each(|value| self.learn_value(value)),
            _ => {}
        }
    }

    fn learn_text(&mut self, text: &str) {
        for line in text.lines() {
            self.0.extend(key(line));
            // A line of a patch begins with what becomes of it.
            self.0.extend(line.strip_prefix(['+', '-']).and_then(key));
        }
    }
}

/// The hash of a line without its indentation, if it can be told from others.
fn key(line: &str) -> Option<u64> {
    let line = line.trim();
    (line.len() >= SHORT).then(|| xxh3_64(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_edits_and_patches_are_known() {
        let mut changed = Changed::default();
        changed.learn(r#"{"file_path": "a.rs", "old_string": "    let width = next();\n}", "edits": [{"new_string": "let height = next();"}]}"#);
        changed.learn("*** Begin Patch\n*** Update File: a.rs\n@@\n fn context() {\n-    old_call(1);\n+    new_call(2);");
        for line in [
            "let width = next();",
            "\tlet height = next();",
            "fn context() {",
            "new_call(2);",
            "old_call(1);",
        ] {
            assert!(changed.holds(line), "{line}");
        }
        for line in ["}", "let depth = next();", ""] {
            assert!(!changed.holds(line), "{line}");
        }
    }
}
